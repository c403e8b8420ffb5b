"""A catalog as one agent sees it: the tools that make sense and the instructions that name them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic_ai.messages import InstructionPart

from pydantic_ai_skills.catalog.merge import Catalog
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import Skill

from . import prompt as disclosure

__all__ = ('View', 'ViewSettings', 'attachments')

FRAME_CHARS = 200
"""How much pydantic-ai writes around a part that may change."""

MAX_SKILLS_ASKED = 100
"""How many skills are asked for their files to see whether a tool has any use; with more than that it is offered."""


MAX_NARROWED_VIEWS = 100
"""How many different selections of skills are kept ready when runs see different ones."""

MAX_NARROWED_NAMES = 100_000
"""How many names these may have together."""

SEARCH = 'search_skills'
"""The tool that is there only if the list of skills does not fit."""

SearchTool = Literal['auto', 'always']
"""When the search is offered: if the list of skills does not fit into its budget, or always."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
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

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about how they are shown."""

    narrowed: dict[tuple[str, ...], View] = field(default_factory=dict[tuple[str, ...], 'View'], compare=False)
    """Views of some of its skills that were asked for already."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ViewSettings:
    """What a developer decides about how skills are shown."""

    template: str | None
    """The text around the list of skills."""

    budget: int | None
    """How many characters the instructions may take."""

    pinned: tuple[str, ...]
    """The names of the skills that are listed whole, whatever the budget."""

    tools: frozenset[str]
    """The names of the tools that may be offered."""

    always_all_tools: bool
    """Whether to offer them whatever skills there are, because that can change while the tools should not.

    The search is no such tool: whether it is offered follows from the skills alone.
    """

    search_tool: SearchTool
    """When to offer the search."""

    def view(self, catalog: Catalog, written: Iterable[Skill[Any]]) -> View:
        """Make the view of a catalog. It may have to look for files of its skills."""
        tools = self.tools if self.always_all_tools else _useful(self.tools, list(catalog.skills.values()))
        tools, instructions = self._show(catalog, tools)
        return View(
            catalog=catalog,
            tools=tools,
            instructions=instructions,
            attached=attachments(written),
            problems=self._problems(catalog, instructions),
        )

    def narrow(self, view: View, names: tuple[str, ...]) -> View:
        """The view of some of its skills, with the same tools, so that nothing has to be read."""
        if len(names) == len(view.catalog.skills):
            return view
        narrowed = view.narrowed.get(names)
        if narrowed is None:
            catalog = view.catalog.only(names)
            tools = view.tools if names or self.always_all_tools else frozenset[str]()
            tools, instructions = self._show(catalog, tools)
            narrowed = replace(view, catalog=catalog, tools=tools, instructions=instructions, narrowed={})
            if len(view.narrowed) >= MAX_NARROWED_VIEWS or sum(map(len, view.narrowed)) >= MAX_NARROWED_NAMES:
                view.narrowed.clear()
            view.narrowed[names] = narrowed
        return narrowed

    def _show(self, catalog: Catalog, tools: frozenset[str]) -> tuple[frozenset[str], InstructionPart | None]:
        """The instructions, and the tools with the search among them if there is need for it."""
        without = tools - {SEARCH}
        if not catalog.skills:
            return without, None
        if SEARCH not in self.tools:
            return tools, _part(self._render(catalog, tools))
        if self.search_tool == 'auto':
            rendered = self._render(catalog, without)
            if rendered.is_whole:
                return without, _part(rendered)
        return without | {SEARCH}, _part(self._render(catalog, without | {SEARCH}))

    def _render(self, catalog: Catalog, tools: frozenset[str]) -> disclosure.Rendered:
        budget = None if self.budget is None else self.budget - FRAME_CHARS
        return disclosure.render_instructions(
            catalog.skills, tools=tools, template=self.template, budget=budget, pinned=self.pinned
        )

    def _problems(self, catalog: Catalog, instructions: InstructionPart | None) -> tuple[SkillProblem, ...]:
        """What is wrong with the names that are pinned."""
        unknown = [name for name in self.pinned if name not in catalog.skills]
        problems = [problem('pinned-unknown', name, f'There is no skill {name!r} to pin.') for name in unknown]
        size = len(instructions.content) + FRAME_CHARS if instructions else 0
        if self.pinned and self.budget is not None and size > self.budget:
            message = (
                f'With the pinned skills, the instructions have {size:,} characters; the budget is {self.budget:,}.'
            )
            problems.append(problem('pinned-too-long', 'pinned', message))
        return tuple(problems)


def _part(rendered: disclosure.Rendered) -> InstructionPart:
    # Cached with the prompt's prefix; when it changes, the new text is appended to the conversation.
    return InstructionPart(rendered.text, name='catalog', on_change='append')


def attachments(written: Iterable[Skill[Any]]) -> tuple[int, ...]:
    """How many resources, scripts and tools each skill has: what a decorator may add after the view was made."""
    return tuple(len(skill.resources) + len(skill.scripts) + len(skill.tools) for skill in written)


def _has_something_to_read(skill: Skill[Any]) -> bool:
    """Whether it has resources, or programs, which may write files; or whether that is not known yet."""
    return skill.is_late or bool(skill.resources) or any(script.function is None for script in skill.scripts)


def _useful(tools: frozenset[str], skills: list[Skill[Any]]) -> frozenset[str]:
    if not skills:
        return frozenset()
    if len(skills) > MAX_SKILLS_ASKED:
        return tools
    useless: Set[str] = {
        *(() if any(map(_has_something_to_read, skills)) else ('read_skill_resource',)),
        *(() if any(skill.is_late or skill.scripts for skill in skills) else ('run_skill_script',)),
    }
    return tools - useless
