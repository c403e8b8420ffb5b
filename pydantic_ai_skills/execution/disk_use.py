"""Counts the files of a run and their bytes, including files that have no name any more."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pydantic_ai_skills.filesystem.safe_open import FileStamp

from .limits import MIB
from .work_dir import remove_private_folder
from .work_files import remove_changed

MAX_WORK_FILES = 10_000
"""Files and folders that scripts may make in a work folder."""


class WorkRoom(NamedTuple):
    """How much the work folder of a run may hold, including what was in it before."""

    size: int | None = None
    """Bytes, if they are limited."""

    files: int | None = MAX_WORK_FILES
    """Files and folders; `None` if they are too many to count."""


class Measured(NamedTuple):
    """The result of counting the files of a run: their bytes and their number."""

    size: int
    files: int = 0

    complete: bool = True
    """Whether all could be counted."""


def room_in(folder: Path, limit: int, *, is_private: bool, most: int = MAX_WORK_FILES) -> WorkRoom:
    """How much a work folder may hold during a run that has a `limit` in bytes.

    A private folder may hold the limit, counting what earlier scripts wrote; if the application has put more into it,
    it may not grow. In a folder of the developer, only what is added counts.
    """
    there = measure(folder, sys.maxsize, 2 * most)
    if there.files > 2 * most:
        return WorkRoom(limit, None)
    if is_private:
        return WorkRoom(max(limit, there.size), max(most, there.files))
    return WorkRoom(limit + there.size, most + there.files)


def has_room(folder: Path, room: WorkRoom) -> bool:
    """Whether a work folder holds no more than it may; false if part of it cannot be counted."""
    if room.size is None or room.files is None:
        return True
    found = measure(folder, room.size, room.files)
    return found.complete and found.size <= room.size and found.files <= room.files


def measure(folder: Path, most_bytes: int, most_files: int) -> Measured:
    """Count the files below a folder and their bytes, and stop once there are more than asked for."""
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
        except OSError:  # it may not be read, or is nested too deep for a path
            complete = False
    return Measured(size, count, complete)


def _entries(folder: str, most: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in islice(entries, most):
            with suppress(FileNotFoundError):
                yield entry.path, entry.stat(follow_symlinks=False)


def unlinked(folder: Path, pids: Sequence[int], *, thorough: bool) -> Measured:
    """Count the bytes of files on the folder's file system that have no name any more but are open in these processes.

    If `thorough`, also count files that are only mapped, and look for sockets that may hide descriptors of others.
    """
    found: dict[int, int] = {}
    complete = True
    try:
        device = os.stat(folder).st_dev
    except OSError:  # removed by the script
        return Measured(0)
    for path in _open_files(pids):
        with suppress(OSError):
            status = os.stat(path)
            if status.st_nlink == 0 and status.st_dev == device and stat.S_ISREG(status.st_mode):
                found[status.st_ino] = status.st_blocks * 512
            elif thorough and stat.S_ISSOCK(status.st_mode):
                complete = complete and not _holds_descriptors(path)
    for pid in pids if thorough else ():
        for inode, size in _mapped(pid, device):
            found[inode] = max(size, found.get(inode, 0))
    return Measured(sum(found.values()), complete=complete)


def _open_files(pids: Iterable[int]) -> Iterator[str]:
    for pid in pids:
        for task in _names(f'/proc/{pid}/task'):  # each thread can have files of its own
            folder = f'/proc/{pid}/task/{task}/fd'
            yield from (f'{folder}/{name}' for name in _names(folder))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # the process has ended, or may not be inspected
        return []


def _holds_descriptors(socket: str) -> bool:
    """Whether descriptors are in transit through a socket, where no process lists them."""
    with open(socket.replace('/fd/', '/fdinfo/'), 'rb') as file:
        return any(line.startswith(b'scm_fds:') and int(line.split()[1]) > 0 for line in file)


def _mapped(pid: int, device: int) -> Iterator[tuple[int, int]]:
    """The inodes of files without a name that a process has mapped, each with the byte up to which it is mapped."""
    with suppress(OSError), open(f'/proc/{pid}/maps', 'rb') as file:
        for line in file:
            if line.endswith(b' (deleted)\n'):
                addresses, _, offset, where, inode, _ = line.split(None, 5)
                first, last = (int(address, 16) for address in addresses.split(b'-'))
                major, minor = (int(number, 16) for number in where.split(b':'))
                if os.makedev(major, minor) == device:
                    yield int(inode), int(offset, 16) + last - first


def take_back(folder: Path, room: WorkRoom, before: Mapping[str, FileStamp]) -> str | None:
    """Remove what a script wrote if a private folder now holds too much, so that it never fills up. Returns why."""
    if has_room(folder, room):
        return None
    remove_changed(folder, before)
    if not has_room(folder, room):  # what takes the room is not in the list of files
        remove_private_folder(folder)
    return f'the work folder holds more than {(room.size or 0) / MIB:g} MiB; what the script wrote was removed'
