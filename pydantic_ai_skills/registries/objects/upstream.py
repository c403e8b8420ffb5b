"""An object store as an upstream: its revisions are hashes of what a listing says about the files of skills."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.registries.manifest import FileSink
from pydantic_ai_skills.registries.progress import FetchProgress, ProgressCallback, until_it_fails
from pydantic_ai_skills.registries.skill_paths import MAX_FILES, inside_skills
from pydantic_ai_skills.registries.upstream import FetchSession, Upstream

from .access import StoreAccess
from .address import MEMORY

if TYPE_CHECKING:
    from obstore import GetOptions, ListStream, ObjectMeta
    from obstore.store import ObjectStore

MAX_KEYS = 200_000
"""How many keys of one store are listed at most."""

MAX_KEY_LENGTH = 1024
"""How many characters of a key are read at most, as in S3."""

PARALLEL = 16
"""How many files are fetched at once."""

_PAGE = 1000
_CHUNK_BYTES = 64 * 1024

T = TypeVar('T')


class StoredObject(NamedTuple):
    """A file of a skill, as a listing describes it."""

    path: str
    """Its path below the folder of the registry."""

    key: str
    size: int
    e_tag: str | None
    modified: datetime
    mark: str
    """Differs for every content of this key."""

    @property
    def blob(self) -> str:
        """Identifies its content. The path is part of it, because not every store makes its ETags of the content."""
        return hashlib.sha256(f'{self.path}\0{self.size}\0{self.mark}'.encode()).hexdigest()

    def options(self) -> GetOptions:
        """Conditions that are met as long as it is what was listed."""
        if self.e_tag and not self.e_tag.startswith('W/'):
            return {'if_match': self.e_tag}
        return {'if_unmodified_since': self.modified}


@dataclass(frozen=True, kw_only=True)
class ObjectUpstream(Upstream):
    """A store, or a folder in it."""

    url: str
    access: StoreAccess
    path: str
    max_bytes: int
    max_depth: int | None
    progress: ProgressCallback | None = None
    max_files: int = MAX_FILES
    max_keys: int = MAX_KEYS
    owner: str = ''  # pyright: ignore[reportIncompatibleMethodOverride] - of one visit
    store: ObjectStore | None = None
    """The store, open for one visit."""

    listed: list[list[StoredObject]] = field(default_factory=list[list[StoredObject]], compare=False)
    """The files of skills that were found in this visit."""

    def fixed(self) -> ObjectUpstream:
        """The same store, opened with the credentials that there are now."""
        return replace(self, store=self.access.open(), owner=self.access.owner(), listed=[])

    def ask(self, session: FetchSession) -> str:
        """List the keys, and hash those of skills with their ETags, or else with their times and sizes."""
        return _revision(self._list(session))

    def fetch(self, revision: str, sink: FileSink, session: FetchSession) -> list[str]:
        """Fetch the files of a revision that no earlier one had, if they are still what was listed."""
        reuse = session.reuse()
        missing: list[StoredObject] = []
        for file in self._files_of(revision, session):
            known = reuse(file.blob)
            if known is None or len(known) != file.size:
                missing.append(file)
            else:
                sink.write(file.path, file.blob, known, executable=False)
        self._check_size(missing)
        self._run(partial(self._fetch_all, missing, sink), session)
        return []

    def _files_of(self, revision: str, session: FetchSession) -> list[StoredObject]:
        """The files that were listed on this visit, if they are those of the revision."""
        files = self.listed[-1] if self.listed else self._list(session)
        if _revision(files) != revision:
            raise self._error(f'no longer has the revision {revision[:12]}')
        return files

    def _check_size(self, files: Iterable[StoredObject]) -> None:
        size = sum(file.size for file in files)
        if size > self.max_bytes:
            raise self._error(f'has {size:,} bytes of skills, at most {self.max_bytes:,} are fetched; see max_bytes=')

    # --- Listing --------------------------------------------------------------------------------------------------

    def _list(self, session: FetchSession) -> list[StoredObject]:
        found = self._run(self._list_all, session)
        if not found:
            raise self._error('has no keys; check the bucket and the prefix')
        folders = {folder for file in found for folder in _folders(file.path)}
        wanted = inside_skills((file.path for file in found), max_depth=self.max_depth)
        # Some tools make an empty object for each folder.
        files = [file for file in found if wanted and wanted(file.path) and file.path not in folders]
        if len(files) > self.max_files:
            raise self._error(f'has {len(files):,} files in its skills, at most {self.max_files:,}; name a path=')
        self.listed.append(sorted(files, key=lambda file: file.path))
        return self.listed[-1]

    async def _list_all(self) -> list[StoredObject]:
        assert self.store is not None
        found: list[StoredObject] = []
        # The other overload of `list` needs a package for tables.
        list_: Callable[..., ListStream[Sequence[ObjectMeta]]] = getattr(self.store, 'list')  # noqa: B009
        pages = list_(self.path or None, chunk_size=_PAGE)
        async for page in pages:
            found += map(self._stored, page)
            if len(found) > self.max_keys or any(len(file.key) > MAX_KEY_LENGTH for file in found[-len(page) :]):
                limit = f'{self.max_keys:,}, each of {MAX_KEY_LENGTH:,} characters'
                raise self._error(f'has too many or too long keys: at most {limit}; name a path=')
        return found

    def _stored(self, meta: ObjectMeta) -> StoredObject:
        key, e_tag, modified = meta['path'], meta['e_tag'], meta['last_modified']
        # A store in memory numbers its ETags, and begins anew in each process.
        mark = e_tag if e_tag and not self.url.startswith(MEMORY) else f'{e_tag} {modified.isoformat()}'
        path = key[len(self.path) :].lstrip('/')
        return StoredObject(path, key, meta['size'], e_tag, modified, mark)

    # --- Fetching -------------------------------------------------------------------------------------------------

    async def _fetch_all(self, files: list[StoredObject], sink: FileSink) -> None:
        tell, done = until_it_fails(self.progress), count(1)
        waiting = iter(files)
        writing = asyncio.Lock()

        async def work() -> None:
            for file in waiting:
                write = partial(sink.write, file.path, file.blob, await self._get(file), executable=False)
                async with writing:
                    await asyncio.to_thread(write)
                tell(FetchProgress(stage='Receiving objects', done=next(done), total=len(files)))

        # The end of the event loop cancels the other workers when one fails.
        await asyncio.gather(*(work() for _ in range(min(PARALLEL, len(files)))))

    async def _get(self, file: StoredObject) -> bytes:
        import obstore
        from obstore.exceptions import PreconditionError

        assert self.store is not None
        changed = self._error(f'changed while it was fetched: {file.path!r} is no longer what was listed')
        try:
            result = await obstore.get_async(self.store, file.key, options=file.options())
        except (PreconditionError, FileNotFoundError):
            raise changed from None
        if (result.meta['size'], result.meta['e_tag']) != (file.size, file.e_tag):
            raise changed  # the store does not know conditions
        data = bytearray()
        async for chunk in result.stream(min_chunk_size=_CHUNK_BYTES):
            data += chunk
            if len(data) > file.size:
                break
        if len(data) != file.size:
            raise changed
        return bytes(data)

    # --- Waiting --------------------------------------------------------------------------------------------------

    def _run(self, work: Callable[[], Awaitable[T]], session: FetchSession) -> T:
        """Run a coroutine until the deadline, in a thread of its own: the caller's may have an event loop."""
        from obstore.exceptions import BaseError

        async def in_time() -> T:
            async with asyncio.timeout(max(0.0, session.deadline.left)):
                return await work()

        try:
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(asyncio.run, in_time()).result()
        except TimeoutError:
            raise self._error(f'did not answer within {session.deadline.seconds:g} s (timeout)') from None
        except (BaseError, FileNotFoundError) as error:
            raise self.access.explain(error) from None

    def _error(self, what: str) -> SkillRegistryError:
        return SkillRegistryError(f'{self.url} {what}')


def _revision(files: Iterable[StoredObject]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f'{file.blob}\n'.encode())
    return digest.hexdigest()


def _folders(path: str) -> list[str]:
    steps = path.split('/')
    return ['/'.join(steps[:end]) for end in range(1, len(steps))]
