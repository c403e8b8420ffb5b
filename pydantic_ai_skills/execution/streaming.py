"""Passes on what a process prints while it runs, with secrets masked even where they arrive in pieces."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection
from typing import Literal, TypeAlias

StreamName: TypeAlias = Literal['stdout', 'stderr']
"""Which of its two outputs a process printed to."""

OnOutput: TypeAlias = Callable[[StreamName, str], None]
"""Called with each piece of text as it is printed, from a worker thread."""


class OutputStream:
    """One output of a process, passed on as text.

    Text that may be the beginning of a secret is held back until what follows shows whether it is.
    """

    def __init__(
        self, name: StreamName, emit: OnOutput, *, secrets: Collection[str], mask: Callable[[str], str]
    ) -> None:
        self._name: StreamName = name
        self._emit = emit
        self._secrets = tuple(secrets)
        self._mask = mask
        self._decode = codecs.getincrementaldecoder('utf-8')('replace').decode
        self._held = ''

    def feed(self, chunk: bytes) -> None:
        """Pass on bytes that were read; no bytes mean the end of the stream."""
        text = self._held + self._decode(chunk, not chunk)
        cut = len(text) if not chunk else self._safe_end(text)
        self._held = text[cut:]
        if cut:
            self._emit(self._name, self._mask(text[:cut]))

    def _safe_end(self, text: str) -> int:
        """How much of a text can be passed on without cutting a secret in two."""
        end = min((_unfinished(text, secret) for secret in self._secrets), default=len(text))
        moved = True
        while moved:  # a secret that is whole must not be cut either
            starts = [start for secret in self._secrets if (start := _spanning(text, secret, end)) < end]
            moved, end = bool(starts), min(starts, default=end)
        return end


def _unfinished(text: str, secret: str) -> int:
    """Where the longest end of a text starts that is also the beginning of a secret, or else the length of the text."""
    for size in range(min(len(secret) - 1, len(text)), 0, -1):
        if text.endswith(secret[:size]):
            return len(text) - size
    return len(text)


def _spanning(text: str, secret: str, end: int) -> int:
    """Where a secret begins that a cut at `end` would split; `end` if there is none."""
    found = text.find(secret, max(0, end - len(secret) + 1), end + len(secret) - 1)
    return end if found < 0 else found
