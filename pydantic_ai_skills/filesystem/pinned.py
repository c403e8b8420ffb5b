"""Checks that a folder holds the files pinned for it, unchanged, and nothing else."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .safe_open import FoundEntry, OpenFolder, reason


class PinnedFile(NamedTuple):
    """The size, digest and mode that a file has to have."""

    size: int
    digest: str
    """SHA-256 of its bytes."""
    executable: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class PinnedFolder:
    """A folder and all the files it has to hold."""

    root: str
    """A trusted folder."""

    steps: tuple[str, ...]
    """The names of the folders that lead from `root` to the folder; none of them may be a link."""

    files: Mapping[str, PinnedFile]
    """The files by their path in the folder, with `/` between the parts."""

    ignored: frozenset[str] = frozenset()
    """Files that may be there as well."""

    def difference(self) -> str | None:
        """The first difference from what is on disk now, in words; `None` if there is none. Reads every file.

        A link, a special file, another mode, and a file that is neither pinned nor ignored are differences, wherever
        they are and whatever they are called. An empty folder is not, down to one level below the pinned files.
        """
        missing = set(self.files)
        depth = 1 + max((path.count('/') for path in self.files), default=0)
        try:
            with OpenFolder.beneath(self.root, self.steps) as folder:
                for found in folder.walk(depth):
                    if found.path in self.ignored and stat.S_ISREG(found.status.st_mode):
                        continue
                    expected = self.files.get(found.path)
                    if expected is None:
                        return f'{found.path!r} was added'
                    if not _is_same(found, expected):
                        return f'{found.path!r} was changed'
                    missing.discard(found.path)
        except OSError as error:
            return f'it cannot be read: {reason(error)}'
        return f'{min(missing)!r} is missing' if missing else None


def _is_same(found: FoundEntry, expected: PinnedFile) -> bool:
    if not _looks_same(found.status, expected):
        return False
    with open(found.folder.file(found.name), 'rb') as file:
        # Since it was listed, it may have been replaced by something that never ends.
        is_same = _looks_same(os.fstat(file.fileno()), expected)
        return is_same and hashlib.file_digest(file, 'sha256').hexdigest() == expected.digest


def _looks_same(status: os.stat_result, expected: PinnedFile) -> bool:
    if not stat.S_ISREG(status.st_mode) or status.st_size != expected.size:
        return False
    special = status.st_mode & (stat.S_ISUID | stat.S_ISGID)
    # Windows keeps no such bits.
    return os.name != 'posix' or (bool(status.st_mode & stat.S_IXUSR) == expected.executable and not special)


def content_hash(files: Mapping[str, PinnedFile]) -> str:
    """The hash of the names, modes and contents of files, which must be sorted by name."""
    digest = hashlib.sha256()
    for name, file in files.items():
        line = f'{name}\0{"x" if file.executable else "-"}\0{file.digest}\n'
        digest.update(line.encode('utf-8', 'surrogateescape'))
    return f'sha256:{digest.hexdigest()}'
