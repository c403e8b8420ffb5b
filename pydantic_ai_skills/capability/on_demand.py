"""Offers skills as deferred capabilities, which pydantic-ai lists itself and loads with `load_capability`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from html import escape
from typing import Any, Literal

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, ToolDefinition

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.toolset.actions import render
from pydantic_ai_skills.toolset.history import LOAD_KIND, invoked_skills, messages_of
from pydantic_ai_skills.toolset.library import check_may_read
from pydantic_ai_skills.toolset.prompt import fair_length
from pydantic_ai_skills.toolset.results import one_line, outgoing, shorten
from pydantic_ai_skills.types.lookup import closest_first
from pydantic_ai_skills.types.skill import Skill

logger = logging.getLogger('pydantic_ai_skills')

Disclosure = Literal['tools', 'on-demand']
"""How the model learns about skills: from this package's tools, or as deferred capabilities of pydantic-ai."""


LoadedTexts = dict[str, tuple[Skill[Any], int, str]]
"""The texts of loaded skills by name, each with its skill and the `Skill.assignments` at the time."""


class OnDemandSkill(AbstractCapability[Any]):
    """One skill as a deferred capability: its instructions and model settings. Its tools come from the toolset."""

    def __init__(
        self,
        skill: Skill[Any],
        *,
        toolset_id: str,
        texts: LoadedTexts,
        description: str | None = None,
    ) -> None:
        """Defer a skill. `texts` keeps what the model reads of each; all skills of one `SkillsCapability` share it."""
        self.id = skill.name
        self.description = description
        self.defer_loading = True
        self.skill = skill
        self.toolset_id = toolset_id
        self.texts = texts
        self.kept: LoadedTexts = texts if skill.writer is None else {}
        """Where the text of this skill is kept: in `texts`, or only in this object if it is written for each run."""

    def get_instructions(self) -> Any:
        """What the model reads once the skill is loaded. It is system text, so the skill must be trusted."""
        return self._instructions

    async def _instructions(self, ctx: RunContext[Any]) -> str | None:
        if self.skill.name in invoked_skills(messages_of(ctx) or (), self.toolset_id):
            return None  # a person's prompt contains them
        try:
            return await self.read(ctx)
        except SkillError as error:
            # They were readable when the skill was loaded: a resumed conversation continues without them.
            logger.warning('The instructions of skill %r cannot be read: %s', self.skill.name, error)
            return f'The instructions of the skill {self.skill.name!r} cannot be read at the moment.'

    async def read(self, ctx: RunContext[Any] | None) -> str:
        """Read the instructions, or raise a `SkillError`. They stay the same until the skill changes."""
        skill, assignments, text = self.kept.get(self.skill.name, (None, 0, ''))
        if skill is not self.skill or assignments != Skill.assignments:
            assignments = Skill.assignments
            check_may_read()
            text = await render(self.skill, ctx, framed=False)
            self.kept[self.skill.name] = self.skill, assignments, text
        return text

    def get_model_settings(self) -> ModelSettings | None:
        """The settings that apply while it is loaded."""
        return self.skill.model_settings


def on_demand_skills(
    skills: Iterable[Skill[Any]],
    made: dict[str, OnDemandSkill],
    texts: LoadedTexts,
    *,
    toolset_id: str,
    budget: int | None,
) -> list[OnDemandSkill]:
    """A capability for each of these trusted skills; the list of all of them fits into `budget` characters.

    Capabilities in `made` are used again while their skill and its description stay the same.
    """
    chosen = list(skills)
    capabilities: list[OnDemandSkill] = []
    for skill, description in zip(chosen, _descriptions(chosen, budget), strict=True):
        capability = made.get(skill.name)
        is_same = capability is not None and capability.skill is skill and capability.description == description
        if capability is None or not is_same or skill.writer is not None:
            capability = OnDemandSkill(skill, toolset_id=toolset_id, texts=texts, description=description or None)
            made[skill.name] = capability
        capabilities.append(capability)
    return capabilities


def _descriptions(skills: list[Skill[Any]], budget: int | None) -> list[str]:
    """The descriptions, shortened so that their list fits into the budget."""
    descriptions = [one_line(skill.description) for skill in skills]
    if budget is None:
        return descriptions
    room = budget - sum(len(skill.name) + len('- : \n') for skill in skills)
    # Measured as `shorten` does.
    length = fair_length([len(escape(description, quote=False)) for description in descriptions], room)
    return [shorten(description, length) if length else '' for description in descriptions]


# --- Loads that go wrong ------------------------------------------------------------------------------------------


def is_load(tool: ToolDefinition) -> bool:
    """Whether it is pydantic-ai's tool that loads capabilities."""
    return tool.tool_kind == LOAD_KIND


def answer_without_loading(ctx: RunContext[Any], name: str) -> dict[str, str] | None:
    """The answer to a load that pydantic-ai would refuse; `None` if it would not.

    Pydantic-ai asks the model to try again when it refuses, and ends the run when it has to refuse again. So a name
    that does not exist is a tool failure here.
    """
    capability = ctx.capabilities.get(name)
    if capability is None or capability.defer_loading is not True:
        known = [id for id, other in ctx.capabilities.items() if other.defer_loading is True]
        told = f'There is no capability {name[:200]!r} to load. {closest_first("skill", name, known)}'
        raise ToolFailed(outgoing(told))
    if name in ctx.active_capability_ids or _is_loaded_by_another_call(ctx, name):
        return {'message': f'{name!r} is loaded already: its instructions are there and have not changed.'}
    return None


def _is_loaded_by_another_call(ctx: RunContext[Any], name: str) -> bool:
    """Whether an earlier call in the same response loads this capability."""
    response = next((message for message in reversed(ctx.messages) if isinstance(message, ModelResponse)), None)
    calls = (part for part in (response.parts if response else ()) if isinstance(part, ToolCallPart))
    loads = (call for call in calls if call.tool_kind == LOAD_KIND and call.args_as_dict().get('id') == name)
    first = next(loads, None)
    return first is not None and first.tool_call_id != ctx.tool_call_id
