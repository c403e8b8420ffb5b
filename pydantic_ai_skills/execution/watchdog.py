"""Watches what all processes of a run use together, where the kernel cannot hold it."""

from __future__ import annotations

import math
import os
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from .cgroup import ControlGroup
from .limits import MIB, ScriptLimits

WATCH_INTERVAL = 0.1
"""Seconds between two looks at a run, and before the first one. Most scripts end before it."""

GLANCE_INTERVAL = 0.01
"""Seconds between two glances at what the whole machine uses. If that grows fast, a look at the run follows."""

LOAD = 20
"""A slow look is followed by a pause this many times as long, so that looking takes less than 5 % of one core."""

MAX_WORK_FILES = 10_000
"""Files and folders a script may make in its work folder."""

BYTES_PER_FILE = 8192
"""A run may have one file in memory for this much of its memory: the kernel needs one or two KiB for an empty one."""

_PAGE = os.sysconf('SC_PAGE_SIZE') if hasattr(os, 'sysconf') else 4096


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
        helpers: How many of the processes are not the script's.
        max_files: How many files and folders they may make in the work folder.
        group: The control group of the run.
        in_memory: Returns the folders whose files are in memory, as this process can reach them.
    """

    def __init__(
        self,
        limits: ScriptLimits,
        *,
        work_dir: Path,
        helpers: int = 0,
        max_files: int = MAX_WORK_FILES,
        group: ControlGroup | None = None,
        in_memory: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._limits = limits
        self._work_dir = work_dir
        self._helpers = helpers
        self._max_files = max_files
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

    def _growing(self) -> bool:
        """Whether this machine uses so much more that this run may have exceeded a limit."""
        limits = self._limits
        most = limits.processes, limits.memory and limits.memory / 2, limits.work_folder and limits.work_folder / 2
        growth = (now - before for now, before in zip(_usage(self._work_dir), self._usage, strict=True))
        return any(limit is not None and more > limit for more, limit in zip(growth, most, strict=True))

    def _has_many_files_in_memory(self) -> bool:
        memory, files = self._limits.memory, 0
        for folder in self._in_memory() if memory is not None else ():
            with suppress(OSError):  # the sandbox has ended
                status = os.statvfs(folder)
                files += status.f_files - status.f_ffree
        return memory is not None and files > memory // BYTES_PER_FILE

    def _look(self, pid: int) -> str | None:
        limits = self._limits
        most = math.inf if limits.processes is None else limits.processes + self._helpers
        # The quick count comes first: while processes multiply, every moment makes the full one take longer.
        if (most < math.inf and _has_more(pid, most)) or len(processes := run_processes(pid)) > most:
            return f'it started more than {limits.processes} processes'
        if limits.memory is not None and _used_memory(processes, limits.memory) > limits.memory:
            return self._used_memory_up()
        return self.at_end() or (None if limits.work_folder is None else self._excess(processes, limits.work_folder))

    def _excess(self, processes: list[ProcessInfo], limit: int) -> str | None:
        """Why the work folder holds too much, or `None`."""
        lost = _usage(self._work_dir).disk - self._before.disk
        found = measure(self._work_dir, limit, self._max_files)
        if found.files > self._max_files:
            return f'it made more than {self._max_files} files in its work folder'
        hidden = unlinked(self._work_dir, processes, thorough=lost > limit)
        size = found.size + hidden.size
        # Where not everything can be counted, the space that is gone has to tell.
        if max(size, 0 if found.complete and hidden.complete else lost) > limit:
            return f'it wrote more than {limit / MIB:g} MiB into its work folder'
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
    except PermissionError:  # it forbids to look into it, or belongs to another user
        return info.resident
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b'Pss:')), 0)


class Measured(NamedTuple):
    """What was found of the files of a run."""

    size: int
    files: int = 0

    complete: bool = True
    """Whether all could be counted."""


def measure(folder: Path, most_bytes: int, most_files: int) -> Measured:
    """Count the files below a folder and their bytes, but no more of them than asked for."""
    size = count = 0
    complete, linked = True, set[int]()
    waiting = [os.fspath(folder)]
    while waiting and size <= most_bytes and count <= most_files:
        try:
            for path, info in _entries(waiting.pop(), most_files + 1 - count):
                count += 1
                size += 0 if info.st_ino in linked else info.st_blocks * 512
                if stat.S_ISDIR(info.st_mode):
                    waiting.append(path)
                elif info.st_nlink > 1:
                    linked.add(info.st_ino)
        except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
            continue
        except OSError:  # it forbids to look into it, or is nested too deep for a path
            complete = False
    return Measured(size, count, complete)


def _entries(folder: str, most: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in islice(entries, most):
            with suppress(FileNotFoundError):
                yield entry.path, entry.stat(follow_symlinks=False)


def unlinked(folder: Path, processes: list[ProcessInfo], *, thorough: bool) -> Measured:
    """Count the bytes in files of the folder's file system that have no name any more but are still open.

    If `thorough`, also look for those that are only mapped, and for sockets that may hide some.
    """
    found: dict[int, int] = {}
    complete = True
    try:
        device = os.stat(folder).st_dev
    except OSError:  # removed by the script
        return Measured(0)
    for path in _open_files(processes):
        with suppress(OSError):
            status = os.stat(path)
            if status.st_nlink == 0 and status.st_dev == device and stat.S_ISREG(status.st_mode):
                found[status.st_ino] = status.st_blocks * 512
            elif thorough and stat.S_ISSOCK(status.st_mode):
                complete = complete and not _holds_descriptors(path)
    for info in processes if thorough else ():
        for inode, size in _mapped(info.pid, device):
            found[inode] = max(size, found.get(inode, 0))
    return Measured(sum(found.values()), complete=complete)


def _open_files(processes: list[ProcessInfo]) -> Iterator[str]:
    for info in processes:
        for task in _names(f'/proc/{info.pid}/task'):  # each thread can have files of its own
            folder = f'/proc/{info.pid}/task/{task}/fd'
            yield from (f'{folder}/{name}' for name in _names(folder))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # the process has ended, or forbids to look into it
        return []


def _holds_descriptors(socket: str) -> bool:
    """Whether descriptors are on their way through a socket, where they are in no list."""
    with open(socket.replace('/fd/', '/fdinfo/'), 'rb') as file:
        return any(line.startswith(b'scm_fds:') and int(line.split()[1]) > 0 for line in file)


def _mapped(pid: int, device: int) -> Iterator[tuple[int, int]]:
    """The inodes of files without a name that a process has mapped, and up to which byte."""
    with suppress(OSError), open(f'/proc/{pid}/maps', 'rb') as file:
        for line in file:
            if line.endswith(b' (deleted)\n'):
                addresses, _, offset, where, inode, _ = line.split(None, 5)
                first, last = (int(address, 16) for address in addresses.split(b'-'))
                major, minor = (int(number, 16) for number in where.split(b':'))
                if os.makedev(major, minor) == device:
                    yield int(inode), int(offset, 16) + last - first
