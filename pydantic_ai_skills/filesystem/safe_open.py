"""The only code that opens a path inside a skill: containment, limits and kinds.

A path is walked from a directory descriptor without following links, and what was opened is looked at, never what was
there a moment before. So a file that is swapped for a link while it is read gives an error, not a file from outside.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

import anyio.to_thread
from pydantic_ai.messages import BinaryContent

from pydantic_ai_skills.exceptions import SkillResourceLoadError

__all__ = (
    'LOOK_AGAIN_S',
    'MAX_RESOURCE_BYTES',
    'PATIENCE_S',
    'QUIET_NS',
    'SNIFFED_BYTES',
    'STALL_NS',
    'FileStamp',
    'Glance',
    'OpenFolder',
    'SkillFolder',
    'is_fresh',
    'local_path',
    'media_type',
    'read_path',
    'reason',
    'stamp',
)

MAX_RESOURCE_BYTES = 8 * 1024 * 1024
"""A larger file is not offered and not read."""

SNIFFED_BYTES = 1024
"""How much of a file is looked at to tell text from binary."""

MODEL_MEDIA_TYPES = {
    '.gif': 'image/gif',
    '.jpeg': 'image/jpeg',
    '.jpg': 'image/jpeg',
    '.pdf': 'application/pdf',
    '.png': 'image/png',
    '.webp': 'image/webp',
}
"""Binary files that models accept. A type the provider refuses would end the run at the next request."""

FileStamp = tuple[int, int, int, int]
"""What changes when a file changes: modification and change time, size, inode."""

QUIET_NS = 100_000_000
"""A file that changed less than this ago may still be written."""

STALL_NS = 2_000_000_000
"""A file that is empty may have been so for this long because the disk kept its writer waiting."""

PATIENCE_S = 1.0
"""How long to wait for somebody who keeps writing a file."""

LOOK_AGAIN_S = 0.005
"""How long to wait between two looks at a file that is being written."""

WALKS_DESCRIPTORS = os.open in os.supports_dir_fd
"""Whether folders can be opened and walked by descriptor. Windows cannot."""

_CHUNK_BYTES = 64 * 1024
_NO_LINKS = getattr(os, 'O_NOFOLLOW', 0)
_COMMON_FLAGS = sum(getattr(os, flag, 0) for flag in ('O_RDONLY', 'O_NONBLOCK', 'O_NOCTTY', 'O_CLOEXEC', 'O_BINARY'))
_FILE_FLAGS = _COMMON_FLAGS | _NO_LINKS
_ROOT_FLAGS = _COMMON_FLAGS | getattr(os, 'O_DIRECTORY', 0)
_FOLDER_FLAGS = _ROOT_FLAGS | _NO_LINKS


stamp: Callable[[os.stat_result], FileStamp] = attrgetter('st_mtime_ns', 'st_ctime_ns', 'st_size', 'st_ino')
"""What to compare to see whether a file or folder is still the same."""


def is_fresh(status: os.stat_result, within: int = QUIET_NS) -> bool:
    """Whether something changed so short a time ago, in nanoseconds, that somebody may be in the middle of it."""
    now = time.time_ns()
    return abs(now - status.st_mtime_ns) < within or abs(now - status.st_ctime_ns) < within


class Glance(NamedTuple):
    """What one look into a folder shows."""

    folder: os.stat_result
    """The folder's status."""

    file: os.stat_result
    """The status of the file that was looked for."""

    head: bytes
    """Its first bytes; none of a special file."""

    has_inner: bool
    """Whether there is anything that has the name of the folder that was looked for."""


