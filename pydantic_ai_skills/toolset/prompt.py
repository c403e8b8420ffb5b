"""Every word the model reads, as pure functions: escaped once, the same bytes for the same skills."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from itertools import accumulate
from typing import Any, NamedTuple

from pydantic_ai.framing import RegisteredTag, neutralize_tags, register_tag, wrap

from pydantic_ai_skills.execution.base import ScriptResult, describe_exit
from pydantic_ai_skills.parsing.rules import tool_name
from pydantic_ai_skills.types.skill import Skill, SkillResource, SkillScript

TOOLS = ('list_skills', 'search_skills', 'load_skill', 'read_skill_resource', 'run_skill_script')
"""The tools a model may be offered."""

MAX_DESCRIPTION_CHARS = 1024
"""How much of one description the catalogue shows, whatever its budget."""

MIN_DESCRIPTION_CHARS = 24
"""Where there is less room than this for each description, only names are shown."""

PAGE_CHARS = 40_000
"""How much of a text resource, or of the list of all skills, is sent at once."""

MAX_RESULT_BYTES = 62 * 1024
"""How much of a script's output is sent, escaped. Executors keep less, but escaping can make it longer."""

MAX_FILES_SHOWN = 200
"""How many resources and how many scripts of a skill are listed when it is loaded."""

SKILLS_LIST = '{skills_list}'
"""Where a template takes the list of skills."""

# Only tags around text that is not escaped are registered: pydantic-ai escapes registered tags in instructions.
_SKILL_INSTRUCTIONS = register_tag('skill_instructions')
_STDOUT = register_tag('script_stdout')
_STDERR = register_tag('script_stderr')

_LEAD = 'Skills are packages of instructions, resources and scripts for particular tasks. These are available:'
_HINTS = {
    'search_skills': 'The list does not tell everything: call `search_skills` with a few words about the task to find '
    'skills for it.',
    'load_skill': 'When a task fits the description of a skill, call `load_skill` with its name before anything else '
    'and follow the instructions it gives.',
    'read_skill_resource': 'Read a resource with `read_skill_resource` when the instructions refer to it.',
    'run_skill_script': 'Run a script with `run_skill_script`.',
}

_BREAKS = re.compile(r'\s+')
_WITHOUT_WIDTH = frozenset(
    map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0))
) | frozenset(map(chr, range(0xE0100, 0xE01F0)))
"""Letters and accents that show nothing; the variation selectors among them can spell out whole messages."""

_SUSPECT = re.compile(r'[^\x20-\x7e\n\t]')
"""Plain text needs no look at each character."""

_FOR_TERMINALS = re.compile(
    r'\x1b(?:\[[0-?]*[ -/]*[@-~]'  # colours, and moves of the cursor
    r'|\][^\x07\x1b]*(?:\x07|\x1b\\)'  # titles and links
    r'|[ -/]*[0-~])'
)


# --- Text of others -----------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Text without characters that hide, reorder or smuggle text: control, format, private, unassigned, no width."""
    return _SUSPECT.sub(_visible, text.replace('\r\n', '\n'))


def one_line(text: str) -> str:
    """Clean text on one line."""
    return _BREAKS.sub(' ', clean(text)).strip()


def _visible(match: re.Match[str]) -> str:
    character = match[0]
    category = unicodedata.category(character)
    if category in ('Zl', 'Zp'):
        return '\n'
    return '' if category[0] == 'C' or character in _WITHOUT_WIDTH else character


def shorten(text: str, room: int) -> str:
    """Text that takes at most `room` characters when escaped, cut with an ellipsis where it is longer."""
    if len(escape(text, quote=False)) <= room:
        return text
    text = text[: room - 1]
    while len(escape(text, quote=False)) > room - 1:
        text = text[:-1]
    return f'{text.rstrip()}…'


@lru_cache(maxsize=64)
def rename_tools(text: str, names: tuple[tuple[str, str], ...]) -> str:
    """Our words with the names that the model knows the tools by, where a toolset is prefixed or renamed.

    Args:
        text: Words that may name tools.
        names: Pairs of the name a tool has here and the one the model sees.
    """
    seen = dict(names)
    return re.sub(rf'\b({"|".join(map(re.escape, seen))})\b', lambda match: seen[match[0]], text) if seen else text


