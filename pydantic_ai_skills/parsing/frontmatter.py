"""Cuts a `SKILL.md` in two at its `---` lines and reads the first part, without knowing what a valid skill is."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from .fast_path import read_simple
from .findings import Finding, RefusedYaml, UnreadableYaml, Value, shown
from .header import MAX_FRONTMATTER_BYTES

# Blank lines may come before the frontmatter. A file with the line ends of old Macs has no line feed at all.
_OPENING = re.compile(rb'(?:\xef\xbb\xbf)?((?:[ \t\r\n]*[\r\n])?)---[ \t]*(\r?\n|\r|\Z)').match
_OPENING_MAY_COME = re.compile(rb'\xef|\xef\xbb|(?:\xef\xbb\xbf)?[ \t\r\n]*-{0,2}').fullmatch
_CLOSING_LF = re.compile(rb'\n---[ \t]*(\r?\n|\r?\Z)').search
_CLOSING_CR = re.compile(rb'\r---[ \t]*(\r|\Z)').search

_UTF_16_OR_32 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


class Split(NamedTuple):
    """A file, cut in two."""

    source: str
    """The text between the `---` lines, its lines ended by `\\n`."""

    first_line: int
    """The line of the file at which `source` begins, counted from 1."""

    body_start: int
    """The byte of the file at which the body begins."""


class Frontmatter(NamedTuple):
    """The keys and values of a frontmatter."""

    fields: dict[str, Value]

    findings: list[Finding]
    """What was repaired; lines count from the start of the source."""


def split(data: bytes, *, complete: bool) -> Split | Finding | None:
    """Find the frontmatter in the first bytes of a file, or what is wrong with the file.

    `None` means that more of the file is needed. `MAX_FRONTMATTER_BYTES` are always enough.
    """
    limit = min(len(data), MAX_FRONTMATTER_BYTES)
    more = not complete or len(data) > limit
    opening = _OPENING(data, 0, limit)
    if opening is None:
        may_come = more and limit < MAX_FRONTMATTER_BYTES and _OPENING_MAY_COME(data)
        return None if may_come else _without_opening(data, complete=complete)
    closing = _closing(data, opening, limit, more=more)
    return _without_closing(limit, more=more) if closing is None else _decode(data, opening, closing)


def _closing(data: bytes, opening: re.Match[bytes], limit: int, *, more: bool) -> re.Match[bytes] | None:
    line_end = opening[2]
    search = _CLOSING_CR if line_end == b'\r' else _CLOSING_LF
    closing = search(data, opening.end() - 1, limit)
    if more and (opening.end() == limit or (closing and closing.end() == limit and closing[1] != line_end)):
        return None  # the next byte may belong to the line
    return closing


def _decode(data: bytes, opening: re.Match[bytes], closing: re.Match[bytes]) -> Split | Finding:
    blank = opening[1]
    first_line = 2 + (blank.count(b'\n') or blank.count(b'\r')) if blank else 2
    raw = data[opening.end() : closing.start() + 1]
    try:
        source = raw.decode()
    except UnicodeDecodeError as e:
        line = first_line + raw.count(b'\n', 0, e.start)
        return Finding('not-utf8', f'Byte 0x{raw[e.start]:02x} is not UTF-8. Save the file as UTF-8.', line)
    if '\0' in source:
        line = first_line + source.count('\n', 0, source.index('\0'))
        return Finding('binary-file', 'The frontmatter holds a NUL byte, so it is not text.', line)
    if '\r' in source:
        source = source.replace('\r\n', '\n').replace('\r', '\n')
    return Split(source, first_line, closing.end())


def _without_opening(data: bytes, *, complete: bool) -> Finding:
    if data.startswith(_UTF_16_OR_32):
        return Finding('not-utf8', 'The file is UTF-16 or UTF-32. Save it as UTF-8.')
    if b'\0' in data:
        return Finding('binary-file', 'The file holds a NUL byte, so it is not UTF-8 text.')
    try:
        # Without `final`, a character that is cut in two at the end of the bytes is not an error.
        text = codecs.getincrementaldecoder('utf-8-sig')().decode(data, final=complete)
    except UnicodeDecodeError as e:
        return Finding('not-utf8', f'Byte 0x{data[e.start]:02x} is not UTF-8. Save the file as UTF-8.')
    if complete and not text.strip():
        return Finding('empty-file', 'The file is empty.')
    return Finding(
        'no-frontmatter', "The file does not begin with a '---' line. Add frontmatter with a description.", 1
    )


def _without_closing(size: int, *, more: bool) -> Finding | None:
    if size >= MAX_FRONTMATTER_BYTES and more:
        message = f"No '---' line ends the frontmatter within {MAX_FRONTMATTER_BYTES:,} bytes. Close or shorten it."
        return Finding('frontmatter-too-large', message)
    if more:
        return None
    return Finding('unclosed-frontmatter', "No second '---' line ends the frontmatter. Add one above the instructions.")


def read_frontmatter(source: str) -> Frontmatter | Finding:
    """Read the text between the `---` lines, repairing it if necessary; or say why it cannot be read."""
    fields = read_simple(source)
    if fields is not None:
        return Frontmatter(fields, [])
    try:
        return _read(source)
    except RefusedYaml as e:
        return e.finding


def _read(source: str) -> Frontmatter | Finding:
    from .yaml_reader import read_yaml  # brings in PyYAML, which takes long to import

    try:
        value, findings = read_yaml(source)
    except UnreadableYaml as e:
        error = e
    else:
        if isinstance(value, dict):
            return Frontmatter(value, findings)
        if not value:
            return Frontmatter({}, findings)
        error = UnreadableYaml('it is a list or plain text', 1)
    from .yaml_repair import repair  # few skills need it

    repaired = repair(source)
    if repaired is None:
        message = f"The frontmatter is not made of 'key: value' lines: {error}."
        return Finding('frontmatter-not-a-mapping', message, error.line)
    keys = ', '.join(map(shown, repaired.as_text[:5]))
    way_out = f'Read as plain text: {keys}. Put such values in quotes.' if keys else 'It was read key by key.'
    message = f'The frontmatter is not valid YAML: {error}. {way_out}'
    return Frontmatter(repaired.fields, [Finding('yaml-repaired', message, error.line)])
