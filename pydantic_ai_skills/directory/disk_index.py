"""Keeps an index of scanned directories on disk, so that a later process reads only what has changed since.

There is one SQLite file per user. For each folder of a directory it has the stamps of the folder and of its `SKILL.md`,
and the header; a folder with unchanged stamps is taken from there. Unreliable stamps are not kept. If anything is wrong
with the file, the directory is scanned as if there were none.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import compress, repeat
from operator import eq
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import FileStamp, stamp
from pydantic_ai_skills.filesystem.user_database import read_user_database, write_user_database
from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir, expand_home
from pydantic_ai_skills.parsing.header import SkillHeader, restore_header
from pydantic_ai_skills.problems import SkillProblem, problem

from .folder_skill import FolderSkill, ScannedFolder, SkillReader
from .settings import SKILL_FILE, ScanSettings

FORMAT = 5
"""Part of the file's name. Increase it when the parser reads a file differently, or when other things are kept."""

KEPT_S = 90 * 24 * 3600
"""How long a directory is kept after its last use."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS directories (
    id INTEGER PRIMARY KEY, key TEXT UNIQUE, version INTEGER, chunks INTEGER, used INTEGER
);
CREATE TABLE IF NOT EXISTS places (
    directory INTEGER, chunk INTEGER, kept BLOB, stamps BLOB, checksum INTEGER, PRIMARY KEY (directory, chunk)
);
"""

_LOAD = """
SELECT version, chunks, kept, stamps, checksum
FROM places JOIN directories ON id = directory WHERE key = ? ORDER BY chunk
"""

_STAMP = struct.Struct('<4q')
_MAX_NUMBER = 2**63 - 1

_ABOUT = 5
"""How many of the first fields of a `SkillHeader` most skills give; the others have their defaults."""

# Like `SkillHeader._make`, in half the time.
_new_header = partial(tuple.__new__, SkillHeader)  # pyright: ignore[reportUnknownMemberType]
_USUAL = tuple(SkillHeader._field_defaults[field] for field in SkillHeader._fields[_ABOUT:])


