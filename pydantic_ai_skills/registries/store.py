"""The cache of fetched content: key, check, lock, check again, build beside, rename into place, record last.

```
<cache>/git-v1/entries/<key of url and selection>/<commit>/manifest.json, <repository>/…
                                                 /<commit>.use       locked by users; its time is the last use
                                                 /refs.json          which commit each ref was
<cache>/git-v1/tmp/<unique>/                     what is being built; <unique>.lock is held by who builds it
<cache>/git-v1/locks/<key>                       held by who fetches
```

An entry is there whole or not at all, whoever is killed whenever. One that was damaged is seen and built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.filesystem.locks import LockFile, only_one
from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir

from .git.address import is_commit
from .git.manifest import FileSink, Manifest, blob_hash

__all__ = ('Entry', 'SourceStore', 'default_cache_dir', 'prune')

MAX_CACHE_BYTES = 1024**3
"""How much the cache may hold before the entries not used for longest go."""

KEPT_COMMITS = 3
"""How many commits of one source are kept."""

RECENT_SECONDS = 3600
"""What was used or begun so short a time ago is never removed."""


_Commit = Annotated[str, StringConstraints(pattern='^(?:[0-9a-f]{40}|[0-9a-f]{64})$')]
_REFS = TypeAdapter(dict[str, list[_Commit]])


@dataclass(frozen=True)
class Entry:
    """The files of one commit, whole and checked."""

    root: Path
    """The folder that stands for the repository's root."""

    manifest: Manifest
    """What is in it."""

    use: LockFile | None = None
    """Keeps others from removing it."""


class SourceStore:
    """The part of the cache that one source has."""

    def __init__(self, cache_dir: Path, *, url: str, selection: str, name: str, shared: bool = False) -> None:
        """Remember where; nothing is read or written yet.

        Args:
            cache_dir: The cache.
            url: The address of the source.
            selection: Which of its files are wanted.
            name: What to call the folder that stands for its root.
            shared: Whether other users may read what is there, as far as the umask lets them.
        """
        self.url = url
        self.selection = selection
        self.name = name
        self.home = cache_dir / 'git-v1'
        key = hashlib.sha256(f'{url}\0{selection}'.encode('utf-8', 'surrogateescape')).hexdigest()[:32]
        self.folder = self.home / 'entries' / key
        self._lock_path = self.home / 'locks' / key
        self._mode = 0o777 if shared else 0o700

    # --- Entries --------------------------------------------------------------------------------------------------

    def open(self, commit: str, *, thorough: bool = False) -> Entry | None:
        """The entry of a commit, if it is there and whole. It stays there for as long as it is used."""
        folder = self.folder / commit
        if not folder.is_dir():
            return None
        use = LockFile(self.folder / f'{commit}.use')
        # Whoever holds it alone is about to remove the entry.
        if not use.acquire(shared=True):
            return None
        manifest = Manifest.read(folder)
        root = folder / self.name
        if manifest is None or (manifest.url, manifest.commit) != (self.url, commit):
            return None
        if not manifest.is_whole(root, thorough=thorough):
            return None
        with contextlib.suppress(OSError):
            os.utime(use.path)
        return Entry(root, manifest, use)

    def ensure(
        self, commit: str, build: Callable[[FileSink, Path], list[str]], *, patience: float, thorough: bool = False
    ) -> Entry:
        """The entry of a commit, built if it is not there or not whole.

        Args:
            commit: The commit.
            build: Fetches the files into the sink and returns what it left out. It may use the folder it is given.
            patience: How long to wait for another process that does the same.
            thorough: Whether to read every file of an entry that is there.
        """
        entry = self.open(commit, thorough=thorough)
        if entry is not None:
            return entry
        self.folder.mkdir(parents=True, exist_ok=True, mode=self._mode)
        for folder in (self._lock_path.parent, self.home / 'tmp'):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with only_one(self._lock_path, patience=patience):
            entry = self.open(commit, thorough=thorough)
            if entry is not None:
                return entry
            with self.workspace() as work:
                new = work / 'entry'
                (new / self.name).mkdir(parents=True)
                (work / 'git').mkdir()
                sink = FileSink(new / self.name)
                left_out = build(sink, work / 'git')
                manifest = sink.manifest(url=self.url, commit=commit, selection=self.selection, left_out=left_out)
                manifest.write(new)
                entry = self._put(commit, new, work / 'damaged', thorough=thorough)
        prune(self.home)
        return entry

    def _put(self, commit: str, new: Path, aside: Path, *, thorough: bool) -> Entry:
        """Put a new entry into its place. Another process may have been quicker, and is as right."""
        place = self.folder / commit
        entry = self.open(commit, thorough=thorough)
        if entry is None:
            with contextlib.suppress(FileNotFoundError):
                os.rename(place, aside)
            with contextlib.suppress(OSError):
                os.rename(new, place)
            entry = self.open(commit)
        if entry is None:
            raise SkillRegistryError(f'{str(place)!r} cannot be written')
        return entry

    @contextlib.contextmanager
    def workspace(self) -> Generator[Path]:
        """A new folder to work in, gone afterwards."""
        folder = self.home / 'tmp' / uuid.uuid4().hex
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = LockFile(folder.with_suffix('.lock'))
        lock.acquire()
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            _remove(folder)
            with contextlib.suppress(OSError):
                lock.path.unlink()
            lock.release()

    def blobs(self) -> Callable[[str], bytes | None]:
        """A function that gives a blob of an entry of this source, if one has it unharmed."""
        places: dict[str, Path] = {}
        for commit in self.commits():
            manifest = Manifest.read(self.folder / commit)
            if manifest is None:
                continue
            for path, file in manifest.files.items():
                places.setdefault(file.blob, self.folder / commit / self.name / path)

        def read(blob: str) -> bytes | None:
            try:
                data = places[blob].read_bytes()
            except (KeyError, OSError):
                return None
            return data if blob_hash(data, blob) == blob else None

        return read

    def commits(self) -> list[str]:
        """The commits there are entries for, the one used last first."""
        return [path.name for _, path in sorted(_entries(self.folder), reverse=True)]

    # --- Refs -----------------------------------------------------------------------------------------------------

    def recall(self, ref: str | None) -> list[str]:
        """The commits a ref was when the server was asked, the last one first."""
        return self._refs().get(ref or '', [])

    def remember(self, ref: str | None, commit: str) -> None:
        """Note which commit a ref is. Where that cannot be written, it is asked for again next time."""
        refs = self._refs()
        last = refs.get(ref or '', [])
        if last[:1] != [commit]:
            refs[ref or ''] = [commit, *(other for other in last if other != commit)][:KEPT_COMMITS]
            beside = self.folder / f'refs.{uuid.uuid4().hex}'
            with contextlib.suppress(OSError):
                beside.write_text(json.dumps(refs), 'utf-8')
                os.replace(beside, self.folder / 'refs.json')

    def _refs(self) -> dict[str, list[str]]:
        try:
            return _REFS.validate_json((self.folder / 'refs.json').read_bytes())
        except (OSError, ValueError):
            return {}