class OpenFolder:
    """A folder that is open, so that what is in it can be reached whatever happens to its path meanwhile."""

    __slots__ = ('_descriptor', 'path')

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path = path
        """Where it was when it was opened."""
        self._descriptor = descriptor

    @classmethod
    def beneath(cls, root: str, steps: Sequence[str] = ()) -> OpenFolder:
        """Open the folder `steps` lead to from `root`. `root` is trusted; no step may be a link."""
        folder = cls(root, os.open(root, _ROOT_FLAGS) if WALKS_DESCRIPTORS else None)
        for step in steps:
            with folder:
                folder = folder.folder(step)
        return folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def folder(self, name: str) -> OpenFolder:
        """Open a folder in it."""
        path = f'{self.path}{os.sep}{name}'
        if self._descriptor is not None:
            return OpenFolder(path, os.open(name, _FOLDER_FLAGS, dir_fd=self._descriptor))
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return OpenFolder(path, None)

    def folder_at(self, path: str) -> OpenFolder:
        """Open a folder in it by its whole path."""
        return self.folder(path[len(self.path) + 1 :])

    def file(self, name: str) -> int:
        """Open a file in it and return the descriptor. It may be a special file: look before reading."""
        if self._descriptor is not None:
            return os.open(name, _FILE_FLAGS, dir_fd=self._descriptor)
        path = f'{self.path}{os.sep}{name}'
        seen = os.lstat(path)
        if stat.S_ISLNK(seen.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        descriptor = os.open(path, _FILE_FLAGS)
        if not os.path.samestat(seen, os.fstat(descriptor)):
            os.close(descriptor)
            raise OSError(errno.EAGAIN, 'it was replaced just now')
        return descriptor

    def glance(self, name: str, file_name: str, inner_name: str, count: int) -> Glance | None:
        """Look into a folder in it, for a file in that folder and for a folder beside that; `None` if anything is odd.

        It has to be open by its descriptor.
        """
        inside = file = None
        try:
            inside = os.open(name, _FOLDER_FLAGS, dir_fd=self._descriptor)
            file = os.open(file_name, _FILE_FLAGS, dir_fd=inside)
            status = os.fstat(file)
            head = os.read(file, count) if stat.S_ISREG(status.st_mode) else b''
            return Glance(os.fstat(inside), status, head, _is_there(inner_name, inside))
        except OSError:
            return None
        finally:
            for descriptor in (file, inside):
                if descriptor is not None:
                    os.close(descriptor)

    def head(self, name: str, count: int) -> tuple[os.stat_result, bytes]:
        """The status of a file in it and its first bytes; none of a special file: reading one may wait for ever."""
        descriptor = self.file(name)
        try:
            status = os.fstat(descriptor)
            return status, os.read(descriptor, count) if stat.S_ISREG(status.st_mode) else b''
        finally:
            os.close(descriptor)

    def status_of(self, name: str) -> os.stat_result | None:
        """The status of what has this name in it, if anything has; of a link its own."""
        try:
            if self._descriptor is None:
                return os.lstat(f'{self.path}{os.sep}{name}')
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return None

    def has_folder(self, name: str) -> bool:
        """Whether there is a folder in it that has this name and is not a link."""
        status = self.status_of(name)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def entries(self, limit: int) -> list[os.DirEntry[str]]:
        """What is in it, sorted by name; where that is more than `limit`, whichever come first."""
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as entries:
            return sorted(islice(entries, limit), key=attrgetter('name'))

    @property
    def is_by_descriptor(self) -> bool:
        """Whether it is open by a descriptor, and not just known by its path."""
        return self._descriptor is not None

    def status(self) -> os.stat_result:
        """Its own status."""
        return os.lstat(self.path) if self._descriptor is None else os.fstat(self._descriptor)


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


class _Read(NamedTuple):
    """What one attempt to read a file gave."""

    data: bytes
    status: os.stat_result
    is_whole: bool
    """Whether the file was the same before and after, so that nobody changed it meanwhile."""


class SkillFolder:
    """The folder of one skill; its files are reached through here only."""

    __slots__ = ('path', 'root')

    def __init__(self, root: str, path: str | None = None) -> None:
        """Name a folder.

        Args:
            root: A folder that may be trusted to be what it was: the one the developer gave, links resolved.
            path: The skill's folder, at `root` or below; no step of the way from there may be a link.
        """
        self.root = root
        self.path = path or root

    def open(self, *steps: str) -> OpenFolder:
        """Open the folder, or one below it."""
        way = self.path[len(self.root) + 1 :]
        return OpenFolder.beneath(self.root, (*(way.split(os.sep) if way else ()), *steps))

    def read_bytes(self, name: str, limit: int = MAX_RESOURCE_BYTES, *, quiet: bool = False) -> bytes:
        """Read a whole file below the folder, as it was before or after somebody wrote it, not in between.

        Args:
            name: Its path below the folder, with `/`.
            limit: How many bytes it may have.
            quiet: Whether to wait until nobody has changed the file for a moment. A file that is written in several
                steps looks whole between two of them, and is missing while an editor puts a new one in its place.

        Raises:
            SkillResourceLoadError: The name leads outside, there is no such file, it is not a regular file, or it is
                larger than `limit`.
        """
        start = time.monotonic()
        steps = _split(name)
        whole = b''
        while True:
            waited = time.monotonic() - start
            try:
                data, status, is_whole = self._read_once(steps, limit)
            except FileNotFoundError:
                if not quiet or waited * 1e9 >= QUIET_NS:
                    raise SkillResourceLoadError(f'{name!r} does not exist.') from None
            except SkillResourceLoadError as error:
                raise SkillResourceLoadError(f'{name!r} {error}') from None
            except (OSError, ValueError) as error:
                raise SkillResourceLoadError(f'{name!r} cannot be opened: {reason(error)}.') from error
            else:
                whole = data if is_whole and data else whole
                in_doubt = not is_whole or ((quiet or not data) and is_fresh(status, QUIET_NS if data else STALL_NS))
                if not in_doubt or waited >= PATIENCE_S:
                    return whole or data
            time.sleep(LOOK_AGAIN_S)

    def _read_once(self, steps: tuple[str, ...], limit: int) -> _Read:
        with self.open(*steps[:-1]) as folder:
            descriptor = folder.file(steps[-1])
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise SkillResourceLoadError('is not a regular file.')
            # Asking for a byte more than is allowed shows a file that grew meanwhile.
            data = b'' if status.st_size > limit else _read_up_to(descriptor, limit + 1)
            if max(status.st_size, len(data)) > limit:
                raise SkillResourceLoadError(f'is larger than {limit:,} bytes.')
            after = os.fstat(descriptor)
            is_whole = (after.st_mtime_ns, after.st_size) == (status.st_mtime_ns, len(data))
        finally:
            os.close(descriptor)
        return _Read(data, status, is_whole)

    def read(self, name: str) -> str | BinaryContent:
        """Read a file as the model is sent it: text as it was written, or an image or PDF.

        Raises:
            SkillResourceLoadError: It cannot be opened, is too large, or is of a kind models do not take.
        """
        return as_content(self.read_bytes(name), name)


def as_content(data: bytes, name: str) -> str | BinaryContent:
    """What a file of this name holds as the model is sent it.

    Raises:
        SkillResourceLoadError: It is of a kind models do not take.
    """
    kind = media_type(name)
    if kind is not None:
        return BinaryContent(data=data, media_type=kind)
    if b'\0' in data[:SNIFFED_BYTES]:
        kinds = ', '.join(sorted(MODEL_MEDIA_TYPES))
        raise SkillResourceLoadError(f'{name!r} is binary. Models take text and the types {kinds}.')
    return data.decode('utf-8', errors='replace')


def media_type(name: str) -> str | None:
    """The media type of a binary file that models accept, by its suffix."""
    return MODEL_MEDIA_TYPES.get(PurePosixPath(name).suffix.lower())


def local_path(uri: str) -> Path:
    """The local file that a path or a `file:` URI names.

    Raises:
        SkillResourceLoadError: The URI is of another kind.
    """
    parts = urlsplit(uri)
    if parts.scheme == 'file':
        return Path(unquote(parts.path))
    if '://' in uri:
        raise SkillResourceLoadError(f'{uri!r} is not a local file: only paths and file: URIs can be read.')
    return Path(uri)


async def read_path(path: Path) -> str | BinaryContent:
    """Read a single file that a developer named, off the event loop."""
    return await anyio.to_thread.run_sync(partial(SkillFolder(str(path.parent)).read, path.name))


def reason(error: Exception) -> str:
    """Why the system refused, without the path, which may say where this machine keeps its files."""
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return 'it is a link'
    return (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else str(error)


def _read_up_to(descriptor: int, count: int) -> bytes:
    chunks: list[bytes] = []
    while count and (chunk := os.read(descriptor, min(count, _CHUNK_BYTES))):
        chunks.append(chunk)
        count -= len(chunk)
    return b''.join(chunks)


def _split(name: str) -> tuple[str, ...]:
    """A relative path as the steps to walk; anything that could lead elsewhere is refused."""
    steps = tuple(name.split('/'))
    if any(step in ('', '.', '..') for step in steps) or (os.sep != '/' and os.sep in name):
        raise SkillResourceLoadError(f"{name!r} is not a path below the skill's folder.")
    return steps
