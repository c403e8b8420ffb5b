"""Holds the processes of a run to its limits, without touching the limits of this process.

A local script starts as a shell, which sets the kernel's limits and then becomes the script; a sandbox waits until they
are set from outside. In both cases the script never runs without them, and no code runs between `fork` and `exec`,
which would not be safe in a program with threads. What a script and its children use together is held by a control
group where one can be made, and watched.
"""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from .cgroup import ControlGroup
from .disk_use import Measured, WorkRoom, measure, unlinked
from .limits import MIB, ScriptLimits

TASKS_PER_PROCESS = 8
"""The kernel counts threads too, so its cap leaves room for this many in each process."""

MEMORY_SLACK = 16 * MIB
"""The kernel's cap on the memory of a run is higher than the limit by this or by a quarter, so that a script that
reaches the limit can still end by itself, with an error message."""

WATCH_INTERVAL = 0.1
"""Seconds between two looks at a run, and before the first one. Most scripts end before it."""

GLANCE_INTERVAL = 0.01
"""Seconds between two glances at what the whole machine uses. If that grows fast, a look at the run follows."""

LOAD = 20
"""A slow look is followed by a pause this many times as long, so that looking takes less than 5 % of one core."""

BYTES_PER_FILE = 8192
"""A run may have one file in memory per this many bytes of its memory. An empty one takes the kernel 1 or 2 KiB."""

_TOGETHER = ('memory', 'processes', 'work_folder')
"""Limits on all processes of a run together."""

_PAGE = os.sysconf('SC_PAGE_SIZE') if hasattr(os, 'sysconf') else 4096


def unenforced_limits(
    limits: ScriptLimits, *, held: Container[str] = _TOGETHER, platform: str | None = None
) -> tuple[str, ...]:
    """The names of limits that are set but that a script can get around here. `held` names those the kernel holds."""
    if not can_watch(platform=platform):
        return _set(limits, _TOGETHER)
    # A watcher sees what processes have mapped, but not what the kernel keeps for them, such as full sockets.
    return _set(limits, ['memory'] if 'memory' not in held else [])


def warn_of_unwatched(limits: ScriptLimits, *, platform: str | None = None) -> None:
    """Warn about limits that the developer chose and that do nothing here: they must not look like those that do."""
    platform = platform or sys.platform
    names = () if can_watch(platform=platform) else _set(limits, _TOGETHER)
    if chosen := [name for name in names if getattr(limits, name) != getattr(ScriptLimits(), name)]:
        warnings.warn(
            f'{" and ".join(chosen)} cannot be limited on {platform}. Set them to None to say that this is accepted, '
            'or run scripts in a workspace that limits them.',
            stacklevel=3,
        )


def watched_limits(limits: ScriptLimits, *, held: Container[str]) -> tuple[str, ...]:
    """The names of limits that are set and only watched. `held` names those that the kernel holds."""
    return _set(limits, [name for name in _TOGETHER if name not in held]) if can_watch() else ()


