"""Opens, walks and reads untrusted files and folders: those of skills, and those that scripts wrote.

A path is walked from descriptor to descriptor without following links, and checks look at what was opened, not at what
was there a moment before. A file that is swapped for a link while it is read gives an error, not a file from outside.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

import anyio.to_thread
from pydantic_ai.messages import BinaryContent

from pydantic_ai_skills.exceptions import SkillResourceLoadError

from .content import as_content

MAX_RESOURCE_BYTES = 8 * 1024 * 1024
"""Larger files are neither offered nor read."""

FileStamp = tuple[int, int, int, int]
"""Modification time, change time, size and inode: at least one of them changes when a file changes."""

QUIET_NS = 100_000_000
"""A file that changed within this time may still be being written."""

STALL_NS = 2_000_000_000
"""An empty file may stay empty this long because a slow disk keeps its writer waiting."""

PATIENCE_S = 1.0
"""How long to wait for a file that keeps changing."""

LOOK_AGAIN_S = 0.005
"""Pause between two looks at a file that is being written."""

WALKS_DESCRIPTORS = os.open in os.supports_dir_fd
"""Whether folders can be opened and walked by descriptor. Windows cannot."""

SKIPPED_FOLDERS = frozenset(
    (
        '__pycache__',
        'bower_components',
        'dist-packages',
        'node_modules',
        'site-packages',
        'third_party',
        'vendor',
        'venv',
    )
)
"""Caches, virtual environments and third-party packages."""

_CHUNK_BYTES = 64 * 1024
_NO_LINKS = getattr(os, 'O_NOFOLLOW', 0)
_COMMON_FLAGS = sum(getattr(os, flag, 0) for flag in ('O_RDONLY', 'O_NONBLOCK', 'O_NOCTTY', 'O_CLOEXEC', 'O_BINARY'))
_FILE_FLAGS = _COMMON_FLAGS | _NO_LINKS
_ROOT_FLAGS = _COMMON_FLAGS | getattr(os, 'O_DIRECTORY', 0)
FOLDER_FLAGS = _ROOT_FLAGS | _NO_LINKS
"""Flags that open a folder and refuse a link to one."""

stamp: Callable[[os.stat_result], FileStamp] = attrgetter('st_mtime_ns', 'st_ctime_ns', 'st_size', 'st_ino')
"""Takes the `FileStamp` from the status of a file or folder."""


def is_fresh(status: os.stat_result, within: int = QUIET_NS) -> bool:
    """Whether it changed within `within` nanoseconds and may still be being written."""
    now = time.time_ns()
    return abs(now - status.st_mtime_ns) < within or abs(now - status.st_ctime_ns) < within


class Glance(NamedTuple):
    """A quick look into a folder: its status, and the status and first bytes of a file in it."""

    folder: os.stat_result
    file: os.stat_result

    head: bytes
    """The first bytes of the file; empty for a special file."""

    has_inner: bool
    """Whether anything has the name of the requested inner folder."""


class FileContent(NamedTuple):
    """The result of one attempt to read a file, with its status before that."""

    data: bytes
    status: os.stat_result

    is_whole: bool
    """Whether nobody changed the file while it was read."""

    def in_doubt(self, *, quiet: bool) -> bool:
        """Whether somebody may still be writing the file. A recent one is in doubt if it is empty or `quiet` is set."""
        window = QUIET_NS if self.data else STALL_NS
        return not self.is_whole or ((quiet or not self.data) and is_fresh(self.status, window))


class FoundEntry(NamedTuple):
    """An entry that `OpenFolder.walk` found in a folder, which stays open until the walk goes on."""

    folder: OpenFolder
    name: str

    path: str
    """Its path below the folder where the walk began, with `/` between the parts."""

    status: os.stat_result
    """Its status; for a link, that of the link itself."""


class OpenFolder:
    """An open folder, whose content can be reached whatever happens to its path meanwhile."""

    __slots__ = ('descriptor', 'path')

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path = path
        """Where it was when it was opened."""
        self.descriptor = descriptor
        """Its descriptor, where folders are walked by descriptor."""

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
        if self.descriptor is not None:
            os.close(self.descriptor)

    def folder(self, name: str) -> OpenFolder:
        """Open a folder in it."""
        path = f'{self.path}{os.sep}{name}'
        if self.descriptor is not None:
            return OpenFolder(path, os.open(name, FOLDER_FLAGS, dir_fd=self.descriptor))
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return OpenFolder(path, None)

    def file(self, name: str) -> int:
        """Open a file in it and return the descriptor. It may be a special file: look before reading."""
        if self.descriptor is not None:
            return os.open(name, _FILE_FLAGS, dir_fd=self.descriptor)
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
        """Look into the folder `name` by descriptor, for a file and an inner folder; `None` on any error."""
        inside = file = None
        try:
            inside = os.open(name, FOLDER_FLAGS, dir_fd=self.descriptor)
            file = os.open(file_name, _FILE_FLAGS, dir_fd=inside)
            status = os.fstat(file)
            head = os.read(file, count) if stat.S_ISREG(status.st_mode) else b''
            return Glance(os.fstat(inside), status, head, _status(inner_name, inside) is not None)
        except OSError:
            return None
        finally:
            for descriptor in (file, inside):
                if descriptor is not None:
                    os.close(descriptor)

    def head(self, name: str, count: int) -> tuple[os.stat_result, bytes]:
        """The status and the first bytes of a file in it; no bytes of a special file, which may block for ever."""
        return _head(self.file(name), count)

    def read(self, name: str, limit: int) -> FileContent:
        """Read a regular file in it.

        Raises:
            OSError: It cannot be opened.
            SkillResourceLoadError: It is not a regular file, or larger than `limit`. The message lacks its name.
        """
        descriptor = self.file(name)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise SkillResourceLoadError('is not a regular file.')
            # One byte more than allowed shows a file that grew meanwhile.
            data = b'' if status.st_size > limit else _read_up_to(descriptor, limit + 1)
            if max(status.st_size, len(data)) > limit:
                raise SkillResourceLoadError(f'is larger than {limit:,} bytes.')
            after = os.fstat(descriptor)
            return FileContent(data, status, (after.st_mtime_ns, after.st_size) == (status.st_mtime_ns, len(data)))
        finally:
            os.close(descriptor)

    def walk(
        self, max_depth: int, *, with_folders: bool = False, skip_errors: bool = False, prefix: str = ''
    ) -> Iterator[FoundEntry]:
        """Everything below it except folders, sorted by name. A folder deeper than `max_depth` is yielded, not entered.

        With `with_folders`, all folders are yielded too, each before what is in it. With `skip_errors`, folders that
        cannot be read are skipped.
        """
        with suppress(OSError) if skip_errors else nullcontext():
            for entry in self.entries():
                found = FoundEntry(self, entry.name, f'{prefix}{entry.name}', entry.stat(follow_symlinks=False))
                enters = max_depth > 0 and stat.S_ISDIR(found.status.st_mode)
                if with_folders or not enters:
                    yield found
                if enters:
                    with self.folder(entry.name) as inner:
                        yield from inner.walk(
                            max_depth - 1, with_folders=with_folders, skip_errors=skip_errors, prefix=f'{found.path}/'
                        )

    def link_target(self, name: str) -> str:
        """Where a link in it leads."""
        if self.descriptor is None:
            return os.readlink(f'{self.path}{os.sep}{name}')
        return os.readlink(name, dir_fd=self.descriptor)

    def status_of(self, name: str) -> os.stat_result | None:
        """The status of the entry with this name, if there is one; for a link, that of the link itself."""
        return _status(f'{self.path}{os.sep}{name}' if self.descriptor is None else name, self.descriptor)

    def has_folder(self, name: str) -> bool:
        """Whether the entry with this name is a folder, not a link to one."""
        status = self.status_of(name)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def entries(self, limit: int | None = None) -> list[os.DirEntry[str]]:
        """Its entries, sorted by name; if there are more than `limit`, whichever the system lists first."""
        with os.scandir(self.path if self.descriptor is None else self.descriptor) as entries:
            return sorted(islice(entries, limit), key=attrgetter('name'))

    def status(self) -> os.stat_result:
        """Its own status."""
        return os.lstat(self.path) if self.descriptor is None else os.fstat(self.descriptor)


class SkillFolder:
    """The folder of one skill. All of its files are reached through it."""

    __slots__ = ('path', 'root')

    def __init__(self, root: str, path: str | None = None) -> None:
        self.root = root
        """A trusted folder: the one the developer named, with links resolved."""
        self.path = path or root
        """The skill's folder, at `root` or below; no step from there may be a link."""

    def open(self, *steps: str) -> OpenFolder:
        """Open the folder, or one below it."""
        way = self.path[len(self.root) + 1 :]
        return OpenFolder.beneath(self.root, (*(way.split(os.sep) if way else ()), *steps))

    def read_bytes(self, name: str, limit: int = MAX_RESOURCE_BYTES, *, quiet: bool = False) -> bytes:
        """Read a whole file below the folder, as it was before or after somebody wrote it, not in between.

        With `quiet`, wait until nobody has changed the file for a moment: a file that is written in several steps looks
        whole between two of them, and is missing while an editor replaces it.

        Raises:
            SkillResourceLoadError: The name leads outside, or there is no regular file of at most `limit` bytes.
        """
        start = time.monotonic()
        whole = b''
        while True:
            waited = time.monotonic() - start
            content = self._read_once(name, limit)
            if content is None:
                if not quiet or waited * 1e9 >= QUIET_NS:
                    raise SkillResourceLoadError(f'{name!r} does not exist.')
            else:
                whole = content.data if content.is_whole and content.data else whole
                if waited >= PATIENCE_S or not content.in_doubt(quiet=quiet):
                    return whole or content.data
            time.sleep(LOOK_AGAIN_S)

    def _read_once(self, name: str, limit: int) -> FileContent | None:
        """The file as it is now; `None` if there is none."""
        try:
            *parents, last = split_path(name)
            with self.open(*parents) as folder:
                return folder.read(last, limit)
        except FileNotFoundError:
            return None
        except SkillResourceLoadError as error:
            raise SkillResourceLoadError(f'{name!r} {error}') from None
        except (OSError, ValueError) as error:
            raise SkillResourceLoadError(f'{name!r} cannot be opened: {reason(error)}.') from error

    def read(self, name: str) -> str | BinaryContent:
        """Read a file as it is sent to the model: as text, an image or a PDF."""
        return as_content(self.read_bytes(name), name)