# --- The catalogue ------------------------------------------------------------------------------------------------


class Rendered(NamedTuple):
    """A text that was given a size."""

    text: str
    """The text."""

    is_whole: bool
    """Whether nothing was left out of it."""


def render_instructions(
    skills: Mapping[str, Skill[Any]],
    *,
    tools: Collection[str],
    template: str | None,
    budget: int | None,
    pinned: Collection[str] = (),
) -> Rendered:
    """What stands in the system prompt: the list of skills, and how to use it with the tools that are there."""
    text = template or _default_template(tools)
    room = None if budget is None else budget - len(text) + len(SKILLS_LIST)
    catalog = render_catalog(skills, room=room, tools=tools, pinned=pinned)
    return Rendered(text.replace(SKILLS_LIST, catalog.text), catalog.is_whole)


def _default_template(tools: Collection[str]) -> str:
    hints = ' '.join(hint for tool, hint in _HINTS.items() if tool in tools)
    return f'{_LEAD}\n\n{SKILLS_LIST}\n\n{hints}'.rstrip()


def render_catalog(
    skills: Mapping[str, Skill[Any]], *, room: int | None, tools: Collection[str], pinned: Collection[str] = ()
) -> Rendered:
    """The XML list of skills. Where it would take more than `room` characters, it says less about each skill.

    Descriptions are shortened to the same length first, then left out; then the list is cut, and says by how much.
    Skills that are `pinned` stay as they are.
    """
    if skills.keys() <= set(pinned):
        room = None
    names = {name: _entry(skill, None) for name, skill in skills.items()}
    if room is None or sum(map(len, names.values())) <= room:
        whole = {name: _whole_entry(skill) for name, skill in skills.items()}
        text = _list(whole.values())
        if room is None or len(text) <= room:
            return Rendered(text, is_whole=True)
        if shortened := _shorten_all(skills, whole, pinned, room):
            return Rendered(shortened, is_whole=False)
    kept = {name: _whole_entry(skills[name]) for name in pinned if name in skills}
    bare = f'{_list({**names, **kept}.values())}\nDescriptions are left out here. {_way(tools)}'
    return Rendered(bare if len(bare) <= room else _cut_list(names, kept, room, tools), is_whole=False)


def _whole_entry(skill: Skill[Any]) -> str:
    return _entry(skill, shorten(one_line(skill.description), MAX_DESCRIPTION_CHARS))


def _entry(skill: Skill[Any], description: str | None) -> str:
    parts = [_element('name', skill.name)]
    if description is not None:
        parts.append(_element('description', description))
    if skill.has_own_uri:
        parts.append(_element('uri', one_line(skill.uri)))
    return f'<skill>{"".join(parts)}</skill>'


def _list(entries: Iterable[str], note: str | None = None) -> str:
    return '\n'.join(('<available_skills>', *entries, *((note,) if note else ()), '</available_skills>'))


def _shorten_all(
    skills: Mapping[str, Skill[Any]], whole: Mapping[str, str], pinned: Collection[str], room: int
) -> str | None:
    """The list with all descriptions but those of pinned skills cut to one length; `None` if that is too short."""
    texts = {name: one_line(skill.description) for name, skill in skills.items() if name not in pinned}
    empty = {name: _entry(skills[name], '') for name in texts}
    lengths = [len(escape(text, quote=False)) for text in texts.values()]
    length = _fair_length(lengths, room - len(_list({**whole, **empty}.values())))
    if length < MIN_DESCRIPTION_CHARS:
        return None
    return _list(
        {**whole, **{name: _entry(skills[name], shorten(text, length)) for name, text in texts.items()}}.values()
    )


def _cut_list(names: Mapping[str, str], kept: Mapping[str, str], room: int, tools: Collection[str]) -> str:
    """The names that fit beside what is kept whole, sorted as ever, and how many there are besides."""
    note = f'<not_listed count="{{}}">{_way(tools)}</not_listed>'
    left = room - len(_list(kept.values(), note.format(len(names))))
    sizes = accumulate(0 if name in kept else len(entry) + 1 for name, entry in names.items())
    shown = {name: entry for (name, entry), size in zip(names.items(), sizes, strict=True) if size <= left} | dict(kept)
    return _list((shown[name] for name in sorted(shown)), note.format(len(names) - len(shown)))


