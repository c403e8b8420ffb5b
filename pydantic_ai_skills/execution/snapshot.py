"""Reads all files of a skill's folder and computes their digest, for approvals and for copies in workspaces."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError
from pydantic_ai_skills.filesystem.safe_open import OpenFolder

MAX_FILES = 2_000
"""How many files a folder may hold to be copied or approved."""

MAX_BYTES = 64 * 1024 * 1024
"""How many bytes they may have together."""

MAX_DEPTH = 32
"""How deep its folders may be nested."""


class SnapshotFile(NamedTuple):
    """A file at the time of the snapshot; `name` is its path in the folder, with `/` between the parts."""

    name: str
    content: bytes
    executable: bool


class FolderSnapshot(NamedTuple):
    """The regular files of a folder by name, without links, and the SHA-256 of names, contents and executable bits."""

    files: tuple[SnapshotFile, ...]
    digest: str


def snapshot_folder(
    folder: Path, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> FolderSnapshot:
    """Read all regular files in a folder, unless it holds too much."""
    files: list[SnapshotFile] = []
    left = max_bytes
    try:
        with OpenFolder.beneath(str(folder)) as opened:
            for found in opened.walk(max_depth):
                if stat.S_ISDIR(found.status.st_mode):
                    raise SkillScriptExecutionError(f'The folder {found.path} is nested more than {max_depth} deep.')
                if not stat.S_ISREG(found.status.st_mode):
                    continue
                if found.status.st_size > left or len(files) == max_files:
                    raise SkillScriptExecutionError(
                        f'The folder {folder.name!r} holds more than {max_files:,} files or {max_bytes:,} bytes.'
                    )
                files.append(_read(found.folder, found.name, found.path, left))
                left -= len(files[-1].content)
    except OSError as error:
        raise SkillScriptExecutionError(f'The folder {folder.name!r} cannot be read: {error.strerror}.') from error
    return _snapshot(sorted(files))


def snapshot_file(path: Path) -> FolderSnapshot:
    """Read one file as if its folder held nothing else."""
    try:
        with OpenFolder.beneath(str(path.parent)) as folder:
            return _snapshot([_read(folder, path.name, path.name, MAX_BYTES)])
    except OSError as error:
        raise SkillScriptExecutionError(f'The file {path.name!r} cannot be read: {error.strerror}.') from error


def _read(folder: OpenFolder, name: str, path: str, limit: int) -> SnapshotFile:
    try:
        data, status, _ = folder.read(name, limit)
    except SkillResourceLoadError as error:
        raise SkillScriptExecutionError(f'The file {path} {error}') from error
    return SnapshotFile(path, data, bool(status.st_mode & stat.S_IXUSR))


def _snapshot(files: Sequence[SnapshotFile]) -> FolderSnapshot:
    digest = hashlib.sha256()
    for file in files:
        name = file.name.encode('utf-8', 'surrogateescape')
        # Lengths come first, so that no two folders give the same bytes.
        digest.update(f'{len(name)} {len(file.content)} {int(file.executable)} '.encode())
        digest.update(name)
        digest.update(file.content)
    return FolderSnapshot(tuple(files), digest.hexdigest())
