"""Runs the processes of one script in a control group: the kernel caps their number and memory, and none can leave.

This needs the right to make groups. The script starts as a shell that joins the group and then becomes the script. In
version 1 of control groups, each limit has a tree of its own; in version 2, where only whole processes can join, the
kernel may take up to 15 ms for that. Where no group can be made, processes and memory are watched.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from pathlib import Path
from shlex import quote

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

PREFIX = 'pydantic-ai-skills-'
"""Our groups have this prefix, followed by the id of the process that made them."""

SHELL = '/bin/sh'
"""Joins a group and sets limits before it becomes the script."""

EMPTY_SECONDS = 0.2
"""How long the processes of a group may take to end after they were killed."""

CONTROLLERS = {'processes': 'pids', 'memory': 'memory'}
"""What the kernel calls the limits that a group can hold."""

_READ_BYTES = 8192
_TRIAL = {'processes': 8, 'memory': 1 << 26}
_numbers = count(1)


class ControlGroup:
    """A group for one run, which enforces `limits`.

    `parents` names for each limit the folder in which its group is made; limits with the same folder share a group.
    `processes` counts processes and threads, `memory` bytes: of processes, of shared memory and of files in memory.
    """

    def __init__(self, parents: Mapping[str, Path], limits: Mapping[str, int]) -> None:
        name = f'{PREFIX}{os.getpid()}-{next(_numbers)}'
        self._folders = {limit: f'{parents[limit]}/{name}' for limit in limits}
        self._distinct = list(dict.fromkeys(self._folders.values()))
        try:
            for folder in self._distinct:
                os.mkdir(folder)
            for limit, value in limits.items():
                self._limit(limit, value)
        except OSError as error:
            self.close()
            raise SkillScriptExecutionError(f'No control group could be made for a script: {error}.') from error
        # The file of version 1, which lets a thread join, is quicker than the one for whole processes.
        self._is_version_1 = os.path.exists(f'{self._distinct[0]}/tasks')
        file = 'tasks' if self._is_version_1 else 'cgroup.procs'
        joining = (f'echo 0 >{quote(f"{folder}/{file}")} || exit' for folder in self._distinct)
        self.join = '; '.join(joining)
        """What a shell does to join the group before it becomes the script."""

    @property
    def held(self) -> Collection[str]:
        """The names of the limits that it holds."""
        return self._folders

    def kill(self) -> None:
        """Kill all processes in it, and wait until they have ended."""
        deadline = time.monotonic() + EMPTY_SECONDS
        if not self.pids():
            return
        with suppress(OSError, KeyError):
            self._limit('processes', 0)  # no new processes while others are being killed
        while (pids := self.pids()) and time.monotonic() < deadline:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)

    def close(self) -> None:
        """Remove the group, and kill what is left in it."""
        if not self.remove():
            self.kill()
            self.remove()  # or else something in it cannot be killed, and a later process removes the group

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process because the group had no memory left."""
        folder = self._folders.get('memory')
        file = 'memory.oom_control' if self._is_version_1 else 'memory.events'
        with suppress(OSError):
            words = [] if folder is None else _read(f'{folder}/{file}').split()
            return int(dict(zip(words[::2], words[1::2], strict=False)).get(b'oom_kill', 0)) > 0
        return False

    def remove(self) -> bool:
        """Remove the group, which the kernel allows only if no process is in it. Returns whether it is gone."""
        while self._distinct:
            try:
                os.rmdir(self._distinct[-1])
            except FileNotFoundError:
                pass
            except OSError:
                return False
            self._distinct.pop()
        return True

    def _limit(self, limit: str, value: int) -> None:
        folder = self._folders[limit]
        if limit == 'processes':
            _write(f'{folder}/pids.max', value)
            return
        try:
            _write(f'{folder}/memory.limit_in_bytes', value)
            with suppress(FileNotFoundError):  # swapping is not counted everywhere
                _write(f'{folder}/memory.memsw.limit_in_bytes', value)
        except FileNotFoundError:
            _write(f'{folder}/memory.max', value)
            with suppress(FileNotFoundError):
                _write(f'{folder}/memory.swap.max', 0)

    def pids(self) -> set[int]:
        found: set[int] = set()
        for folder in self._distinct:
            with suppress(OSError):
                found.update(map(int, _read(f'{folder}/cgroup.procs').split()))
        return found - {0, os.getpid()}  # never this process; 0 is one outside our namespace


