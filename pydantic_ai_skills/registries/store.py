"""Cache of fetched content: look up, lock, look again, build beside, rename into place.

```
<cache>/<kind>-v1/entries/<hash of url and selection>[-<hash of the credentials>]/
                                                     /<revision>/manifest.json, <source name>/…
                                                     /<revision>.use   locked by readers; its time is the last use
                                                     /refs.json        which revisions each ref had
                                                     /refused          the server refused the credentials
                                                     /<name>.json      what an upstream noted for the next time
<cache>/<kind>-v1/tmp/<unique>/                      under construction; the builder holds <unique>.lock
<cache>/<kind>-v1/locks/<hash>                       held while fetching
```

An entry is complete or absent, even if a process is killed. A damaged entry is detected and rebuilt.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.locks import LockFile, only_one
from pydantic_ai_skills.filesystem.ownership import is_ours, make_folder, strangers_in
from pydantic_ai_skills.filesystem.pinned import PinnedFolder

from .manifest import MANIFEST, FileSink, Manifest, is_revision
from .pruning import KEPT_REVISIONS, entries_of, prune

_REFS = TypeAdapter(dict[str, list[str]])
_NOTES = TypeAdapter(dict[str, str])


@dataclass(frozen=True)
class Entry:
    """The files of one revision, complete and checked."""

    root: Path
    """The folder that stands for the root of the source."""

    manifest: Manifest
    use: LockFile | None = None
    """Keeps others from removing it."""


class SourceStore:
    """One source's part of the cache."""

    def __init__(
        self, cache_dir: Path, *, kind: str, url: str, selection: str, name: str, shared: bool = False, owner: str = ''
    ) -> None:
        """Identify a source by kind, URL, selection of files and owner; nothing is read or written yet.

        The folder that stands for its root is called `name`. If `shared`, other users may read the entries, as far as
        the umask allows. `owner` identifies the credentials: only they may use what was fetched with them.
        """
        self._identity = partial(
            SourceStore, cache_dir, kind=kind, url=url, selection=selection, name=name, shared=shared
        )
        self.url = url
        self._owner = owner
        self.selection = f'{selection} for {owner}' if owner else selection
        self.name = name
        self.home = cache_dir / f'{kind}-v1'
        self._key = hashlib.sha256(f'{url}\0{selection}'.encode('utf-8', 'surrogateescape')).hexdigest()[:32]
        key = f'{self._key}-{owner}' if owner else self._key
        self.folder = self.home / 'entries' / key
        self._lock_path = self.home / 'locks' / key
        self._mode = 0o755 if shared else 0o700

    def owned_by(self, owner: str) -> SourceStore:
        """The part of the same source that belongs to these credentials."""
        return self._identity(owner=owner)

    def part(self, selection: str) -> SourceStore:
        """A separate part of the cache for some files of the same source, fetched with the same credentials."""
        return self._identity(selection=selection, owner=self._owner)

    def strangers(self) -> str | None:
        """Why somebody other than this user and root can change this part of the cache; `None` if nobody can."""
        return strangers_in(self.folder)

    def check_owner(self) -> None:
        """Refuse to work in a cache that others can change.

        Raises:
            SkillRegistryError: They can.
        """
        strangers = self.strangers()
        if strangers is not None:
            way_out = 'Make it yours and writable for you alone (chmod go-w), or name another folder with cache_dir='
            raise SkillRegistryError(f'The cache is not used: {strangers}. {way_out}')

    # --- Entries --------------------------------------------------------------------------------------------------

    def open(self, revision: str, *, pins: Mapping[str, str] | None = None) -> Entry | None:
        """Open the entry of a revision if it is there and complete. It is not removed while it is in use.

        With `pins`, the content hashes of skills in a lock file, every file is read, and an entry with added files is
        not opened.
        """
        entry = self._open(revision)
        if entry is None or not entry.manifest.is_whole(entry.root):
            return None
        return entry if pins is None or self._is_pinned(entry.manifest, pins) else None

    def open_unchecked(self, revision: str) -> Entry | None:
        """Open the entry of a revision if it is there and ours, whatever has become of its files."""
        entry = self._open(revision)
        return entry if entry is not None and _are_ours(entry.root, entry.manifest.files) else None

    def _open(self, revision: str) -> Entry | None:
        folder = self.folder / revision
        if not folder.is_dir() or self.strangers() is not None:
            return None
        use = LockFile(self.folder / f'{revision}.use')
        # A process that holds it exclusively is about to remove the entry.
        if not use.acquire(shared=True):
            return None
        manifest = Manifest.read(folder)
        if manifest is None or (manifest.url, manifest.commit) != (self.url, revision):
            return None
        if not _are_ours(folder, {MANIFEST, *(f'{self.name}/{path}'.rpartition('/')[0] for path in manifest.files)}):
            return None
        with contextlib.suppress(OSError):
            os.utime(use.path)
        return Entry(folder / self.name, manifest, use)

    def _is_pinned(self, manifest: Manifest, pins: Mapping[str, str]) -> bool:
        steps = (manifest.commit, self.name)
        on_disk = PinnedFolder(root=str(self.folder), steps=steps, files=manifest.pinned(''))
        return manifest.agrees_with(pins) and on_disk.difference() is None

    def ensure(
        self,
        revision: str,
        build: Callable[[FileSink], list[str]],
        *,
        patience: float,
        pins: Mapping[str, str] | None = None,
    ) -> Entry:
        """Open the entry of a revision; build it if it is missing or damaged.

        `build` fetches the files into the sink and returns the paths it skipped. `patience` is how many seconds to wait
        for another process that builds the same entry. An entry in which parts are missing is built again, and kept if
        that fails.
        """
        entry = self.open(revision, pins=pins)
        if entry is not None and not entry.manifest.is_partial:
            return entry
        try:
            return self._build(revision, build, patience=patience, pins=pins)
        except SkillRegistryRefusedError:
            raise
        except (SkillRegistryError, OSError):
            if entry is None:
                raise
            return entry

    def _build(
        self,
        revision: str,
        build: Callable[[FileSink], list[str]],
        *,
        patience: float,
        pins: Mapping[str, str] | None,
    ) -> Entry:
        make_folder(self.folder, self._mode)
        make_folder(self._lock_path.parent)
        with only_one(self._lock_path, patience=patience):
            entry = self.open(revision, pins=pins)
            if entry is not None and not entry.manifest.is_partial:
                return entry
            with self.workspace() as work:
                new = work / 'entry'
                make_folder(new / self.name, 0o755)
                sink = FileSink(new / self.name)
                left_out = build(sink)
                manifest = sink.manifest(url=self.url, commit=revision, selection=self.selection, left_out=left_out)
                manifest.write(new)
                entry = self._put(revision, new, work / 'damaged', pins=pins)
        prune(self.home)
        return entry

    def _put(self, revision: str, new: Path, aside: Path, *, pins: Mapping[str, str] | None) -> Entry:
        """Move a new entry into place, unless one that is as good is there: another process may be first."""
        place = self.folder / revision
        entry = self.open(revision, pins=pins)
        if entry is None or (entry.manifest.is_partial and entry.manifest != Manifest.read(new)):
            with contextlib.suppress(FileNotFoundError):
                os.rename(place, aside)
            with contextlib.suppress(OSError):
                os.rename(new, place)
            entry = self.open(revision)
        if entry is None:
            raise SkillRegistryError(f'{str(place)!r} cannot be written')
        return entry

    @contextlib.contextmanager
    def workspace(self) -> Generator[Path]:
        """A new folder to work in, removed afterwards."""
        folder = self.home / 'tmp' / uuid.uuid4().hex
        self.check_owner()
        make_folder(self.home, self._mode)
        make_folder(folder.parent)
        lock = LockFile(folder.with_suffix('.lock'))
        lock.acquire()
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                lock.path.unlink()
            lock.release()

    def blobs(self, *, own: bool = False) -> Callable[[str], bytes | None]:
        """A function that returns the content of a blob from any entry of this source that has it undamaged.

        Entries of all credentials count, so ask only for blobs that the source itself has named. With `own`, only
        entries of these credentials count.
        """
        places: dict[str, tuple[Path, str]] = {}
        for entry in self.earlier(own=own):
            for path, file in entry.manifest.files.items():
                places.setdefault(file.blob, (entry.root / path, file.digest))

        def read(blob: str) -> bytes | None:
            try:
                path, digest = places[blob]
                data = path.read_bytes()
            except (KeyError, OSError):
                return None
            return data if hashlib.sha256(data).hexdigest() == digest else None

        return read

    def earlier(self, *, own: bool = False) -> Iterator[Entry]:
        """Every entry of this source, or with `own` those of these credentials. Their files may be damaged."""
        for folder in [self.folder] if own else (self.home / 'entries').glob(f'{self._key}*'):
            for _, entry in entries_of(folder):
                manifest = Manifest.read(entry)
                if manifest is not None:
                    yield Entry(entry / self.name, manifest)

    def last(self, path: str) -> bytes | None:
        """The content that a file had in the latest revision that has it."""
        for revision in self.revisions():
            manifest = Manifest.read(self.folder / revision)
            if manifest is not None and path in manifest.files:
                return self.blobs(own=True)(manifest.files[path].blob)
        return None

    def revisions(self) -> list[str]:
        """The revisions that have entries, the most recently used first."""
        return [path.name for _, path in sorted(entries_of(self.folder), reverse=True)]

    # --- Refusals -------------------------------------------------------------------------------------------------

    @property
    def is_refused(self) -> bool:
        """Whether the server refused these credentials when it was last asked."""
        return (self.folder / 'refused').exists()

    def note_answer(self, *, refused: bool) -> None:
        """Record whether the server accepts the credentials: nothing is served offline after a refusal."""
        with contextlib.suppress(OSError):
            if refused:
                make_folder(self.folder, self._mode)
                (self.folder / 'refused').touch()
            else:
                (self.folder / 'refused').unlink()

    # --- Refs -----------------------------------------------------------------------------------------------------

    def note(self, name: str, facts: Mapping[str, str]) -> None:
        """Record what an upstream wants to know the next time. If that cannot be written, it is lost."""
        with contextlib.suppress(OSError):
            make_folder(self.folder, self._mode)
            replace_file(self.folder / f'{name}.json', json.dumps(facts).encode())

    def noted(self, name: str) -> dict[str, str]:
        """What was recorded under a name; nothing if others may have written it."""
        if not _are_ours(self.folder, [f'{name}.json']):
            return {}
        try:
            return _NOTES.validate_json((self.folder / f'{name}.json').read_bytes())
        except (OSError, ValueError):
            return {}

    def recall(self, ref: str | None) -> list[str]:
        """The revisions a ref had when the server was asked, the latest first."""
        return self._refs().get(ref or '', [])

    def remember(self, ref: str | None, revision: str) -> None:
        """Record the revision a ref has now. If that cannot be written, the server is asked again next time."""
        refs = self._refs()
        last = refs.get(ref or '', [])
        if last[:1] != [revision]:
            refs[ref or ''] = [revision, *(other for other in last if other != revision)][:KEPT_REVISIONS]
            with contextlib.suppress(OSError):
                replace_file(self.folder / 'refs.json', json.dumps(refs).encode())

    def _refs(self) -> dict[str, list[str]]:
        if not _are_ours(self.folder, ['refs.json']):
            return {}
        try:
            refs = _REFS.validate_json((self.folder / 'refs.json').read_bytes())
        except (OSError, ValueError):
            return {}
        return {ref: list(filter(is_revision, revisions)) for ref, revisions in refs.items()}


def _are_ours(folder: Path, files: Iterable[str]) -> bool:
    """Whether nobody else owns or can write to a folder, these files in it, and the folders between."""
    inside = {''}
    for path in files:
        while path not in inside:
            inside.add(path)
            path = path.rpartition('/')[0]
    top = f'{folder}/'
    for path in inside:
        try:
            status = os.lstat(top + path)
        except OSError:
            continue  # whether anything is missing is checked elsewhere
        if not is_ours(status):
            return False
    return True