class DiskIndex:
    """The index of one directory."""

    def __init__(self, file: str | Path | None, settings: ScanSettings, root: str) -> None:
        """Remember where the index is: in `file`, or in the user's cache folder. `root` has its links resolved."""
        self.file: Path | None = None
        """The file; `None` if the user has no home folder."""
        with suppress(SkillValidationError):
            self.file = default_cache_dir() / f'index-v{FORMAT}.sqlite' if file is None else expand_home(file)
        self.problem: SkillProblem | None = None
        """Why it cannot be used, if it cannot."""
        self._settings = settings
        self._root = root
        # Not JSON: the name of a folder need not be valid text.
        self._key = repr(
            (FORMAT, SkillHeader._fields, root, settings.validate, settings.max_depth, settings.follow_links)
        )
        self._version = 0
        self._bounds: list[str] = []
        """The first path of each chunk."""
        self._saved: dict[str, ScannedFolder] = {}

    def load(self) -> tuple[dict[str, ScannedFolder], bool]:
        """The folders that have not changed, and whether these are all folders."""
        folders: dict[str, ScannedFolder] = {}
        is_whole, count = False, 0
        try:
            rows = self._rows()
            for version, chunks, kept, stamps, checksum in rows:
                if _checksum(kept, stamps) != checksum:
                    raise ValueError('its checksum is wrong')
                self._version = version
                is_whole = chunks == len(rows)
                first, columns, others = from_json(kept, cache_strings=False)
                self._bounds.append(first)
                self._load_simple(columns, list(_STAMP.iter_unpack(stamps)), folders)
                self._load_others(others, folders)
                count += len(columns[0]) + len(others)
        except (sqlite3.Error, struct.error, OSError, ValueError, TypeError, KeyError) as error:
            self._failed(error)
            folders, is_whole = {}, False
        # A directory that was missing had no folders, not even itself.
        is_complete = is_whole and len(folders) == count and self._root in folders
        self._saved = dict(folders) if is_complete else {}
        return folders, is_complete

    def save(self, folders: Mapping[str, ScannedFolder]) -> None:
        """Keep the folders of a scan for the next process."""
        saved = self._saved
        changed = [path for path, folder in folders.items() if saved.get(path) is not folder]
        changed += saved.keys() - folders.keys()
        try:
            with closing(write_user_database(self.file, 'disk_index')) as database:
                database.executescript(_SCHEMA)
                self._write(database, folders, changed if saved else None)
        except (sqlite3.Error, OSError, ValueError) as error:
            self._failed(error)
        else:
            self.problem = None
            self._saved = dict(folders)

    def _rows(self) -> list[tuple[int, int, bytes, bytes, int]]:
        database = read_user_database(self.file)
        if database is None:
            return []
        with closing(database):
            return database.execute(_LOAD, (self._key,)).fetchall()

    def _write(
        self, database: sqlite3.Connection, folders: Mapping[str, ScannedFolder], changed: list[str] | None
    ) -> None:
        now = int(time.time())
        database.execute('PRAGMA synchronous = NORMAL')
        database.execute('BEGIN IMMEDIATE')
        with database:
            database.execute('DELETE FROM directories WHERE used < ?', (now - KEPT_S,))
            database.execute('INSERT OR IGNORE INTO directories(key, version) VALUES (?, 0)', (self._key,))
            database.execute('DELETE FROM places WHERE directory NOT IN (SELECT id FROM directories)')
            (row,) = database.execute('SELECT id, version FROM directories WHERE key = ?', (self._key,))
            number, version = row
            chunks = self._chunks(folders) if changed is not None and version == self._version else []
            if changed is None or not chunks or not all(chunks):
                # Chunks of this scan do not fit together with chunks that another process has written since.
                database.execute('DELETE FROM places WHERE directory = ?', (number,))
                paths, size = sorted(folders), self._settings.limits.index_chunk
                self._bounds = paths[::size]
                chunks = [paths[start : start + size] for start in range(0, len(paths), size)]
                stale = set(range(len(chunks)))
            else:
                stale = {self._chunk_of(path) for path in changed}
            # Not a counter, which would repeat itself if the file is deleted.
            self._version = time.time_ns()
            database.execute(
                'UPDATE directories SET used = ?, version = ?, chunks = ? WHERE id = ?',
                (now, self._version, len(chunks), number),
            )
            database.executemany(
                'INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?, ?)',
                [(number, chunk, *self._kept(chunks[chunk], folders)) for chunk in stale],
            )

    def _chunks(self, folders: Mapping[str, ScannedFolder]) -> list[list[str]]:
        """The sorted paths, divided as at the last complete write."""
        chunks: list[list[str]] = [[] for _ in self._bounds]
        for path in sorted(folders):
            chunks[self._chunk_of(path)].append(path)
        return chunks

    def _chunk_of(self, path: str) -> int:
        return max(bisect_right(self._bounds, path) - 1, 0)

    def _failed(self, error: Exception) -> None:
        message = f'The index cannot be used ({error}); the files are read instead. Remove it if it is damaged.'
        self.problem = problem('index-failed', str(self.file or self._settings.path), message)

    # --- Folders as JSON ------------------------------------------------------------------------------------------

    def _kept(self, paths: list[str], folders: Mapping[str, ScannedFolder]) -> tuple[bytes, bytes, int]:
        """A chunk of folders as JSON, the packed stamps of the simple ones, and a checksum of both.

        Simple folders are kept as one column for each field, the others as one object each.
        """
        simple: list[tuple[ScannedFolder, FolderSkill]] = []
        others: list[dict[str, Any]] = []
        for path in paths:
            folder = folders[path]
            if folder.skill is not None and self._is_simple(folder, folder.skill):
                simple.append((folder, folder.skill))
            else:
                others.append(_other(path, folder))
        columns: list[list[Any]] = [
            [folder.path[len(self._root) + 1 :] for folder, _ in simple],
            [skill.headings for _, skill in simple],
            *([skill.header[field] for _, skill in simple] for field in range(_ABOUT)),
        ]
        stamps = b''.join(_STAMP.pack(*each) for folder, _ in simple for each in (folder.stamp, folder.file_stamp))
        kept = to_json([paths[0], columns, others])
        return kept, stamps, _checksum(kept, stamps)

    def _is_simple(self, folder: ScannedFolder, skill: FolderSkill) -> bool:
        """Whether a folder below the directory holds a skill, and nothing about it is unusual."""
        return (
            folder.file == f'{folder.path}{os.sep}{SKILL_FILE}'
            and skill.root == self._root != folder.path
            and not (folder.inner or folder.links or folder.problems)
            and max(*folder.stamp, *folder.file_stamp) <= _MAX_NUMBER
            and skill.header[_ABOUT:] == _USUAL
        )

    def _load_simple(
        self, columns: list[list[Any]], stamps: list[FileStamp], folders: dict[str, ScannedFolder]
    ) -> None:
        """Add the simple skills whose files have not changed.

        Their folders are not checked here: further skills in the folder of a skill are found at the second look.
        """
        inner, headings, *about = columns
        file_stamps = stamps[1::2]
        headers = map(_new_header, zip(*about, *map(repeat, _USUAL)))  # noqa: B905 - the usual values have no end
        reader = SkillReader(self._root, SKILL_FILE, self._settings)
        paths = [f'{self._root}{os.sep}{way}' for way in inner]
        files = [f'{path}{os.sep}{SKILL_FILE}' for path in paths]
        skills = map(FolderSkill.found, repeat(reader), paths, headers, headings)
        found = zip(paths, map(ScannedFolder, paths, stamps[::2], files, file_stamps, skills), strict=True)
        folders.update(compress(found, map(eq, _stamps(files), file_stamps)))

    def _load_others(self, others: list[dict[str, Any]], folders: dict[str, ScannedFolder]) -> None:
        """Add the other folders that have not changed."""
        for kept in others:
            path: str = kept['path']
            folder = ScannedFolder(kept.get('seen_as', path), _stamp(kept['stamp']))
            folder.inner = tuple(kept.get('inner', ()))
            folder.links = tuple((link, is_folder) for link, is_folder in kept.get('ends', ()))
            folder.problems = tuple(
                problem(code, where, message, line) for where, code, message, line in kept.get('problems', ())
            )
            if 'file' in kept:
                folder.file, folder.file_stamp = f'{path}{os.sep}{kept["file"]}', _stamp(kept['file_stamp'])
            if 'skill' in kept:
                folder.skill = self._skill(path, kept['file'], **kept['skill'])
            if folder.is_current():
                folders[path] = folder

    def _skill(self, path: str, file_name: str, root: str, headings: str, header: list[Any]) -> FolderSkill:
        return FolderSkill.found(SkillReader(root, file_name, self._settings), path, restore_header(header), headings)


