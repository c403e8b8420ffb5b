"""Limits what a script may use of the machine, without touching the limits of this process.

A local script starts as a shell, which sets the kernel's limits and then becomes the script; a sandbox waits until they
are set from outside. In both cases the script never runs without them, and no code runs between `fork` and `exec`,
which would not be safe in a program with threads. What a script and its children use together is watched.
"""

from __future__ import annotations

import math
import os
import stat
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

MIB = 1024 * 1024

TASKS_PER_PROCESS = 8
"""The kernel counts threads too, so its cap leaves room for this many in each process."""

WATCH_INTERVAL = 0.1
"""Seconds between two looks at a run, and before the first one. Most scripts end before it."""

GLANCE_INTERVAL = 0.01
"""Seconds between two glances at the number of all tasks on this machine. If it grows fast, a look follows."""

LOAD = 20
"""A slow look is followed by a pause this many times as long, so that looking takes less than 5 % of one core."""

MAX_WORK_FILES = 10_000
"""Files and folders a script may make in its work folder."""

_PAGE = os.sysconf('SC_PAGE_SIZE') if hasattr(os, 'sysconf') else 4096


@dataclass(frozen=True, kw_only=True)
class ScriptLimits:
    """What a script may use before it is stopped. `None` lifts a limit.

    The kernel enforces `cpu_time`, `memory`, `file_size` and `open_files` for each process. `memory`, `processes` and
    `work_folder` are watched for all processes of a run together, several times a second, so they may be exceeded for a
    moment. Where possible the kernel caps `processes` too. An executor lists in `watched` what is only watched.
    """

    wall_time: float = 30.0
    """Seconds from start to end."""

    cpu_time: float | None = 60.0
    """Seconds of processor time, for each process."""

    memory: int | None = 2048 * MIB
    """Bytes of memory: private memory of each process, and all memory of all processes together."""

    processes: int | None = 128
    """Processes at the same time."""

    file_size: int | None = 512 * MIB
    """Bytes in a file it writes."""

    open_files: int | None = 1024
    """Files it has open at the same time, in each process."""

    work_folder: int | None = 1024 * MIB
    """Bytes in its work folder, all files together."""

    output: int = 60 * 1024
    """Bytes of standard output and standard error that are kept, together. Of longer output the beginning and the end
    are kept, with a line between them that says how much was left out. The default leaves room for labels in the 64 KiB
    that reach the model."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name not in ('wall_time', 'output'):
                continue
            if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
                raise ValueError(f'{field.name} must be a positive number, not {value!r}.')


_TOGETHER = ('memory', 'processes', 'work_folder')
"""Limits on all processes of a run together."""


def unenforced_limits(limits: ScriptLimits, *, platform: str | None = None) -> tuple[str, ...]:
    """The names of limits that are set but cannot be enforced on this platform.

    Warns about those that the developer chose: a limit that does nothing must not look like one that does.
    """
    platform = platform or sys.platform
    names = () if can_watch(platform=platform) else _set(limits, _TOGETHER)
    if chosen := [name for name in names if getattr(limits, name) != getattr(ScriptLimits(), name)]:
        warnings.warn(
            f'{" and ".join(chosen)} cannot be limited on {platform}. Set them to None to say that this is accepted, '
            'or run scripts in a workspace that limits them.',
            stacklevel=3,
        )
    return names


def watched_limits(limits: ScriptLimits, *, capped: bool) -> tuple[str, ...]:
    """The names of limits that are set and only watched. `capped` tells whether the kernel caps `processes`."""
    if not can_watch():
        return ()
    return _set(limits, [name for name in _TOGETHER if not (capped and name == 'processes')])


def most_tasks(limits: ScriptLimits) -> int | None:
    """How many processes and threads the kernel should let a run have."""
    # One more, so that the watchdog stops the script first and says why, before the kernel refuses a process.
    return None if limits.processes is None else (limits.processes + 1) * TASKS_PER_PROCESS


def can_watch(*, platform: str | None = None) -> bool:
    """Whether the processes of a run can be watched, which needs Linux's `/proc`."""
    return (platform or sys.platform) == 'linux'


