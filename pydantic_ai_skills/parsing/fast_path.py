"""The short way to read the frontmatter most skills have: `key: text` lines, lists of words, one level of `metadata`.

It answers only when the YAML reader would give the same mapping without a finding, which a property test holds it to,
and gives up on anything else. It is what makes looking through thousands of skills cheap.
"""

from __future__ import annotations

import re

from .findings import Value

__all__ = ('read_simple',)

# These are in most files and need no closer look.
_USUAL_KEYS = frozenset(('name', 'description', 'license', 'metadata', 'version', 'author'))
# Far below the 1024 characters to which YAML limits a key.
_KEY = re.compile(r'[A-Za-z_][A-Za-z0-9_-]{0,99}').fullmatch

# What a list in brackets may hold.
_ITEM = re.compile(r'[A-Za-z0-9](?:[A-Za-z0-9_./+ -]*[A-Za-z0-9_./+-])?').fullmatch

# What cannot begin plain text, or could mean something when it does.
_INDICATORS = frozenset('-?:,[]{}#&*!|>%@`')


def read_simple(source: str) -> dict[str, Value] | None:  # noqa: C901 - one pass, because it is made for every skill
    """Read frontmatter that consists of simple lines only, or give up with `None`."""
    # Printable leaves out tabs, control characters, and all that YAML takes for a line break or does not allow.
    if not source.replace('\n', '').isprintable():
        return None
    top: dict[str, Value] = {}
    mapping = top
    indent = 0
    # The last top-level key, when it had no value and lines below it may give it one; and the list they give it.
    waiting: str | None = None
    items: list[Value] | None = None
    for line in source.split('\n'):
        if not line:
            continue
        first = line[0]
        if first == ' ' or first == '-':
            entry = line.lstrip(' ')
            width = len(line) - len(entry)
            if entry[:2] == '- ':
                if waiting is not None:
                    items = top[waiting] = []
                    indent, waiting = width, None
                value = _read_scalar(entry[2:].strip(' ') or '-')
                if items is None or width != indent or value is None:
                    return None
                items.append(value)
                continue
            if waiting is not None and width:
                mapping = top[waiting] = {}
                indent, waiting = width, None
            elif width != indent or items is not None or not width:
                return None
        else:
            entry = line
            mapping, indent, waiting, items = top, 0, None, None
        key, separator, rest = entry.partition(': ')
        if not separator:
            if entry[-1:] != ':':
                return None
            key = entry[:-1]
        text = rest.strip(' ')
        if text:
            value = _read_scalar(text) if text[0] != '[' else _read_list(text)
        else:
            value = text
            if mapping is top:
                waiting = key
        if value is None or key in mapping or not (key in _USUAL_KEYS or _KEY(key)):
            return None
        mapping[key] = value
    return top


def _read_scalar(text: str) -> str | None:
    first = text[0]
    if first == '"' or first == "'":
        inner = text[1:-1]
        if len(text) < 2 or text[-1] != first or first in inner or (first == '"' and '\\' in inner):
            return None
        return inner
    if first in _INDICATORS or text[-1] == ':' or ': ' in text or ' #' in text:
        return None
    return text


def _read_list(text: str) -> list[Value] | None:
    """A list in brackets, of words that hold nothing YAML could take for more."""
    items = [item.strip(' ') for item in text[1:-1].split(',')]
    return list[Value](items) if text[-1] == ']' and all(map(_ITEM, items)) else None
