"""What a skill's folder holds at one moment, and a digest of it: for approvals, and for copies elsewhere."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

__all__ = ('FolderSnapshot', 'SnapshotFile', 'read_file', 'take_snapshot')

MAX_FILES = 2_000
"""How many files a folder may hold to be copied or approved."""

MAX_BYTES = 64 * 1024 * 1024
"""How many bytes they may have together."""

MAX_DEPTH = 32
"""How deep its folders may be nested."""


@dataclass(frozen=True, kw_only=True)
class SnapshotFile:
    """A file as it was."""

    name: str
    """Its path in the folder, with `/` between the parts."""

    content: bytes
    """What it held."""

    executable: bool
    """Whether its owner may execute it."""


@dataclass(frozen=True, kw_only=True)
class FolderSnapshot:
    """A folder as it was."""

    files: tuple[SnapshotFile, ...]
    """Its regular files, sorted by name. Links are not followed and not part of it."""

    digest: str
    """The SHA-256 of all of it: names, contents and executable bits."""


def take_snapshot(folder: Path) -> FolderSnapshot:
    """Read a folder, link-free and within limits.

    Raises:
        SkillScriptExecutionError: It holds too much, or cannot be read.
    """
    files: list[SnapshotFile] = []
    total = 0
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for file in _walk(fd, '', 0):
            files.append(file)
            total += len(file.content)
            if len(files) > MAX_FILES or total > MAX_BYTES:
                raise SkillScriptExecutionError(
                    f'The folder {folder.name!r} holds more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes.'
                )
    except OSError as error:
        raise SkillScriptExecutionError(f'The folder {folder.name!r} cannot be read: {error.strerror}.') from error
    files.sort(key=lambda file: file.name)
    return FolderSnapshot(files=tuple(files), digest=_digest(files))


def read_file(path: Path) -> FolderSnapshot:
    """Read one file as if it were all its folder holds.

    Raises:
        SkillScriptExecutionError: It is too long, not a regular file, or cannot be read.
    """
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            file = _read(path.name, folder, '')
        finally:
            os.close(folder)
    except OSError as error:
        raise SkillScriptExecutionError(f'The file {path.name!r} cannot be read: {error.strerror}.') from error
    return FolderSnapshot(files=(file,), digest=_digest([file]))


def _walk(fd: int, prefix: str, depth: int) -> Iterator[SnapshotFile]:
    """The files below an open folder, which is closed. Each step goes through a descriptor, so no link is followed."""
    try:
        with os.scandir(fd) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            mode = os.lstat(name, dir_fd=fd).st_mode
            if stat.S_ISDIR(mode):
                if depth >= MAX_DEPTH:
                    raise SkillScriptExecutionError(f'The folder {prefix}{name} is nested more than {MAX_DEPTH} deep.')
                yield from _walk(_open(name, fd, os.O_DIRECTORY), f'{prefix}{name}/', depth + 1)
            elif stat.S_ISREG(mode):
                yield _read(name, fd, prefix)
    finally:
        os.close(fd)


def _read(name: str, folder: int, prefix: str) -> SnapshotFile:
    with open(_open(name, folder, os.O_NONBLOCK), 'rb') as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise SkillScriptExecutionError(f'The file {prefix}{name} is not a regular file.')
        content = file.read(MAX_BYTES + 1)
    return SnapshotFile(name=f'{prefix}{name}', content=content, executable=bool(info.st_mode & stat.S_IXUSR))


def _open(name: str, folder: int, flag: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flag, dir_fd=folder)


def _digest(files: list[SnapshotFile]) -> str:
    digest = hashlib.sha256()
    for file in files:
        name = file.name.encode('utf-8', 'surrogateescape')
        # Lengths first, so that no two folders are written down alike.
        digest.update(f'{len(name)} {len(file.content)} {int(file.executable)} '.encode())
        digest.update(name)
        digest.update(file.content)
    return digest.hexdigest()
