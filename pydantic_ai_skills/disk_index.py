"""What was found in directories, kept on disk, so that a later process reads only what has changed since.

One SQLite file per user. For each place of a directory it has the stamps of the folder and of its `SKILL.md` and what
the header says; a place whose stamps are still the same is taken from there. Stamps that cannot be relied on are not
in it, as they are not in memory. Whatever is wrong with the file, the directory is read as if there were none.
"""

from __future__ import annotations

import os
import sqlite3
import time
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from pydantic_ai_skills.files import stamp
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.scan import SKILL_FILE, Place, ScanSettings
from pydantic_ai_skills.user_cache import default_cache_dir

__all__ = ('DiskIndex',)

FORMAT = 2
"""Part of the file's name. It changes when what is kept changes, or what the parser makes of a file."""

CHUNK = 200
"""How many places are kept in one row, in the order of their paths; a change is written with its row."""

WAIT_S = 2.0
"""How long to wait for another process that writes."""

KEPT_S = 90 * 24 * 3600
"""For how long a directory that is not looked at is kept."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS directories (
    id INTEGER PRIMARY KEY, key TEXT UNIQUE, version INTEGER, chunks INTEGER, used INTEGER
);
CREATE TABLE IF NOT EXISTS places (directory INTEGER, chunk INTEGER, rows TEXT, PRIMARY KEY (directory, chunk));
"""

_LOAD = """
SELECT version, chunks, rows FROM places JOIN directories ON id = directory WHERE key = ? ORDER BY chunk
"""

_USUAL: dict[str, Any] = {
    'allowed_tools': (),
    'disable_model_invocation': False,
    'user_invocable': True,
    'tool_specs': (),
}
"""What most skills say, so that it is not kept: the last fields of a `SkillHeader`, by their names in a skill."""

_USUAL_VALUES = [*_USUAL.values()]

_WITHOUT_SKILL = 10
"""How long the row of a place is that is no skill."""


