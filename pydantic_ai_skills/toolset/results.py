"""Renders the answers of the tools with pure functions that clean and escape text from skills."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple

from pydantic_ai.framing import RegisteredTag, neutralize_tags, register_tag, wrap

from pydantic_ai_skills.execution.base import ScriptResult, describe_exit
from pydantic_ai_skills.parsing.header import SkillHeader
from pydantic_ai_skills.parsing.skill_names import tool_name
from pydantic_ai_skills.types.resource import SkillResource
from pydantic_ai_skills.types.script import SkillScript
from pydantic_ai_skills.types.skill import Skill

MAX_DESCRIPTION_CHARS = 1024
"""How much of one description is shown in a list of skills."""

PAGE_CHARS = 40_000
"""How much of a text resource, or of the list of all skills, is sent at once."""

MAX_RESULT_BYTES = 62 * 1024
"""How much of a script's output is sent, escaped. Executors keep less, but escaping can make it longer."""

MAX_FILES_SHOWN = 200
"""How many resources and how many scripts of a skill are listed when it is loaded."""

# Only tags around text that is not escaped are registered: pydantic-ai escapes registered tags in instructions.
_SKILL_INSTRUCTIONS = register_tag('skill_instructions')
_STDOUT = register_tag('script_stdout')
_STDERR = register_tag('script_stderr')

_BREAKS = re.compile(r'\s+')
_WITHOUT_WIDTH = frozenset(
    map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0))
) | frozenset(map(chr, range(0xE0100, 0xE01F0)))
"""Letters and accents that are invisible; the variation selectors among them can encode whole messages."""

_SUSPECT = re.compile(r'[^\x20-\x7e\n\t]')
"""Only these characters need a check."""

_FOR_TERMINALS = re.compile(
    r'\x1b(?:\[[0-?]*[ -/]*[@-~]'  # colours, and moves of the cursor
    r'|\][^\x07\x1b]*(?:\x07|\x1b\\)'  # titles and links
    r'|[ -/]*[0-~])'
)


# --- Text from skills ---------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Remove characters that hide, reorder or smuggle text: control, format, private, unassigned, zero-width."""
    return _SUSPECT.sub(_visible, text.replace('\r\n', '\n'))


def one_line(text: str) -> str:
    """Clean text and put it on one line."""
    return _BREAKS.sub(' ', clean(text)).strip()


def _visible(match: re.Match[str]) -> str:
    character = match[0]
    category = unicodedata.category(character)
    if category in ('Zl', 'Zp'):
        return '\n'
    return '' if category[0] == 'C' or character in _WITHOUT_WIDTH else character


def shorten(text: str, room: int) -> str:
    """Cut text with an ellipsis so that it takes at most `room` characters when escaped."""
    if len(escape(text, quote=False)) <= room:
        return text
    text = text[: room - 1]
    while len(escape(text, quote=False)) > room - 1:
        text = text[:-1]
    return f'{text.rstrip()}…'


def element(tag: str, text: str) -> str:
    """An XML element with escaped text."""
    return f'<{tag}>{escape(text, quote=False)}</{tag}>'


@lru_cache(maxsize=64)
def rename_tools(text: str, names: tuple[tuple[str, str], ...]) -> str:
    """Replace names of tools: pairs of the name a tool has here and the one the model sees."""
    seen = dict(names)
    return re.sub(rf'\b({"|".join(map(re.escape, seen))})\b', lambda match: seen[match[0]], text)


# --- Lists of skills ----------------------------------------------------------------------------------------------


def describe(skills: Iterable[Skill[Any]]) -> dict[str, str]:
    """Names and descriptions."""
    return {skill.name: shorten(one_line(skill.description), MAX_DESCRIPTION_CHARS) for skill in skills}


def list_page(skills: Iterable[Skill[Any]], page: int) -> dict[str, Any] | str:
    """All names and descriptions, or one page of them if they are too many to be sent at once."""
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
    """The result of a search: names and descriptions, best first."""
    if not skills:
        return f'No skill fits {one_line(query)[:200]!r}. Try other words: fewer, or more general ones.'
    return describe(skills)


# --- A loaded skill -----------------------------------------------------------------------------------------------


class SkillContent(NamedTuple):
    """What was read of a skill to load it."""

    header: SkillHeader
    """The header that was read with the instructions."""

    instructions: str
    """Its instructions, with a person's arguments filled in."""

    resources: Sequence[SkillResource]
    """What the model can read."""

    scripts: Sequence[SkillScript]
    """What the model can run."""

    usages: Mapping[str, str]
    """How to call the scripts that say so, by name."""


def render_skill(skill: Skill[Any], content: SkillContent, *, framed: bool = True) -> str:
    """The answer of `load_skill`: which skill it is, what can be read and run, then its instructions.

    With `framed`, the instructions are in an element of their own, which marks them as the skill's text.
    """
    instructions = clean(content.instructions).strip()
    parts = [
        '<skill>',
        element('name', skill.name),
        element('description', one_line(content.header.description)),
        element('uri', one_line(skill.uri)),
    ]
    if skill.path is not None:
        parts.append(element('location', one_line(skill.path)))
    if content.header.compatibility:
        parts.append(element('compatibility', one_line(content.header.compatibility)))
    parts += _item_list('resource', content.resources, {})
    parts += _item_list('script', content.scripts, content.usages)
    if not skill.is_trusted:
        parts += _declared_tools(skill)
    if not framed:
        return '\n'.join((*parts, '</skill>', '', instructions))
    parts += [wrap(_SKILL_INSTRUCTIONS, f'\n{instructions}\n'), '</skill>']
    return '\n'.join(parts)