def group_limits(limits: ScriptLimits) -> dict[str, int]:
    """What a control group should hold for a run."""
    memory = limits.memory and limits.memory + max(MEMORY_SLACK, limits.memory // 4)
    wanted = {'processes': most_tasks(limits), 'memory': memory}
    return {name: value for name, value in wanted.items() if value is not None}


def most_tasks(limits: ScriptLimits) -> int | None:
    """How many processes and threads the kernel should let a run have."""
    # One more, so that the watchdog stops the script first and says why, before the kernel refuses a process.
    return None if limits.processes is None else (limits.processes + 1) * TASKS_PER_PROCESS


def can_watch(*, platform: str | None = None) -> bool:
    """Whether the processes of a run can be watched, which needs Linux's `/proc`."""
    return (platform or sys.platform) == 'linux'


def apply_limits(limits: ScriptLimits, pid: int, *, own_namespace: bool = False) -> None:
    """Set the kernel's limits on a waiting process. Its children inherit them.

    Only in a user namespace of its own does the kernel count the processes of this run, not all those of the user.
    """
    import resource  # not on every platform

    for which, soft_and_hard in _kernel_limits(limits, most_tasks(limits) if own_namespace else None).items():
        with suppress(ProcessLookupError):  # the process has ended
            resource.prlimit(pid, which, soft_and_hard)


def limits_in_shell(limits: ScriptLimits, *, held: Container[str]) -> list[str]:
    """What a shell does to set the kernel's limits before it becomes the script."""
    import resource

    units = {
        resource.RLIMIT_CPU: ('t', 1),
        resource.RLIMIT_DATA: ('d', 1024),
        resource.RLIMIT_FSIZE: ('f', 512),
        resource.RLIMIT_NOFILE: ('n', 1),
        resource.RLIMIT_CORE: ('c', 1),
    }
    lines: list[str] = []
    for which, (soft, hard) in _kernel_limits(limits).items():
        flag, unit = units[which]
        lines += [f'ulimit -S{flag} {soft // unit}', f'ulimit -H{flag} {hard // unit}']
    tasks = None if 'processes' in held or not can_watch() else most_tasks(limits)
    if tasks is not None:
        # The kernel counts all tasks of the user, except root's: at most as many as the machine has now.
        most = _count_tasks() + tasks
        lines.append(f'ulimit -u {most} 2>/dev/null || ulimit -p {most}')  # the letter depends on the shell
    return lines


def _set(limits: ScriptLimits, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if getattr(limits, name) is not None)


def _kernel_limits(limits: ScriptLimits, tasks: int | None = None) -> dict[int, tuple[int, int]]:
    """The soft and the hard limits to set, capped at those of this process: root could raise them by accident."""
    import resource

    wanted: dict[int, float | None] = {
        resource.RLIMIT_CPU: limits.cpu_time,
        # Not RLIMIT_AS: Node reserves gigabytes of addresses that it never uses.
        resource.RLIMIT_DATA: limits.memory,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: tasks,
    }
    found: dict[int, tuple[int, int]] = {}
    for which, value in wanted.items():
        if value is not None:
            _, ceiling = resource.getrlimit(which)
            # The soft limit of processor time is a second lower: its signal says what happened, a kill does not.
            hard = math.ceil(value) + (which == resource.RLIMIT_CPU)
            hard = hard if ceiling == resource.RLIM_INFINITY else min(hard, ceiling)
            found[which] = min(math.ceil(value), hard), hard
    return found


MAX_LEFT = 10
"""How many of the processes that a script left running are named."""

MAX_COMMAND_BYTES = 200
"""How much of the command line of each of them is shown."""


class ProcessInfo(NamedTuple):
    """A row of the kernel's table of processes; `resident` is its memory in bytes, with shared pages."""

    pid: int
    parent: int
    session: int
    resident: int


class _Usage(NamedTuple):
    """What the whole machine uses: a few numbers that are cheap to read."""

    tasks: int
    memory: int

    disk: int
    """Bytes in the file system of the work folder."""


class Watchdog:
    """Watches what all processes of a run use together.

    Args:
        limits: What they may use.
        work_dir: The work folder of the run.
        room: What the work folder may hold; by default the limit and 10,000 files.
        helpers: How many of the processes are not the script's.
        group: The control group of the run.
        in_memory: Returns descriptors of the folders whose files are in memory.
    """

    def __init__(
        self,
        limits: ScriptLimits,
        *,
        work_dir: Path,
        room: WorkRoom | None = None,
        helpers: int = 0,
        group: ControlGroup | None = None,
        in_memory: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        self._limits = limits
        self._work_dir = work_dir
        self._room = room or WorkRoom(limits.work_folder)
        self._helpers = helpers
        self._group = group
        self._in_memory = in_memory
        now = time.monotonic()
        self._next_look, self._next_glance = now + WATCH_INTERVAL, now + GLANCE_INTERVAL
        self._before = self._usage = _usage(work_dir)

    def __call__(self, pid: int) -> str | None:
        """Why the run that process `pid` leads has to be stopped, or `None`."""
        started = time.monotonic()
        if started < self._next_glance:
            return None
        self._next_glance = started + GLANCE_INTERVAL
        if self._has_many_files_in_memory():
            return self._used_memory_up()
        if started < self._next_look and not self._growing():
            return None
        self._usage = _usage(self._work_dir)
        reason = self._look(pid)
        now = time.monotonic()
        self._next_look = now + max(WATCH_INTERVAL, LOAD * (now - started))
        return reason

    def at_end(self) -> str | None:
        """Why the kernel ended the run, if it did."""
        return self._used_memory_up() if self._group is not None and self._group.ran_out_of_memory() else None

    def left_behind(self, pid: int) -> tuple[str, ...]:
        """The commands of the processes that still run after process `pid`, which led the run, has ended."""
        if self._group is not None:  # it has every process of the run, and can only be removed when it is empty
            found = set[int]() if self._group.remove() else self._group.pids()
        else:  # processes that lost their parent are found by their session, which is quick
            found = {info.pid for info in run_processes(pid)} if _has_more(pid, 1) else set[int]()
        commands = (_command_of(each) for each in sorted(found - {pid}))
        return tuple(islice(filter(None, commands), MAX_LEFT))

    def _growing(self) -> bool:
        """Whether this machine uses so much more that this run may have exceeded a limit."""
        limits = self._limits
        most = limits.processes, limits.memory and limits.memory / 2, limits.work_folder and limits.work_folder / 2
        growth = (now - before for now, before in zip(_usage(self._work_dir), self._usage, strict=True))
        return any(limit is not None and more > limit for more, limit in zip(growth, most, strict=True))

    def _has_many_files_in_memory(self) -> bool:
        memory = self._limits.memory
        if memory is None:
            return False
        there = map(os.statvfs, self._in_memory())
        return sum(status.f_files - status.f_ffree for status in there) > memory // BYTES_PER_FILE

    def _look(self, pid: int) -> str | None:
        limits = self._limits
        most = math.inf if limits.processes is None else limits.processes + self._helpers
        # The quick count comes first: while processes multiply, every moment makes the full one take longer.
        if (most < math.inf and _has_more(pid, most)) or len(processes := run_processes(pid)) > most:
            return f'it started more than {limits.processes} processes'
        if limits.memory is not None and _used_memory(processes, limits.memory) > limits.memory:
            return self._used_memory_up()
        pids = [info.pid for info in processes]
        return self.at_end() or (None if self._room.size is None else self._excess(pids, self._room.size))

    def _excess(self, processes: Sequence[int], limit: int) -> str | None:
        """Why the work folder holds too much, or `None`."""
        lost = _usage(self._work_dir).disk - self._before.disk
        most = self._room.files
        found = Measured(0, complete=False) if most is None else measure(self._work_dir, limit, most)
        if most is not None and found.files > most:
            return f'the work folder holds more than {most:,} files'
        grown = lost > (self._limits.work_folder or 0)
        # The files with a name are often enough to decide; counting the rest means looking at all open files.
        hidden = Measured(0) if found.size > limit else unlinked(self._work_dir, processes, thorough=grown)
        # Where not everything can be counted, the space that is gone decides.
        if found.size + hidden.size > limit or (grown and not (found.complete and hidden.complete)):
            return f'the work folder holds more than {limit / MIB:g} MiB'
        return None

    def _used_memory_up(self) -> str:
        return f'it used more than {(self._limits.memory or 0) / MIB:g} MiB of memory'


def _usage(folder: Path) -> _Usage:
    disk = 0
    with suppress(OSError):  # removed by the script
        status = os.statvfs(folder)
        disk = (status.f_blocks - status.f_bfree) * status.f_frsize
    return _Usage(_count_tasks(), -os.sysconf('SC_AVPHYS_PAGES') * _PAGE, disk)


def _count_tasks() -> int:
    """The number of all tasks on this machine, read from one small file."""
    with open('/proc/loadavg', 'rb', buffering=0) as file:
        return int(file.read(100).split()[3].partition(b'/')[2])


def _has_more(session: int, most: float) -> bool:
    """Whether a session has more processes than `most`. Checks one process after another, newest first."""
    count = 0
    for pid in sorted(map(int, filter(str.isdigit, os.listdir('/proc'))), reverse=True):
        with suppress(ProcessLookupError):
            count += os.getsid(pid) == session
        if count > most:
            return True
    return False


def run_processes(leader: int) -> list[ProcessInfo]:
    """The process, its descendants, and all processes in its session, even those that lost their parent."""
    children: defaultdict[int, list[ProcessInfo]] = defaultdict(list)
    found: dict[int, ProcessInfo] = {}
    for info in _all_processes():
        children[info.parent].append(info)
        if info.session == leader or info.pid == leader:
            found[info.pid] = info
    waiting = list(found)
    while waiting:
        for child in children[waiting.pop()]:
            if child.pid not in found:
                found[child.pid] = child
                waiting.append(child.pid)
    return list(found.values())


def _all_processes() -> Iterator[ProcessInfo]:
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{name}/stat', 'rb') as file:
                # The program's name is in parentheses and may contain anything, parentheses too.
                words = file.read().rpartition(b')')[2].split()
        except OSError:  # the process has ended
            continue
        yield ProcessInfo(int(name), int(words[1]), int(words[3]), int(words[21]) * _PAGE)


def _command_of(pid: int) -> str:
    """The command line of a process; an empty text for one that has ended."""
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            words = file.read(MAX_COMMAND_BYTES).rstrip(b'\0').split(b'\0')
    except OSError:
        return ''
    return b' '.join(words).decode(errors='replace')


def _used_memory(processes: list[ProcessInfo], limit: int) -> int:
    total = sum(info.resident for info in processes)
    if total <= limit:
        return total
    # Shared pages were counted for each process. The exact figure is expensive, so it is only taken now.
    return sum(_proportional(info) for info in processes)


def _proportional(info: ProcessInfo) -> int:
    try:
        with open(f'/proc/{info.pid}/smaps_rollup', 'rb') as file:
            lines = file.read().splitlines()
    except PermissionError:  # it may not be inspected, or belongs to another user
        return info.resident
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b'Pss:')), 0)
