"""Keeps the cache of fetched content small: removes old entries and the remains of killed processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from pydantic_ai_skills.filesystem.locks import LockFile

from .manifest import Manifest, is_revision

MAX_CACHE_BYTES = 1024**3
"""Size of the cache above which the least recently used entries are removed."""

KEPT_REVISIONS = 3
"""How many revisions of one source are kept."""

RECENT_SECONDS = 3600
"""Entries that were used, and builds that were started, within this time are never removed."""


def prune(home: Path, *, max_bytes: int = MAX_CACHE_BYTES, kept_revisions: int = KEPT_REVISIONS) -> None:
    """Remove remains of killed processes and superseded revisions; then, if the rest is too large, the oldest entries.

    Whatever is in use, or was recently, stays.
    """
    _prune_workspaces(home)
    known: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError):
        for source in (home / 'entries').iterdir():
            entries = sorted(entries_of(source), reverse=True)
            known += entries[:kept_revisions]
            for used, entry in entries[kept_revisions:]:
                _remove_entry(entry, used, home)
    total = 0
    for used, entry in sorted(known, reverse=True):
        manifest = Manifest.read(entry)
        total += manifest.size if manifest else 0
        if total > max_bytes:
            _remove_entry(entry, used, home)


def _prune_workspaces(home: Path) -> None:
    with contextlib.suppress(OSError):
        for lock in list((home / 'tmp').glob('*.lock')):
            _remove_locked(lock, lock.with_suffix(''), home)
        for folder in (home / 'tmp').iterdir():
            # A process was killed while it removed this folder.
            if not folder.with_suffix('.lock').exists() and time.time() - _time_of(folder) > RECENT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def entries_of(source: Path) -> Iterator[tuple[float, Path]]:
    """The entries of a source, each with the time of its last use."""
    with contextlib.suppress(OSError):
        for path in source.iterdir():
            if is_revision(path.name):
                yield _time_of(path.with_name(f'{path.name}.use')) or _time_of(path), path


def _time_of(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _remove_entry(entry: Path, used: float, home: Path) -> None:
    if time.time() - used > RECENT_SECONDS:
        _remove_locked(entry.with_name(f'{entry.name}.use'), entry, home)


def _remove_locked(lock_path: Path, folder: Path, home: Path) -> None:
    """Remove the folder a lock protects, unless somebody holds the lock."""
    lock = LockFile(lock_path)
    if lock.acquire():
        # The rename makes it disappear for others in one step.
        aside = home / 'tmp' / uuid.uuid4().hex
        with contextlib.suppress(OSError):
            os.rename(folder, aside)
        with contextlib.suppress(OSError):
            lock_path.unlink()
        shutil.rmtree(aside, ignore_errors=True)
    lock.release()