def apply_limits(limits: ScriptLimits, pid: int, *, own_namespace: bool = False) -> None:
    """Set the kernel's limits on a waiting process. Its children inherit them.

    Only in a user namespace of its own does the kernel count the processes of this run, not all of the user.
    """
    import resource  # not on every platform

    for which, soft_and_hard in _kernel_limits(limits, most_tasks(limits) if own_namespace else None).items():
        with suppress(ProcessLookupError):  # the process has ended
            resource.prlimit(pid, which, soft_and_hard)


def limits_prefix(limits: ScriptLimits) -> list[str]:
    """Words to put before a command: a shell that sets the kernel's limits and then becomes the command."""
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
    return ['/bin/sh', '-c', '; '.join([*lines, 'exec "$@"']), 'sh']


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


class ProcessInfo(NamedTuple):
    """A row of the kernel's table of processes; `resident` is its memory in bytes, with shared pages."""

    pid: int
    parent: int
    session: int
    resident: int


class Watchdog:
    """Watches what all processes of a run use together. `helpers` of these processes are not the script's."""

    def __init__(
        self, limits: ScriptLimits, *, work_dir: Path, helpers: int = 0, max_files: int = MAX_WORK_FILES
    ) -> None:
        self._limits = limits
        self._work_dir = work_dir
        self._helpers = helpers
        self._max_files = max_files
        now = time.monotonic()
        self._next_look, self._next_glance = now + WATCH_INTERVAL, now + GLANCE_INTERVAL
        self._tasks = _count_tasks()

    def __call__(self, pid: int) -> str | None:
        """Why the run that process `pid` leads has to be stopped, or `None`."""
        started = time.monotonic()
        if started < self._next_glance:
            return None
        self._next_glance = started + GLANCE_INTERVAL
        if started < self._next_look and not self._growing():
            return None
        reason = self._look(pid)
        now = time.monotonic()
        self._next_look = now + max(WATCH_INTERVAL, LOAD * (now - started))
        return reason

    def _growing(self) -> bool:
        """Whether this machine has so many new tasks that this run may have started too many."""
        tasks = _count_tasks()
        if self._limits.processes is None or tasks - self._tasks <= self._limits.processes:
            return False
        self._tasks = tasks
        return True

    def _look(self, pid: int) -> str | None:
        limits = self._limits
        most = math.inf if limits.processes is None else limits.processes + self._helpers
        # The quick count comes first: while processes multiply, every moment makes the full one take longer.
        if (most < math.inf and _has_more(pid, most)) or len(processes := run_processes(pid)) > most:
            return f'it started more than {limits.processes} processes'
        if limits.memory is not None and _used_memory(processes, limits.memory) > limits.memory:
            return f'it used more than {limits.memory / MIB:g} MiB of memory'
        if limits.work_folder is not None:
            return _excess(self._work_dir, limits.work_folder, self._max_files)
        return None


def _count_tasks() -> int:
    """The number of all tasks on this machine, read from one small file."""
    with open('/proc/loadavg', 'rb') as file:
        return int(file.read().split()[3].partition(b'/')[2])


def _has_more(session: int, most: float) -> bool:
    """Whether a session has more processes than `most`. Asks for one process after another, newest first."""
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
    except OSError:  # the process has ended, or belongs to another user
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b'Pss:')), 0)


def _excess(folder: Path, limit: int, max_files: int) -> str | None:
    """Why the folder holds too much, or `None`. Stops reading at the first excess."""
    size = count = 0
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    info = entry.stat(follow_symlinks=False)
                    count, size = count + 1, size + info.st_blocks * 512
                    if count > max_files:
                        return f'it made more than {max_files} files in its work folder'
                    if size > limit:
                        return f'it wrote more than {limit / MIB:g} MiB into its work folder'
                    if stat.S_ISDIR(info.st_mode):
                        waiting.append(entry.path)
        except OSError:  # removed meanwhile, or not readable
            continue
    return None
