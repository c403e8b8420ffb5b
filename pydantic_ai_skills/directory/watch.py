"""Directories that are looked at only when the file system says that something in them has changed.

The events are collected by a thread of `watchfiles`, outside Python; asking whether there were any takes a few
milliseconds in a worker thread, whatever the number of skills. Each folder that was looked into is watched by itself:
watching all below a folder would follow links, and lose folders again when such a link goes. What events cannot tell is
looked at as ever: a directory that leads through links, one that was replaced as a whole, and everything once in a
while.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from typing import Any

from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import FoundSkills

from .directory import SkillsDirectory

__all__ = ('WatchedDirectory', 'require_watchfiles')

TRUST_S = 30.0
"""For how long events are relied on before everything is looked at once more. Some changes cause none, such as those of
another machine on a network drive, and those of a file through another of its names."""

MAX_LOOKS = 3
"""How often to look again at a directory in which folders come and go all the time."""

PATIENCE_S = 0.25
"""How long to wait for the event that comes after all those that are on their way."""

FIRST_PATIENCE_S = 5.0
"""The same for the first event of all, which comes when tens of thousands of folders are watched at last."""

RETRY_S = 60.0
"""How long to do without events where they could not be had, before trying again."""


def require_watchfiles() -> None:
    """Make sure that directories can be watched.

    Raises:
        ImportError: `watchfiles` is not installed.
    """
    if find_spec('watchfiles') is None:
        raise ImportError("auto_reload='watch' needs watchfiles: pip install 'pydantic-ai-skills[watch]'.")


class WatchedDirectory:
    """A directory whose `find` does nothing while no event tells of a change."""

    def __init__(self, directory: SkillsDirectory) -> None:
        """Remember a directory; it is watched from the first look on."""
        self.directory = directory
        self._events: Events | None = None
        self._watched: tuple[int, str, int, int] | None = None
        self._problem: SkillProblem | None = None
        self._seen: tuple[FoundSkills, SkillProblem | None] | None = None
        self._found = FoundSkills()
        self._is_due = True
        """Whether there is something to look at. It stays so after a look that failed."""
        self._last_look = 0.0
        self._not_before = 0.0
        """When to try again to watch what could not be watched."""
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return repr(self.directory)

    def find(self) -> FoundSkills:
        """Look at the directory if something may have changed since the last look."""
        with self._lock:
            # Asked first: what happens during the look is then seen by the next one.
            if self._may_have_changed() or self._is_due:
                self._is_due = True
                self._last_look = time.monotonic()
                self._look()
                # No event comes when a file that was taken for half written just stays as it is.
                self._is_due = self.directory.is_in_doubt
            return self._found

    def _may_have_changed(self) -> bool:
        now = self._identity()
        if now is None or now != self._watched:
            self._watched = now
            self._events = None
            return True
        if self._events is None or time.monotonic() - self._last_look > TRUST_S:
            return True
        try:
            changes = self._events.since_last_asked()
        except (OSError, RuntimeError):
            # Somebody has cleared up among the temporary files, and with them the folder that is watched with the rest;
            # or watchfiles cannot tell what has changed, because its name is no text.
            changes = None
        if changes is None or not changes.isdisjoint(self._events.folders):
            # A folder that has come or gone may be another one now, which is not watched yet.
            self._events = None
        return self._events is None or bool(changes) or not self.directory.rest_is_current()

    def _look(self) -> None:
        seen = self.directory.find()
        for _ in range(MAX_LOOKS):
            folders = self.directory.folders
            if not folders:
                # It cannot be read. That it can be again is no event of a folder in it.
                self._events = None
            if self._watched is None or not folders or time.monotonic() < self._not_before:
                break
            if self._events is not None and self._events.folders == folders:
                break
            self._events = self._watch(folders)
            # Something may have happened before the folders were watched.
            seen = self.directory.find()
        if self._seen is None or seen is not self._seen[0] or self._problem != self._seen[1]:
            self._seen = seen, self._problem
            more = (self._problem,) if self._problem else ()
            self._found = FoundSkills(seen.skills, (*seen.problems, *more)) if more else seen

    def _identity(self) -> tuple[int, str, int, int] | None:
        """What can be watched: a folder to which no links lead, in a process that has the watching thread."""
        path = self.directory.absolute_path
        try:
            status = os.lstat(path)
        except OSError:
            return None
        if self.directory.follow_links or os.path.realpath(path) != path:
            return None
        return os.getpid(), path, status.st_dev, status.st_ino

    def _watch(self, folders: frozenset[str]) -> Events | None:
        self._problem = None
        try:
            return Events(folders)
        except FileNotFoundError:
            # It has gone since it was looked into.
            return None
        except (OSError, RuntimeError, UnicodeEncodeError) as error:
            self._not_before = time.monotonic() + RETRY_S
            message = f'It cannot be watched ({error}); its files are looked at before each run instead.'
            self._problem = problem('watch-failed', str(self.directory.path), message)
            return None


class Events:
    """What the file system tells about some folders."""

    def __init__(self, folders: frozenset[str]) -> None:
        from watchfiles import watch  # optional, and not needed before something is watched

        self.folders = folders
        # A folder of our own is watched with them. What is done there now is told after all that was done before.
        self._own = os.path.realpath(tempfile.mkdtemp(prefix='pydantic-ai-skills-'))
        weakref.finalize(self, shutil.rmtree, self._own, ignore_errors=True)
        self._fence = Fence(self._own)
        # Without a timeout, after which it would forget what came in the same moment.
        self._changes: Iterator[set[tuple[Any, str]]] = watch(
            *sorted(folders),
            self._own,
            watch_filter=None,
            debounce=1,
            step=1,
            rust_timeout=0,
            stop_event=self._fence,
            recursive=False,
            ignore_permission_denied=False,
        )
        if self.since_last_asked(FIRST_PATIENCE_S) is None:
            raise OSError('no events come')

    def since_last_asked(self, patience: float | None = None) -> set[str] | None:
        """What has changed since this was last asked; `None` where that cannot be told, now or later.

        Of folders, those that have come or gone; of all else, what was changed too.

        Args:
            patience: How many seconds to wait for it; `PATIENCE_S` when not given.
        """
        mark = self._fence.begin(PATIENCE_S if patience is None else patience)
        changed: set[str] = set()
        for changes in self._changes:
            for change, path in changes:
                if path != self._own and os.path.dirname(path) != self._own:
                    # A folder that changed is still the same one: its name alone says that it has come or gone.
                    changed.add(f'{path}{os.sep}.' if change.name == 'modified' else path)
            if any(path == mark for _, path in changes):
                os.unlink(mark)
                return changed
        return None


class Fence:
    """A file that is made once events are waited for. When it is told, all that happened before it was told as well."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._numbers = count()
        self._mark: str | None = None
        self._patience = self._deadline = 0.0

    def begin(self, patience: float) -> str:
        """The file that will be made. Its event is waited for from then on: watching many folders takes time before."""
        self._mark = os.path.join(self._folder, str(next(self._numbers)))
        self._patience = patience
        return self._mark

    def is_set(self) -> bool:
        """Asked by `watchfiles` while it waits: whether to stop, because events do not come."""
        if self._mark is not None:
            os.close(os.open(self._mark, os.O_CREAT | os.O_WRONLY, mode=0o600))
            self._mark = None
            self._deadline = time.monotonic() + self._patience
        return time.monotonic() > self._deadline