@lru_cache(maxsize=1)
def control_groups() -> Mapping[str, Path]:
    """For each limit, the group in which this process can make groups that hold it; found once, by trying."""
    return {limit: parent for limit, parent in find_parents().items() if can_make_groups({limit: parent})}


def groups_in(parent: Path) -> Mapping[str, Path]:
    """The limits that groups made in this one can hold, each with this group."""
    with suppress(OSError):
        counted = (parent / 'cgroup.subtree_control').read_text().split()  # in version 2 only
        return {limit: parent for limit, controller in CONTROLLERS.items() if controller in counted}
    counts_memory = (parent / 'memory.limit_in_bytes').exists()
    return {'memory': parent} if counts_memory else {'processes': parent}


def can_make_groups(parents: Mapping[str, Path]) -> bool:
    """Whether a group can be made in these, and a process started in it."""
    for parent in parents.values():
        _sweep(parent)
    try:
        group = ControlGroup(parents, {limit: _TRIAL[limit] for limit in parents})
    except SkillScriptExecutionError:
        return False
    try:
        return subprocess.run([SHELL, '-c', group.join], capture_output=True).returncode == 0
    except OSError:
        return False
    finally:
        group.close()


def find_parents(
    memberships: Path = Path('/proc/self/cgroup'), mounts: Path = Path('/proc/self/mountinfo')
) -> dict[str, Path]:
    """For each limit, the folder of the group in which groups may be made, in version 1 or else in version 2."""
    if sys.platform != 'linux':
        return {}
    try:
        groups = [line.split(':', 2) for line in memberships.read_text().splitlines()]
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return {}
    found = {limit: folder for limit in CONTROLLERS if (folder := _version_1(limit, groups, lines))}
    return found or _version_2(groups, lines)


def _version_1(limit: str, groups: Sequence[Sequence[str]], mounts: Sequence[Sequence[str]]) -> Path | None:
    """The group of this process in the hierarchy that counts towards this limit."""
    controller = CONTROLLERS[limit]
    counting = [group for group in groups if controller in group[1].split(',')]
    return next(_folders(counting, [words for words in mounts if controller in words[-1].split(',')], 'cgroup'), None)


def _version_2(groups: Sequence[Sequence[str]], mounts: Sequence[Sequence[str]]) -> dict[str, Path]:
    """The nearest group around this process whose groups can hold all limits, or else one of them."""
    own = _folders([group for group in groups if not group[1]], mounts, 'cgroup2')
    found = [groups_in(outer) for group in own for outer in (group, *group.parents) if _is_group(outer)]
    nearest: Mapping[str, Path] = max(found, key=len) if found else {}
    return dict(nearest)


def _is_group(folder: Path) -> bool:
    return (folder / 'cgroup.subtree_control').exists()


def _folders(groups: Sequence[Sequence[str]], mounts: Sequence[Sequence[str]], kind: str) -> Iterator[Path]:
    """Where these groups are in the file system."""
    # The last words of a mount are: - KIND SOURCE OPTIONS. The fourth and fifth are what is mounted, and where.
    places = [(words[3], words[4]) for words in mounts if words[-3] == kind]
    yield from (Path(place, os.path.relpath(group, root)) for _, _, group in groups for root, place in places)


def _write(file: str, value: int) -> None:
    # Opened without creating it: a file that is missing is a feature that the kernel does not offer.
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    finally:
        os.close(descriptor)


def _read(file: str) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b''.join(iter(lambda: os.read(descriptor, _READ_BYTES), b''))
    finally:
        os.close(descriptor)


def _sweep(parent: Path) -> None:
    """Remove the groups that processes left behind because they were killed."""
    for folder in parent.glob(f'{PREFIX}*'):
        maker = folder.name.removeprefix(PREFIX).partition('-')[0]
        if not Path('/proc', maker).exists():
            with suppress(OSError):
                folder.rmdir()
