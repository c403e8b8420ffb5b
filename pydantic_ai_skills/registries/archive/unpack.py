"""Unpacks archives that nobody vouches for: `.zip`, `.skill`, `.tar.gz` and `.tgz`, told apart by their first bytes.

An archive is read from its beginning to its end before any of its files is written. Links, devices and names that
cannot be used are left out. Anything that leaves doubt about what the archive holds is an error.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from pydantic_ai_skills.registries.manifest import SKILL_FILE, FileSink
from pydantic_ai_skills.registries.skill_paths import MAX_FILES, inside_skills
from pydantic_ai_skills.registries.upstream import Deadline

from .entry import MAX_NAME_BYTES, ArchiveEntry, ArchiveError, ArchiveReader
from .tar_reader import TarReader
from .zip_reader import ZipReader

MAX_RATIO = 200
"""How many times its own size an archive may unpack to, if that is more than `FREE_BYTES`."""

FREE_BYTES = 16 * 1024 * 1024
"""How much any archive may unpack to."""


@dataclass(frozen=True, kw_only=True)
class Archive:
    """An archive that was looked through, so that all files in it can be unpacked."""

    max_bytes: int
    files: frozenset[str]
    """The files that can be unpacked."""

    left_out: frozenset[str]
    """Links, devices and names that cannot be used."""

    size: int
    """How many bytes its files have."""

    @property
    def top(self) -> str:
        """The folder that holds everything, if there is one."""
        tops = {path.partition('/')[0] for path in self.files}
        return tops.pop() if len(tops) == 1 and all('/' in path for path in self.files) else ''

    def has_skill_in(self, folder: str) -> bool:
        """Whether there is a `SKILL.md` in a folder, `''` for the root."""
        return f'{folder}/{SKILL_FILE}'.lstrip('/').lower() in {path.lower() for path in self.files}

    def unpack(
        self, file: BinaryIO, sink: FileSink, place: Callable[[str], str | None], *, blob: str, deadline: Deadline
    ) -> list[str]:
        """Write the wanted files of the archive into a sink, and return the wanted paths that were left out.

        `place` says where a file goes, or `None` if it is not wanted. `blob` identifies the archive: each file is
        recorded as `<blob>#<path in the archive>`.
        """
        left_out = [there for path in self.left_out if (there := place(path)) is not None]
        for entry, content in _reader(file, self.max_bytes).entries():
            _check_time(deadline)
            target = place(entry.path) if entry.path in self.files else None
            if target is not None:
                sink.write(target, f'{blob}#{entry.path}', content, executable=entry.executable)
        return left_out


def look_through(file: BinaryIO, *, max_bytes: int, deadline: Deadline, max_files: int = MAX_FILES) -> Archive:
    """Read an archive from its beginning to its end, without writing anything.

    Raises:
        ArchiveError: It is damaged, hostile, too large, or not an archive. The message continues after its name.
    """
    seen = _Names()
    size = 0
    for entry, content in _reader(file, max_bytes).entries():
        _check_time(deadline)
        if entry.kind == 'file':
            size += sum(map(len, content))
        seen.add(entry)
        if len(seen.files) > max_files:
            raise ArchiveError(f'has more than {max_files:,} files')
    seen.check()
    files, left_out = frozenset(seen.files), frozenset(seen.left_out)
    return Archive(max_bytes=max_bytes, files=files, left_out=left_out, size=size)


def skills_in(files: Collection[str], *, below: str = '', max_depth: int | None = None) -> Callable[[str], bool]:
    """A function that says whether a path is in a skill that `SkillsDirectory` will find below a folder."""
    return inside_skills(files, below=below, max_depth=max_depth) or (lambda path: False)


class _Names:
    """The names in an archive."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.left_out: set[str] = set()
        self._spellings: set[str] = set()

    def add(self, entry: ArchiveEntry) -> None:
        if entry.kind == 'folder':
            return
        spelling = unicodedata.normalize('NFC', entry.path[:MAX_NAME_BYTES])
        if spelling in self._spellings:
            raise ArchiveError(f'has two entries of the name {entry.path[:80]!r}')
        self._spellings.add(spelling)
        is_wanted = entry.kind == 'file' and entry.is_usable
        (self.files if is_wanted else self.left_out).add(entry.path)

    def check(self) -> None:
        folders = {folder for path in self.files for folder in _folders_of(path)}
        if both := self.files & folders:
            raise ArchiveError(f'has {min(both)[:80]!r} both as a file and as a folder')


def _reader(file: BinaryIO, max_bytes: int) -> ArchiveReader:
    size = file.seek(0, 2)
    file.seek(0)
    start = file.read(4)
    limit = min(max_bytes, max(FREE_BYTES, size * MAX_RATIO))
    if start[:2] == b'\x1f\x8b':
        return TarReader(file, limit)
    if start in (b'PK\3\4', b'PK\5\6'):
        return ZipReader(file, limit)
    raise ArchiveError('is not an archive of a kind that is read: .zip, .skill, .tar.gz and .tgz are')


def _folders_of(path: str) -> Iterator[str]:
    """The folders that a path is in, from the innermost to the root, which is `''`."""
    while path:
        path = path.rpartition('/')[0]
        yield path


def _check_time(deadline: Deadline) -> None:
    if deadline.left <= 0:
        raise ArchiveError(f'takes longer than {deadline.seconds:g} s to unpack; see timeout=')
