"""Gets the skills of an index: from the cache by their digest, from the web, or else as they were before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from pydantic_ai_skills.directory.settings import MAX_SKILL_BYTES
from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.registries.archive.entry import ArchiveError
from pydantic_ai_skills.registries.archive.unpack import Archive, look_through
from pydantic_ai_skills.registries.manifest import FileSink, PartProblem, StoredFile
from pydantic_ai_skills.registries.progress import FetchProgress, ProgressCallback, until_it_fails
from pydantic_ai_skills.registries.store import Entry
from pydantic_ai_skills.registries.upstream import Deadline, FetchSession
from pydantic_ai_skills.registries.web.address import WebAddress
from pydantic_ai_skills.registries.web.http import HttpClient

from .index import ListedFile, ListedSkill, digest_of_files

MAX_BYTES = 32 * 1024 * 1024
"""How large a skill may be, downloaded and unpacked."""

WORKERS = 8
"""How many skills are downloaded at once."""

SHARE = 0.75
"""What share of the remaining time downloads may take; the rest is for writing."""

_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class ObtainedSkill:
    """A skill that was got, complete and verified."""

    identity: tuple[str, ...]
    """Distinguishes it from other versions of the same skill."""

    size: int
    """How many bytes it takes."""

    write: Callable[[FileSink, Deadline], list[str]]
    """Writes its files, and returns what was left out."""

    note: PartProblem | None = None


@dataclass(frozen=True, kw_only=True)
class StoredSkill:
    """A skill in the cache."""

    entry: Entry
    folder: str
    key: str
    """Identifies its content."""

    @property
    def files(self) -> dict[str, StoredFile]:
        """Its files, by their path in it."""
        start = f'{self.folder}/'
        files = self.entry.manifest.files.items()
        return {path.removeprefix(start): file for path, file in files if path.startswith(start)}

    def obtained(self, name: str, identity: tuple[str, ...], note: PartProblem | None = None) -> ObtainedSkill:
        """The same skill under a name."""
        size = sum(file.size for file in self.files.values())
        return ObtainedSkill(identity=identity, size=size, write=partial(self._write, name), note=note)

    def _write(self, name: str, sink: FileSink, deadline: Deadline) -> list[str]:
        for path, file in self.files.items():
            pieces = _pieces(self.entry.root / self.folder / path)
            sink.write(f'{name}/{path}', file.blob, pieces, executable=file.executable)
        start = f'{self.folder}/'
        return [f'{name}/{path[len(start) :]}' for path in self.entry.manifest.left_out if path.startswith(start)]


@dataclass(frozen=True, kw_only=True)
class SkillDownloads:
    """Gets skills, several at once."""

    client: HttpClient
    origins: frozenset[str]
    """The origins of the site itself. Others are asked without credentials, over https, at public addresses only."""

    session: FetchSession
    ref: str | None
    max_bytes: int
    progress: ProgressCallback | None

    def obtain(self, skills: Sequence[ListedSkill]) -> tuple[list[ObtainedSkill], list[PartProblem]]:
        """Get skills. One that cannot be downloaded is kept as it was before, or becomes a note.

        Raises:
            SkillRegistryError: All together are too large.
        """
        visit = _Visit(
            downloads=self,
            folder=self.session.new_folder(),
            deadline=Deadline(max(0.0, self.session.deadline.left * SHARE)),
            stored={stored.key: stored for entry in self.session.earlier() for stored in _skills_in(entry)},
            before={stored.folder: stored for stored in self._last_ones()},
        )
        report = until_it_fails(self.progress)
        obtained: list[ObtainedSkill] = []
        notes: list[PartProblem] = []
        size = 0
        pool = ThreadPoolExecutor(WORKERS, thread_name_prefix='pydantic-ai-skills')
        try:
            for done, result in enumerate(pool.map(visit.obtain, skills), 1):
                report(FetchProgress(stage='Fetching skills', done=done, total=len(skills)))
                if isinstance(result, PartProblem):
                    notes.append(result)
                    continue
                obtained.append(result)
                size += result.size
                if size > self.max_bytes:
                    raise SkillRegistryError(f'Its skills have more than {self.max_bytes:,} bytes; see max_bytes=')
        finally:
            pool.shutdown(cancel_futures=True)
        return obtained, notes

    def client_for(self, address: WebAddress) -> HttpClient:
        """The client for an address: one without credentials for any other host than the site's."""
        if address.origin in self.origins:
            return self.client
        return HttpClient(allowed=frozenset({'https'}), connector=self.client.connector)

    def _last_ones(self) -> Iterator[StoredSkill]:
        """The skills that were used last."""
        for revision in self.session.store.recall(self.ref)[:1]:
            entry = self.session.store.open(revision)
            yield from _skills_in(entry) if entry else ()


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """Obtains the skills of one visit, with what was known before it."""

    downloads: SkillDownloads
    folder: Path
    """Where downloads go."""

    deadline: Deadline
    stored: Mapping[str, StoredSkill]
    """Skills in the cache, by what identifies their content."""

    before: Mapping[str, StoredSkill]
    """The skills that were used last, by their names."""

    def obtain(self, skill: ListedSkill) -> ObtainedSkill | PartProblem:
        stored = self.stored.get(_key(skill)) if skill.digest else None
        if stored is not None:
            return stored.obtained(skill.name, skill.identity)
        before = self.before.get(skill.name)
        try:
            return self._download(skill)
        except SkillRegistryRefusedError as error:
            return PartProblem('skill-unavailable', skill.name, f'{error}')
        except (SkillRegistryError, OSError) as error:
            if before is None:
                return PartProblem('skill-unavailable', skill.name, f'{error}')
            note = PartProblem('source-failed', skill.name, f'{error}'.rstrip('.') + '. The skill from before is kept.')
            return before.obtained(skill.name, (skill.name, 'kept', before.key), note)

    def _download(self, skill: ListedSkill) -> ObtainedSkill:
        if skill.type == 'files':
            return self._download_files(skill)
        (file,) = skill.files
        limit = min(self.downloads.max_bytes, MAX_SKILL_BYTES if skill.type == 'skill-md' else MAX_BYTES)
        place, _, size = self._save(file, limit)
        if skill.type == 'archive':
            return self._look_through(skill, place, file.address, size)
        write = partial(_write_files, {file.path: place}, skill)
        return ObtainedSkill(identity=skill.identity, size=size, write=write)

    def _download_files(self, skill: ListedSkill) -> ObtainedSkill:
        """Download a skill file by file. If the index does not identify its content, its files do."""
        left = min(self.downloads.max_bytes, MAX_BYTES)
        digests: dict[str, str] = {}
        places: dict[str, Path] = {}
        size = 0
        for file in skill.files:
            places[file.path], digests[file.path], length = self._save(file, left - size)
            size += length
        skill = replace(skill, digest=digest_of_files(digests))
        return ObtainedSkill(identity=skill.identity, size=size, write=partial(_write_files, places, skill))

    def _look_through(self, skill: ListedSkill, place: Path, address: WebAddress, size: int) -> ObtainedSkill:
        limit = min(self.downloads.max_bytes, MAX_BYTES)
        with open(place, 'rb') as file:
            try:
                archive = look_through(file, max_bytes=limit, deadline=self.deadline)
            except ArchiveError as error:
                raise SkillRegistryError(f'{address.shown} {error}') from None
        start = '' if archive.has_skill_in('') else f'{archive.top}/'
        if not archive.has_skill_in(start.rstrip('/')):
            raise SkillRegistryError(f'{address.shown} has no SKILL.md at its root')
        write = partial(_write_archive, archive, place, start, skill)
        return ObtainedSkill(identity=skill.identity, size=max(size, archive.size), write=write)

    def _save(self, file: ListedFile, limit: int) -> tuple[Path, str, int]:
        place = self.folder / uuid4().hex
        with open(place, 'xb') as into:
            client = self.downloads.client_for(file.address)
            got = client.save(file.address, into, deadline=self.deadline, max_bytes=limit)
        if file.digest not in ('', got.sha256):
            raise SkillRegistryError(f'{file.address.shown} has the digest sha256:{got.sha256}, not that of the index')
        return place, got.sha256, got.size


