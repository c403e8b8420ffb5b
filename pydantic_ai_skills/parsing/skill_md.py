"""Entry points of the parser: a `SKILL.md` from its bytes or its text."""

from __future__ import annotations

import codecs
import re
from functools import partial
from typing import NamedTuple

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.problems import RULES, SkillProblem, problem

from .fast_path import parse_simple
from .findings import Finding
from .frontmatter import Split, read_frontmatter, split
from .header import SkillHeader, read_header

_NOT_FIRST = 'Blank lines come before the frontmatter. Remove them: other readers do not find it there.'
_BLANK_LINES = re.compile(r'\A(?:[ \t]*\n)+')
_FENCED = re.compile(rb'\n(```|~~~).*?(?:\n\1|\Z)', re.DOTALL)
_LINE_FEED = 10

MAX_HEADINGS_BYTES = 600
"""How much of a skill's headings is kept."""


class ParsedHead(NamedTuple):
    """What the first bytes of a `SKILL.md` say."""

    header: SkillHeader | None
    """The header; `None` if the skill has to be left out: a problem of severity `'error'` says why."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about the file."""

    body_start: int | None = None
    """The byte at which the body begins; `None` without frontmatter."""

    needs_more: bool = False
    """Whether more of the file is needed."""


class ParsedSkill(NamedTuple):
    """What the text of a `SKILL.md` says."""

    header: SkillHeader | None
    """The header; `None` if the text is not a skill: a problem of severity `'error'` says why."""

    body: str
    """The instructions: what follows the frontmatter, without the blank lines around it."""

    problems: tuple[SkillProblem, ...]
    """What a person should know about the text."""


def parse_head(data: bytes, *, path: str, folder_name: str | None, validate: bool = True, complete: bool) -> ParsedHead:
    """Parse a `SKILL.md` from its first bytes, without its body.

    If the frontmatter goes on after `data`, only `needs_more` is set: call again with more of the file;
    `MAX_FRONTMATTER_BYTES` are always enough. Without `validate`, a broken rule of the
    specification is reported only if it keeps the skill from being loaded; repairs of the frontmatter always are.
    """
    simple = parse_simple(data, folder_name)
    if simple is not None:
        return ParsedHead(simple[0], (), simple[1])
    parts = split(data, complete=complete)
    if parts is None:
        return ParsedHead(header=None, needs_more=True)
    if isinstance(parts, Finding):
        return ParsedHead(header=None, problems=_problems([parts], path))
    header, findings = _read(parts, folder_name, validate=validate)
    # Findings count lines from the start of the frontmatter's text, problems from the start of the file.
    problems = _problems(findings, path, offset=parts.first_line - 1)
    if parts.first_line > 2:
        problems = (problem('frontmatter-not-first', path, _NOT_FIRST, parts.first_line - 1), *problems)
    return ParsedHead(header=header, problems=problems, body_start=parts.body_start)


def parse_skill_text(
    text: str, *, path: str = 'SKILL.md', folder_name: str | None = None, validate: bool = True
) -> ParsedSkill:
    """Parse a whole `SKILL.md`; problems call it `path`."""
    try:
        data = text.encode()
    except UnicodeEncodeError as e:
        message = f'The character {text[e.start]!r} cannot be written as UTF-8. Remove it.'
        return ParsedSkill(None, '', (problem('not-utf8', path, message, text.count('\n', 0, e.start) + 1),))
    head = parse_head(data, path=path, folder_name=folder_name, validate=validate, complete=True)
    return ParsedSkill(head.header, tidy_body(data[head.body_start or 0 :].decode()), head.problems)


def decode_body(data: bytes, start: int | None = None) -> str:
    """The instructions in a whole `SKILL.md`: what follows the frontmatter, without the blank lines around it.

    They begin at `start`, if that is known. If the file has lost its frontmatter since it was found, all of it is
    instructions. Text that is not UTF-8 raises `SkillValidationError`.
    """
    if start is None:
        parts = split(data, complete=True)
        start = parts.body_start if isinstance(parts, Split) else 0
    try:
        return tidy_body(data[start:].decode())
    except UnicodeDecodeError as e:
        line = data.count(b'\n', 0, start + e.start) + 1
        byte = f'0x{data[start + e.start]:02x}'
        raise SkillValidationError(f'Byte {byte} in line {line} is not UTF-8. Save the file as UTF-8.') from e


def tidy_body(body: str) -> str:
    """The body with Unix line ends and without the blank lines around it."""
    return _BLANK_LINES.sub('', body.removeprefix('\ufeff').replace('\r\n', '\n').replace('\r', '\n')).rstrip()


def check_text(data: bytes, path: str, *, complete: bool = True) -> tuple[SkillProblem, ...]:
    """Check that a `SKILL.md`, body included, is UTF-8; unless `complete`, its last character may be cut off."""
    if data.isascii():
        return ()
    try:
        codecs.utf_8_decode(data, 'strict', complete)
    except UnicodeDecodeError as e:
        message = f'Byte 0x{data[e.start]:02x} is not UTF-8. Save the file as UTF-8.'
        return (problem('not-utf8', path, message, data.count(b'\n', 0, e.start) + 1),)
    return ()


def find_headings(data: bytes, start: int = 0) -> str:
    """The headings of a text, one per line; `#` in a fenced block of code begins a comment, not a heading.

    It jumps from `#` to `#` instead of going line by line, because it runs for every skill.
    """
    if data.find(b'`', start) >= 0 or data.find(b'~', start) >= 0:
        data, start = _FENCED.sub(b'\n', b'\n' + data[start:]), 0
    headings: list[bytes] = []
    room = MAX_HEADINGS_BYTES
    at = data.find(b'#', start)
    while at >= 0 and room > 0:
        end = data.find(b'\n', at)
        line = data[at : end if end >= 0 else None]
        if (at == start or data[at - 1] == _LINE_FEED) and (text := _heading(line)):
            headings.append(text[:room])
            room -= len(text) + 1
        at = data.find(b'#', at + len(line))
    return b'\n'.join(headings).decode(errors='ignore')


def _heading(line: bytes) -> bytes:
    """The text of a heading; nothing if the line begins with `#` for another reason."""
    marks = len(line) - len(line.lstrip(b'#'))
    return line.strip(b'# \t\r') if marks <= 6 and line[marks : marks + 1] in (b' ', b'\t') else b''


def _read(parts: Split, folder_name: str | None, *, validate: bool) -> tuple[SkillHeader | None, list[Finding]]:
    frontmatter = read_frontmatter(parts.source)
    if isinstance(frontmatter, Finding):
        return None, [frontmatter]
    header, findings = read_header(frontmatter.fields, folder_name=folder_name, line_of=partial(_line_of, parts.source))
    if not validate:
        findings = [finding for finding in findings if RULES[finding.code].severity == 'error']
    return header, [*frontmatter.findings, *findings]


def _line_of(source: str, key: str) -> int | None:
    """The line of a top-level key, counted from 1; the last one if the key is repeated, as its value counts."""
    matches = list(re.finditer(rf'^["\']?{re.escape(key)}["\']?[ \t]*:', source, re.MULTILINE))
    return source.count('\n', 0, matches[-1].start()) + 1 if matches else None


def _problems(findings: list[Finding], path: str, *, offset: int = 0) -> tuple[SkillProblem, ...]:
    return tuple(
        problem(found.code, path, found.message, None if found.line is None else found.line + offset)
        for found in findings
    )