def _way(tools: Collection[str]) -> str:
    """How to see what the list leaves out."""
    ways = (('search_skills', 'find skills with `search_skills`'), ('list_skills', 'see all with `list_skills`'))
    there = [way for tool, way in ways if tool in tools] or ['all can be loaded by name']
    return f'{", or ".join(there)}.'.capitalize()


def _fair_length(lengths: list[int], room: int) -> int:
    """The length to which texts are cut so that they fit: short ones stay whole and leave their room to others."""
    ordered = sorted(lengths)
    shorter = accumulate(ordered, initial=0)
    shares = ((room - used) // (len(ordered) - index) for index, used in enumerate(shorter) if index < len(ordered))
    return next((share for length, share in zip(ordered, shares, strict=True) if length > share), 0)


def _element(tag: str, text: str) -> str:
    return f'<{tag}>{escape(text, quote=False)}</{tag}>'


# --- What was asked for -------------------------------------------------------------------------------------------


def describe(skills: Iterable[Skill[Any]]) -> dict[str, str]:
    """Names and descriptions."""
    return {skill.name: shorten(one_line(skill.description), MAX_DESCRIPTION_CHARS) for skill in skills}


def list_page(skills: Iterable[Skill[Any]], page: int) -> dict[str, Any] | str:
    """All names and descriptions; where they are too many to be sent at once, one page of them."""
    pages: list[dict[str, str]] = [{}]
    room = PAGE_CHARS
    for name, description in describe(skills).items():
        room -= len(name) + len(description)
        if room < 0 and pages[-1]:
            pages.append({})
            room = PAGE_CHARS - len(name) - len(description)
        pages[-1][name] = description
    if page == 1 == len(pages):
        return pages[0]
    if not 1 <= page <= len(pages):
        return f'There is no page {page}: the list of skills has {len(pages)}.'
    further = {'more': f'Ask for page {page + 1}.'} if page < len(pages) else {}
    return {'skills': pages[page - 1], 'page': page, 'pages': len(pages), 'total': sum(map(len, pages)), **further}


def found(skills: Sequence[Skill[Any]], query: str) -> dict[str, str] | str:
    """What a search gives: the names and descriptions of the skills that fit, best first."""
    if not skills:
        return f'No skill fits {one_line(query)[:200]!r}. Try other words: fewer, or more general ones.'
    return describe(skills)


# --- A loaded skill -----------------------------------------------------------------------------------------------


def render_skill(skill: Skill[Any], *, arguments: str | None = None, framed: bool = True) -> str:
    """What `load_skill` gives: who the skill is, what can be read and run, then its instructions.

    Args:
        skill: The skill.
        arguments: What a person wrote after the skill's name, if one loads it.
        framed: Whether the instructions are kept apart from what is around them, as the words of others have to be.
    """
    # First: reading the instructions of a file brings what its header says up to date with them.
    instructions = clean(_with_arguments(skill.content, arguments)).strip()
    parts = [
        '<skill>',
        _element('name', skill.name),
        _element('description', one_line(skill.description)),
        _element('uri', one_line(skill.uri)),
    ]
    if skill.path is not None:
        parts.append(_element('location', one_line(skill.path)))
    if skill.compatibility:
        parts.append(_element('compatibility', one_line(skill.compatibility)))
    parts += _item_list('resource', skill.resources)
    parts += _item_list('script', skill.scripts)
    if not skill.is_trusted:
        parts += _declared_tools(skill)
    if not framed:
        return '\n'.join((*parts, '</skill>', '', instructions))
    parts += [wrap(_SKILL_INSTRUCTIONS, f'\n{instructions}\n'), '</skill>']
    return '\n'.join(parts)


def _with_arguments(text: str, arguments: str | None) -> str:
    if arguments is None:
        return text
    from .invoke import fill_in_arguments  # only people give arguments

    return fill_in_arguments(text, arguments)


def _declared_tools(skill: Skill[Any]) -> list[str]:
    """What a stranger says about the tools of a skill. Their definitions do not: those may be sent as the system's."""
    lines: list[str] = []
    for tool in skill.tool_specs:
        parts = [_element('name', tool_name(skill.name, tool.name)), _element('description', clean(tool.description))]
        if tool.arguments:
            parameters = {argument.name: argument.schema() for argument in tool.arguments}
            parts.append(_element('parameters', clean(json.dumps(parameters, ensure_ascii=False))))
        lines.append(f'<tool>{"".join(parts)}</tool>')
    return ['<tools>', *lines, '</tools>'] if lines else []


def is_skill_text(text: str) -> bool:
    """Whether this is what `load_skill` gave, whole."""
    return text.startswith('<skill>') and text.endswith('</skill>')


def already_loaded(skill: Skill[Any]) -> str:
    """What a second load gives while the first one is still in the conversation."""
    return f'The skill {skill.name!r} is loaded already: its instructions are above and have not changed.'


def not_loaded(skill: Skill[Any], load_tool: str, parameter: str) -> str:
    """Why a skill that is not loaded can be neither read nor run."""
    return f'The skill {skill.name!r} is not loaded. Call `{load_tool}` with {parameter} {skill.name!r} first.'


def _item_list(tag: str, items: Collection[SkillResource | SkillScript]) -> list[str]:
    if not items:
        return []
    lines = [_item(tag, item) for item in list(items)[:MAX_FILES_SHOWN]]
    if len(items) > MAX_FILES_SHOWN:
        lines.append(f'<not_listed count="{len(items) - MAX_FILES_SHOWN}"/>')
    return [f'<{tag}s>', *lines, f'</{tag}s>']


def _item(tag: str, item: SkillResource | SkillScript) -> str:
    parts = [_element('name', one_line(item.name))]
    if item.description:
        parts.append(_element('description', one_line(item.description)))
    if item.function_schema is not None:
        parameters = json.dumps(item.function_schema.json_schema, ensure_ascii=False, separators=(',', ':'))
        parts.append(_element('parameters', clean(parameters)))
    elif isinstance(item, SkillScript) and (usage := item.usage):
        parts.append(_element('usage', clean(usage)))
    return f'<{tag}>{"".join(parts)}</{tag}>'


# --- What reading and running gives -------------------------------------------------------------------------------


def page_of(text: str, name: str, page: int) -> str:
    """One page of a long text, with a line that says how to go on; a text that fits on one page as it stands."""
    pages = max(1, -(-len(text) // PAGE_CHARS))
    if pages == 1 and page == 1:
        return text
    if not 1 <= page <= pages:
        return f'[{name!r} has {pages} page{"s" if pages > 1 else ""}; there is no page {page}.]'
    part = text[(page - 1) * PAGE_CHARS : page * PAGE_CHARS]
    further = f' Read on with args {{"page": {page + 1}}}.' if page < pages else ''
    return f'{part}\n\n[Page {page} of {pages} of {name!r}, {len(text):,} characters.{further}]'


def render_result(result: ScriptResult, written: Sequence[str] = (), read_tool: str = 'read_skill_resource') -> str:
    """What a script printed, its exit code when it is not 0, and the names of the files it wrote.

    Args:
        result: What the script left behind.
        written: The names of its files.
        read_tool: What the model calls the tool to read them with.
    """
    stdout, stderr = _printed(result.stdout), _printed(result.stderr).strip()
    if not stderr and not result.exit_code and not written:
        return stdout if stdout.strip() else '(The script printed nothing.)'
    parts = [_framed(_STDOUT, stdout, MAX_RESULT_BYTES)] if stdout.strip() else []
    if stderr:
        parts.append(_framed(_STDERR, stderr, MAX_RESULT_BYTES - sum(len(part.encode()) for part in parts)))
    if result.exit_code:
        parts.append(f'Exit code: {describe_exit(result.exit_code)}')
    if written:
        names = ', '.join(repr(one_line(name)) for name in written)
        parts.append(f'It wrote files, which can be read with {read_tool}: {names}')
    return '\n'.join(parts)


def _printed(text: str) -> str:
    """Output without what only a terminal understands. A bar that is drawn over and over becomes a line each time."""
    return clean(_FOR_TERMINALS.sub('', text).replace('\r\n', '\n').replace('\r', '\n'))


def _framed(tag: RegisteredTag, text: str, room: int) -> str:
    """Text in its element, cut where escaping has made it longer than there is room for."""
    escaped = neutralize_tags(text).encode()
    if len(escaped) > room:
        escaped = escaped[: max(0, room)] + b'\n[The rest was cut.]'
    return wrap(tag, escaped.decode(errors='ignore'))
