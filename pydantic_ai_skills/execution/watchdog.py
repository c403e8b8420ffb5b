"""Watching what all processes of a run use together, which the kernel has no limit for without a control group."""

from __future__ import annotations

import os
import stat
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .limits import ScriptLimits

__all__ = ('ProcessInfo', 'Watchdog', 'run_processes')

INTERVAL = 0.1
"""Seconds between two looks, and before the first one. Most scripts end before it."""

GLANCE_INTERVAL = 0.01
"""Seconds between two glances at the number of all tasks on this machine. One that grows fast is a reason to look."""

LOAD = 20
"""A look that took long is followed by a pause this many times as long, so that looking stays below 5 % of one core."""

MAX_WORK_FILES = 10_000
"""Files and folders a script may make in its work folder."""

_PAGE = os.sysconf('SC_PAGE_SIZE') if hasattr(os, 'sysconf') else 4096


@dataclass(frozen=True, kw_only=True)
class ProcessInfo:
    """One line of the kernel's table of processes."""

    pid: int
    """Its id."""

    parent: int
    """The id of the process it belongs to."""

    session: int
    """The session it is in."""

    resident: int
    """Bytes of memory it uses, shared ones included."""


class Watchdog:
    """Says when the processes of a run use more than they may.

    Args:
        limits: What they may use.
        work_dir: The folder whose size counts.
        helpers: How many of the processes are not the script's.
    """

    def __init__(self, limits: ScriptLimits, *, work_dir: Path, helpers: int = 0) -> None:
        self._limits = limits
        self._work_dir = work_dir
        self._helpers = helpers
        now = time.monotonic()
        self._next_look, self._next_glance = now + INTERVAL, now + GLANCE_INTERVAL
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
        self._next_look = now + max(INTERVAL, LOAD * (now - started))
        return reason

    def _growing(self) -> bool:
        """Whether there are so many tasks more than before that this run may have started too many."""
        tasks = _count_tasks()
        if self._limits.processes is None or tasks - self._tasks <= self._limits.processes:
            return False
        self._tasks = tasks
        return True

    def _look(self, pid: int) -> str | None:
        limits = self._limits
        most = None if limits.processes is None else limits.processes + self._helpers
        # The quick count first: while processes multiply, each moment makes the long one longer.
        if most is not None and _has_more(pid, most):
            return f'it started more than {limits.processes} processes'
        processes = run_processes(pid)
        if most is not None and len(processes) > most:
            return f'it started more than {limits.processes} processes'
        if limits.memory is not None and _used_memory(processes, limits.memory) > limits.memory:
            return f'it used more than {_mib(limits.memory)} MiB of memory'
        if limits.work_folder is not None:
            return _excess(self._work_dir, limits.work_folder)
        return None


def _count_tasks() -> int:
    """All tasks on this machine, from the one small file that tells."""
    with open('/proc/loadavg', 'rb') as file:
        return int(file.read().split()[3].partition(b'/')[2])


def _has_more(session: int, most: int) -> bool:
    """Whether a session has more than so many processes, newest first, by a system call for each and no files."""
    count = 0
    for pid in sorted((int(name) for name in os.listdir('/proc') if name.isdigit()), reverse=True):
        with suppress(ProcessLookupError):
            count += os.getsid(pid) == session
        if count > most:
            return True
    return False


def run_processes(leader: int) -> list[ProcessInfo]:
    """The process, its descendants, and whoever is in its session: also those that lost their parent."""
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


def _all_processes() -> list[ProcessInfo]:
    found: list[ProcessInfo] = []
    for name in os.listdir('/proc'):
        if not name.isdigit():
            continue
        try:
            with open(f'/proc/{name}/stat', 'rb') as file:
                # The program's name is in parentheses and may contain anything, parentheses too.
                words = file.read().rpartition(b')')[2].split()
        except OSError:  # it has ended meanwhile
            continue
        found.append(
            ProcessInfo(pid=int(name), parent=int(words[1]), session=int(words[3]), resident=int(words[21]) * _PAGE)
        )
    return found


def _used_memory(processes: list[ProcessInfo], limit: int) -> int:
    total = sum(info.resident for info in processes)
    if total <= limit:
        return total
    # Pages that processes share were counted for each of them. The exact figure is dear, so only now.
    return sum(_proportional(info) for info in processes)


def _proportional(info: ProcessInfo) -> int:
    try:
        with open(f'/proc/{info.pid}/smaps_rollup', 'rb') as file:
            lines = file.read().splitlines()
    except OSError:  # it has ended meanwhile, or belongs to another user
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b'Pss:')), 0)


def _excess(folder: Path, limit: int) -> str | None:
    """Why the folder holds too much, or `None`. A folder that is full of names is not read to its end."""
    size = count = 0
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    info = entry.stat(follow_symlinks=False)
                    count, size = count + 1, size + info.st_blocks * 512
                    if count > MAX_WORK_FILES:
                        return f'it made more than {MAX_WORK_FILES} files in its work folder'
                    if size > limit:
                        return f'it wrote more than {_mib(limit)} MiB into its work folder'
                    if stat.S_ISDIR(info.st_mode):
                        waiting.append(entry.path)
        except OSError:  # removed while it was read, or closed to us
            continue
    return None


def _mib(size: int) -> str:
    return f'{size / 1024 / 1024:g}'
