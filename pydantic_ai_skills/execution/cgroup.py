"""Runs the processes of one script in a control group: the kernel caps their number, even for root, and none can leave.

This needs the right to make groups. In version 1 of control groups, the current thread joins the group while it starts
the script, which is then born in it. In version 2 only whole processes can join, so the script starts as a shell that
joins and then becomes the script; the kernel may take up to 15 ms for that. Where no group can be made, the number of
processes is watched.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

PREFIX = 'pydantic-ai-skills-'
"""Our groups have this prefix, followed by the id of the process that made them."""

EMPTY_SECONDS = 0.2
"""How long the processes of a group may take to end after they were killed."""

_numbers = count(1)


class ControlGroup:
    """A group in `parent` that may have `most_tasks` processes and threads at the same time."""

    def __init__(self, parent: Path, most_tasks: int) -> None:
        self._parent = parent
        self._path = parent / f'{PREFIX}{os.getpid()}-{next(_numbers)}'
        self.prefix: tuple[str, ...] = ()
        """Words to put before a command, so that it joins the group."""
        try:
            self._path.mkdir()
            self._limit(most_tasks)
        except OSError as error:
            self.close()
            raise SkillScriptExecutionError(f'No control group could be made for a script: {error}.') from error
        self._threads_join = (self._path / 'tasks').exists()  # in version 1 only
        if not self._threads_join:
            self.prefix = '/bin/sh', '-c', 'echo 0 >"$0" && exec "$@"', str(self._path / 'cgroup.procs')

    @contextmanager
    def entered(self) -> Generator[None]:
        """What the current thread starts in this context is born in the group, if threads can join it."""
        if not self._threads_join:
            yield
            return
        _write(self._path / 'tasks', 0)
        try:
            yield
        finally:
            _write(self._parent / 'tasks', 0)

    def kill(self) -> None:
        """Kill all processes in it, and wait until they have ended."""
        deadline = time.monotonic() + EMPTY_SECONDS
        with suppress(OSError):
            self._limit(0)  # no new processes while others are being killed
        while (pids := self._pids()) and time.monotonic() < deadline:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)

    def close(self) -> None:
        """Kill what is left, and remove the group."""
        self.kill()
        with suppress(OSError):  # something in it cannot be killed; a later process removes the group
            self._path.rmdir()

    def _limit(self, most_tasks: int) -> None:
        _write(self._path / 'pids.max', most_tasks)

    def _pids(self) -> list[int]:
        try:
            words = (self._path / 'cgroup.procs').read_text().split()
        except OSError:
            return []
        # Never this process, should a thread not have left; nor one outside our namespace, which reads as 0.
        return [pid for pid in map(int, words) if pid not in (0, os.getpid())]


@lru_cache(maxsize=1)
def control_groups() -> Path | None:
    """The group in which this process can make others, found once by trying; `None` if it cannot."""
    parent = find_parent()
    return parent if parent is not None and can_make_groups(parent) else None


def can_make_groups(parent: Path) -> bool:
    """Whether a process can be started in a group that is made in this one."""
    _sweep(parent)
    try:
        group = ControlGroup(parent, 8)
    except SkillScriptExecutionError:
        return False
    try:
        with group.entered():
            if group.prefix:
                subprocess.run([*group.prefix, '/bin/sh', '-c', ':'], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    finally:
        group.close()
    return True


def find_parent(
    memberships: Path = Path('/proc/self/cgroup'), mounts: Path = Path('/proc/self/mountinfo')
) -> Path | None:
    """The folder of the group in which groups for runs may be made, in version 1 or else in version 2."""
    if sys.platform != 'linux':
        return None
    try:
        groups = [line.split(':', 2) for line in memberships.read_text().splitlines()]
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return None
    return _version_1(groups, lines) or _version_2(groups, lines)


def _version_1(groups: Sequence[Sequence[str]], mounts: Sequence[Sequence[str]]) -> Path | None:
    """The group of this process in the hierarchy that counts tasks."""
    counting = [group for group in groups if 'pids' in group[1].split(',')]
    return next(_folders(counting, [words for words in mounts if 'pids' in words[-1].split(',')], 'cgroup'), None)


def _version_2(groups: Sequence[Sequence[str]], mounts: Sequence[Sequence[str]]) -> Path | None:
    """The nearest group around this process that counts the tasks of the groups in it."""
    own = _folders([group for group in groups if not group[1]], mounts, 'cgroup2')
    for folder in (outer for group in own for outer in (group, *group.parents)):
        with suppress(OSError):
            if 'pids' in (folder / 'cgroup.subtree_control').read_text().split():
                return folder
    return None


def _folders(groups: Sequence[Sequence[str]], mounts: Sequence[Sequence[str]], kind: str) -> Iterator[Path]:
    """Where these groups are in the file system."""
    # The last words of a mount are: - KIND SOURCE OPTIONS; the fourth and fifth what is mounted, and where.
    places = [(words[3], words[4]) for words in mounts if words[-3] == kind]
    yield from (Path(place, os.path.relpath(group, root)) for _, _, group in groups for root, place in places)


def _write(file: Path, value: int) -> None:
    # Opened without creating it: a file that is missing is a feature that the kernel does not offer.
    with open(file, 'r+') as opened:
        opened.write(str(value))


def _sweep(parent: Path) -> None:
    """Remove the groups that processes left behind because they were killed."""
    for folder in parent.glob(f'{PREFIX}*'):
        maker = folder.name.removeprefix(PREFIX).partition('-')[0]
        if not Path('/proc', maker).exists():
            with suppress(OSError):
                folder.rmdir()
