"""A `SKILL.md` from its bytes or its text: the three calls the rest of the package uses."""

from __future__ import annotations

import codecs
import re
from functools import partial
from typing import NamedTuple

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.problems import SkillProblem

from .fast_path import read_simple
from .findings import Finding
from .frontmatter import MAX_FRONTMATTER_BYTES, Split, read_frontmatter, split
from .header import SkillHeader, read_header, simple_header
from .rules import RULES, problem

__all__ = ('ParsedHead', 'ParsedSkill', 'check_text', 'decode_body', 'parse_head', 'parse_skill_text')

_NOT_FIRST = 'Blank lines come before the frontmatter. Remove them: other readers do not find it there.'
_BLANK_LINES = re.compile(r'\A(?:[ \t]*\n)+')


class ParsedHead(NamedTuple):
    """What the first bytes of a `SKILL.md` say."""

    header: SkillHeader | None
    """The header; `None` when the skill has to be left out, and then a problem of severity `'error'` says why."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about the file."""

    body_start: int | None = None
    """The byte at which the body begins; `None` when there is no frontmatter."""

    needs_more: bool = False
    """Whether more of the file is needed to tell."""


_NEEDS_MORE = ParsedHead(header=None, needs_more=True)


class ParsedSkill(NamedTuple):
    """What the text of a `SKILL.md` says."""

    header: SkillHeader | None
    """The header; `None` when there is no skill in the text, and then a problem of severity `'error'` says why."""

    body: str
    """The instructions: what follows the frontmatter, without the blank lines around it."""

    problems: tuple[SkillProblem, ...]
    """What a person should know about the text."""


def parse_head(data: bytes, *, path: str, folder_name: str | None, validate: bool = True, complete: bool) -> ParsedHead:
    """Parse a `SKILL.md` from its first bytes, without its body.

    Args:
        data: The file from its start, as much of it as was read.
        path: The file, for the problems.
        folder_name: The name of the folder the file lies in, if it does.
        validate: Whether to report what the specification asks for and a skill can be loaded without.
        complete: Whether `data` is the whole file.

    Returns:
        What was parsed. When the frontmatter goes on after `data` that is nothing, and `needs_more` is set: call again
        with more of the file. `MAX_FRONTMATTER_BYTES` are always enough.
    """
    simple = _parse_simple(data, folder_name)
    if simple is not None:
        return simple
    parts = split(data, complete=complete)
    if parts is None:
        return _NEEDS_MORE
    if isinstance(parts, Finding):
        return ParsedHead(header=None, problems=_problems([parts], path))
    header, findings = _read(parts, folder_name, validate=validate)
    # Findings count lines from the start of the frontmatter's text, problems from the start of the file.
    problems = _problems(findings, path, offset=parts.first_line - 1)
    if parts.first_line > 2:
        problems = (problem('frontmatter-not-first', path, _NOT_FIRST, parts.first_line - 1), *problems)
    return ParsedHead(header=header, problems=problems, body_start=parts.body_start)


def _parse_simple(data: bytes, folder_name: str | None) -> ParsedHead | None:
    """The short way for the head that most skills have, which breaks no rule; or `None`."""
    if not data.startswith(b'---\n'):
        return None
    end = data.find(b'\n---', 3, MAX_FRONTMATTER_BYTES - 1)
    if end < 0 or data[end + 4 : end + 5] != b'\n':
        return None
    try:
        fields = read_simple(data[4 : end + 1].decode())
    except UnicodeDecodeError:
        return None
    header = simple_header(fields, folder_name) if fields else None
    return None if header is None else ParsedHead(header, (), end + 5)


def parse_skill_text(
    text: str, *, path: str = 'SKILL.md', folder_name: str | None = None, validate: bool = True
) -> ParsedSkill:
    """Parse a whole `SKILL.md`.

    Args:
        text: What the file holds.
        path: What to call the text in the problems.
        folder_name: The name of the folder the skill would lie in, if there is one.
        validate: Whether to report what the specification asks for and a skill can be loaded without.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as e:
        message = f'The character {text[e.start]!r} cannot be written as UTF-8. Remove it.'
        return ParsedSkill(None, '', (problem('not-utf8', path, message, text.count('\n', 0, e.start) + 1),))
    head = parse_head(data, path=path, folder_name=folder_name, validate=validate, complete=True)
    return ParsedSkill(head.header, _tidy(data[head.body_start or 0 :].decode()), head.problems)


def check_text(data: bytes, path: str, *, complete: bool = True) -> tuple[SkillProblem, ...]:
    """What is wrong with a `SKILL.md` as text, its body included.

    Args:
        data: The file from its start, as much of it as was read.
        path: The file, for the problem.
        complete: Whether that is all of it: otherwise its last character may be cut in two.
    """
    if data.isascii():
        return ()
    try:
        codecs.utf_8_decode(data, 'strict', complete)
    except UnicodeDecodeError as e:
        message = f'Byte 0x{data[e.start]:02x} is not UTF-8. Save the file as UTF-8.'
        return (problem('not-utf8', path, message, data.count(b'\n', 0, e.start) + 1),)
    return ()


def decode_body(data: bytes) -> str:
    """Cut the instructions out of a whole `SKILL.md`: what follows the frontmatter, without the blank lines around it.

    A file that has lost its frontmatter since it was found is all instructions.

    Raises:
        SkillValidationError: They are not UTF-8.
    """
    parts = split(data, complete=True)
    start = parts.body_start if isinstance(parts, Split) else 0
    try:
        return _tidy(data[start:].decode())
    except UnicodeDecodeError as e:
        line = data.count(b'\n', 0, start + e.start) + 1
        byte = f'0x{data[start + e.start]:02x}'
        raise SkillValidationError(f'Byte {byte} in line {line} is not UTF-8. Save the file as UTF-8.') from e


def _tidy(body: str) -> str:
    return _BLANK_LINES.sub('', body.removeprefix('\ufeff').replace('\r\n', '\n').replace('\r', '\n')).rstrip()


def _read(parts: Split, folder_name: str | None, *, validate: bool) -> tuple[SkillHeader | None, list[Finding]]:
    frontmatter = read_frontmatter(parts.source)
    if isinstance(frontmatter, Finding):
        return None, [frontmatter]
    header, findings = read_header(frontmatter.fields, folder_name=folder_name, line_of=partial(_line_of, parts.source))
    if not validate:
        findings = [finding for finding in findings if RULES[finding.code].severity == 'error']
    return header, [*frontmatter.findings, *findings]


def _line_of(source: str, key: str) -> int | None:
    """The line of a top-level key, counted from 1; the last one, since that is the one that counts."""
    matches = list(re.finditer(rf'^["\']?{re.escape(key)}["\']?[ \t]*:', source, re.MULTILINE))
    return source.count('\n', 0, matches[-1].start()) + 1 if matches else None


def _problems(findings: list[Finding], path: str, *, offset: int = 0) -> tuple[SkillProblem, ...]:
    return tuple(
        problem(found.code, path, found.message, None if found.line is None else found.line + offset)
        for found in findings
    )
