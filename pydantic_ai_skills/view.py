"""A catalog as one agent sees it: the tools that make sense and the instructions that name them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.messages import InstructionPart

from pydantic_ai_skills import disclosure
from pydantic_ai_skills.catalog import Catalog
from pydantic_ai_skills.types import Skill

__all__ = ('View', 'ViewSettings', 'attachments')

FRAME_CHARS = 200
"""How much pydantic-ai writes around a part that may change."""

MAX_SKILLS_ASKED = 100
"""How many skills are asked for their files to see whether a tool has any use; with more than that it is offered."""


MAX_NARROWED_VIEWS = 100
"""How many different selections of skills are kept ready when runs see different ones."""


@dataclass(frozen=True, kw_only=True)
class View:
    """A catalog and what follows from it for the model. It never changes; it is replaced as a whole."""

    catalog: Catalog
    """The skills."""

    tools: frozenset[str]
    """The names of the tools that can do something with them."""

    instructions: InstructionPart | None
    """The part that lists them; `None` without skills."""

    attached: tuple[int, ...]
    """What `attachments` of the skills written in Python were when it was made."""

    narrowed: dict[tuple[str, ...], View] = field(default_factory=dict[tuple[str, ...], 'View'], compare=False)
    """Views of some of its skills that were asked for already."""


@dataclass(frozen=True, kw_only=True)
class ViewSettings:
    """What a developer decides about how skills are shown."""

    template: str | None
    """The text around the list of skills."""

    budget: int | None
    """How many characters the instructions may take."""

    tools: frozenset[str]
    """The names of the tools that may be offered."""

    always_all_tools: bool
    """Whether to offer them whatever skills there are, because that can change while the tools should not."""

    def view(self, catalog: Catalog, written: Iterable[Skill[Any]]) -> View:
        """Make the view of a catalog. It may have to look for files of its skills."""
        tools = self.tools if self.always_all_tools else _useful(self.tools, list(catalog.skills.values()))
        return View(
            catalog=catalog, tools=tools, instructions=self._instructions(catalog, tools), attached=attachments(written)
        )

    def narrow(self, view: View, names: tuple[str, ...]) -> View:
        """The view of some of its skills, with the same tools, so that nothing has to be read."""
        if len(names) == len(view.catalog.skills):
            return view
        narrowed = view.narrowed.get(names)
        if narrowed is None:
            catalog = view.catalog.only(names)
            tools = view.tools if names or self.always_all_tools else frozenset[str]()
            narrowed = replace(view, catalog=catalog, tools=tools, instructions=self._instructions(catalog, tools))
            if len(view.narrowed) >= MAX_NARROWED_VIEWS:
                view.narrowed.clear()
            view.narrowed[names] = narrowed
        return narrowed

    def _instructions(self, catalog: Catalog, tools: frozenset[str]) -> InstructionPart | None:
        if not catalog.skills:
            return None
        budget = None if self.budget is None else self.budget - FRAME_CHARS
        text = disclosure.render_instructions(catalog.skills, tools=tools, template=self.template, budget=budget)
        # Cached with the prompt's prefix; when it changes, the new text is appended to the conversation.
        return InstructionPart(text, name='catalog', on_change='append')


def attachments(written: Iterable[Skill[Any]]) -> tuple[int, ...]:
    """How many resources and scripts each skill has: what a decorator may add after the view was made."""
    return tuple(len(skill.resources) + len(skill.scripts) for skill in written)


def _has_something_to_read(skill: Skill[Any]) -> bool:
    """Whether it has resources, or programs, which may write files."""
    return bool(skill.resources) or any(script.function is None for script in skill.scripts)


def _useful(tools: frozenset[str], skills: list[Skill[Any]]) -> frozenset[str]:
    if not skills:
        return frozenset()
    if len(skills) > MAX_SKILLS_ASKED:
        return tools
    useless: Set[str] = {
        *(() if any(map(_has_something_to_read, skills)) else ('read_skill_resource',)),
        *(() if any(skill.scripts for skill in skills) else ('run_skill_script',)),
    }
    return tools - useless