def _other(path: str, folder: ScannedFolder) -> dict[str, Any]:
    """A folder that is not simple, as it is kept."""
    kept: dict[str, Any] = {'path': path, 'stamp': folder.stamp}
    if folder.path != path:
        kept['seen_as'] = folder.path
    if folder.inner or folder.links:
        kept['inner'], kept['ends'] = folder.inner, folder.links
    if folder.problems:
        kept['problems'] = [(found.path, found.code, found.message, found.line) for found in folder.problems]
    if folder.file is not None:
        kept['file'], kept['file_stamp'] = os.path.basename(folder.file), folder.file_stamp
    skill = folder.skill
    if skill is not None:
        kept['skill'] = {'root': skill.root, 'headings': skill.headings, 'header': skill.header}
    return kept


def _checksum(kept: bytes, stamps: bytes) -> int:
    return zlib.crc32(stamps, zlib.crc32(kept))


def _stamps(files: list[str]) -> Sequence[FileStamp | None]:
    """The present stamps of files; `None` for one that is gone."""
    try:
        return list(map(stamp, map(os.lstat, files)))
    except OSError:
        return [_stamp_now(file) for file in files]


def _stamp_now(file: str) -> FileStamp | None:
    try:
        return stamp(os.lstat(file))
    except OSError:
        return None


def _stamp(numbers: list[int]) -> FileStamp:
    changed, status_changed, size, inode = numbers
    return changed, status_changed, size, inode
