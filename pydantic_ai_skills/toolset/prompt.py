"""Decides which tools and which list of skills the model is shown.

The same skills always give the same bytes, so that a provider can cache the prompt.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, Literal, NamedTuple

from pydantic_ai.messages import InstructionPart

from pydantic_ai_skills.catalog.merge import MAX_SKILLS_LISTED, Catalog
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.skill import Skill

from .results import MAX_DESCRIPTION_CHARS, element, one_line, shorten_description

TOOLS = ('list_skills', 'search_skills', 'load_skill', 'read_skill_resource', 'run_skill_script')
"""The tools a model may be offered."""

MIN_DESCRIPTION_CHARS = 24
"""If descriptions have to be shorter than this, only names are shown."""

SKILLS_LIST = '{skills_list}'
"""The placeholder for the list of skills in a template."""

BYTES_PER_TOKEN = 4
"""How many bytes of UTF-8 count as one token."""

FRAME_CHARS = 200
"""How many characters pydantic-ai writes around a part that may change."""

MAX_NARROWED_VIEWS = 100
"""How many selections of skills are kept for runs that see different ones."""

MAX_NARROWED_NAMES = 100_000
"""How many names these selections may have in total."""

SEARCH = 'search_skills'
"""The tool that, unless it is always offered, is offered only if the list of skills does not fit into its budget."""

SearchTool = Literal['auto', 'always']
"""When the search is offered: if the list of skills does not fit, or always."""

_LEAD = 'These skills are available.'
_HINTS = {
    'load_skill': 'When a task fits one of these skills, call `load_skill` first and follow its instructions.',
    'search_skills': 'To find skills by what they do, call `search_skills`.',
}


@dataclass(kw_only=True, eq=False, repr=False)
class View:
    """A catalog as the model sees it. It never changes; a new one replaces it as a whole."""

    catalog: Catalog
    """The skills."""

    tools: frozenset[str]
    """The names of the tools that can do something with the skills."""

    instructions: InstructionPart | None
    """The part that lists the skills; `None` without skills."""

    attached: tuple[int, ...]
    """The `attachments` of the skills written in Python when the view was made."""

    assignments: int
    """The `Skill.assignments` when the view was made."""

    problems: tuple[SkillProblem, ...] = ()
    """Problems with the settings for this catalog."""

    worded: dict[frozenset[str], InstructionPart | None] = field(
        default_factory=dict[frozenset[str], InstructionPart | None], compare=False
    )
    """The instructions for runs that have only some of these tools, by the tools they have."""

    narrowed: dict[tuple[str, ...], View] = field(default_factory=dict[tuple[str, ...], 'View'], compare=False)
    """Views of some of the skills, kept for the next run that may see the same ones."""

    @cached_property
    def with_tools(self) -> tuple[Skill[Any], ...]:
        """The skills that have typed tools without importing anything."""
        return tuple(
            skill for skill in self.catalog.skills.values() if skill.tools or skill.tool_specs or skill.toolsets
        )


class ViewSettings(NamedTuple):
    """The developer's settings for how skills are shown."""

    template: str | None
    """The text around the list of skills."""

    budget: int | None
    """How many characters the instructions may take."""

    pinned: tuple[str, ...]
    """The names of the skills that are always listed in full."""

    tools: frozenset[str]
    """The names of the tools that may be offered."""

    always_all_tools: bool
    """Whether to offer all tools but the search whatever the skills are, because skills may change during a run."""

    search_tool: SearchTool
    """When to offer the search."""

    def view(self, catalog: Catalog, in_python: Iterable[Skill[Any]]) -> View:
        """Make the view of a catalog."""
        assignments = Skill.assignments  # read first, so that later assignments make this view outdated
        tools = self.tools if self.always_all_tools else _useful(self.tools, list(catalog.skills.values()))
        tools, instructions = self._show(catalog, tools)
        return View(
            catalog=catalog,
            tools=tools,
            instructions=instructions,
            attached=attachments(in_python),
            assignments=assignments,
            problems=self._problems(catalog, instructions),
        )

    def narrow(self, view: View, names: tuple[str, ...]) -> View:
        """The view of some of the skills. It keeps the tools, so that nothing has to be read."""
        if len(names) == len(view.catalog.skills):
            return view
        narrowed = view.narrowed.get(names)
        if narrowed is None:
            catalog = view.catalog.only(names)
            tools = view.tools if names or self.always_all_tools else frozenset[str]()
            tools, instructions = self._show(catalog, tools)
            narrowed = replace(view, catalog=catalog, tools=tools, instructions=instructions, narrowed={}, worded={})
            if len(view.narrowed) >= MAX_NARROWED_VIEWS or sum(map(len, view.narrowed)) >= MAX_NARROWED_NAMES:
                view.narrowed.clear()
            view.narrowed[names] = narrowed
        return narrowed

    def instructions(self, view: View, there: frozenset[str]) -> InstructionPart | None:
        """The instructions for a run in which the model has the tools in `there`."""
        if view.tools <= there:
            return view.instructions
        if there not in view.worded:
            view.worded[there] = _part(self.render(view.catalog, view.tools & there)) if view.instructions else None
        return view.worded[there]

    def _show(self, catalog: Catalog, tools: frozenset[str]) -> tuple[frozenset[str], InstructionPart | None]:
        """The tools, with the search only if it is needed, and the instructions."""
        without = tools - {SEARCH}
        if not catalog.skills:
            return without, None
        if_cut = without | (self.tools & {SEARCH})
        if_whole = without if self.search_tool == 'auto' else if_cut
        rendered = self.render(catalog, if_whole, if_cut)
        return if_whole if rendered.is_whole else if_cut, _part(rendered)

    def render(self, catalog: Catalog, tools: frozenset[str], if_cut: frozenset[str] | None = None) -> Rendered:
        """The text of the instructions for a catalog, and which skills it lists."""
        return render_instructions(
            catalog.skills,
            tools=tools,
            if_cut=if_cut,
            template=self.template,
            budget=None if self.budget is None else self.budget - FRAME_CHARS,
            pinned=self.pinned,
        )

    def _problems(self, catalog: Catalog, instructions: InstructionPart | None) -> tuple[SkillProblem, ...]:
        """Problems with the pinned names."""
        unknown = [name for name in self.pinned if name not in catalog.skills]
        problems = [problem('pinned-unknown', name, f'There is no skill {name!r} to pin.') for name in unknown]
        size = len(instructions.content) + FRAME_CHARS if instructions else 0
        if self.pinned and self.budget is not None and size > self.budget:
            message = (
                f'With the pinned skills, the instructions have {size:,} characters; the budget is {self.budget:,}.'
            )
            problems.append(problem('pinned-too-long', 'pinned', message))
        return tuple(problems)


