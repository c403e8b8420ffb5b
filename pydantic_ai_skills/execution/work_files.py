"""Lists, reads and writes files in a work folder. Scripts may have set traps in it, so no link in it is followed."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from pydantic_ai_skills.exceptions import SkillResourceLoadError
from pydantic_ai_skills.filesystem.safe_open import FileStamp, OpenFolder, reason, split_path, stamp

from .work_dir import MAX_READ_BYTES

MAX_LISTED_FILES = 200
"""How many files of a run are listed."""

MAX_LISTED_DEPTH = 32
"""How deep in nested folders files are listed."""

MAX_WATCHED_FILES = 20_000
"""How many files in a folder are watched for additions and changes by a script."""


@dataclass(frozen=True, kw_only=True)
class ScriptFile:
    """A file in a work folder that a script added or changed."""

    name: str
    """Its path inside the work folder, with `/` between the parts."""

    size: int
    """Its length in bytes."""


def stamps_of(folder: Path) -> dict[str, FileStamp]:
    """The regular files below a folder, each with a stamp that shows changes; no links, devices or pipes."""
    with suppress(OSError), open_work_folder(folder) as opened:
        found = islice(opened.walk(MAX_LISTED_DEPTH, skip_errors=True), MAX_WATCHED_FILES)
        return {entry.path: stamp(entry.status) for entry in found if stat.S_ISREG(entry.status.st_mode)}
    return {}


def changed_files(folder: Path, before: Mapping[str, FileStamp]) -> tuple[ScriptFile, ...]:
    """The files below a folder that were added or changed since `before`, sorted by name."""
    changed = (
        ScriptFile(name=name, size=size)
        for name, (modified, changed, size, inode) in stamps_of(folder).items()
        if before.get(name) != (modified, changed, size, inode)
        and name.encode(errors='ignore').decode() == name  # others cannot be sent to the model
    )
    return tuple(sorted(islice(changed, MAX_LISTED_FILES), key=lambda file: file.name))


def remove_changed(folder: Path, before: Mapping[str, FileStamp]) -> None:
    """Remove the files below a folder that were added or changed since `before`."""
    for name in (name for name, now in stamps_of(folder).items() if before.get(name) != now):
        *parents, last = split_path(name)
        with suppress(OSError), open_work_folder(folder, *parents) as opened:
            os.unlink(_path_in(opened, last), dir_fd=opened.descriptor)


def list_work_files(folder: Path) -> tuple[ScriptFile, ...]:
    """The regular files below a folder, sorted by name."""
    return changed_files(folder, {})


def read_work_file(folder: Path, name: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
    """Read a regular file below a folder.

    Raises:
        SkillResourceLoadError: There is no such file, or it is longer than `max_bytes`.
    """
    try:
        *parents, last = split_path(name)
        with open_work_folder(folder, *parents) as opened:
            return opened.read(last, max_bytes).data
    except (OSError, ValueError) as error:
        raise SkillResourceLoadError(f'There is no file {name!r} in the work folder.') from error
    except SkillResourceLoadError as error:
        raise SkillResourceLoadError(f'{name!r} {error}') from error


def has_work_file(folder: Path, name: str) -> bool:
    """Whether there is a regular file of this name below a folder."""
    with suppress(OSError, ValueError, SkillResourceLoadError):
        *parents, last = split_path(name)
        with open_work_folder(folder, *parents) as opened:
            status = opened.status_of(last)
            return status is not None and stat.S_ISREG(status.st_mode)
    return False


def write_work_file(folder: Path, name: str, data: bytes | BinaryIO) -> None:
    """Write a file below a folder, and the folders it needs. A link in its place is replaced, not followed.

    Raises:
        SkillResourceLoadError: It cannot be written there.
    """
    try:
        *parents, last = split_path(name)
        at = open_work_folder(folder)
        for step in parents:
            with at:
                at = _folder_in(at, step)
        with at:
            _replace(at, last, data)
    except (OSError, ValueError) as error:
        raise SkillResourceLoadError(f'{name!r} cannot be written into the work folder: {reason(error)}.') from error
    except SkillResourceLoadError as error:
        raise SkillResourceLoadError(f'{name!r} {error}') from error


def remove_outward_links(folder: Path, is_allowed: Callable[[str], bool]) -> None:
    """Remove links that lead out of a folder, unless their target is allowed: the next script might follow them."""
    inside = f'{folder}/'
    with suppress(OSError), open_work_folder(folder) as opened:
        for entry in opened.walk(sys.getrecursionlimit() // 4, skip_errors=True):
            if not stat.S_ISLNK(entry.status.st_mode):
                continue
            target = os.path.realpath(f'{folder}/{entry.path}')
            if not f'{target}/'.startswith(inside) and not is_allowed(target):
                with suppress(OSError):
                    os.unlink(_path_in(entry.folder, entry.name), dir_fd=entry.folder.descriptor)


def open_work_folder(folder: Path, *steps: str) -> OpenFolder:
    """Open a folder, or one below it. A script may have put a link in its place, so it is reached from its parent."""
    return OpenFolder.beneath(str(folder.parent), (folder.name, *steps))


def _folder_in(parent: OpenFolder, name: str) -> OpenFolder:
    with suppress(FileExistsError):
        os.mkdir(_path_in(parent, name), 0o700, dir_fd=parent.descriptor)
    return parent.folder(name)


def _replace(folder: OpenFolder, name: str, data: bytes | BinaryIO) -> None:
    beside, at = _path_in(folder, f'.{uuid4().hex}'), folder.descriptor
    try:
        with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=at), 'wb') as file:
            if isinstance(data, bytes):
                file.write(data)
            else:
                shutil.copyfileobj(data, file)
        os.replace(beside, _path_in(folder, name), src_dir_fd=at, dst_dir_fd=at)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=at)
        raise


def _path_in(folder: OpenFolder, name: str) -> str:
    """The path of an entry; only its name where it is reached through the folder's descriptor."""
    return name if folder.descriptor is not None else f'{folder.path}{os.sep}{name}'
