"""Renders the answers of the tools with pure functions, and is the one exit for text on its way to the model.

Everything that leaves the toolset passes through `outgoing`, which removes hidden characters, neutralises forged tags
and limits the size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape, unescape
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
from pydantic_ai.messages import TextContent, ToolReturn, ToolReturnPart, is_multi_modal_content
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_jsonable_python

from pydantic_ai_skills.parsing.characters import hidden_characters
from pydantic_ai_skills.types.skill import Skill

from .compat import framing

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.result import ScriptResult

MAX_DESCRIPTION_CHARS = 1024
"""How much of one description is shown in a list of skills."""

MIN_ABOUT_CHARS = 12
"""With less room than this beside the sentence that says when to use a skill, that sentence stands alone."""

PAGE_BYTES = 40_000
"""How much of a text resource, or of the list of all skills, is sent at once."""

INSTRUCTIONS = 'SKILL.md'
"""The name under which instructions that are too long to be sent at once can be read."""

MAX_RESULT_BYTES = 64 * 1024
"""How large one answer may be, including names and tags."""

# Only tags around text that is not escaped are registered: pydantic-ai escapes registered tags in instructions.
_STDOUT = framing.register_tag('script_stdout')
_STDERR = framing.register_tag('script_stderr')
SKILL_INSTRUCTIONS = framing.register_tag('skill_instructions')
"""The tag around the instructions of a skill."""

_LINE_ENDS = re.compile('\r\n?|[\u2028\u2029]')
_OUR_TAGS = re.compile(
    r'<(?=\s*(?:/\s*)?(?:skill|available_skills|skill_instructions|script_stdout|script_stderr)(?=[\s/>]|$))',
    re.IGNORECASE,
)
_CUT = '\n[The rest was cut.]'
_WHEN = (
    r'(?<=[.!?;:] )(?:(?:use|invoke|load|activate|apply|call|choose|trigger)\w*\b'
    r'(?=[^.!?]*\b(?:when|if|for|to)\w*\b)|when).*?(?:[.!?](?= |$)|$)'
)

_FOR_TERMINALS = (
    r'\x1b(?:\[[0-?]*[ -/]*[@-~]'  # colours, and moves of the cursor
    r'|\][^\x07\x1b]*(?:\x07|\x1b\\)'  # titles and links
    r'|[ -/]*[0-~])'
)


# --- The exit -----------------------------------------------------------------------------------------------------


class Framed(str):
    """Text in this package's tags that fits into a result, and in which all foreign text is cleaned and neutralised."""

    __slots__ = ()


def outgoing(value: Any) -> Any:
    """The value that a tool returned, as the model may be sent it: clean, without forged tags, not too long.

    A value with nothing to change is returned as it is. Images and other files pass unchanged.
    """
    if isinstance(value, Framed):
        return str(value)
    if isinstance(value, ToolReturn):
        returned = cast(ToolReturn[Any], value)
        return replace(returned, return_value=outgoing(returned.return_value), content=outgoing(returned.content))
    if isinstance(value, str):
        return cut(visible(value[: 2 * MAX_RESULT_BYTES]))
    try:
        value = _each_text(value)
        part = ToolReturnPart('', value, '')
        text = part.model_response_str()
    except (ValueError, RecursionError):  # it cannot be encoded for a model
        return outgoing(repr(value))
    shortened = cut(text)
    return value if shortened == text else [shortened, *part.files] if part.files else shortened


def outgoing_error(error: Exception) -> Exception:
    """The same error with a message that the model, or the person who is asked for approval, may be shown."""
    if isinstance(error, ToolFailed | ModelRetry):
        error.message = outgoing(error.message)
        error.args = (error.message,)
    elif isinstance(error, ApprovalRequired):
        error.metadata = _each_text(error.metadata, escaped)
    return error


def outgoing_tool(tool: ToolDefinition) -> ToolDefinition:
    """The definition of a skill's tool, clean in every text."""
    description, schema = _each_text(tool.description), _each_text(tool.parameters_json_schema)
    if description is tool.description and schema is tool.parameters_json_schema:
        return tool
    return replace(tool, description=description, parameters_json_schema=schema)


def text_of_value(value: Any) -> str:
    """What the model reads when it is sent this as the result of a tool."""
    if value is None or isinstance(value, str):
        return value or ''
    try:
        return ToolReturnPart('', value, '').model_response_str()
    except ValueError:
        return repr(value)


def visible(text: str) -> str:
    """Clean text in which no tag can pass for one of this package's."""
    return _OUR_TAGS.sub('&lt;', clean(text))


