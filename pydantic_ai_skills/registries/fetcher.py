"""From an upstream to files on disk: finds the revision, fetches it or falls back to the cache, fills `target_dir`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError

from .checkout import Checkout
from .lockfile import LockedSource
from .manifest import FileSink, is_revision
from .store import Entry, SourceStore
from .target import TargetFolder
from .upstream import Deadline, FetchSession, Upstream


@dataclass(frozen=True, kw_only=True)
class Fetcher:
    """An upstream, and where its files are kept."""

    upstream: Upstream
    store: SourceStore
    target: TargetFolder | None
    timeout: float
    """Seconds that a visit may take."""

    offline: bool
    """Whether to use only what was fetched before."""

    def check_out(self, locked: LockedSource | None) -> Checkout:
        """Get the files of the locked revision, the one the upstream has now, or else the last one in the cache.

        Raises:
            SkillRegistryRefusedError: The server does not accept the credentials.
            SkillRegistryError: There are no files.
        """
        if locked is not None and not is_revision(locked.commit):
            raise SkillRegistryError(f'The lock file says {locked.commit[:80]!r}, which is no revision of {locked.url}')
        fetcher = self._with_fixed_credentials()
        try:
            with fetcher._session() as session:  # noqa: SLF001 - a copy of this object
                return fetcher._check_out(locked, session)  # noqa: SLF001
        except SkillRegistryRefusedError:
            fetcher.store.note_answer(refused=True)
            raise

    def remote_revision(self) -> str:
        """Ask the upstream which revision it has now, without keeping anything."""
        if self.upstream.pinned is not None:
            return self.upstream.pinned
        fetcher = self._with_fixed_credentials()
        try:
            with fetcher._session() as session:  # noqa: SLF001 - a copy of this object
                return fetcher.upstream.ask(session)
        except OSError as error:
            raise SkillRegistryError(_reason(error)) from None

    def _with_fixed_credentials(self) -> Fetcher:
        # A function may return another token the next time.
        upstream = self.upstream.fixed()
        return replace(self, upstream=upstream, store=self.store.owned_by(upstream.owner))

    def _session(self) -> FetchSession:
        return FetchSession(deadline=Deadline(self.timeout), store=self.store)

    def _check_out(self, locked: LockedSource | None, session: FetchSession) -> Checkout:
        self.store.check_owner()
        failures: list[str] = []
        now = self._resolve(session, failures)
        for revision in dict.fromkeys(self._candidates(locked, now)):
            try:
                entry = self._obtain(revision, session, _pins(locked, revision))
            except SkillRegistryRefusedError:
                raise
            except (SkillRegistryError, OSError) as error:
                failures.append(_reason(error))
                continue
            if revision == now and self.upstream.pinned is None:
                self.store.remember(self.upstream.ref, revision)
            moved = now if locked and now != locked.commit else None
            return self._place(entry, ' '.join(dict.fromkeys(failures)) or None, moved)
        if not failures:
            failures.append(f'{self.store.url} was never fetched, and offline=True forbids it now')
        raise SkillRegistryError(' '.join(f'{failure.rstrip(".")}.' for failure in dict.fromkeys(failures)))

    def _resolve(self, session: FetchSession, failures: list[str]) -> str | None:
        """The revision the upstream has now, if that can be found out."""
        now = self.upstream.pinned
        was_refused = self.store.is_refused
        if not self.offline and (was_refused or now is None):
            try:
                asked = self.upstream.ask(session)
            except SkillRegistryRefusedError:
                raise
            except (SkillRegistryError, OSError) as error:
                failures.append(_reason(error))
            else:
                self.store.note_answer(refused=False)
                return now or asked
        if was_refused:
            why = ' '.join(failures) or 'offline=True forbids to ask again'
            message = f'{self.store.url} refused the credentials when it was last asked, and now: {why}'
            raise SkillRegistryRefusedError(message)
        return now

    def _candidates(self, locked: LockedSource | None, now: str | None) -> Iterator[str]:
        """The revisions to try: the locked one, the current one, then earlier ones to fall back to."""
        yield from filter(None, (locked.commit if locked else None, now))
        if self.upstream.pinned is not None:
            return
        yield from self.store.recall(self.upstream.ref)
        there = self.target.open(self.store.url, self.store.selection, None) if self.target else None
        if there is not None:
            yield there.manifest.commit

    def _obtain(self, revision: str, session: FetchSession, pins: Mapping[str, str] | None) -> Entry:
        there = self.target.open(self.store.url, self.store.selection, revision, pins=pins) if self.target else None
        if there is not None and (self.offline or not there.manifest.is_partial):
            return there
        if self.offline:
            entry = self.store.open(revision, pins=pins)
            if entry is None and pins is not None:
                # It cannot be repaired offline. Each skill is compared with the lock, and used if it matches.
                entry = self.store.open_unchecked(revision)
            if entry is None:
                raise SkillRegistryError(f'{self.store.url} at {revision[:12]} is not in the cache, and offline=True')
            return entry
        build = partial(self._build, revision, session)
        return self.store.ensure(revision, build, patience=max(0.0, session.deadline.left), pins=pins)

    def _build(self, revision: str, session: FetchSession, sink: FileSink) -> list[str]:
        return self.upstream.fetch(revision, sink, session)

    def _place(self, entry: Entry, failure: str | None, moved: str | None) -> Checkout:
        checkout = Checkout(entry=entry, root=entry.root, failure=failure, moved=moved)
        if self.target is None:
            return checkout
        try:
            edited = [] if entry.root == self.target.path else self.target.publish(entry)
        except OSError as error:
            raise SkillRegistryError(_reason(error)) from None
        return replace(checkout, root=self.target.path, is_placed=True, edited=tuple(edited))


def _pins(locked: LockedSource | None, revision: str) -> Mapping[str, str] | None:
    """The content hashes that the skills of a revision must have, if there is a lock file."""
    if locked is None:
        return None
    # Skills of another revision may differ, and are compared one by one.
    return locked.skills if revision == locked.commit else {}


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f'{error.filename or "The cache"} cannot be written: {error.strerror}'
    return str(error)
