"""A control group for the processes of one run: the kernel caps their number, even for root, and none can leave it.

It takes the right to make one inside the group of this process, and the first version of control groups, in which a
single thread can join one: a script that this thread starts is then born in it. With the second version a process can
only be moved after its birth, for which the kernel waits on all processors, up to 15 ms. Where there is no such group,
the number of processes is watched, and an executor says so.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

__all__ = ('ControlGroup', 'control_groups', 'own_group')

PREFIX = 'pydantic-ai-skills-'
"""What the names of our groups begin with. The id of the process that made them follows."""

EMPTY_SECONDS = 0.2
"""How long the processes of a group may take to end once they were killed."""

_numbers = count(1)


class ControlGroup:
    """The processes of one run.

    Args:
        parent: The group in which it is made.
        most_tasks: How many processes and threads it may have at the same time.

    Raises:
        SkillScriptExecutionError: It cannot be made.
    """

    def __init__(self, parent: Path, most_tasks: int) -> None:
        self._parent = parent
        self._path = parent / f'{PREFIX}{os.getpid()}-{next(_numbers)}'
        try:
            self._path.mkdir()
            self._limit(most_tasks)
        except OSError as error:
            self.close()
            raise SkillScriptExecutionError(f'No control group could be made for a script: {error}.') from error

    @contextmanager
    def entered(self) -> Generator[None]:
        """Within this, what the current thread starts is born in the group."""
        _move_thread(self._path)
        try:
            yield
        finally:
            _move_thread(self._parent)

    def kill(self) -> None:
        """Kill all processes in it, and wait for that."""
        deadline = time.monotonic() + EMPTY_SECONDS
        with suppress(OSError):
            self._limit(0)  # nobody can be born while others are being killed
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
        # Never ourselves, should a thread not have come back; nor one outside our namespace, which reads as 0.
        return [pid for pid in map(int, words) if pid not in (0, os.getpid())]


@lru_cache(maxsize=1)
def control_groups() -> Path | None:
    """The group in which this process can make others, found out once by entering one; `None` if it cannot."""
    parent = own_group()
    if parent is None:
        return None
    _sweep(parent)
    try:
        group = ControlGroup(parent, 1)
    except SkillScriptExecutionError:
        return None
    try:
        with group.entered():
            return parent
    except OSError:
        return None
    finally:
        group.close()


def own_group(
    memberships: Path = Path('/proc/self/cgroup'), mounts: Path = Path('/proc/self/mountinfo')
) -> Path | None:
    """The folder of the group of this process that counts tasks, in the first version of control groups."""
    if sys.platform != 'linux':
        return None
    try:
        groups = [line.split(':', 2) for line in memberships.read_text().splitlines()]
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return None
    # The last words of a mount are: - cgroup SOURCE OPTIONS; the fourth and fifth what is mounted, and where.
    found = [(words[3], words[4]) for words in lines if words[-3] == 'cgroup' and 'pids' in words[-1].split(',')]
    paths = [
        Path(place, os.path.relpath(group, root))
        for _, controllers, group in groups
        if 'pids' in controllers.split(',')
        for root, place in found
    ]
    return paths[0] if paths else None


def _move_thread(group: Path) -> None:
    _write(group / 'tasks', 0)


def _write(file: Path, value: int) -> None:
    # Opened without making it: what is not there, the kernel does not offer.
    with open(file, 'r+') as opened:
        opened.write(str(value))


def _sweep(parent: Path) -> None:
    """Remove the groups of processes that were killed before they could do it."""
    for folder in parent.glob(f'{PREFIX}*'):
        maker = folder.name.removeprefix(PREFIX).partition('-')[0]
        if not Path('/proc', maker).exists():
            with suppress(OSError):
                folder.rmdir()
