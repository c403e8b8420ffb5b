"""The headings of instructions in Markdown: what a skill is about, in few words."""

from __future__ import annotations

import re

__all__ = ('find_headings',)

MAX_HEADINGS_BYTES = 600
"""How much of a skill's headings is kept."""

_FENCED = re.compile(rb'\n(```|~~~).*?(?:\n\1|\Z)', re.DOTALL)
_LINE_FEED = 10


def find_headings(data: bytes, start: int = 0) -> str:
    """The headings of a text, one a line; `#` in a fenced block of code begins a comment, not a heading.

    It looks from mark to mark, not line by line, because it is done for every skill there is.

    Args:
        data: The text.
        start: Where it begins.
    """
    if data.find(b'`', start) >= 0 or data.find(b'~', start) >= 0:
        data, start = _FENCED.sub(b'\n', b'\n' + data[start:]), 0
    headings: list[bytes] = []
    room = MAX_HEADINGS_BYTES
    at = data.find(b'#', start)
    while at >= 0 and room > 0:
        end = data.find(b'\n', at)
        line = data[at : end if end >= 0 else None]
        if at == start or data[at - 1] == _LINE_FEED:
            marks = len(line) - len(line.lstrip(b'#'))
            text = line.strip(b'# \t\r')
            if text and marks <= 6 and line[marks] in b' \t':
                headings.append(text[:room])
                room -= len(text) + 1
        at = data.find(b'#', at + len(line))
    return b'\n'.join(headings).decode(errors='ignore')
