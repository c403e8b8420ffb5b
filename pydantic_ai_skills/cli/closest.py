"""Suggests what a mistyped name was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import PurePosixPath

MAX_NAME = 200
"""Longer names are not compared: the time for that grows with the square of their length."""

MAX_NAMES = 5_000
"""How many names are compared, because each takes a moment."""

CLOSE = 0.6
"""How similar two names have to be, from 0 to 1: two of three letters, as in `pfd` for `pdf`."""

SUGGESTIONS = 3
"""How many names are suggested."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question that suggests the names closest to a mistyped one; empty if there are none.

    A path is also compared by its last part, with and without its suffix.
    """
    spellings: dict[str, str] = {}
    for known in list(names)[:MAX_NAMES]:
        path = PurePosixPath(known)
        for spelling in (known, path.name, path.stem):
            spellings.setdefault(spelling.lower(), known)
    close = get_close_matches(name.lower(), spellings, SUGGESTIONS, CLOSE) if len(name) <= MAX_NAME else []
    meant = dict.fromkeys(spellings[spelling] for spelling in close)
    return f'Did you mean {" or ".join(map(repr, meant))}?' if meant else ''