def _skills_in(entry: Entry) -> Iterator[StoredSkill]:
    """The skills in an entry of the cache, if all of its files are undamaged. Each has a folder of its own."""
    keys = {path.partition('/')[0]: file.blob.partition('#')[0] for path, file in entry.manifest.files.items()}
    if entry.manifest.is_whole(entry.root):
        for folder, key in keys.items():
            yield StoredSkill(entry=entry, folder=folder, key=key)


def _key(skill: ListedSkill) -> str:
    return f'{skill.type} {skill.digest}'


def _write_files(files: Mapping[str, Path], skill: ListedSkill, sink: FileSink, _: Deadline) -> list[str]:
    for path, place in files.items():
        sink.write(f'{skill.name}/{path}', f'{_key(skill)}#{path}', _pieces(place), executable=False)
    return []


def _write_archive(
    archive: Archive, place: Path, start: str, skill: ListedSkill, sink: FileSink, deadline: Deadline
) -> list[str]:
    def target(path: str) -> str | None:
        return f'{skill.name}/{path.removeprefix(start)}'

    with open(place, 'rb') as file:
        return archive.unpack(file, sink, target, blob=_key(skill), deadline=deadline)


def _pieces(place: Path) -> Iterator[bytes]:
    with open(place, 'rb') as file:
        while piece := file.read(_CHUNK_BYTES):
            yield piece