def escaped(text: str) -> str:
    r"""Text with its hidden characters written out, such as `\u202e`, for a person who has to see them."""
    return hidden_characters().sub(lambda match: match[0].encode('unicode_escape').decode(), text)


def cut(text: str, room: int = MAX_RESULT_BYTES, note: str = _CUT) -> str:
    """Text of at most `room` bytes; where it is cut, a note says so."""
    data = text.encode('utf-8', 'replace')
    if len(data) <= room:
        return text
    return data[: max(0, room - len(note.encode()))].decode(errors='ignore') + note


def _each_text(value: Any, change: Callable[[str], str] = visible) -> Any:
    """A value with each text in it changed; the very same one if nothing changes."""
    changed: Any = value
    if isinstance(value, str):
        changed = change(value)
    elif isinstance(value, TextContent):
        changed = replace(value, content=change(value.content))
    elif value is None or isinstance(value, bool | int | float) or is_multi_modal_content(value):
        return value
    elif isinstance(value, Mapping):
        changed = {_each_text(key, change): _each_text(item, change) for key, item in cast(Any, value).items()}
    elif isinstance(value, list | tuple):
        changed = [_each_text(item, change) for item in cast(Sequence[Any], value)]
        changed = changed if isinstance(value, list) else tuple(changed)
    else:
        plain = to_jsonable_python(value, by_alias=True, bytes_mode='base64')
        changed = _each_text(plain, change)
        return value if changed == plain else changed
    return cast(Any, value) if changed == value else changed


# --- Text from skills ---------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Remove characters that hide, reorder or smuggle text; lines end with a line feed."""
    return hidden_characters().sub('', _LINE_ENDS.sub('\n', text))


def one_line(text: str) -> str:
    """Clean text and put it on one line."""
    return ' '.join(clean(text).split())


def shorten(text: str, room: int) -> str:
    """Cut text with an ellipsis so that it takes at most `room` characters when escaped."""
    if len(text) <= room and _escaped_length(text) <= room:
        return text
    sizes = accumulate({'&': 5, '<': 4, '>': 4}.get(character, 1) for character in text[:room])
    return f'{text[: sum(size < room for size in sizes)].rstrip()}…'


def shorten_description(text: str, room: int) -> str:
    """Shorten a description, and keep as much as possible of the sentence that says when to use the skill."""
    text = one_line(text)
    when = re.search(_WHEN, text, re.IGNORECASE)
    if when is None or _escaped_length(text) <= room:
        return shorten(text, room)
    about, when_to_use = text[: when.start()].rstrip(), shorten(when[0], room)
    left = room - _escaped_length(when_to_use) - 1
    return f'{shorten(about, left)} {when_to_use}' if left >= MIN_ABOUT_CHARS else when_to_use


def _escaped_length(text: str) -> int:
    return len(escape(text, quote=False))


def element(tag: str, text: str | None, /, **attributes: str | None) -> str:
    """An XML element with escaped text and attributes. Those that are `None` are left out."""
    start = opening(tag, **attributes)
    return f'{start[:-1]}/>' if text is None else f'{start}{escape(text, quote=False)}</{tag}>'


def text_in(element: str) -> str | None:
    """The text of an element that the function `element` made; `None` if it has none."""
    start, _, rest = element.partition('>')
    return None if start.endswith('/') else unescape(rest.rpartition('<')[0])


def opening(tag: str, /, **attributes: str | None) -> str:
    """The tag with which an XML element opens."""
    given = (f' {name}="{escape(text)}"' for name, text in attributes.items() if text is not None)
    return f'<{tag}{"".join(given)}>'


@lru_cache(maxsize=64)
def rename_tools(text: str, names: tuple[tuple[str, str], ...]) -> str:
    """Replace names of tools; `names` are pairs of the name a tool has here and the one the model sees."""
    seen = dict(names)
    return re.sub(rf'\b({"|".join(map(re.escape, seen))})\b', lambda match: seen[match[0]], text)


# --- Lists of skills ----------------------------------------------------------------------------------------------


def describe(skills: Iterable[Skill[Any]]) -> dict[str, str]:
    """Names and descriptions."""
    return {skill.name: shorten_description(skill.description, MAX_DESCRIPTION_CHARS) for skill in skills}


