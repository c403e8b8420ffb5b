"""The short way to read the frontmatter most skills have: a few `key: text` lines and perhaps one level of `metadata`.

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

# What cannot begin plain text, or could mean something when it does.
_INDICATORS = frozenset('-?:,[]{}#&*!|>%@`')


def read_simple(source: str) -> dict[str, Value] | None:
    """Read frontmatter that consists of simple lines only, or give up with `None`."""
    # Printable leaves out tabs, control characters, and all that YAML takes for a line break or does not allow.
    if not source.replace('\n', '').isprintable():
        return None
    top: dict[str, Value] = {}
    mapping = top
    indent = 0
    # The last top-level key, when it had no value and lines below it may give it one.
    waiting: str | None = None
    for line in source.split('\n'):
        if not line:
            continue
        if line[0] == ' ':
            entry = line.lstrip(' ')
            width = len(line) - len(entry)
            if waiting is not None:
                mapping = top[waiting] = {}
                indent, waiting = width, None
            elif width != indent:
                return None
        else:
            entry = line
            mapping, indent, waiting = top, 0, None
        key, separator, rest = entry.partition(': ')
        if not separator:
            if entry[-1:] != ':':
                return None
            key = entry[:-1]
        value = _read_scalar(rest) if rest else ''
        if value is None or key in mapping or not (key in _USUAL_KEYS or _KEY(key)):
            return None
        mapping[key] = value
        if mapping is top and not rest.strip(' '):
            waiting = key
    return top


def _read_scalar(text: str) -> str | None:
    text = text.strip(' ')
    if not text:
        return text
    first = text[0]
    if first == '"' or first == "'":
        inner = text[1:-1]
        if len(text) < 2 or text[-1] != first or first in inner or (first == '"' and '\\' in inner):
            return None
        return inner
    if first in _INDICATORS or text[-1] == ':' or ': ' in text or ' #' in text:
        return None
    return text
