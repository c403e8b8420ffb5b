"""From a ref to files on disk: resolves the commit, fetches it or falls back to the cache, and fills `target_dir`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.registries.checkout import Checkout
from pydantic_ai_skills.registries.lockfile import LockedSource
from pydantic_ai_skills.registries.manifest import FileSink, is_revision
from pydantic_ai_skills.registries.store import Entry, SourceStore
from pydantic_ai_skills.registries.target import TargetFolder

from .fetch import Fetch, new_repository, resolve
from .options import Selection
from .process import Deadline, Git


@dataclass(frozen=True, kw_only=True)
class GitSource:
    """A repository, the ref and files wanted from it, and where they are kept."""

    git: Git
    ref: str | None
    selection: Selection
    store: SourceStore
    target: TargetFolder | None
    timeout: float
    offline: bool

    def check_out(self, locked: LockedSource | None) -> Checkout:
        """Get the files of the locked commit, the one the ref has now, or else the last one in the cache.

        Raises:
            SkillRegistryRefusedError: The server does not accept the credentials.
            SkillRegistryError: There are no files.
        """
        # A function may return another token the next time.
        git = replace(self.git, secret=self.git.secret.fixed()) if self.git.secret else self.git
        source = replace(self, git=git, store=self.store.owned_by(git.owner))
        try:
            return source._check_out(locked)  # noqa: SLF001 - a copy of this object
        except SkillRegistryRefusedError:
            source.store.note_answer(refused=True)
            raise

    def _check_out(self, locked: LockedSource | None) -> Checkout:
        self.store.check_owner()
        deadline = Deadline(self.timeout)
        failures: list[str] = []
        now = self._resolve(deadline, failures)
        for commit in dict.fromkeys(self._candidates(locked, now)):
            try:
                entry = self._obtain(commit, deadline, _pins(locked, commit))
            except SkillRegistryRefusedError:
                raise
            except (SkillRegistryError, OSError) as error:
                failures.append(_reason(error))
                continue
            if commit == now and not self.is_pinned:
                self.store.remember(self.ref, commit)
            moved = now if locked and now != locked.commit else None
            return self._place(entry, ' '.join(dict.fromkeys(failures)) or None, moved)
        if not failures:
            failures.append(f'{self.store.url} was never fetched, and offline=True forbids it now')
        raise SkillRegistryError(' '.join(f'{failure.rstrip(".")}.' for failure in dict.fromkeys(failures)))

    @property
    def is_pinned(self) -> bool:
        """Whether the ref is a full commit, which never changes."""
        return is_revision(self.ref)

    def remote_commit(self) -> str:
        """Ask the server for the commit of the ref."""
        if self.ref is not None and self.is_pinned:
            return self.ref
        try:
            return self._ask(Deadline(self.timeout))
        except OSError as error:
            raise SkillRegistryError(_reason(error)) from None

    def _resolve(self, deadline: Deadline, failures: list[str]) -> str | None:
        """The commit the ref has now, if that can be found out."""
        now = self.ref if self.is_pinned else None
        was_refused = self.store.is_refused
        if not self.offline and (was_refused or not self.is_pinned):
            try:
                now = self._ask(deadline)
            except SkillRegistryRefusedError:
                raise
            except (SkillRegistryError, OSError) as error:
                failures.append(_reason(error))
            else:
                self.store.note_answer(refused=False)
                return now
        if was_refused:
            why = ' '.join(failures) or 'offline=True forbids to ask again'
            message = f'{self.store.url} refused the credentials when it was last asked, and now: {why}'
            raise SkillRegistryRefusedError(message)
        return now

    def _ask(self, deadline: Deadline) -> str:
        """The commit the server says the ref is; that of a pinned ref if the server answers."""
        with self.store.workspace() as work:
            wanted = None if self.is_pinned else self.ref
            now = resolve(self.git, wanted, repository=new_repository(work), deadline=deadline)
        return self.ref if self.ref is not None and self.is_pinned else now

    def _candidates(self, locked: LockedSource | None, now: str | None) -> Iterator[str]:
        """The commits to try: the locked one, the one the ref has now, then earlier ones to fall back to."""
        yield from filter(None, (locked.commit if locked else None, now))
        if self.is_pinned:
            return
        yield from self.store.recall(self.ref)
        there = self.target.open(self.store.url, self.store.selection, None) if self.target else None
        if there is not None:
            yield there.manifest.commit

    def _obtain(self, commit: str, deadline: Deadline, pins: Mapping[str, str] | None) -> Entry:
        there = self.target.open(self.store.url, self.store.selection, commit, pins=pins) if self.target else None
        if there is not None:
            return there
        if self.offline:
            entry = self.store.open(commit, pins=pins)
            if entry is None and pins is not None:
                # It cannot be mended now. Each skill is compared with the lock, and used if it is the same.
                entry = self.store.open_unchecked(commit)
            if entry is None:
                raise SkillRegistryError(f'{self.store.url} at {commit[:12]} is not in the cache, and offline=True')
            return entry

        def build(sink: FileSink, folder: Path) -> list[str]:
            fetch = Fetch(git=self.git, commit=commit, repository=new_repository(folder), deadline=deadline)
            return fetch.files(self.selection, sink=sink, reuse=self.store.blobs())

        return self.store.ensure(commit, build, patience=max(0.0, deadline.left), pins=pins)

    def _place(self, entry: Entry, failure: str | None, moved: str | None) -> Checkout:
        checkout = Checkout(entry=entry, root=entry.root, failure=failure, moved=moved)
        if self.target is None:
            return checkout
        try:
            edited = [] if entry.root == self.target.path else self.target.publish(entry)
        except OSError as error:
            raise SkillRegistryError(_reason(error)) from None
        return replace(checkout, root=self.target.path, is_placed=True, edited=tuple(edited))


def _pins(locked: LockedSource | None, commit: str) -> Mapping[str, str] | None:
    """The content hashes that the skills of a commit must have, if there is a lock file."""
    if locked is None:
        return None
    # Skills of another commit may differ, and are compared one by one.
    return locked.skills if commit == locked.commit else {}


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f'{error.filename or "The cache"} cannot be written: {error.strerror}'
    return str(error)
