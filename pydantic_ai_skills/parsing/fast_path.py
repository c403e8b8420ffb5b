"""The fast path for the frontmatter of most skills: `key: text` lines, lists of words, one level of `metadata`.

It answers only where the YAML reader and `read_header` would return the same without a finding, and gives up on
anything else; property tests hold it to that. It makes looking through thousands of skills cheap.
"""

from __future__ import annotations

import re

from .findings import Value
from .header import MAX_FRONTMATTER_BYTES, MODEL_KEYS, TOOLS_KEYS, SkillHeader
from .skill_names import MAX_COMPATIBILITY_LENGTH, MAX_DESCRIPTION_LENGTH, find_reserved_word, match_simple_name

# A key, its value, and the lines below that begin with a space or a hyphen. The key is empty if a line has no simple
# key. A simple key is far shorter than the 1024 characters to which YAML limits keys.
_ENTRIES = re.compile(r'(?:([A-Za-z_][A-Za-z0-9_-]{0,99}):(?: (.*)|$)|.+)((?:\n++[ -].*)*+)', re.MULTILINE).findall

# An item of a list in brackets.
_ITEM = re.compile(r'[A-Za-z0-9](?:[A-Za-z0-9_./+ -]*[A-Za-z0-9_./+-])?').fullmatch

# Characters that cannot begin plain text, or that could mean something when they do.
_INDICATORS = frozenset('-?:,[]{}#&*!|>%@`')

# Keys that are left to `read_header`: all fields of a header but the first five, which most skills have.
_UNUSUAL_KEYS = frozenset(
    (*(field.replace('_', '-') for field in SkillHeader._fields[5:]), 'tools', *TOOLS_KEYS, *MODEL_KEYS)
)


def parse_simple(data: bytes, folder_name: str | None) -> tuple[SkillHeader, int] | None:
    """Read the header of a `SKILL.md` that breaks no rule and holds nothing unusual, or give up with `None`.

    Takes the file from its start; returns the header and the byte at which the body begins.
    """
    if not data.startswith(b'---\n'):
        return None
    end = data.find(b'\n---', 3, MAX_FRONTMATTER_BYTES - 1)
    if end < 0 or data[end + 4 : end + 5] != b'\n':
        return None
    try:
        fields = read_simple(data[4 : end + 1].decode())
    except UnicodeDecodeError:
        return None
    header = _header(fields, folder_name) if fields else None
    return None if header is None else (header, end + 5)


def _header(fields: dict[str, Value], folder_name: str | None) -> SkillHeader | None:
    """What `read_header` returns for fields that break no rule; `None` for others. Changes `fields`."""
    name = fields.pop('name', None)
    description = fields.pop('description', None)
    if folder_name is None or name != folder_name or type(description) is not str or not match_simple_name(folder_name):
        return None
    name = folder_name  # this string is kept anyway, so there is one and not two
    description = description.strip()
    if find_reserved_word(name) or not 0 < len(description) <= MAX_DESCRIPTION_LENGTH:
        return None
    if not fields:
        return SkillHeader(name, description, metadata={})
    return _header_with_more(name, description, fields) if _UNUSUAL_KEYS.isdisjoint(fields) else None


def _header_with_more(name: str, description: str, fields: dict[str, Value]) -> SkillHeader | None:
    license = fields.pop('license', '')
    compatibility = fields.pop('compatibility', '')
    metadata = fields.pop('metadata', '') or {}
    if type(license) is not str or type(compatibility) is not str or type(metadata) is not dict:
        return None
    if len(compatibility) > MAX_COMPATIBILITY_LENGTH or not fields.keys().isdisjoint(metadata):
        return None
    metadata.update(fields)
    return SkillHeader(name, description, license.strip() or None, compatibility.strip() or None, metadata)


def read_simple(source: str) -> dict[str, Value] | None:
    """Read frontmatter that consists of simple lines only, or give up with `None`."""
    # Tabs, control characters, and all that YAML takes for a line break or does not allow are not printable.
    return _read_mapping(source, is_nested=False) if source.replace('\n', '').isprintable() else None


def _read_mapping(source: str, *, is_nested: bool) -> dict[str, Value] | None:
    mapping: dict[str, Value] = {}
    for key, rest, below in _ENTRIES(source):
        text = rest.strip(' ')
        if below:
            value = None if text or is_nested else _read_block(below)
        elif text:
            value = _read_scalar(text) if text[0] != '[' else _read_list(text)
        else:
            value = text
        if not key or value is None or key in mapping:
            return None
        mapping[key] = value
    return mapping


def _read_block(below: str) -> Value | None:
    """Read the list or the mapping below a key; `None` unless all of its lines are indented alike."""
    lines = below.lstrip('\n')
    entries = lines.lstrip(' ')
    indent = lines[: len(lines) - len(entries)]
    if entries.startswith('- '):
        return _read_items(lines, f'{indent}- ')
    return _read_mapping(below.replace(f'\n{indent}', '\n'), is_nested=True) or None


def _read_items(lines: str, begin: str) -> list[Value] | None:
    items: list[Value] = []
    for line in filter(None, lines.split('\n')):
        item = _read_scalar(line[len(begin) :].strip(' ') or '-') if line.startswith(begin) else None
        if item is None:
            return None
        items.append(item)
    return items


def _read_scalar(text: str) -> str | None:
    first = text[0]
    if first == '"' or first == "'":
        return _read_quoted(text[1:], first)
    if first in _INDICATORS or text[-1] == ':' or ': ' in text or ' #' in text:
        return None
    return text


def _read_quoted(rest: str, quote: str) -> str | None:
    """Quoted text, given without its first quote; `None` if it holds the same quotes or an escape."""
    inner = rest[:-1]
    return None if rest[-1:] != quote or quote in inner or (quote == '"' and '\\' in inner) else inner


def _read_list(text: str) -> list[Value] | None:
    """The items of a list in brackets; `None` if YAML could take one for more than plain text."""
    items = [item.strip(' ') for item in text[1:-1].split(',')]
    return list[Value](items) if text[-1] == ']' and all(map(_ITEM, items)) else None
