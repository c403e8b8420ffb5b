"""What was found in directories, kept on disk, so that a later process reads only what has changed since.

One SQLite file per user. For each place of a directory it has the stamps of the folder and of its `SKILL.md` and what
the header says; a place whose stamps are still the same is taken from there. Stamps that cannot be relied on are not
in it, as they are not in memory. Whatever is wrong with the file, the directory is read as if there were none.
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
from itertools import compress, repeat
from operator import eq
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import FileStamp, stamp
from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir, expand_home
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.parsing.tool_specs import restore_tools
from pydantic_ai_skills.problems import SkillProblem

from .folder_skill import FolderSkill
from .scanned import SKILL_FILE, OddPlace, Place, ScanSettings

__all__ = ('DiskIndex',)

FORMAT = 4
"""Part of the file's name. It changes when what is kept changes, or what the parser makes of a file."""

CHUNK = 200
"""How many places are kept together, in the order of their paths; a change is written with all of them."""

WAIT_S = 2.0
"""How long to wait for another process that writes."""

KEPT_S = 90 * 24 * 3600
"""For how long a directory that is not looked at is kept."""

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

_USUAL: dict[str, Any] = {
    'allowed_tools': (),
    'disable_model_invocation': False,
    'user_invocable': True,
    'tool_specs': (),
}
"""What most skills say, so that it is not kept: the last fields of a `SkillHeader`, by their names in a skill."""

_STAMP = struct.Struct('<4q')
_MAX_NUMBER = 2**63 - 1

_ABOUT = ('name', 'description', 'license', 'compatibility', 'metadata')
"""The first fields of a `SkillHeader`."""