class DiskIndex:
    """The index of one directory."""

    def __init__(self, file: str | Path | None, settings: ScanSettings, root: str) -> None:
        """Remember where the index is.

        Args:
            file: The file; `None` for the one in the user's cache folder.
            settings: What the developer decided about the directory.
            root: The directory, links resolved.
        """
        given = default_cache_dir() if file is None else Path(file).expanduser()
        self.file = given / f'index-v{FORMAT}.sqlite' if file is None else given
        self.problem: SkillProblem | None = None
        """Why it cannot be used, if it cannot."""
        self._settings = settings
        self._root = root
        self._key = to_json([FORMAT, root, settings.validate, settings.max_depth, settings.follow_links]).decode()
        self._version = 0
        self._bounds: list[str] = []
        """The first path of each chunk."""
        self._saved: dict[str, Place] = {}

    def load(self) -> tuple[dict[str, Place], bool]:
        """The places that are still as they were, and whether these are all there were."""
        places: dict[str, Place] = {}
        whole = changed = False
        try:
            rows = self._rows()
            make = self._place
            for version, chunks, text in rows:
                self._version = version
                whole = chunks == len(rows)
                found = from_json(text)
                self._bounds.append(found[0][0])
                for row in found:
                    place = make(row)
                    if place is not None:
                        places[row[0]] = place
                    else:
                        changed = True
        except (sqlite3.Error, OSError, ValueError, TypeError, IndexError) as error:
            self._failed(error)
            places, whole = {}, False
        # A directory that was not there had no places, not even its own.
        all_there = whole and not changed and self._root in places
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

    def _rows(self) -> list[tuple[int, int, str]]:
        if not os.path.exists(self.file) or not os.path.getsize(self.file):
            return []
        with closing(sqlite3.connect(self.file, timeout=WAIT_S)) as database:
            return database.execute(_LOAD, (self._key,)).fetchall()

    def _open(self) -> sqlite3.Connection:
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
            self._version = version + 1
            database.execute(
                'UPDATE directories SET used = ?, version = ?, chunks = ? WHERE id = ?',
                (now, self._version, len(chunks), number),
            )
            rows = [(number, chunk, [self._row(path, places[path]) for path in chunks[chunk]]) for chunk in stale]
            database.executemany(
                'INSERT OR REPLACE INTO places VALUES (?, ?, ?)',
                [(number, chunk, to_json(found).decode()) for number, chunk, found in rows],
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
        self.problem = problem('index-failed', str(self.file), message)

    # --- Places as rows -------------------------------------------------------------------------------------------

    def _row(self, path: str, place: Place) -> list[Any]:
        """What is kept of a place. Most have no odd parts, which are kept in a mapping at the end."""
        odd: dict[str, Any] = {}
        if place.path != path:
            odd['seen_as'] = place.path
        if place.inner or place.ends:
            odd['inner'], odd['links'], odd['ends'] = place.inner, place.links, place.ends
        if place.problems:
            odd['problems'] = [(found.path, found.code, found.message, found.line) for found in place.problems]
        name = place.file and os.path.basename(place.file)
        if name != SKILL_FILE:
            odd['file'] = name
        skill, source = place.skill, place.source
        about: tuple[Any, ...] = ()
        if skill is not None and source is not None:
            says = {key: getattr(skill, key) for key, usual in _USUAL.items() if getattr(skill, key) != usual}
            if says:
                odd['says'] = says
            about = (skill.headings, skill.name, skill.description, skill.license, skill.compatibility, skill.metadata)
            if source.root != self._root:
                odd['root'] = source.root
        return [path, *place.stamp, *place.file_stamp, odd or None, *about]

    def _place(self, row: list[Any]) -> Place | None:
        """The place of a row, if nothing on disk has changed since it was written.

        For a skill that is nothing but a skill, this looks at its file only. A folder of further skills that somebody
        has put into its folder is seen at the second look, which looks at all folders.
        """
        path, odd = row[0], row[9]
        if odd is not None or len(row) == _WITHOUT_SKILL:
            return self._odd_place(row)
        place = Place(path, (row[1], row[2], row[3], row[4]))
        place.file = file = f'{path}{os.sep}{SKILL_FILE}'
        place.file_stamp = file_stamp = (row[5], row[6], row[7], row[8])
        try:
            if stamp(os.lstat(file)) != file_stamp:
                return None
        except OSError:
            return None
        self._add_skill(place, self._root, path, SKILL_FILE, row)
        return place

    def _odd_place(self, row: list[Any]) -> Place | None:
        path: str = row[0]
        odd: dict[str, Any] = row[9] or {}
        place = Place(odd.get('seen_as', path), (row[1], row[2], row[3], row[4]))
        place.inner, place.links = tuple(odd.get('inner', ())), tuple(odd.get('links', ()))
        place.ends = tuple((link, is_folder) for link, is_folder in odd.get('ends', ()))
        place.problems = tuple(
            problem(code, where, message, line) for where, code, message, line in odd.get('problems', ())
        )
        name: str | None = odd.get('file', SKILL_FILE)
        if name is not None:
            place.file = f'{path}{os.sep}{name}'
            place.file_stamp = (row[5], row[6], row[7], row[8])
            if len(row) > _WITHOUT_SKILL:
                self._add_skill(place, odd.get('root', self._root), path, name, row)
        return place if place.is_current() else None

    def _add_skill(self, place: Place, root: str, path: str, file_name: str, row: list[Any]) -> None:
        says = _USUAL_VALUES
        if row[9] and 'says' in row[9]:
            from pydantic_ai_skills.parsing.manifest import restore_tools  # few skills say more than the usual

            told: dict[str, Any] = {**_USUAL, **row[9]['says']}
            told |= {'allowed_tools': tuple(told['allowed_tools']), 'tool_specs': restore_tools(told['tool_specs'])}
            says = [*told.values()]
        self._settings.add_skill(place, path, root, file_name, row[11:] + says, row[10])
