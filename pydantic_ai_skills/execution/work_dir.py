"""A folder of its own for each run, and the files a script leaves in it. Nothing in it is trusted: a script made it."""

from __future__ import annotations

import atexit
import os
import stat
import tempfile
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from pydantic_ai_skills.exceptions import SkillResourceLoadError

__all__ = ('ScriptFile', 'keep_work_folder', 'list_work_files', 'make_work_folder', 'read_work_file', 'remove_folder')

KEPT_FOLDERS = 64
"""Runs whose files can still be read. Older ones are removed, and all of them when this process ends."""

MAX_LISTED_FILES = 200
"""Files of a run that are listed."""

MAX_LISTED_DEPTH = 32
"""How deep in folders they are looked for."""

MAX_READ_BYTES = 10 * 1024 * 1024
"""How long a file may be to be read back, unless told otherwise."""

_kept: deque[Path] = deque()
_spare: deque[Path] = deque()
_kept_lock = threading.Lock()
with suppress(AttributeError):  # there are no forks on Windows
    # A fork has what its parent has, but folders belong to one process, which uses them and removes them.
    os.register_at_fork(after_in_child=_kept.clear)
    os.register_at_fork(after_in_child=_spare.clear)


@dataclass(frozen=True, kw_only=True)
class ScriptFile:
    """A file that a script left in its work folder."""

    name: str
    """Its path inside the work folder, with `/` between the parts."""

    size: int
    """Its length in bytes."""


def make_work_folder(parent: Path | None = None) -> Path:
    """A new, empty folder that only this user can read."""
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    else:
        with suppress(IndexError, OSError):
            return _checked_spare(_spare.pop())
    # The real path, so that what the script sees and what the sandbox mounts are the same.
    folder = Path(os.path.realpath(parent or tempfile.gettempdir()), f'skill-run-{uuid4().hex}')
    folder.mkdir(mode=0o700)
    return folder


def keep_work_folder(folder: Path, *, forever: bool = False) -> tuple[ScriptFile, ...]:
    """The files in a folder whose run is over. An empty folder is removed, others when newer ones take their place.

    Args:
        folder: The folder.
        forever: Leave it to somebody else to remove a folder with files.
    """
    if not forever and _is_empty(folder):
        # Most runs leave nothing. On a busy disk a folder takes longer to make and remove than a short script to run.
        _spare.append(folder)
        return ()
    files = list_work_files(folder)
    if not files:
        remove_folder(folder)
    elif not forever:
        with _kept_lock:
            _kept.append(folder)
            old = _kept.popleft() if len(_kept) > KEPT_FOLDERS else None
        if old is not None:
            remove_folder(old)
    return files


def list_work_files(folder: Path) -> tuple[ScriptFile, ...]:
    """The regular files below a folder, sorted. Links, devices and pipes are not followed and not listed."""
    found: list[ScriptFile] = []
    waiting: list[tuple[str, ...]] = [()]
    while waiting and len(found) < MAX_LISTED_FILES:
        steps = waiting.pop()
        with suppress(OSError), _opened(folder, *steps) as opened, os.scandir(opened) as entries:
            for entry in entries:
                path, info = (*steps, entry.name), entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode) and len(path) <= MAX_LISTED_DEPTH:
                    waiting.append(path)
                elif stat.S_ISREG(info.st_mode) and _is_text(entry.name):
                    found.append(ScriptFile(name='/'.join(path), size=info.st_size))
    return tuple(sorted(found[:MAX_LISTED_FILES], key=lambda file: file.name))


def read_work_file(folder: Path, name: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
    """The content of a file below a folder, reached without following any link.

    Raises:
        SkillResourceLoadError: There is no such file, it is not a regular file, or it is too long.
    """
    try:
        fd = _open_below(folder, name)
    except (OSError, ValueError) as error:
        raise SkillResourceLoadError(f'The run left no file {name!r}.') from error
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        os.close(fd)
        raise SkillResourceLoadError(f'{name!r} is not a regular file.')
    with open(fd, 'rb') as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise SkillResourceLoadError(f'{name!r} has {info.st_size:,} bytes; {max_bytes:,} can be read.')
    return content


def remove_folder(folder: Path) -> None:
    """Remove a work folder, however deep it is and whatever rights a script took away inside it.

    Everything is reached from a descriptor without following links, so nothing outside is touched, whatever a process
    that is still there does meanwhile. What a script put in place of the folder, such as a link, is removed itself.
    """
    with suppress(OSError), _opened(folder.parent) as parent:
        if not stat.S_ISDIR(os.stat(folder.name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(folder.name, dir_fd=parent)
            return
        with _owned(folder.name, parent) as top:
            while inner := _unlink_files(top):
                # One level at a time: what is further down is moved up, so neither depth nor long paths matter.
                for name in inner:
                    with _owned(name, top) as opened:
                        for deeper in _unlink_files(opened):
                            with _owned(deeper, opened):  # a folder has to be writable to be moved
                                os.rename(deeper, uuid4().hex, src_dir_fd=opened, dst_dir_fd=top)
                    os.rmdir(name, dir_fd=top)
        os.rmdir(folder.name, dir_fd=parent)


def _unlink_files(folder: int) -> list[str]:
    """Remove everything in a folder that is not a folder itself; return the names of those that are."""
    inner: list[str] = []
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=folder)
    return inner


@contextmanager
def _owned(name: str, parent: int) -> Generator[int]:
    """A folder in another one, open, with all rights for this user. A link is refused."""
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    # A folder that may not be read can be held all the same, where there is a way to.
    held = os.open(name, getattr(os, 'O_PATH', os.O_RDONLY) | flags, dir_fd=parent)
    try:
        with suppress(OSError):
            os.chmod(f'/proc/self/fd/{held}', 0o700)
        opened = os.open('.', os.O_RDONLY | flags, dir_fd=held)
    finally:
        os.close(held)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def _opened(folder: Path, *steps: str) -> Generator[int]:
    """A folder, or one below it, open. Neither it nor a folder on the way may be a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    current = os.open(folder, flags)
    try:
        for step in steps:
            above, current = current, os.open(step, flags, dir_fd=current)
            os.close(above)
        yield current
    finally:
        os.close(current)


def _open_below(folder: Path, name: str) -> int:
    *parents, last = name.split('/')
    if any(part in ('', '.', '..') for part in (*parents, last)):
        raise ValueError(name)
    with _opened(folder, *parents) as parent:
        # Opening a pipe must not wait for somebody to write into it.
        return os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=parent)


def _is_empty(folder: Path) -> bool:
    with suppress(OSError), _opened(folder) as opened, os.scandir(opened) as entries:
        return next(entries, None) is None
    return False


def _checked_spare(folder: Path) -> Path:
    """The folder, if nobody removed it or changed who may use it."""
    if folder.lstat().st_mode != stat.S_IFDIR | 0o700:
        raise PermissionError(folder)
    return folder


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@atexit.register
def remove_kept_folders() -> None:
    """Remove the work folders that are still kept."""
    for folders in (_kept, _spare):
        while folders:
            remove_folder(folders.popleft())