def _declared_tools(skill: Skill[Any]) -> list[str]:
    """How an untrusted skill describes its tools. Their definitions do not: a provider may present those as its own."""
    lines: list[str] = []
    for tool in skill.tool_specs:
        parts = [element('name', tool_name(skill.name, tool.name)), element('description', clean(tool.description))]
        if tool.arguments:
            parameters = {argument.name: argument.schema() for argument in tool.arguments}
            parts.append(element('parameters', clean(json.dumps(parameters, ensure_ascii=False))))
        lines.append(f'<tool>{"".join(parts)}</tool>')
    return ['<tools>', *lines, '</tools>'] if lines else []


def _item_list(tag: str, items: Collection[SkillResource | SkillScript], usages: Mapping[str, str]) -> list[str]:
    if not items:
        return []
    lines = [_item(tag, item, usages.get(item.name)) for item in list(items)[:MAX_FILES_SHOWN]]
    if len(items) > MAX_FILES_SHOWN:
        lines.append(f'<not_listed count="{len(items) - MAX_FILES_SHOWN}"/>')
    return [f'<{tag}s>', *lines, f'</{tag}s>']


def _item(tag: str, item: SkillResource | SkillScript, usage: str | None) -> str:
    parts = [element('name', one_line(item.name))]
    if item.description:
        parts.append(element('description', one_line(item.description)))
    if item.function_schema is not None:
        parameters = json.dumps(item.function_schema.json_schema, ensure_ascii=False, separators=(',', ':'))
        parts.append(element('parameters', clean(parameters)))
    elif usage:
        parts.append(element('usage', clean(usage)))
    return f'<{tag}>{"".join(parts)}</{tag}>'


def is_skill_text(content: object) -> bool:
    """Whether this is a whole answer of `load_skill`: history processing may have cut it."""
    return isinstance(content, str) and content.startswith('<skill>') and content.endswith('</skill>')


def already_loaded(skill: Skill[Any]) -> str:
    """The answer to a second load while the first one is still in the conversation."""
    return f'The skill {skill.name!r} is loaded already: its instructions are above and have not changed.'


def not_loaded(skill: Skill[Any], load_tool: str, parameter: str) -> str:
    """Why a skill that is not loaded can be neither read nor run."""
    return f'The skill {skill.name!r} is not loaded. Call `{load_tool}` with {parameter} {skill.name!r} first.'


def lost(names: Sequence[str], load_tool: str) -> str:
    """A note about loaded skills whose instructions were taken out of the conversation."""
    listed = ', '.join(map(repr, names))
    return (
        f'These skills were loaded earlier, but their instructions are no longer in the conversation: {listed}. '
        f'Call `{load_tool}` again before you use one of them.'
    )


# --- Resources and scripts ----------------------------------------------------------------------------------------


def page_of(text: str, name: str, page: int) -> str:
    """One page of a long text, with a line that says how to read on; a text that fits on one page is unchanged."""
    pages = max(1, -(-len(text) // PAGE_CHARS))
    if pages == 1 and page == 1:
        return text
    if not 1 <= page <= pages:
        return f'[{name!r} has {pages} page{"s" if pages > 1 else ""}; there is no page {page}.]'
    part = text[(page - 1) * PAGE_CHARS : page * PAGE_CHARS]
    further = f' Read on with args {{"page": {page + 1}}}.' if page < pages else ''
    return f'{part}\n\n[Page {page} of {pages} of {name!r}, {len(text):,} characters.{further}]'


def render_result(result: ScriptResult, files: Sequence[str] = (), read_tool: str = 'read_skill_resource') -> str:
    """What a script printed, its exit code unless it is 0, and the names under which its files can be read."""
    stdout, stderr = _printed(result.stdout), _printed(result.stderr).strip()
    if not (stderr or result.exit_code or files):
        return stdout if stdout.strip() else '(The script printed nothing.)'
    parts: list[str] = []
    for tag, output in ((_STDOUT, stdout), (_STDERR, stderr)):
        if output.strip():
            parts.append(_framed(tag, output, MAX_RESULT_BYTES - len(''.join(parts).encode())))
    if result.exit_code:
        parts.append(f'Exit code: {describe_exit(result.exit_code)}')
    if files:
        names = ', '.join(repr(one_line(name)) for name in files)
        parts.append(f'It wrote files, which can be read with {read_tool}: {names}')
    return '\n'.join(parts)


def _printed(text: str) -> str:
    """Output without terminal sequences. Each redraw of a progress bar becomes a line."""
    return clean(_FOR_TERMINALS.sub('', text).replace('\r\n', '\n').replace('\r', '\n'))


def _framed(tag: RegisteredTag, text: str, room: int) -> str:
    """Text in its element, cut where escaping has made it longer than `room`."""
    escaped = neutralize_tags(text).encode()
    if len(escaped) > room:
        escaped = escaped[: max(0, room)] + b'\n[The rest was cut.]'
    return wrap(tag, escaped.decode(errors='ignore'))