def list_page(skills: Iterable[Skill[Any]], page: int) -> dict[str, Any] | str:
    """All names and descriptions, or one page of them if they are too many to be sent at once."""
    pages: list[dict[str, str]] = [{}]
    room = PAGE_BYTES
    for name, description in describe(skills).items():
        room -= _size_in_json(name, description)
        if room < 0 and pages[-1]:
            pages.append({})
            room = PAGE_BYTES - _size_in_json(name, description)
        pages[-1][name] = description
    if page == 1 == len(pages):
        return pages[0]
    if not 1 <= page <= len(pages):
        return f'There is no page {page}: the list of skills has {len(pages)}.'
    further = {'more': f'Ask for page {page + 1}.'} if page < len(pages) else {}
    return {'skills': pages[page - 1], 'page': page, 'pages': len(pages), 'total': sum(map(len, pages)), **further}


def _size_in_json(name: str, description: str) -> int:
    return len(json.dumps({name: description}, ensure_ascii=False).encode())


def found(skills: Sequence[Skill[Any]], query: str) -> dict[str, str] | str:
    """The result of a search: names and descriptions, best first, as many as can be sent at once."""
    if not skills:
        return f'No skill fits {one_line(query[:400])[:200]!r}. Try other words: fewer, or more general ones.'
    described = describe(skills)
    sizes = accumulate(_size_in_json(name, description) for name, description in described.items())
    return {name: described[name] for name, size in zip(described, sizes, strict=True) if size <= PAGE_BYTES}


def already_loaded(skill: Skill[Any]) -> str:
    """The answer to a second load while the first one is still in the conversation."""
    return f'The skill {skill.name!r} is loaded already: its instructions are above and have not changed.'


# --- Resources and scripts ----------------------------------------------------------------------------------------


def page_of(text: str, name: str, page: int, *, asks: str = 'args {{"page": {}}}') -> str:
    """One page of a long text, with a line that says how to read on; a text that fits on one page is unchanged."""
    data = text.encode('utf-8', 'replace')
    pages = max(1, -(-len(data) // PAGE_BYTES))
    if pages == 1 and page == 1:
        return text
    name = shorten(one_line(name), 200)
    if not 1 <= page <= pages:
        return f'[{name!r} has {pages} page{"s" if pages > 1 else ""}; there is no page {page}.]'
    start, end = (_start_of_character(data, place * PAGE_BYTES) for place in (page - 1, page))
    further = f' Read on with {asks.format(page + 1)}.' if page < pages else ''
    return f'{data[start:end].decode()}\n\n[Page {page} of {pages} of {name!r}, {len(text):,} characters.{further}]'


def _start_of_character(data: bytes, place: int) -> int:
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


def render_result(
    result: ScriptResult, files: Sequence[str] = (), read_tool: str = 'read_skill_resource', why: str = ''
) -> str:
    """What a script printed, its exit code unless it is 0, and the names under which its files can be read.

    `why` says why it was stopped.
    """
    stdout, stderr = _printed(result.stdout), _printed(result.stderr).strip()
    if not (stderr or result.exit_code or files or why or result.left):
        return stdout if stdout.strip() else '(The script printed nothing.)'
    told = [cut(visible(why), MAX_RESULT_BYTES // 8)] if why else []
    if result.exit_code:
        from pydantic_ai_skills.execution.result import describe_exit  # not needed where every script succeeds

        told.append(f'Exit code: {describe_exit(result.exit_code)}')
    if result.missing:
        told.append(result.missing.for_model)
    if files:
        names = ', '.join(repr(one_line(name)) for name in files)
        told.append(cut(visible(f'It wrote files, which can be read with {read_tool}: {names}'), MAX_RESULT_BYTES // 4))
    if result.left:
        told.append(cut(visible(one_line(result.tell_left())), MAX_RESULT_BYTES // 8))
    room = MAX_RESULT_BYTES - len('\n'.join(told).encode()) - 256  # for the tags, and the note that the rest was cut
    printed: list[str] = []
    for tag, output in ((_STDOUT, stdout), (_STDERR, stderr)):
        if output.strip():
            printed.append(_framed(tag, output, room))
            room -= len(printed[-1].encode()) + 1
    return Framed('\n'.join((*told[: bool(why)], *printed, *told[bool(why) :])))


def _printed(text: str) -> str:
    """Output without terminal sequences. Each redraw of a progress bar becomes a line."""
    return clean(re.sub(_FOR_TERMINALS, '', text).replace('\r\n', '\n').replace('\r', '\n'))


def _framed(tag: str, text: str, room: int) -> str:
    """Text in its element, cut where escaping has made it longer than `room`."""
    return framing.wrap(tag, cut(framing.neutralize_tags(visible(text)), room))
