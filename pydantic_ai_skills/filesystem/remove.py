"""Removes folders that scripts have written into."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from .safe_open import FOLDER_FLAGS, OpenFolder


def remove_tree(path: Path) -> bool:
    """Remove a folder, however deep it is and whatever rights were taken away inside it. Returns whether it is gone.

    Everything is reached by descriptor without following links, so nothing outside is touched, whatever a process that
    is still running does meanwhile. A link or file in place of the folder is removed itself.
    """
    with suppress(OSError):  # an empty one needs no descriptor, and none may be left
        os.rmdir(path)
        return True
    with suppress(OSError):
        _remove(path)
    return not os.path.lexists(path)


def _remove(path: Path) -> None:
    with OpenFolder.beneath(str(path.parent)) as parent:
        if not parent.has_folder(path.name):
            os.unlink(path.name, dir_fd=parent.descriptor)
            return
        with _owned(path.name, parent.descriptor) as top:
            while inner := _unlink_files(top):
                # One level at a time: deeper folders are moved up, so neither depth nor long paths matter.
                for name in inner:
                    with _owned(name, top) as opened:
                        for deeper in _unlink_files(opened):
                            with _owned(deeper, opened):  # a folder has to be writable to be moved
                                os.rename(deeper, uuid4().hex, src_dir_fd=opened, dst_dir_fd=top)
                    os.rmdir(name, dir_fd=top)
        os.rmdir(path.name, dir_fd=parent.descriptor)


def _unlink_files(folder: int) -> list[str]:
    """Remove everything in a folder except the folders in it; return the names of these."""
    inner: list[str] = []
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=folder)
    return inner


@contextmanager
def _owned(name: str, parent: int | None) -> Generator[int]:
    """Open a folder after giving this user all rights on it."""
    # O_PATH opens even a folder that may not be read.
    held = os.open(name, getattr(os, 'O_PATH', os.O_RDONLY) | FOLDER_FLAGS, dir_fd=parent)
    try:
        with suppress(OSError):
            os.chmod(f'/proc/self/fd/{held}', 0o700)
        opened = os.open('.', FOLDER_FLAGS, dir_fd=held)
    finally:
        os.close(held)
    try:
        yield opened
    finally:
        os.close(opened)
