"""Every word the model reads, as pure functions: escaped once, the same bytes for the same skills."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from itertools import accumulate
from typing import Any

from pydantic_ai.framing import RegisteredTag, neutralize_tags, register_tag, wrap

from pydantic_ai_skills.execution.base import ScriptResult
from pydantic_ai_skills.types import Skill, SkillResource, SkillScript

TOOLS = ('list_skills', 'load_skill', 'read_skill_resource', 'run_skill_script')
"""The tools a model may be offered."""

MAX_DESCRIPTION_CHARS = 1024
"""How much of one description the catalogue shows, whatever its budget."""

MIN_DESCRIPTION_CHARS = 24
"""Where there is less room than this for each description, only names are shown."""

PAGE_CHARS = 40_000
"""How much of a text resource is sent at once."""

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


# --- The catalogue ------------------------------------------------------------------------------------------------


def render_instructions(
    skills: Mapping[str, Skill[Any]], *, tools: Collection[str], template: str | None, budget: int | None
) -> str:
    """What stands in the system prompt: the list of skills, and how to use it with the tools that are there."""
    text = template or _default_template(tools)
    room = None if budget is None else budget - len(text) + len(SKILLS_LIST)
    return text.replace(SKILLS_LIST, render_catalog(skills, room=room, tools=tools))


def _default_template(tools: Collection[str]) -> str:
    hints = ' '.join(hint for tool, hint in _HINTS.items() if tool in tools)
    return f'{_LEAD}\n\n{SKILLS_LIST}\n\n{hints}'.rstrip()


def render_catalog(skills: Mapping[str, Skill[Any]], *, room: int | None, tools: Collection[str]) -> str:
    """The XML list of skills. Where it would take more than `room` characters, it says less about each skill.

    Descriptions are shortened to the same length first, then left out; then the list is cut, and says by how much.
    """
    entries = [(skill, one_line(skill.description)) for skill in skills.values()]
    whole = _list(_entry(skill, shorten(text, MAX_DESCRIPTION_CHARS)) for skill, text in entries)
    if room is None or len(whole) <= room:
        return whole
    bare = _list(_entry(skill, None) for skill, _ in entries)
    named = _list(_entry(skill, '') for skill, _ in entries)
    length = _fair_length([len(escape(text, quote=False)) for _, text in entries], room - len(named))
    if length >= MIN_DESCRIPTION_CHARS:
        return _list(_entry(skill, shorten(text, length)) for skill, text in entries)
    if len(bare) <= room:
        return bare
    return _cut_list([_entry(skill, None) for skill, _ in entries], room, tools)


def _entry(skill: Skill[Any], description: str | None) -> str:
    parts = [_element('name', skill.name)]
    if description is not None:
        parts.append(_element('description', description))
    if skill.has_own_uri:
        parts.append(_element('uri', one_line(skill.uri)))
    return f'<skill>{"".join(parts)}</skill>'


def _list(entries: Iterable[str]) -> str:
    return '\n'.join(('<available_skills>', *entries, '</available_skills>'))


def _cut_list(entries: list[str], room: int, tools: Collection[str]) -> str:
    way = 'Call `list_skills` to see all.' if 'list_skills' in tools else 'They can be loaded by name all the same.'
    shown = len(entries)
    while True:
        note = f'<not_listed count="{len(entries) - shown}">{way}</not_listed>'
        text = _list((*entries[:shown], note))
        if len(text) <= room or not shown:
            return text
        # Entries are about as long as each other, so a few steps are enough.
        shown = min(shown - 1, max(0, shown * room // len(text)))


def _fair_length(lengths: list[int], room: int) -> int:
    """The length to which texts are cut so that they fit: short ones stay whole and leave their room to others."""
    ordered = sorted(lengths)
    shorter = accumulate(ordered, initial=0)
    shares = ((room - used) // (len(ordered) - index) for index, used in enumerate(shorter))
    return next(share for length, share in zip(ordered, shares, strict=False) if length > share)


def _element(tag: str, text: str) -> str:
    return f'<{tag}>{escape(text, quote=False)}</{tag}>'


# --- A loaded skill -----------------------------------------------------------------------------------------------


def render_skill(skill: Skill[Any]) -> str:
    """What `load_skill` gives: who the skill is, what can be read and run, then its instructions."""
    # First: reading the instructions of a file brings what its header says up to date with them.
    instructions = clean(skill.content).strip()
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
    parts += [wrap(_SKILL_INSTRUCTIONS, f'\n{instructions}\n'), '</skill>']
    return '\n'.join(parts)


def already_loaded(skill: Skill[Any]) -> str:
    """What a second load gives while the first one is still in the conversation."""
    return f'The skill {skill.name!r} is loaded already: its instructions are above and have not changed.'


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


def render_result(result: ScriptResult, written: Sequence[str] = ()) -> str:
    """What a script printed, its exit code when it is not 0, and the names of the files it wrote."""
    stdout, stderr = clean(result.stdout), clean(result.stderr).strip()
    if not stderr and not result.exit_code and not written:
        return stdout or '(The script printed nothing.)'
    parts = [_framed(_STDOUT, stdout, MAX_RESULT_BYTES)] if stdout.strip() else []
    if stderr:
        parts.append(_framed(_STDERR, stderr, MAX_RESULT_BYTES - sum(len(part.encode()) for part in parts)))
    if result.exit_code:
        parts.append(f'Exit code: {result.exit_code}')
    if written:
        names = ', '.join(repr(one_line(name)) for name in written)
        parts.append(f'It wrote files, which can be read with read_skill_resource: {names}')
    return '\n'.join(parts)


def _framed(tag: RegisteredTag, text: str, room: int) -> str:
    """Text in its element, cut where escaping has made it longer than there is room for."""
    escaped = neutralize_tags(text).encode()
    if len(escaped) > room:
        escaped = escaped[: max(0, room)] + b'\n[The rest was cut.]'
    return wrap(tag, escaped.decode(errors='ignore'))
