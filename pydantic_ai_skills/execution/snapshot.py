"""Reads a skill's folder and computes a digest of all that is in it, for approvals and for copies in workspaces."""

from __future__ import annotations

import hashlib
import os
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
    """The regular files of a folder by name, and the SHA-256 of everything in it.

    The digest covers the names, kinds and modes of all entries, the contents of files and the targets of links.
    """

    files: tuple[SnapshotFile, ...]
    digest: str


def snapshot_folder(
    folder: Path, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> FolderSnapshot:
    """Read everything in a folder, unless it holds too much."""
    files: list[SnapshotFile] = []
    entries: list[_Entry] = []
    left = max_bytes
    try:
        with OpenFolder.beneath(str(folder)) as opened:
            for found in opened.walk(max_depth, with_folders=True):
                if stat.S_ISDIR(found.status.st_mode) and found.path.count('/') == max_depth:
                    raise SkillScriptExecutionError(f'The folder {found.path} is nested more than {max_depth} deep.')
                if found.status.st_size > left or len(entries) == max_files:
                    raise SkillScriptExecutionError(
                        f'The folder {folder.name!r} holds more than {max_files:,} files or {max_bytes:,} bytes.'
                    )
                content = b''
                if stat.S_ISREG(found.status.st_mode):
                    files.append(_read(found.folder, found.name, found.path, left))
                    content = files[-1].content
                elif stat.S_ISLNK(found.status.st_mode):
                    content = os.fsencode(found.folder.link_target(found.name))
                entries.append(_Entry(found.path, found.status.st_mode, content))
                left -= len(content)
    except OSError as error:
        raise SkillScriptExecutionError(f'The folder {folder.name!r} cannot be read: {error.strerror}.') from error
    return FolderSnapshot(tuple(sorted(files)), _digest(sorted(entries)))


def snapshot_file(path: Path) -> FolderSnapshot:
    """Read one file as if its folder held nothing else."""
    try:
        with OpenFolder.beneath(str(path.parent)) as folder:
            file = _read(folder, path.name, path.name, MAX_BYTES)
    except OSError as error:
        raise SkillScriptExecutionError(f'The file {path.name!r} cannot be read: {error.strerror}.') from error
    return FolderSnapshot((file,), _digest([_Entry(file.name, file.executable, file.content)]))


def script_digest(path: Path, skill_dir: Path | None) -> str:
    """The digest of all that a run depends on: the folder of the skill, and the script's file if that is elsewhere."""
    if skill_dir is None:
        return snapshot_file(path).digest
    folder = snapshot_folder(skill_dir).digest
    return folder if skill_dir in path.parents else f'{folder} {snapshot_file(path).digest}'


class _Entry(NamedTuple):
    """Something in a folder; the content of a link is its target."""

    name: str
    mode: int
    content: bytes


def _read(folder: OpenFolder, name: str, path: str, limit: int) -> SnapshotFile:
    try:
        data, status, _ = folder.read(name, limit)
    except SkillResourceLoadError as error:
        raise SkillScriptExecutionError(f'The file {path} {error}') from error
    return SnapshotFile(path, data, bool(status.st_mode & stat.S_IXUSR))


def _digest(entries: Sequence[_Entry]) -> str:
    digest = hashlib.sha256()
    for entry in entries:
        name = entry.name.encode('utf-8', 'surrogateescape')
        # Lengths come first, so that no two folders give the same bytes.
        digest.update(f'{len(name)} {len(entry.content)} {entry.mode:o} '.encode())
        digest.update(name)
        digest.update(entry.content)
    return digest.hexdigest()