def is_skipped_folder(name: str) -> bool:
    """Whether folders of this name are never looked into."""
    return name.startswith('.') or name.lower() in SKIPPED_FOLDERS


def local_path(uri: str) -> Path:
    """The local file that a path or a `file:` URI names; `SkillResourceLoadError` for any other URI."""
    if uri[:5].lower() == 'file:':
        return Path(unquote(urlsplit(uri).path))
    if '://' in uri:
        raise SkillResourceLoadError(f'{uri!r} is not a local file: only paths and file: URIs can be read.')
    return Path(uri)


async def read_path(path: Path) -> str | BinaryContent:
    """Read a file that the developer named, off the event loop."""
    return await anyio.to_thread.run_sync(partial(SkillFolder(str(path.parent)).read, path.name))


def read_head(path: str, count: int, *, follow_links: bool = False) -> tuple[os.stat_result, bytes]:
    """The status and the first bytes of the file at a path, like `OpenFolder.head`."""
    return _head(os.open(path, _COMMON_FLAGS if follow_links else _FILE_FLAGS), count)


def read_regular(path: Path, limit: int, *, follow_links: bool = False) -> bytes:
    """Read a regular file of at most `limit` bytes; `OSError` for anything else, without waiting or reading it."""
    status, data = read_head(str(path), limit + 1, follow_links=follow_links)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, 'it is not a regular file', str(path))
    if max(status.st_size, len(data)) > limit:
        raise OSError(errno.EFBIG, f'it is larger than {limit:,} bytes', str(path))
    return data