class DiskIndex:
    """The index of one directory."""

    def __init__(self, file: str | Path | None, settings: ScanSettings, root: str) -> None:
        """Remember where the index is.

        Args:
            file: The file; `None` for the one in the user's cache folder.
            settings: What the developer decided about the directory.
            root: The directory, links resolved.
        """
        self.file: Path | None = None
        """Where it is; `None` where the user has no home folder for it."""
        with suppress(SkillValidationError):
            self.file = default_cache_dir() / f'index-v{FORMAT}.sqlite' if file is None else expand_home(file)
        self.problem: SkillProblem | None = None
        """Why it cannot be used, if it cannot."""
        self._settings = settings
        self._root = root
        # Not as JSON: the name of a folder need not be text.
        self._key = repr((FORMAT, root, settings.validate, settings.max_depth, settings.follow_links))
        self._version = 0
        self._bounds: list[str] = []
        """The first path of each chunk."""
        self._saved: dict[str, Place] = {}

    def load(self) -> tuple[dict[str, Place], bool]:
        """The places that are still as they were, and whether these are all there were."""
        places: dict[str, Place] = {}
        whole, count = False, 0
        try:
            rows = self._rows()
            for version, chunks, kept, stamps, checksum in rows:
                if _checksum(kept, stamps) != checksum:
                    raise ValueError('it is not as it was written')
                self._version = version
                whole = chunks == len(rows)
                first, columns, odd = from_json(kept, cache_strings=False)
                self._bounds.append(first)
                self._take_plain(columns, list(_STAMP.iter_unpack(stamps)), places)
                self._take_odd(odd, places)
                count += len(columns[0]) + len(odd)
        except (sqlite3.Error, struct.error, OSError, ValueError, TypeError, KeyError) as error:
            self._failed(error)
            places, whole = {}, False
        # A directory that was not there had no places, not even its own.
        all_there = whole and len(places) == count and self._root in places
        self._saved = dict(places) if all_there else {}
        return places, all_there

    def save(self, places: Mapping[str, Place]) -> None:
        """Keep what was found, for the next process."""
        saved = self._saved
        changed = [path for path, place in places.items() if saved.get(path) is not place]
        changed += saved.keys() - places.keys()
        try:
            with closing(self._open()) as database:
                database.executescript(_SCHEMA)
                self._write(database, places, changed if saved else None)
        except (sqlite3.Error, OSError, ValueError) as error:
            self._failed(error)
        else:
            self.problem = None
            self._saved = dict(places)

    def _rows(self) -> list[tuple[int, int, bytes, bytes, int]]:
        if self.file is None or not os.path.exists(self.file) or not os.path.getsize(self.file):
            return []
        with closing(sqlite3.connect(self.file, timeout=WAIT_S)) as database:
            return database.execute(_LOAD, (self._key,)).fetchall()

    def _open(self) -> sqlite3.Connection:
        if self.file is None:
            raise FileNotFoundError('this user has no home directory: say where the index is, as disk_index=')
        # Made with these rights before SQLite opens it: what skills there are is nobody else's business.
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600))
        return sqlite3.connect(self.file, timeout=WAIT_S, isolation_level=None)

    def _write(self, database: sqlite3.Connection, places: Mapping[str, Place], changed: list[str] | None) -> None:
        now = int(time.time())
        database.execute('PRAGMA synchronous = NORMAL')
        database.execute('BEGIN IMMEDIATE')
        with database:
            database.execute('DELETE FROM directories WHERE used < ?', (now - KEPT_S,))
            database.execute('INSERT OR IGNORE INTO directories(key, version) VALUES (?, 0)', (self._key,))
            database.execute('DELETE FROM places WHERE directory NOT IN (SELECT id FROM directories)')
            (row,) = database.execute('SELECT id, version FROM directories WHERE key = ?', (self._key,))
            number, version = row
            chunks = self._chunks(places) if changed is not None and version == self._version else []
            if changed is None or not chunks or not all(chunks):
                # Parts of what another process has written since, and parts of this view, would not fit together.
                database.execute('DELETE FROM places WHERE directory = ?', (number,))
                paths = sorted(places)
                self._bounds = paths[::CHUNK]
                chunks = [paths[start : start + CHUNK] for start in range(0, len(paths), CHUNK)]
                stale = set(range(len(chunks)))
            else:
                stale = {self._chunk_of(path) for path in changed}
            # Not a count: it would come to the same number again after the file was deleted.
            self._version = time.time_ns()
            database.execute(
                'UPDATE directories SET used = ?, version = ?, chunks = ? WHERE id = ?',
                (now, self._version, len(chunks), number),
            )
            database.executemany(
                'INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?, ?)',
                [(number, chunk, *self._kept(chunks[chunk], places)) for chunk in stale],
            )

    def _chunks(self, places: Mapping[str, Place]) -> list[list[str]]:
        """The paths in order, divided as they were when they were last written as a whole."""
        chunks: list[list[str]] = [[] for _ in self._bounds]
        for path in sorted(places):
            chunks[self._chunk_of(path)].append(path)
        return chunks

    def _chunk_of(self, path: str) -> int:
        return max(bisect_right(self._bounds, path) - 1, 0)

    def _failed(self, error: Exception) -> None:
        message = f'The index cannot be used ({error}); the files are read instead. Remove it if it is damaged.'
        self.problem = problem('index-failed', str(self.file or self._settings.path), message)

    # --- Places as JSON -------------------------------------------------------------------------------------------

    def _kept(self, paths: list[str], places: Mapping[str, Place]) -> tuple[bytes, bytes, int]:
        """What is kept of some places: a column for each field of those that are plain, all of each of the others.

        The stamps of those that are plain are kept apart, packed: numbers of that length are most of what there is.
        With them comes a checksum of both.
        """
        plain: list[tuple[Place, FolderSkill]] = []
        odd: list[dict[str, Any]] = []
        for path in paths:
            place = places[path]
            if place.skill is not None and self._is_plain(place, place.skill):
                plain.append((place, place.skill))
            else:
                odd.append(_odd(path, place))
        columns: list[list[Any]] = [
            [place.path[len(self._root) + 1 :] for place, _ in plain],
            [skill.headings for _, skill in plain],
            *([getattr(skill, field) for _, skill in plain] for field in _ABOUT),
        ]
        stamps = b''.join(_STAMP.pack(*each) for place, _ in plain for each in (place.stamp, place.file_stamp))
        kept = to_json([paths[0], columns, odd])
        return kept, stamps, _checksum(kept, stamps)

    def _is_plain(self, place: Place, skill: FolderSkill) -> bool:
        """Whether it is a skill in a folder below the directory, of which everything else is as usual."""
        return (
            place.file == f'{place.path}{os.sep}{SKILL_FILE}'
            and skill.root == self._root != place.path
            and not (place.inner or place.ends or place.problems)
            and max(*place.stamp, *place.file_stamp) <= _MAX_NUMBER
            and all(getattr(skill, field) == usual for field, usual in _USUAL.items())
        )

    def _take_plain(self, columns: list[list[Any]], stamps: list[FileStamp], places: dict[str, Place]) -> None:
        """Take in plain skills, if nothing about them has changed on disk since they were written.

        This looks at their files only. A folder of further skills that somebody has put into a skill's folder is seen
        at the second look, which looks at all folders.
        """
        inner, headings, *about = columns
        file_stamps = stamps[1::2]
        headers = zip(*about, *map(repeat, _USUAL.values()))  # noqa: B905 - the usual values have no end
        reader = self._settings.reader(self._root, SKILL_FILE)
        paths = [f'{self._root}{os.sep}{way}' for way in inner]
        files = [f'{path}{os.sep}{SKILL_FILE}' for path in paths]
        skills = map(FolderSkill, repeat(reader), paths, headers, headings)
        found = zip(paths, map(Place, paths, stamps[::2], files, file_stamps, skills), strict=True)
        places.update(compress(found, map(eq, _stamps(files), file_stamps)))

    def _take_odd(self, odd: list[dict[str, Any]], places: dict[str, Place]) -> None:
        """Take in places that are not plain, if nothing about them has changed on disk since they were written."""
        for kept in odd:
            path: str = kept['path']
            place = OddPlace(kept.get('seen_as', path), _stamp(kept['stamp']))
            place.inner, place.links = tuple(kept.get('inner', ())), tuple(kept.get('links', ()))
            place.ends = tuple((link, is_folder) for link, is_folder in kept.get('ends', ()))
            place.problems = tuple(
                problem(code, where, message, line) for where, code, message, line in kept.get('problems', ())
            )
            if 'file' in kept:
                place.file, place.file_stamp = f'{path}{os.sep}{kept["file"]}', _stamp(kept['file_stamp'])
            if 'skill' in kept:
                place.skill = self._odd_skill(path, kept['file'], **kept['skill'])
            if place.is_current():
                places[path] = place

    def _odd_skill(self, path: str, file_name: str, root: str, headings: str, header: dict[str, Any]) -> FolderSkill:
        header['allowed_tools'] = tuple(header['allowed_tools'])
        header['tool_specs'] = restore_tools(header['tool_specs'])
        return FolderSkill(self._settings.reader(root, file_name), path, tuple(header.values()), headings)


def _odd(path: str, place: Place) -> dict[str, Any]:
    """What is kept of a place that is not plain."""
    kept: dict[str, Any] = {'path': path, 'stamp': place.stamp}
    if place.path != path:
        kept['seen_as'] = place.path
    if place.inner or place.ends:
        kept['inner'], kept['links'], kept['ends'] = place.inner, place.links, place.ends
    if place.problems:
        kept['problems'] = [(found.path, found.code, found.message, found.line) for found in place.problems]
    if place.file is not None:
        kept['file'], kept['file_stamp'] = os.path.basename(place.file), place.file_stamp
    skill = place.skill
    if skill is not None:
        header = {field: getattr(skill, field) for field in (*_ABOUT, *_USUAL)}
        kept['skill'] = {'root': skill.root, 'headings': skill.headings, 'header': header}
    return kept


def _checksum(kept: bytes, stamps: bytes) -> int:
    return zlib.crc32(stamps, zlib.crc32(kept))


def _stamps(files: list[str]) -> Sequence[FileStamp | None]:
    """The stamps of files as they are now; `None` for one that is gone."""
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
