"""Base of registries that fetch a revision of a source into the store: updating, locking, background refresh."""

from __future__ import annotations

import threading
import weakref
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.types.found_skills import FoundSkills, failed
from pydantic_ai_skills.types.provenance import SkillProvenance

from .base import LOCK_FILE, FindingRegistry
from .checkout import Checkout, CheckoutSkills
from .lockfile import LockedSource, locked_source

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor


class FetchedRegistry(FindingRegistry):
    """Skills of a source that is fetched as files. A subclass says how, in `check_out`."""

    kind: ClassVar[str]
    """The kind of source, as provenance and lock file name it."""

    url: str = ''
    """The address of the source."""

    ref: str | None = None
    """The branch, tag or commit; `None` for the default branch."""

    path: str = ''
    """The folder in it to look for skills in."""

    trusted: bool = False
    locked: bool = False
    lock_file: Path = Path(LOCK_FILE)
    refresh_interval: float | None = None
    validate: bool = True
    max_depth: int | None = None
    only: tuple[str, ...] | None = None
    """The names of the skills to offer; `None` for all."""

    script_executor: SkillScriptExecutor | None = None

    _current: CheckoutSkills | None = None
    _failed: FoundSkills | None = None
    _stop_refreshing: threading.Event | None = None

    @abstractmethod
    def check_out(self, lock: LockedSource | None) -> Checkout:
        """Fetch the locked revision, or else the newest; raise `SkillRegistryError` if not even the cache has one."""

    @property
    def commit(self) -> str | None:
        """The commit its skills are from; `None` before the first look."""
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

        If the server refused the credentials, it has none.
        """
        with self._own_lock:
            self._update()
        return self.find()

    def lock(self, path: str | Path | None = None) -> Path:
        """Record the commit and content of each skill, for `locked=True` to compare with.

        Other sources in the file stay. With `locked=True`, what the server has now is fetched first.

        Args:
            path: The lock file; `lock_file` when not given.

        Raises:
            SkillRegistryError: The skills cannot be fetched, or the file exists and is not a lock file.
        """
        path = path or self.lock_file
        if not self.locked:
            return super().lock(path)
        unlocked = copy(self)
        unlocked.locked = False
        unlocked.refresh_interval = None
        unlocked._current = unlocked._failed = None  # noqa: SLF001 - a copy of this object
        unlocked.lock(path)
        self.refresh()
        return Path(path)

    def locked_source(self) -> LockedSource:
        """What the lock file says about this source and the skills below `path`."""
        return locked_source(self.lock_file, kind=self.kind, url=self.url, ref=self.ref).beneath(self.path)

    def close(self) -> None:
        """Stop refreshing in the background."""
        self._stop_refreshing = self._stop_refreshing or threading.Event()
        self._stop_refreshing.set()

    def _update(self) -> None:
        """Check out what is wanted now; on failure keep the last skills and record why."""
        try:
            lock = self.locked_source() if self.locked else None
            checkout = self.check_out(lock)
        except SkillRegistryError as error:
            self._fail(error)
            return
        current = self._current.updated(checkout, lock) if self._current else None
        if current is None:
            directory = SkillsDirectory(
                checkout.root / self.path,
                validate=self.validate,
                max_depth=self.max_depth,
                script_executor=self.script_executor,
            )
            # Repositories keep skills in hidden folders too, and have no caches or environments in them.
            directory.limits = directory.limits._replace(hidden_folders=True)
            about = SkillProvenance(kind=self.kind, url=self.url, ref=self.ref, trusted=self.trusted)
            current = CheckoutSkills(checkout, directory, about=about, label=repr(self), lock=lock, only=self.only)
            current.find()
        self._current, self._failed = current, None

    def _fail(self, error: SkillRegistryError) -> None:
        current = self._current
        if current is None or isinstance(error, SkillRegistryRefusedError):
            self._current, self._failed = None, failed(self, error, None)
        else:
            self._current = current.updated(replace(current.checkout, failure=str(error)), current.lock)


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
