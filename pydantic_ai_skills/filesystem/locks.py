"""Locks between processes. They save work and protect what is in use; no result depends on them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

# Windows has none, and does without.
fcntl: Any = import_module('fcntl') if os.name == 'posix' else None

__all__ = ('LockFile', 'only_one')

_LOOK_SECONDS = 0.02


class LockFile:
    """A file or a folder that is locked for as long as this object, or the process, lives."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def __del__(self) -> None:
        self.release()

    def acquire(self, *, shared: bool = False) -> bool:
        """Take the lock if that is possible without waiting. Where there are no locks, it is."""
        if fcntl is None:
            return True
        how = os.O_RDONLY if self.path.is_dir() else os.O_RDWR | os.O_CREAT
        try:
            self._descriptor = os.open(self.path, how | os.O_CLOEXEC, 0o600)
        except OSError:
            # A cache that cannot be written can still be read.
            return True
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        except OSError:
            # A file system without locks.
            self.release()
        return True

    def release(self) -> None:
        """Let go of the lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def only_one(path: Path, *, patience: float) -> Generator[None]:
    """Wait while another process does the same work, but not for ever: it is right to do it twice."""
    lock = LockFile(path)
    end = time.monotonic() + patience
    while not lock.acquire() and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    try:
        yield
    finally:
        lock.release()
