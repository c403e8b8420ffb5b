"""Keeping the beginning and the end of a script's output, whatever its length, in little memory."""

from __future__ import annotations

import codecs
from collections.abc import Collection
from dataclasses import dataclass

__all__ = ('CapturedOutput', 'StreamCapture', 'fit_output', 'mask')

MASK = '[secret]'
"""What stands in the output in place of a secret value."""

_CUT_NOTE_BYTES = 64
"""Room kept for the line that says how much was left out."""


class StreamCapture:
    """The first and the last half of `limit` bytes of a stream, and the length of all of it."""

    def __init__(self, limit: int) -> None:
        self._keep = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """Add bytes that were read from the stream."""
        self.total += len(chunk)
        room = self._keep - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Trimmed at twice the size, so that many small chunks do not each move the buffer.
        if len(self._tail) > 2 * self._keep:
            del self._tail[: -self._keep]

    def ends(self) -> tuple[str, str | None]:
        """The whole stream and `None`, or its beginning and its end when the middle was not kept."""
        if self.total == len(self._head) + len(self._tail):
            return (self._head + self._tail).decode('utf-8', 'replace'), None
        # A character that was cut in two belongs to the part that was left out.
        head = codecs.getincrementaldecoder('utf-8')('replace').decode(bytes(self._head))
        return head, self._tail.lstrip(bytes(range(0x80, 0xC0))).decode('utf-8', 'replace')


@dataclass(frozen=True, kw_only=True)
class CapturedOutput:
    """Both streams as text that fits the limit."""

    stdout: str
    """Standard output."""

    stderr: str
    """Standard error."""

    truncated: bool
    """Whether anything was left out of them."""


def fit_output(
    stdout: StreamCapture, stderr: StreamCapture, *, limit: int, secrets: Collection[str] = ()
) -> CapturedOutput:
    """Both streams as text of at most `limit` bytes in all. A long one cannot push the other out."""
    out, err = _Excerpt(stdout, secrets), _Excerpt(stderr, secrets)
    half = limit // 2
    out_text, out_cut = out.fit(limit - min(err.size, half))
    err_text, err_cut = err.fit(limit - min(out.size, half))
    return CapturedOutput(stdout=out_text, stderr=err_text, truncated=out_cut or err_cut)


def mask(text: str, secrets: Collection[str]) -> str:
    """Replace every secret in the text. Longer ones go first, so that one inside another leaves nothing behind."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


class _Excerpt:
    """The kept parts of one stream, free of secrets."""

    def __init__(self, capture: StreamCapture, secrets: Collection[str]) -> None:
        head, tail = capture.ends()
        self._total = capture.total
        self._head = mask(head, secrets).encode()
        self._tail = None if tail is None else mask(tail, secrets).encode()
        if self._tail is not None and secrets:
            # The cut may have left a part of a secret at either edge.
            edge = max(len(secret.encode()) for secret in secrets) - 1
            self._head = self._head[: max(0, len(self._head) - edge)]
            self._tail = self._tail[edge:]
        self.size = len(self._head) + len(self._tail or b'')

    def fit(self, limit: int) -> tuple[str, bool]:
        """The text in at most `limit` bytes, and whether anything was left out of it."""
        if self._tail is None and len(self._head) <= limit:
            return self._head.decode(), False
        tail = self._head if self._tail is None else self._tail
        keep = max(0, limit - _CUT_NOTE_BYTES) // 2
        first = self._head[:keep].decode(errors='ignore')
        last = tail[len(tail) - min(keep, len(tail)) :].decode(errors='ignore')
        # Bytes that are not UTF-8 count three each as text, so for binary output this is an estimate.
        left_out = max(1, self._total - len(first.encode()) - len(last.encode()))
        return f'{first}\n[… {left_out:,} bytes left out …]\n{last}', True
