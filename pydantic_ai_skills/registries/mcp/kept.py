"""What was read from a server, kept in the store: its last listings, and files by their digest."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.ownership import make_folder
from pydantic_ai_skills.filesystem.safe_open import read_regular
from pydantic_ai_skills.registries.store import SourceStore

from .listing import ListedFile, Listing

MAX_LISTING_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, eq=False)
class KeptFiles:
    """Files and listings of one server, fetched with one credential."""

    store: SourceStore
    max_bytes: int
    """The size in bytes up to which a file is kept."""

    def last_listing(self) -> Listing | None:
        """The listing that the server had when it was last asked."""
        found = (self.listing(commit) for commit in self.store.recall(None))
        return next(filter(None, found), None)

    def listing(self, commit: str) -> Listing | None:
        """The listing of a revision, if it was kept."""
        data = self._read(self._listings / commit, MAX_LISTING_BYTES)
        found = None if data is None else Listing.read(data, self.store.url)
        return found if found is not None and found.commit == commit else None

    def keep_listing(self, listing: Listing) -> None:
        """Remember what the server has now, and forget the files of listings that are no longer kept."""
        known, path = self.store.recall(None), self._listings / listing.commit
        # The commit stands for the digests of all files; only skills without digests can change under the same commit.
        if any(skill.files is None for skill in listing.skills) or not path.exists():
            self._write(path, listing.write())
        if known[:1] != [listing.commit]:
            self.store.remember(None, listing.commit)
        if known and known[:1] != [listing.commit]:
            self._prune()

    def read(self, file: ListedFile) -> bytes | None:
        """The content of a file, if it was kept and is still the same."""
        data = self._read(self._files / file.digest, file.size)
        return data if data is not None and is_file(data, file) else None

    def keep(self, file: ListedFile, data: bytes) -> None:
        """Keep the content of a file."""
        if file.size <= self.max_bytes and not (self._files / file.digest).exists():
            self._write(self._files / file.digest, data)

    @property
    def _listings(self) -> Path:
        return self.store.folder / 'listings'

    @property
    def _files(self) -> Path:
        return self.store.folder / 'files'

    def _read(self, path: Path, limit: int) -> bytes | None:
        if self.store.strangers() is not None:
            return None
        try:
            return read_regular(path, limit)
        except OSError:
            return None

    def _write(self, path: Path, data: bytes) -> None:
        # What cannot be kept is asked for again.
        with contextlib.suppress(OSError):
            make_folder(path.parent, 0o700)
            replace_file(path, data)

    def _prune(self) -> None:
        """Remove listings that are no longer recalled, and the files that are in none of the others."""
        commits = set(self.store.recall(None))
        listings = filter(None, map(self.listing, commits))
        files = {file.digest for each in listings for skill in each.skills for file in (skill.files or {}).values()}
        for folder, kept in ((self._listings, commits), (self._files, files)):
            with contextlib.suppress(OSError):
                for path in folder.iterdir():
                    if path.name not in kept:
                        path.unlink()


def is_file(data: bytes, file: ListedFile) -> bool:
    """Whether bytes are those of a listed file."""
    return len(data) == file.size and hashlib.sha256(data).hexdigest() == file.digest
