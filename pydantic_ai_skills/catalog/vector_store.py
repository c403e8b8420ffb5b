"""Keeps vectors on disk, so that a text is embedded once.

There is one SQLite file per user, in the same cache folder as the index of directories and under the same rules: only
its user can read it, and a file that others can write to is not trusted. A vector is found by the SHA-256 of its text
and model, so that a changed text has none. If anything is wrong with the file, texts are embedded as if there were
none.
"""

from __future__ import annotations

import sqlite3
import struct
import time
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.user_database import read_user_database, write_user_database
from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir, expand_home
from pydantic_ai_skills.problems import SkillProblem, problem

from .vectors import Vector

FORMAT = 1
"""Part of the file's name. Increase it when vectors are kept in another way."""

KEPT_S = 90 * 24 * 3600
"""How long a vector is kept after its last use."""

DAY_S = 24 * 3600
"""How precisely the time of the last use is recorded."""

MAX_KEPT = 100_000
"""How many vectors are kept; the least recently used go first."""

_CHECKSUM = struct.Struct('<I')
_NORM = struct.Struct('<d')
_SCHEMA = 'CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, used INTEGER, vector BLOB) WITHOUT ROWID'
_LOAD = 'SELECT key, used, vector FROM vectors WHERE key = ?'
_KEEP = 'INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)'
_NOTE_USE = 'UPDATE vectors SET used = ? WHERE key = ?'
_FORGET = 'DELETE FROM vectors WHERE used < ?'
_FORGET_OLDEST = """
DELETE FROM vectors WHERE key IN (
    SELECT key FROM vectors ORDER BY used, key LIMIT max(0, (SELECT count(*) FROM vectors) - ?)
)
"""


class VectorStore:
    """The vectors in one file."""

    def __init__(self, file: str | Path | None = None, *, most: int = MAX_KEPT) -> None:
        """Remember where the vectors are: in `file`, or in the user's cache folder."""
        self.file: Path | None = None
        """The file; `None` if the user has no home folder."""
        with suppress(SkillValidationError):
            self.file = default_cache_dir() / f'vectors-v{FORMAT}.sqlite' if file is None else expand_home(file)
        self.problem: SkillProblem | None = None
        """Why it cannot be used, if it cannot."""
        self._most = most

    def load(self, keys: Iterable[bytes]) -> dict[bytes, Vector]:
        """The vectors that are kept for these keys."""
        now = int(time.time())
        try:
            rows = list(self._rows(keys))
            found = {key: _unpacked(kept) for key, _, kept in rows}
            noticed = [(now, key) for key, used, _ in rows if not now - DAY_S < used <= now]
            if noticed:
                self._write(_NOTE_USE, noticed, now)
        except (sqlite3.Error, struct.error, OSError, ValueError, TypeError) as error:
            self._failed(error)
            return {}
        self.problem = None
        return found

    def save(self, vectors: Mapping[bytes, Vector]) -> None:
        """Keep vectors for the next process."""
        now = int(time.time())
        try:
            self._write(_KEEP, [(key, now, _packed(vector)) for key, vector in vectors.items()], now)
        except (sqlite3.Error, OSError) as error:
            self._failed(error)
        else:
            self.problem = None

    def _rows(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, int, bytes]]:
        database = read_user_database(self.file)
        if database is None:
            return
        with closing(database):
            for key in keys:
                yield from database.execute(_LOAD, (key,))

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]], now: int) -> None:
        with closing(write_user_database(self.file, 'disk_index')) as database:
            database.execute(_SCHEMA)
            database.execute('PRAGMA synchronous = NORMAL')
            database.execute('BEGIN IMMEDIATE')
            with database:
                database.executemany(statement, rows)
                database.execute(_FORGET, (now - KEPT_S,))
                database.execute(_FORGET_OLDEST, (self._most,))

    def _failed(self, error: Exception) -> None:
        message = f'The vectors on disk cannot be used ({error}); texts are embedded again. Remove them if damaged.'
        self.problem = problem('vectors-failed', str(self.file or 'disk_index'), message)


def _packed(vector: Vector) -> bytes:
    data = _NORM.pack(vector.norm) + vector.values.tobytes()
    return _CHECKSUM.pack(zlib.crc32(data)) + data


def _unpacked(kept: bytes) -> Vector:
    (checksum,) = _CHECKSUM.unpack_from(kept)
    data = kept[_CHECKSUM.size :]
    if zlib.crc32(data) != checksum:
        raise ValueError('a checksum is wrong')
    (norm,) = _NORM.unpack_from(data)
    return Vector(array('b', data[_NORM.size :]), norm)
