"""Base of registries that fetch a revision of a source into the store: updating, background refresh."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from typing_extensions import Unpack

from pydantic_ai_skills.directory.directory import DirectoryOptions, SkillsDirectory
from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir, is_cache_named
from pydantic_ai_skills.types.found_skills import FoundSkills, failed
from pydantic_ai_skills.types.provenance import SkillProvenance

from .checkout import CheckoutSkills, FoundDirectory
from .fetch_options import FetchSettings
from .fetcher import Fetcher
from .source import SourceRegistry
from .store import SourceStore
from .target import TargetFolder
from .upstream import Upstream


class FetchedRegistry(SourceRegistry):
    """Skills of a source that is fetched as files. A subclass names its `kind` and calls `_fetch_from` to say how."""

    refresh_interval: float | None = None
    validate: bool = True
    max_depth: int | None = None

    _fetcher: Fetcher
    _current: CheckoutSkills | None = None
    _failed: FoundSkills | None = None
    _stop_refreshing: threading.Event | None = None

    def _fetch_from(
        self, upstream: Upstream, settings: FetchSettings, *, path: str = '', selection: str = '', name: str = ''
    ) -> None:
        """Remember where skills come from; nothing is fetched yet.

        Args:
            upstream: Where the files come from.
            settings: How they are fetched and used.
            path: The folder in it to look for skills in.
            selection: Which of its files are fetched, if that depends on the options.
            name: What to call the folder that stands for its root.
        """
        self.url, self.ref, self.path = upstream.url, upstream.ref, path
        self.only, self.trusted = settings.only, settings.trusted
        self.locked, self.lock_file = settings.locked, settings.lock_file
        self.require, self.signers = settings.require, settings.signers
        self.validate, self.max_depth = settings.validate, settings.max_depth
        self.script_executor, self.refresh_interval = settings.script_executor, settings.refresh_interval
        self._fetcher = Fetcher(
            upstream=upstream,
            store=SourceStore(
                settings.cache_dir or default_cache_dir(),
                kind=self.kind,
                url=upstream.url,
                selection=selection,
                name=name or self.kind,
                # A named cache may serve others than its writer: an image is built by one user and run by another.
                shared=settings.cache_dir is not None or is_cache_named(),
            ),
            target=TargetFolder(settings.target_dir) if settings.target_dir else None,
            timeout=settings.timeout,
            offline=settings.offline,
        )

    @property
    def commit(self) -> str | None:
        """The revision its skills are from, such as a commit; `None` before the first look."""
        return self._current.commit if self._current else None

    @property
    def others(self) -> frozenset[str]:
        """The folders of the skills that `only` leaves out; none before the first look."""
        return self._current.others if self._current else frozenset()

    @property
    def latest(self) -> FoundSkills | None:
        """What it has now, without any work."""
        return self._current.found if self._current else self._failed

    def find(self) -> FoundSkills:
        """The skills and problems. Only the first call may ask the server."""
        if self.refresh_interval is not None and self._stop_refreshing is None:
            self._stop_refreshing = threading.Event()
            _keep_fresh(self, self.refresh_interval, self._stop_refreshing)
        if self.latest is None:
            with self._own_lock:
                if self.latest is None:
                    self._update()
        return self._current.find() if self._current else self._failed or FoundSkills()

    def refresh(self) -> FoundSkills:
        """Ask the server what it has now and fetch what has changed. On failure the last skills stay.

        If the server refuses the credentials, none are kept.
        """
        with self._own_lock:
            self._update()
        return self.find()

    def remote_commit(self) -> str:
        """Ask the source which revision it has now, without keeping anything.

        Raises:
            SkillRegistryError: It cannot be asked, or does not have what was asked for.
        """
        return self._fetcher.remote_revision()

    def lock(self, path: str | Path | None = None) -> Path:
        """Record the revision and content of each skill, for `locked=True` to compare with.

        Other sources in the file stay. With `locked=True`, what the source has now is fetched first.

        Args:
            path: The lock file; `lock_file` when not given.

        Raises:
            SkillRegistryError: The skills, or some of them, cannot be fetched, or the file exists and is not a lock
                file.
        """
        if not self.locked and not self.require:
            self.find()
            missing = self._current.missing_parts if self._current else ()
            if missing:
                raise SkillRegistryError(f'{self.url} is not locked, because parts of it are missing: {missing[0]}')
        return super().lock(path)

    def _unlocked(self) -> FetchedRegistry:
        unlocked = super()._unlocked()
        assert isinstance(unlocked, FetchedRegistry)
        unlocked.refresh_interval = None
        return unlocked

    def close(self) -> None:
        """Stop refreshing in the background."""
        self._stop_refreshing = self._stop_refreshing or threading.Event()
        self._stop_refreshing.set()

    def _update(self) -> None:
        """Check out what is wanted now; on failure keep the last skills and record why."""
        try:
            lock = self.locked_source() if self.locked else None
            checkout = self._fetcher.check_out(lock)
        except SkillRegistryError as error:
            self._fail(error)
            return
        current = self._current.updated(checkout, lock) if self._current else None
        if current is None:
            directory = self._open(checkout.root / self.path)
            current = CheckoutSkills(
                checkout,
                directory,
                make_provenance=partial(
                    SkillProvenance, kind=self.kind, url=self.url, ref=self.ref, trusted=self.trusted
                ),
                label=repr(self),
                lock=lock,
                requirements=self.requirements(),
                only=self.only,
                offered_names=self._offered_names,
            )
            current.find()
        self._current, self._failed = current, None

    def _open(self, folder: Path) -> FoundDirectory:
        """Open a folder of fetched files, to find the skills in it."""
        return self._directories()(folder)

    def _directories(self) -> Callable[[Path], SkillsDirectory]:
        """A function that makes directories with this registry's options, and holds no reference to the registry."""
        return partial(
            _hidden_too, validate=self.validate, max_depth=self.max_depth, script_executor=self.script_executor
        )

    @staticmethod
    def _offered_names(names: Mapping[str, str]) -> Mapping[str, str]:
        """The names under which skills are offered, by their folders; `names` has their own names."""
        return names

    def _fail(self, error: SkillRegistryError) -> None:
        current = self._current
        if current is None or isinstance(error, SkillRegistryRefusedError):
            self._current, self._failed = None, failed(self, error, None)
        else:
            self._current = current.updated(replace(current.checkout, failure=str(error)), current.lock)


def _hidden_too(folder: Path, **options: Unpack[DirectoryOptions]) -> SkillsDirectory:
    """A directory that searches hidden folders too: in repositories they hold skills, not caches or environments."""
    directory = SkillsDirectory(folder, **options)
    directory.limits = directory.limits._replace(hidden_folders=True)
    return directory


def _keep_fresh(registry: FetchedRegistry, interval: float, stop: threading.Event) -> None:
    """Refresh a registry in a thread until `stop` is set or nobody holds the registry any more."""
    held = weakref.ref(registry)

    def work() -> None:
        while not stop.wait(interval):
            registry = held()
            if registry is None:
                return
            registry.refresh()
            del registry

    threading.Thread(target=work, name='pydantic-ai-skills-refresh', daemon=True).start()
