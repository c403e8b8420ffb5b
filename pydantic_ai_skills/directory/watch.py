"""Looks at a directory only when the file system reports a change in it.

A native thread of `watchfiles` collects the events; asking for them takes a few milliseconds, however many skills there
are. Each scanned folder is watched on its own: watching a whole tree would follow links, and lose folders when a link
goes. Events do not cover everything, so some looks go to the disk regardless: for a directory reached through links,
for one that was replaced as a whole, and for everything once in a while.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from itertools import count
from typing import Any, NamedTuple

from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.found_skills import FoundSkills

from .directory import SkillsDirectory

MAX_LOOKS = 3
"""How often to look again at a directory in which folders come and go all the time."""


class WatchTimes(NamedTuple):
    """How long events are waited for and relied on, in seconds."""

    trust: float = 30.0
    """After this, everything is looked at once more: some changes cause no event, such as those another machine makes
    on a network drive, or those made through another hard link of a file."""

    patience: float = 0.25
    """How long to wait until all events so far have arrived."""

    first_patience: float = 5.0
    """The same for the first time, when tens of thousands of folders may have to be watched first."""

    retry: float = 60.0
    """After how long to try again to watch a directory that could not be watched."""


def require_watchfiles() -> None:
    """Raise an `ImportError` that says how to install `watchfiles` if it is not installed."""
    if find_spec('watchfiles') is None:
        raise ImportError("auto_reload='watch' needs watchfiles: pip install 'pydantic-ai-skills[watch]'.")


class WatchedDirectory:
    """A directory whose `find` does nothing until an event reports a change."""

    times = WatchTimes()

    def __init__(self, directory: SkillsDirectory, times: WatchTimes | None = None) -> None:
        """Remember a directory; it is watched from the first look on."""
        self.directory = directory
        self.times = times or self.times
        self._events: Events | None = None
        self._watched: tuple[int, str, int, int] | None = None
        self._problem: SkillProblem | None = None
        self._seen: tuple[FoundSkills, SkillProblem | None] | None = None
        self._found = FoundSkills()
        self._is_due = True
        """Whether the directory has to be looked at; stays true if a look fails."""
        self._last_look = 0.0
        self._not_before = 0.0
        """When to try again to watch a directory that could not be watched."""
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return repr(self.directory)

    def find(self) -> FoundSkills:
        """Look at the directory if something may have changed since the last look."""
        with self._lock:
            # Asked first, so that the next look sees what happens during this one.
            if self._may_have_changed() or self._is_due:
                self._is_due = True
                self._last_look = time.monotonic()
                self._look()
                # No event comes if a file that seemed half written just stays as it is.
                self._is_due = self.directory.is_in_doubt
            return self._found

    def _may_have_changed(self) -> bool:
        now = self._identity()
        if now is None or now != self._watched:
            self._watched = now
            self._events = None
            return True
        if self._events is None or time.monotonic() - self._last_look > self.times.trust:
            return True
        try:
            changes = self._events.since_last_asked(self.times.patience)
        except (OSError, RuntimeError):
            # The temporary folder that is watched with the others was removed, or watchfiles cannot name a changed
            # file because its name is not valid text.
            changes = None
        if changes is None or not changes.isdisjoint(self._events.folders):
            # A folder that came or went may be a new one, which is not watched yet.
            self._events = None
        return self._events is None or bool(changes) or not self.directory.rest_is_current()

    def _look(self) -> None:
        seen = self.directory.find()
        for _ in range(MAX_LOOKS):
            if not self._watch_new_folders():
                break
            # Something may have changed before the folders were watched.
            seen = self.directory.find()
        if self._seen is None or seen is not self._seen[0] or self._problem != self._seen[1]:
            self._seen = seen, self._problem
            self._found = FoundSkills(seen.skills, (*seen.problems, self._problem)) if self._problem else seen

    def _watch_new_folders(self) -> bool:
        """Watch the folders of the last look, if that is possible and needed."""
        folders = self.directory.folders
        if not folders:
            # The directory cannot be read, and no event will tell when it can be.
            self._events = None
        if self._watched is None or not folders or time.monotonic() < self._not_before:
            return False
        if self._events is not None and self._events.folders == folders:
            return False
        self._events = self._watch(folders)
        return True

    def _identity(self) -> tuple[int, str, int, int] | None:
        """What is watched: the process and the folder; `None` for a folder reached through links."""
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
            return Events(folders, self.times.first_patience)
        except FileNotFoundError:
            # A folder has vanished since it was scanned.
            return None
        except (OSError, RuntimeError, UnicodeEncodeError) as error:
            self._not_before = time.monotonic() + self.times.retry
            message = f'It cannot be watched ({error}); its files are looked at before each run instead.'
            self._problem = problem('watch-failed', str(self.directory.path), message)
            return None


class Events:
    """The events of the file system for some folders."""

    def __init__(self, folders: frozenset[str], patience: float = WatchTimes().first_patience) -> None:
        from watchfiles import watch  # an optional dependency

        self.folders = folders
        # A folder of our own is watched with the others: events arrive in order, so a file made there marks the end.
        self._own = os.path.realpath(tempfile.mkdtemp(prefix='pydantic-ai-skills-'))
        weakref.finalize(self, _remove, self._own)
        self._fence = Fence(self._own)
        # No timeout: watchfiles drops the events that arrive at the moment of a timeout.
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
        if self.since_last_asked(patience) is None:
            raise OSError('no events come')

    def since_last_asked(self, patience: float = WatchTimes().patience) -> set[str] | None:
        """The paths that have changed since the last call; `None` if events do not arrive within `patience` seconds.

        A folder is among them only if it came or went; a file also if it was changed.
        """
        mark = self._fence.begin(patience)
        changed: set[str] = set()
        for changes in self._changes:
            for change, path in changes:
                if path != self._own and os.path.dirname(path) != self._own:
                    # Only the bare path of a folder means that it came or went; one that merely changed gets a dot.
                    changed.add(f'{path}{os.sep}.' if change.name == 'modified' else path)
            if any(path == mark for _, path in changes):
                os.unlink(mark)
                return changed
        return None


def _remove(folder: str) -> None:
    """Remove a folder; in a thread if an event loop is running here, which must not wait for a disk."""
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        remove()
    else:
        threading.Thread(target=remove).start()


class Fence:
    """Makes a file while events are awaited. When its event arrives, all earlier events have arrived."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._numbers = count()
        self._mark: str | None = None
        self._patience = self._deadline = 0.0

    def begin(self, patience: float) -> str:
        """The file that will be made. Patience starts only when it is made: watching many folders takes time."""
        self._mark = os.path.join(self._folder, str(next(self._numbers)))
        self._patience = patience
        return self._mark

    def is_set(self) -> bool:
        """Whether to give up on events; `watchfiles` asks while it waits."""
        if self._mark is not None:
            os.close(os.open(self._mark, os.O_CREAT | os.O_WRONLY, mode=0o600))
            self._mark = None
            self._deadline = time.monotonic() + self._patience
        return time.monotonic() > self._deadline
