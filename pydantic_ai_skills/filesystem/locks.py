"""Locks between processes and between threads.

Locks between processes save work and protect files in use; correctness does not depend on them.
"""

from __future__ import annotations

import contextlib
import os
import time
from _thread import RLock
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

from .ownership import is_ours

# Windows has no such locks and works without them.
fcntl: Any = import_module('fcntl') if os.name == 'posix' else None

_LOOK_SECONDS = 0.02


class LockFile:
    """Locks a file or folder until it is released, or this object or process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def __del__(self) -> None:
        self.release()

    def acquire(self, *, shared: bool = False) -> bool:
        """Take the lock without waiting, unless another process has it. Always succeeds where there are no locks."""
        if fcntl is None:
            return True
        how = os.O_RDONLY if self.path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        try:
            self._descriptor = os.open(self.path, how | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        except OSError:
            # A cache that cannot be written to can still be read.
            return True
        if not is_ours(os.fstat(self._descriptor)):
            # Another user can open it too, and could hold its lock forever.
            self.release()
            return True
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        except OSError:
            # The file system does not support locks.
            self.release()
        return True

    def release(self) -> None:
        """Release the lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def only_one(path: Path, *, patience: float) -> Generator[None]:
    """Wait while another process does the same work, up to `patience` seconds. Doing it twice does no harm."""
    lock = LockFile(path)
    end = time.monotonic() + patience
    while not lock.acquire() and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    try:
        yield
    finally:
        lock.release()


class ThreadLock(RLock):  # pyright: ignore[reportGeneralTypeIssues] - the stubs call it final, CPython does not
    """A re-entrant lock between threads. A copy of it, deep or pickled, is another lock, which nobody holds."""

    def __reduce__(self) -> tuple[type[ThreadLock], tuple[()]]:
        return ThreadLock, ()
