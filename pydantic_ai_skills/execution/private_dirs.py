"""Makes private folders for scripts to work in, and removes them. Scripts may have set traps in them."""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from pydantic_ai_skills.filesystem.remove import remove_tree
from pydantic_ai_skills.filesystem.safe_open import OpenFolder

KEPT_FOLDERS = 64
"""How many of the last runs without a conversation keep their files. All are removed when this process ends."""

_kept: deque[Path] = deque()
_left: deque[Path] = deque()
_roots: list[Path] = []
_lock = threading.Lock()
with suppress(AttributeError):  # there are no forks on Windows
    for _folders in (_kept, _left, _roots):  # they belong to the process that made them, not to its forks
        os.register_at_fork(after_in_child=_folders.clear)


def make_private_folder() -> Path:
    """Make an empty folder that only this user can reach, whatever rights a script gives to it."""
    with _lock:
        with suppress(IndexError, FileNotFoundError):  # there is none yet, or somebody has tidied up
            return _new_folder(_roots[-1])
        # The real path, so that scripts see the same one with and without a sandbox.
        _roots.append(Path(os.path.realpath(tempfile.mkdtemp(prefix='skill-runs-'))))
        return _new_folder(_roots[-1])


def _new_folder(parent: Path) -> Path:
    folder = parent / f'skill-run-{uuid4().hex}'
    folder.mkdir(mode=0o700)
    return folder


def close_to_others(folder: Path) -> None:
    """Give only this user rights to a private folder, if a script changed that."""
    with suppress(OSError), OpenFolder.beneath(str(folder.parent), (folder.name,)) as opened:
        os.chmod(opened.path if opened.descriptor is None else opened.descriptor, 0o700)


def keep_private_folder(folder: Path, *, most: int = KEPT_FOLDERS) -> None:
    """Keep the folder of a run that is over until `most` newer ones are kept, or this process ends."""
    close_to_others(folder)
    with _lock:
        _kept.append(folder)
        old = _kept.popleft() if len(_kept) > most else None
    if old is not None:
        remove_private_folder(old)


def remove_private_folder(folder: Path) -> None:
    """Remove a folder, or else try again after the next run and when this process ends."""
    _left.append(folder)
    for _ in range(len(_left)):
        with suppress(IndexError):  # another thread has taken it
            again = _left.popleft()
            if not remove_tree(again):
                _left.append(again)


def remove_empty_roots() -> None:
    """Remove the folder that holds the private ones, if there are none left."""
    with _lock:
        for root in tuple(_roots):
            with suppress(OSError):  # some are left
                os.rmdir(root)
                _roots.remove(root)


@atexit.register
def remove_kept_folders() -> None:
    """Remove all private folders that still exist."""
    while _kept:
        remove_private_folder(_kept.popleft())
    for folder in (*_left, *_roots):
        remove_tree(folder)
    _left.clear()
    _roots.clear()
