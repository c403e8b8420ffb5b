"""Glob patterns that say which files of a skill are offered."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Any, NamedTuple

Segment = re.Pattern[str] | None
"""A part of a path between slashes; `None` for `**`, which stands for folders at any depth."""


class FilePatterns(NamedTuple):
    """Which files are offered, by their paths below the skill's folder."""

    include: tuple[tuple[Segment, ...], ...]
    """A file has to fit one of these patterns, if there are any."""

    exclude: tuple[tuple[Segment, ...], ...]
    """A file must not fit any of these patterns."""

    def fit(self, path: str) -> bool:
        """Whether the file is offered."""
        steps = path.split('/')
        if any(_fits(pattern, steps) for pattern in self.exclude):
            return False
        return not self.include or any(_fits(pattern, steps) for pattern in self.include)


def file_patterns(include: str | Iterable[str] | None, exclude: str | Iterable[str] | None) -> FilePatterns:
    """Read patterns.

    Raises:
        TypeError: They are not text.
        ValueError: A pattern is empty.
    """
    return FilePatterns(_read('include', include), _read('exclude', exclude))


def _read(option: str, given: str | Iterable[str] | None) -> tuple[tuple[Segment, ...], ...]:
    patterns: list[Any] = [given] if isinstance(given, str) else list(given or ())
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f'{option} takes patterns as text, such as "references/**", not {pattern!r}.')
        if not pattern.strip('/'):
            raise ValueError(f'{option} has an empty pattern: {pattern!r}.')
    return tuple(map(_segments, patterns))


def _segments(pattern: str) -> tuple[Segment, ...]:
    parts = pattern.removeprefix('./').lstrip('/').split('/')
    if parts[-1] == '':  # a folder: everything in it
        parts[-1] = '**'
    if len(parts) == 1:
        parts.insert(0, '**')
    return tuple(None if part == '**' else _segment(part) for part in parts)


def _segment(text: str) -> re.Pattern[str]:
    # Python makes the stars of one segment atomic, so a match takes time in the product of both lengths at most.
    return re.compile(translate(text))


def _fits(pattern: tuple[Segment, ...], steps: list[str]) -> bool:
    """Whether a path fits. All places in the pattern that are possible are followed at once, so nothing is retried."""
    places = _with_skips(pattern, {0})
    for step in steps:
        ahead = [(place, pattern[place]) for place in places if place < len(pattern)]
        deeper = {place for place, segment in ahead if segment is None}
        further = {place + 1 for place, segment in ahead if segment is not None and segment.match(step)}
        places = _with_skips(pattern, deeper | further)
    return len(pattern) in places


def _with_skips(pattern: tuple[Segment, ...], places: set[int]) -> set[int]:
    """These places, and those after each `**` among them, which may stand for no folder at all."""
    reached = set(places)
    for place in sorted(places):
        while place < len(pattern) and pattern[place] is None:
            place += 1
            reached.add(place)
    return reached