# --- Pruning ------------------------------------------------------------------------------------------------------


def prune(home: Path, *, max_bytes: int = MAX_CACHE_BYTES, kept_commits: int = KEPT_COMMITS) -> None:
    """Remove what killed processes left, commits that newer ones replaced, and the rest by age if it is too much.

    What is in use, or was a short time ago, stays.
    """
    with contextlib.suppress(OSError):
        for lock in list((home / 'tmp').glob('*.lock')):
            _remove_locked(lock, lock.with_suffix(''), home)
        for folder in (home / 'tmp').iterdir():
            # What was being removed when its remover was killed.
            if not folder.with_suffix('.lock').exists() and time.time() - _time_of(folder) > RECENT_SECONDS:
                _remove(folder)
    known: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError):
        for source in (home / 'entries').iterdir():
            entries = sorted(_entries(source), reverse=True)
            known += entries[:kept_commits]
            for used, entry in entries[kept_commits:]:
                _remove_entry(entry, used, home)
    total = 0
    for used, entry in sorted(known, reverse=True):
        manifest = Manifest.read(entry)
        total += manifest.size if manifest else 0
        if total > max_bytes:
            _remove_entry(entry, used, home)


def _entries(source: Path) -> Iterator[tuple[float, Path]]:
    """The entries of a source and when each was used last."""
    with contextlib.suppress(OSError):
        for path in source.iterdir():
            if is_commit(path.name):
                yield _time_of(path.with_name(f'{path.name}.use')) or _time_of(path), path


def _time_of(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _remove_entry(entry: Path, used: float, home: Path) -> None:
    if time.time() - used > RECENT_SECONDS:
        _remove_locked(entry.with_name(f'{entry.name}.use'), entry, home)


def _remove_locked(lock_path: Path, folder: Path, home: Path) -> None:
    """Remove what a lock stands for, unless somebody holds it."""
    lock = LockFile(lock_path)
    if lock.acquire():
        # Gone at once for others, then in peace.
        aside = home / 'tmp' / uuid.uuid4().hex
        with contextlib.suppress(OSError):
            os.rename(folder, aside)
        with contextlib.suppress(OSError):
            lock_path.unlink()
        _remove(aside)
    lock.release()


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