def _part(rendered: Rendered) -> InstructionPart:
    # Cached with the prompt's prefix; when it changes, the new text is appended to the conversation.
    return InstructionPart(rendered.text, name='catalog', on_change='append')


def attachments(skills: Iterable[Skill[Any]]) -> tuple[int, ...]:
    """How many resources, scripts, tools and toolsets each skill has: some may be added after the view was made."""
    return tuple(len(skill.resources) + len(skill.scripts) + len(skill.tools) + len(skill.toolsets) for skill in skills)


def _useful(tools: frozenset[str], skills: list[Skill[Any]]) -> frozenset[str]:
    """The tools that can do something with these skills. Nothing is read: a skill not listed yet may have any files."""
    if not skills:
        return frozenset()
    if len(skills) > MAX_SKILLS_LISTED:
        return tools
    if not any(skill.may_read for skill in skills):
        tools -= {'read_skill_resource'}
    if not any(skill.may_run for skill in skills):
        tools -= {'run_skill_script'}
    return tools


# --- The text -----------------------------------------------------------------------------------------------------


class Rendered(NamedTuple):
    """A text that was made to fit."""

    text: str
    """The text."""

    is_whole: bool
    """Whether nothing was left out of it."""

    entries: Mapping[str, str]
    """The line of each skill that is listed, by its name."""


def render_instructions(
    skills: Mapping[str, Skill[Any]],
    *,
    tools: Collection[str],
    template: str | None,
    budget: int | None,
    pinned: Collection[str] = (),
    if_cut: Collection[str] | None = None,
) -> Rendered:
    """The text of the system prompt: the XML list of skills, and how to use it with the tools that are offered.

    The list is made to fit: descriptions are first shortened to one length, then left out; then the list is cut and
    says by how much. Skills that are `pinned` are always shown in full. If anything is left out, the tools are those in
    `if_cut`.
    """
    text, room = _text_around_list(tools, template, budget)
    catalog = _whole_catalog(skills, room, pinned)
    if catalog is None:
        tools = tools if if_cut is None else if_cut
        text, room = _text_around_list(tools, template, budget)
        catalog = _cut_catalog(skills, room, tools, pinned)
    return catalog._replace(text=text.replace(SKILLS_LIST, catalog.text))


def _text_around_list(tools: Collection[str], template: str | None, budget: int | None) -> tuple[str, int]:
    """The text with a placeholder for the list, and how many characters the list may take."""
    text = template or _default_template(tools)
    return text, (sys.maxsize if budget is None else budget) - len(text) + len(SKILLS_LIST)


def _default_template(tools: Collection[str]) -> str:
    hints = [hint for tool, hint in _HINTS.items() if tool in tools]
    if 'load_skill' not in tools:
        hints.insert(0, _LEAD)
    return f'{" ".join(hints)}\n\n{SKILLS_LIST}'


