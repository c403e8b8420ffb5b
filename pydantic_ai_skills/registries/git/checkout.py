"""From what a developer asked for to files on disk: which commit, and what to say if it is not the newest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.registries.lockfile import LockedSource
from pydantic_ai_skills.registries.store import Entry, SourceStore

from .address import is_commit
from .fetch import fetch_files, new_repository, resolve
from .manifest import FileSink
from .options import FetchOptions, Selection
from .process import Deadline, Git
from .target import TargetFolder

__all__ = ('Checkout', 'GitSource')


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """Files of one commit, ready to be read."""

    entry: Entry
    """The files."""

    root: Path
    """The folder that stands for the repository's root."""

    failure: str | None = None
    """Why this is not what the server has now, if that could not be found out or fetched."""

    moved: str | None = None
    """What the ref is now, if that is not what was locked."""

    is_placed: bool = False
    """Whether the files are at the developer's place, where others may add to them."""

    edited: tuple[str, ...] = ()
    """Files at the developer's place that were edited there, and so were left as they are."""


@dataclass(frozen=True, kw_only=True)
class GitSource:
    """A repository, the ref and files of it that are wanted, and the places they are kept."""

    git: Git
    ref: str | None
    selection: Selection
    options: FetchOptions
    store: SourceStore
    target: TargetFolder | None
    timeout: float
    offline: bool

    def check_out(self, locked: LockedSource | None) -> Checkout:
        """Files of the commit the ref is now, or else of the last one that is here.

        Args:
            locked: The commit to hold to, if there is a lock.

        Raises:
            SkillRegistryError: There is none.
        """
        deadline = Deadline(self.timeout)
        failures: list[str] = []
        now = self._resolve(deadline, failures)
        wanted = [locked.commit] if locked else []
        for commit in dict.fromkeys((*wanted, *([now] if now else ()), *self._known())):
            try:
                entry = self._obtain(commit, deadline, thorough=locked is not None)
            except (SkillRegistryError, OSError) as error:
                failures.append(_reason(error))
                continue
            if commit == now and not self.is_pinned:
                self.store.remember(self.ref, commit)
            moved = now if locked and now != locked.commit else None
            return self._place(entry, failures, moved)
        if not failures:
            failures.append(f'{self.store.url} was never fetched, and offline=True forbids it now')
        raise SkillRegistryError(' '.join(f'{failure.rstrip(".")}.' for failure in dict.fromkeys(failures)))

    @property
    def is_pinned(self) -> bool:
        """Whether the ref is a full commit, which can never be another one."""
        return is_commit(self.ref)

    def _resolve(self, deadline: Deadline, failures: list[str]) -> str | None:
        """The commit the ref is now, if that can be found out."""
        if self.is_pinned or self.offline:
            return self.ref if self.is_pinned else None
        try:
            return self._ask(deadline)
        except (SkillRegistryError, OSError) as error:
            failures.append(_reason(error))
            return None

    def _ask(self, deadline: Deadline) -> str:
        with self.store.workspace() as work:
            return resolve(self.git, self.ref, repository=new_repository(work), deadline=deadline)

    def remote_commit(self) -> str:
        """The commit the ref is on the server now.

        Raises:
            SkillRegistryError: The server cannot be asked, or has no such ref.
        """
        if self.ref is not None and self.is_pinned:
            return self.ref
        try:
            return self._ask(Deadline(self.timeout))
        except OSError as error:
            raise SkillRegistryError(_reason(error)) from None

    def _known(self) -> Iterator[str]:
        """The commits the ref was before, which will do if nothing else can be had."""
        if self.is_pinned:
            return
        yield from self.store.recall(self.ref)
        there = self.target.open(self.store.url, self.store.selection, None) if self.target else None
        if there is not None:
            yield there.manifest.commit

    def _obtain(self, commit: str, deadline: Deadline, *, thorough: bool) -> Entry:
        if self.target is not None:
            there = self.target.open(self.store.url, self.store.selection, commit)
            if there is not None and there.manifest.is_whole(there.root, thorough=thorough):
                return there
        if self.offline:
            entry = self.store.open(commit, thorough=thorough)
            if entry is None:
                raise SkillRegistryError(f'{self.store.url} at {commit[:12]} is not in the cache, and offline=True')
            return entry

        def build(sink: FileSink, folder: Path) -> list[str]:
            return fetch_files(
                self.git,
                commit,
                self.selection,
                self.options,
                repository=new_repository(folder),
                deadline=deadline,
                sink=sink,
                reuse=self.store.blobs(),
            )

        return self.store.ensure(commit, build, patience=max(0.0, deadline.left), thorough=thorough)

    def _place(self, entry: Entry, failures: list[str], moved: str | None) -> Checkout:
        failure = ' '.join(dict.fromkeys(failures)) or None
        if self.target is None:
            return Checkout(entry=entry, root=entry.root, failure=failure, moved=moved)
        try:
            edited = [] if entry.root == self.target.path else self.target.publish(entry)
        except OSError as error:
            raise SkillRegistryError(_reason(error)) from None
        return Checkout(
            entry=entry, root=self.target.path, failure=failure, moved=moved, is_placed=True, edited=tuple(edited)
        )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f'{error.filename or "The cache"} cannot be written: {error.strerror}'
    return str(error)