def reason(error: Exception) -> str:
    """Why the system refused, without the path, which would show where this machine keeps its files."""
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return 'it is a link'
    return (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else str(error)


def _status(path: str, folder: int | None) -> os.stat_result | None:
    try:
        return os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def _head(descriptor: int, count: int) -> tuple[os.stat_result, bytes]:
    try:
        status = os.fstat(descriptor)
        # A buffer larger than the file takes time. Some file systems report no size.
        count = min(count, status.st_size or count)
        return status, os.read(descriptor, count) if stat.S_ISREG(status.st_mode) else b''
    finally:
        os.close(descriptor)


def _read_up_to(descriptor: int, count: int) -> bytes:
    chunks: list[bytes] = []
    while count and (chunk := os.read(descriptor, min(count, _CHUNK_BYTES))):
        chunks.append(chunk)
        count -= len(chunk)
    return b''.join(chunks)


def split_path(name: str) -> tuple[str, ...]:
    """The parts of a relative path between its `/`.

    Raises:
        SkillResourceLoadError: It could lead outside. The message lacks its name.
    """
    steps = tuple(name.split('/'))
    if any(step in ('', '.', '..') for step in steps) or (os.sep != '/' and os.sep in name):
        raise SkillResourceLoadError('is not a path below this folder.')
    return steps
