"""Skills as deferred capabilities of pydantic-ai: in its own catalogue, loaded with `load_capability`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from html import escape
from typing import Any, Literal

import anyio.to_thread
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, ToolDefinition

from pydantic_ai_skills.exceptions import SkillError, SkillResourceLoadError
from pydantic_ai_skills.toolset.durable import check_may_read
from pydantic_ai_skills.toolset.history import LOAD_KIND, invoked_skills, messages_of
from pydantic_ai_skills.toolset.prompt import one_line, render_skill, shorten
from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.lookup import closest_first
from pydantic_ai_skills.types.skill import Skill

__all__ = (
    'Disclosure',
    'OnDemandSkill',
    'answer_without_loading',
    'is_load',
    'on_demand_skills',
)

logger = logging.getLogger('pydantic_ai_skills')

Disclosure = Literal['tools', 'on-demand']
"""How the model learns of skills: by this package's tools, or as deferred capabilities of pydantic-ai."""


class OnDemandSkill(AbstractCapability[Any]):
    """One skill as a deferred capability: its instructions and model settings. Its tools come from the toolset."""

    def __init__(
        self,
        skill: Skill[Any],
        *,
        toolset_id: str,
        texts: dict[str, tuple[Skill[Any], str]],
        description: str | None = None,
    ) -> None:
        """Describe it.

        Args:
            skill: The skill.
            toolset_id: The toolset it is from.
            texts: What the model reads of skills that are loaded, as far as that was asked for before: shared by all
                skills of one `SkillsCapability`.
            description: What the list says about it.
        """
        self.id = skill.name
        self.description = description
        self.defer_loading = True
        self.skill = skill
        self.toolset_id = toolset_id
        self.texts = texts

    def get_instructions(self) -> Any:
        """What the model reads once it is loaded, in the words of the system: so only for skills that are trusted."""
        return self._instructions

    async def _instructions(self, ctx: RunContext[Any]) -> str | None:
        if self.skill.name in invoked_skills(messages_of(ctx) or (), self.toolset_id):
            return None  # a person has brought them into the conversation
        try:
            return await self.read()
        except SkillError as error:
            # The skill was loaded when they could be read: a conversation that is resumed goes on without them.
            logger.warning('The instructions of skill %r cannot be read: %s', self.skill.name, error)
            return f'The instructions of the skill {self.skill.name!r} cannot be read at the moment.'

    async def read(self) -> str:
        """What the model reads once it is loaded. It stays the same for as long as the skill does.

        Raises:
            SkillError: It cannot be read.
        """
        skill, text = self.texts.get(self.skill.name, (None, ''))
        if skill is not self.skill:
            check_may_read()
            reading = anyio.to_thread.run_sync(partial(render_skill, self.skill, framed=False))
            what = f'instructions of skill {self.skill.name!r}'
            text = await guarded(reading, what=what, error=SkillResourceLoadError)
            self.texts[self.skill.name] = self.skill, text
        return text

    def get_model_settings(self) -> ModelSettings | None:
        """The settings that hold while it is loaded."""
        return self.skill.model_settings


def on_demand_skills(
    skills: Iterable[Skill[Any]],
    made: dict[str, OnDemandSkill],
    texts: dict[str, tuple[Skill[Any], str]],
    *,
    toolset_id: str,
    budget: int | None,
) -> list[OnDemandSkill]:
    """The capabilities of these skills.

    Args:
        skills: The skills, sorted by name, which may all speak in the words of the system.
        made: Those that were made before, which are used again.
        texts: What the model reads of those that were loaded before.
        toolset_id: The toolset the skills are from.
        budget: How many characters their list may take.
    """
    chosen = list(skills)
    descriptions = [one_line(skill.description) for skill in chosen]
    if budget is not None:
        room = budget - sum(len(skill.name) + len('- : \n') for skill in chosen)
        # As `shorten` measures them.
        length = _fair_length([len(escape(description, quote=False)) for description in descriptions], room)
        descriptions = [shorten(description, length) if length else '' for description in descriptions]
    capabilities: list[OnDemandSkill] = []
    for skill, description in zip(chosen, descriptions, strict=True):
        capability = made.get(skill.name)
        if capability is None or capability.skill is not skill or capability.description != description:
            capability = OnDemandSkill(skill, toolset_id=toolset_id, texts=texts, description=description or None)
            made[skill.name] = capability
        capabilities.append(capability)
    return capabilities


def _fair_length(lengths: list[int], room: int) -> int:
    """The length to which texts are cut so that all fit; 0 where they cannot."""
    for count, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - count)
        if length > share:
            return max(0, share)
        room -= length
    return max(lengths, default=0)


# --- Loads that go wrong ------------------------------------------------------------------------------------------


def is_load(tool: ToolDefinition) -> bool:
    """Whether it is pydantic-ai's tool that loads capabilities."""
    return tool.tool_kind == LOAD_KIND


def answer_without_loading(ctx: RunContext[Any], name: str) -> dict[str, str] | None:
    """What to answer to a load that pydantic-ai would refuse; `None` for one that it would not.

    Pydantic-ai asks the model to try again when it refuses, and ends the run when it has to refuse again.

    Args:
        ctx: The context of the call.
        name: What the model wants to load.

    Raises:
        ToolFailed: There is nothing of that name to load.
    """
    capability = ctx.capabilities.get(name)
    if capability is None or capability.defer_loading is not True:
        known = [id for id, other in ctx.capabilities.items() if other.defer_loading is True]
        raise ToolFailed(f'There is no capability {name!r} to load. {closest_first("skill", name, known)}')
    if name in ctx.active_capability_ids or _is_loaded_by_another_call(ctx, name):
        return {'message': f'{name!r} is loaded already: its instructions are there and have not changed.'}
    return None


def _is_loaded_by_another_call(ctx: RunContext[Any], name: str) -> bool:
    """Whether an earlier call of the same response loads the same."""
    response = next((message for message in reversed(ctx.messages) if isinstance(message, ModelResponse)), None)
    calls = (part for part in (response.parts if response else ()) if isinstance(part, ToolCallPart))
    loads = (call for call in calls if call.tool_kind == LOAD_KIND and call.args_as_dict().get('id') == name)
    first = next(loads, None)
    return first is not None and first.tool_call_id != ctx.tool_call_id
