"""A folder of its own for each run, and the files a script leaves in it. Nothing in it is trusted: a script made it."""

from __future__ import annotations

import atexit
import os
import stat
import tempfile
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from pydantic_ai_skills.exceptions import SkillResourceLoadError

__all__ = ('ScriptFile', 'keep_work_folder', 'list_work_files', 'make_work_folder', 'read_work_file', 'remove_folder')

KEPT_FOLDERS = 64
"""Runs whose files can still be read. Older ones are removed, and all of them when this process ends."""

MAX_LISTED_FILES = 200
"""Files of a run that are listed."""

MAX_READ_BYTES = 10 * 1024 * 1024
"""How long a file may be to be read back, unless told otherwise."""

_kept: deque[Path] = deque()
_spare: deque[Path] = deque()
_kept_lock = threading.Lock()
_owner = os.getpid()


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
    waiting = ['']
    while waiting and len(found) < MAX_LISTED_FILES:
        prefix = waiting.pop()
        with suppress(OSError), os.scandir(folder / prefix) as entries:
            for entry in entries:
                name, info = f'{prefix}{entry.name}', entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode):
                    waiting.append(f'{name}/')
                elif stat.S_ISREG(info.st_mode) and _is_text(name):
                    found.append(ScriptFile(name=name, size=info.st_size))
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

    Folders are moved to the top before they are emptied, so neither depth nor the length of paths matters.
    """
    waiting = [folder]
    with suppress(OSError):
        while waiting:
            current = waiting.pop()
            if not os.access(current, os.R_OK | os.W_OK | os.X_OK):
                os.chmod(current, 0o700)
            with os.scandir(current) as entries:
                for entry in list(entries):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(_moved_up(entry, folder))
                    else:
                        os.unlink(entry.path)
            if current != folder:
                os.rmdir(current)
        os.rmdir(folder)


def _moved_up(entry: os.DirEntry[str], folder: Path) -> Path:
    if not os.access(entry, os.W_OK):  # a folder has to be writable to be moved
        os.chmod(entry, 0o700)
    return Path(entry).rename(folder / uuid4().hex)


def _open_below(folder: Path, name: str) -> int:
    *parents, last = name.split('/')
    if any(part in ('', '.', '..') for part in (*parents, last)):
        raise ValueError(name)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    current = os.open(folder, flags | os.O_DIRECTORY)
    try:
        for part in parents:
            above, current = current, os.open(part, flags | os.O_DIRECTORY, dir_fd=current)
            os.close(above)
        # Opening a pipe must not wait for somebody to write into it.
        return os.open(last, flags | os.O_NONBLOCK, dir_fd=current)
    finally:
        os.close(current)


def _is_empty(folder: Path) -> bool:
    with suppress(OSError), os.scandir(folder) as entries:
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
    """Remove the work folders that are still kept, unless this is a fork of the process that made them."""
    if os.getpid() == _owner:
        for folders in (_kept, _spare):
            while folders:
                remove_folder(folders.popleft())
