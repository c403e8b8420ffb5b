"""Skills of a folder on this machine, copied and pinned like those of any other source."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillResourceLoadError
from pydantic_ai_skills.filesystem.safe_open import FoundEntry, OpenFolder, local_path, reason

from .fetch_options import FetchOptions, FetchSettings, absolute, require_protocol
from .fetched import FetchedRegistry
from .git.address import check_path
from .manifest import FileSink
from .skill_paths import MAX_FILES, inside_skills
from .upstream import FetchSession, Upstream

MAX_PATHS = 1_000_000
"""How many files and folders are looked at."""

MAX_DEPTH = 64
"""How many levels of folders are looked at."""


class FolderSkillsRegistry(FetchedRegistry):
    """Skills of a folder on this machine, as it was when it was last asked: a copy is kept, and a lock file can pin it.

    `SkillsDirectory` reads a folder in place and follows its changes; this is for folders that somebody else writes.

    ```python {test="skip"}
    from pathlib import Path

    from pydantic_ai_skills import FolderSkillsRegistry, SkillsToolset

    registry = FolderSkillsRegistry(Path('vendor/skills'), locked=True)
    toolset = SkillsToolset(registries=[registry])
    ```
    """

    kind = 'folder'

    def __init__(self, folder: str | os.PathLike[str], *, path: str = '', **options: Unpack[FetchOptions]) -> None:
        """Remember a folder; it is read on first use.

        Args:
            folder: The folder. A string, which may come from a file, needs `allowed_protocols=('file',)`.
            path: The folder in it to look for skills in; it may be a skill itself.
            **options: The options of all registries that fetch; see `FetchOptions`.

        Raises:
            SkillValidationError: The folder, the path or an option is invalid or not allowed.
        """
        settings = FetchSettings.of(self, options)
        if isinstance(folder, str):
            require_protocol('file', settings.allowed_protocols)
        upstream = FolderUpstream.of(os.fspath(folder), path, settings)
        self._fetch_from(upstream, settings, selection=f'max_depth={settings.max_depth}')


@dataclass(frozen=True, kw_only=True)
class FolderUpstream(Upstream):
    """A folder whose revision is the hash of the files of its skills."""

    url: str
    root: str
    """The folder that the developer named."""

    steps: tuple[str, ...]
    """The way from there to the skills, on which no link is followed."""

    max_bytes: int
    max_depth: int | None
    max_files: int = MAX_FILES
    max_paths: int = MAX_PATHS

    @classmethod
    def of(cls, folder: str, path: str, settings: FetchSettings) -> FolderUpstream:
        """A folder, given as a path or as a `file:` URL, and the path in it."""
        root = absolute(local_path(folder))
        steps = tuple(filter(None, check_path(path).split('/')))
        url = root.joinpath(*steps).as_uri()
        return cls(url=url, root=str(root), steps=steps, max_bytes=settings.max_bytes, max_depth=settings.max_depth)

    def ask(self, session: FetchSession) -> str:
        """Read the files, and hash their names, modes and contents."""
        return _revision(self._files(session, []))

    def fetch(self, revision: str, sink: FileSink, session: FetchSession) -> list[str]:
        """Copy the files, and check that they are still those of the revision."""
        skipped: list[str] = []

        def copied() -> Iterator[_File]:
            for file in self._files(session, skipped):
                sink.write(file.path, file.digest, file.data, executable=file.executable)
                yield file

        if _revision(copied()) != revision:
            raise SkillRegistryError(f'{self.url} has changed, and no longer has the revision {revision[:12]}')
        return skipped

    def _files(self, session: FetchSession, skipped: list[str]) -> Iterator[_File]:
        """Read the files of the skills; paths of links and special files go into `skipped`."""
        left = self.max_bytes
        try:
            for number, entry in enumerate(self._entries()):
                if number == self.max_files or session.deadline.left < 0:
                    limit = f'at most {self.max_files:,} files within {session.deadline.seconds:g} s; name a path='
                    raise SkillRegistryError(f'{self.url} takes too long to read: {limit}')
                if stat.S_ISREG(entry.status.st_mode):
                    data = entry.folder.read(entry.name, left).data
                    left -= len(data)
                    yield _File(entry.path, data, bool(entry.status.st_mode & stat.S_IXUSR))
                else:
                    skipped.append(entry.path)
        except OSError as error:
            raise SkillRegistryError(f'{self.url} cannot be read: {reason(error)}') from None
        except SkillResourceLoadError:
            limit = f'at most {self.max_bytes:,} are copied; see max_bytes='
            raise SkillRegistryError(f'{self.url} has too many bytes of skills: {limit}') from None

    def _entries(self) -> Iterator[FoundEntry]:
        """Everything in the folders of the skills. The folder of an entry is open while the entry is yielded."""
        with OpenFolder.beneath(self.root, self.steps) as folder:
            paths = [entry.path for entry in islice(folder.walk(MAX_DEPTH), self.max_paths + 1)]
            if len(paths) > self.max_paths:
                raise SkillRegistryError(f'{self.url} has more than {self.max_paths:,} files; name a path=')
            wanted = inside_skills(paths, max_depth=self.max_depth)
            if wanted is not None:
                yield from (entry for entry in folder.walk(MAX_DEPTH) if wanted(entry.path))


class _File(NamedTuple):
    path: str
    data: bytes
    executable: bool

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def _revision(files: Iterable[_File]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f'{file.path}\0{file.executable:d}{file.digest}\n'.encode('utf-8', 'surrogateescape'))
    return digest.hexdigest()
