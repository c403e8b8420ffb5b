"""Gives each run a work folder and lists and reads the files a script left there. A script may have set traps in it."""

from __future__ import annotations

import atexit
import os
import stat
import tempfile
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from uuid import uuid4

from pydantic_ai_skills.exceptions import SkillResourceLoadError
from pydantic_ai_skills.filesystem.remove import remove_tree
from pydantic_ai_skills.filesystem.safe_open import OpenFolder, split_path

KEPT_FOLDERS = 64
"""How many of the last runs keep their files. All are removed when this process ends."""

MAX_LISTED_FILES = 200
"""How many files of a run are listed."""

MAX_LISTED_DEPTH = 32
"""How deep in nested folders files are listed."""

MAX_READ_BYTES = 10 * 1024 * 1024
"""How long a file may be that is read, by default."""

_kept: deque[Path] = deque()
_left: deque[Path] = deque()
_private: list[Path] = []
_lock = threading.Lock()
with suppress(AttributeError):  # there are no forks on Windows
    for _folders in (_kept, _left, _private):  # they belong to the process that made them, not to its forks
        os.register_at_fork(after_in_child=_folders.clear)


@dataclass(frozen=True, kw_only=True)
class ScriptFile:
    """A file that a script left in its work folder."""

    name: str
    """Its path inside the work folder, with `/` between the parts."""

    size: int
    """Its length in bytes."""


def make_work_folder(parent: Path | None = None) -> Path:
    """Make an empty folder that only this user can read, whatever rights a script gives to it."""
    if parent is not None:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _new_folder(parent)
    with _lock, suppress(IndexError, FileNotFoundError):  # there is none yet, or somebody has tidied up
        return _new_folder(_private[-1])
    private = Path(tempfile.mkdtemp(prefix='skill-runs-'))
    _private.append(private)
    return _new_folder(private)


def _new_folder(parent: Path) -> Path:
    # The real path, so that the script sees the same one that the sandbox mounts.
    folder = Path(os.path.realpath(parent), f'skill-run-{uuid4().hex}')
    folder.mkdir(mode=0o700)
    return folder


def keep_work_folder(folder: Path, *, forever: bool = False, most: int = KEPT_FOLDERS) -> tuple[ScriptFile, ...]:
    """List the files of a run that is over.

    A folder without files is removed. Another one is removed when `most` newer ones exist, or never if `forever`.
    """
    files = list_work_files(folder)
    if not files:
        remove_work_folder(folder)
        return ()
    with suppress(OSError), _opened(folder) as opened:
        os.chmod(opened.path if opened.descriptor is None else opened.descriptor, 0o700)
    if not forever:
        with _lock:
            _kept.append(folder)
            old = _kept.popleft() if len(_kept) > most else None
        if old is not None:
            remove_work_folder(old)
    return files


def remove_work_folder(folder: Path) -> None:
    """Remove a work folder, or else try again after the next run and when this process ends."""
    _left.append(folder)
    for _ in range(len(_left)):
        with suppress(IndexError):  # another thread has taken it
            again = _left.popleft()
            if not remove_tree(again):
                _left.append(again)


def list_work_files(folder: Path) -> tuple[ScriptFile, ...]:
    """The regular files below a folder, sorted by name, without links, devices and pipes."""
    with suppress(OSError), _opened(folder) as opened:
        files = (
            ScriptFile(name=found.path, size=found.status.st_size)
            for found in opened.walk(MAX_LISTED_DEPTH, skip_errors=True)
            if stat.S_ISREG(found.status.st_mode)
            and found.name.encode(errors='ignore').decode() == found.name  # others cannot be sent to the model
        )
        return tuple(sorted(islice(files, MAX_LISTED_FILES), key=lambda file: file.name))
    return ()


def read_work_file(folder: Path, name: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
    """Read a regular file below a folder without following links."""
    try:
        *parents, last = split_path(name)
        with _opened(folder, *parents) as opened:
            return opened.read(last, max_bytes).data
    except (OSError, ValueError) as error:
        raise SkillResourceLoadError(f'The run left no file {name!r}.') from error
    except SkillResourceLoadError as error:
        raise SkillResourceLoadError(f'{name!r} {error}') from error


def _opened(folder: Path, *steps: str) -> OpenFolder:
    """Open a folder, or one below it. A script may have put a link in its place, so it is reached from its parent."""
    return OpenFolder.beneath(str(folder.parent), (folder.name, *steps))


@atexit.register
def remove_kept_folders() -> None:
    """Remove all work folders that are still kept."""
    while _kept:
        remove_work_folder(_kept.popleft())
    for folder in (*_left, *_private):
        remove_tree(folder)
    _left.clear()
    _private.clear()