def _whole_catalog(skills: Mapping[str, Skill[Any]], room: int, pinned: Collection[str]) -> Rendered | None:
    """The list of skills in full, if it fits or nothing in it may be left out."""
    room = sys.maxsize if skills.keys() <= set(pinned) else room
    entries = _fitting(((name, _whole_entry(skill)) for name, skill in skills.items()), room - len(_list(())))
    return _rendered(entries, is_whole=True) if len(entries) == len(skills) else None


def _cut_catalog(
    skills: Mapping[str, Skill[Any]], room: int, tools: Collection[str], pinned: Collection[str]
) -> Rendered:
    """The list of skills, with as much as fits."""
    kept = {name: _whole_entry(skills[name]) for name in skills.keys() & set(pinned)}
    tag = len(element('skill', None, name=''))
    if sum(tag + len(name) for name in skills) <= room:  # otherwise, not even the names fit
        names = {name: _entry(skill, None) for name, skill in skills.items()}
        if shortened := _shorten_all(skills, kept, room):
            return _rendered(shortened)
        bare = _rendered({**names, **kept}, after=f'\nDescriptions are left out here. {_way(tools)}')
        if len(bare.text) <= room:
            return bare
    return _cut_list(skills, kept, room, tools)


def _rendered(
    entries: Mapping[str, str], *, is_whole: bool = False, note: str | None = None, after: str = ''
) -> Rendered:
    return Rendered(f'{_list(entries.values(), note)}{after}', is_whole, entries)


def _whole_entry(skill: Skill[Any]) -> str:
    return _entry(skill, shorten_description(skill.description, MAX_DESCRIPTION_CHARS))


def _entry(skill: Skill[Any], description: str | None) -> str:
    uri = None if skill.own_uri is None else one_line(skill.uri)
    return element('skill', description, name=skill.name, uri=uri)


def _list(entries: Iterable[str], note: str | None = None) -> str:
    return '\n'.join(('<available_skills>', *entries, *((note,) if note else ()), '</available_skills>'))


def _shorten_all(skills: Mapping[str, Skill[Any]], kept: Mapping[str, str], room: int) -> dict[str, str] | None:
    """The entries, with all descriptions but the kept ones cut to one length; `None` if that length is too short."""
    texts = {name: one_line(skill.description) for name, skill in skills.items() if name not in kept}
    empty = [_entry(skills[name], '') for name in texts]
    lengths = [len(escape(text, quote=False)) for text in texts.values()]
    length = fair_length(lengths, room - len(_list([*kept.values(), *empty])))
    if length < MIN_DESCRIPTION_CHARS:
        return None
    return {
        name: kept[name] if name in kept else _entry(skill, shorten_description(texts[name], length))
        for name, skill in skills.items()
    }


def _cut_list(skills: Mapping[str, Skill[Any]], kept: Mapping[str, str], room: int, tools: Collection[str]) -> Rendered:
    """The names that fit beside the entries kept in full, sorted, and how many more there are."""
    note = f'<not_listed count="{{}}">{_way(tools)}</not_listed>'
    rest = ((name, _entry(skill, None)) for name, skill in skills.items() if name not in kept)
    shown = _fitting(rest, room - len(_list(kept.values(), note.format(len(skills))))) | dict(kept)
    return _rendered({name: shown[name] for name in sorted(shown)}, note=note.format(len(skills) - len(shown)))


def _fitting(entries: Iterable[tuple[str, str]], room: int) -> dict[str, str]:
    """As many of the first entries as fit. The others are not even rendered, which matters with thousands of skills."""
    fitting: dict[str, str] = {}
    for name, entry in entries:
        room -= len(entry) + 1
        if room < 0:
            break
        fitting[name] = entry
    return fitting


def _way(tools: Collection[str]) -> str:
    """How to see what the list leaves out."""
    ways = (('search_skills', 'find skills with `search_skills`'), ('list_skills', 'see all with `list_skills`'))
    there = [way for tool, way in ways if tool in tools] or ['all can be loaded by name']
    return f'{", or ".join(there)}.'.capitalize()


def fair_length(lengths: Collection[int], room: int) -> int:
    """The length to cut texts to so that all fit, 0 if there is none. Short texts leave their room to the others."""
    for count, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - count)
        if length > share:
            return max(0, share)
        room -= length
    return max(lengths, default=0)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes: one for every four bytes of UTF-8.

    That is near what most models count for English and for code. Each model counts in its own way, so use it to compare
    skills and to see the order of magnitude, not to fill a context window to the brim.

    ```python
    from pydantic_ai_skills import estimate_tokens

    print(estimate_tokens('Convert lengths, masses and temperatures.'))
    #> 11
    ```
    """
    return -(-len(text.encode('utf-8', 'replace')) // BYTES_PER_TOKEN)
