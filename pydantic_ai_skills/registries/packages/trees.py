"""Where installed files are: folders, and archives that Python imports from."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

__all__ = ('FolderTree', 'Tree', 'ZipTree', 'read_file')

_FLAGS = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ('O_NONBLOCK', 'O_NOCTTY', 'O_CLOEXEC', 'O_BINARY'))


def read_file(path: str, limit: int) -> bytes | None:
    """The content of a regular file; `None` if there is none that can be read or it is longer than `limit`."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        # Only a regular file may be read: reading another one may wait for ever.
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        with open(descriptor, 'rb', closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


class Tree(Protocol):
    """Files below one place, by their paths with `/`."""

    @property
    def path(self) -> str:
        """Where it is."""
        ...

    def has_file(self, name: str) -> bool:
        """Whether there is such a file."""
        ...

    def has_folder(self, name: str) -> bool:
        """Whether there is such a folder."""
        ...

    def names(self, folder: str) -> Iterator[str]:
        """The names of what is in a folder."""
        ...

    def read(self, name: str, limit: int) -> bytes | None:
        """The content of a file; `None` if there is none that can be read or it is longer than `limit`."""
        ...


class FolderTree:
    """Files below a folder."""

    def __init__(self, path: str) -> None:
        self.path = path

    def has_file(self, name: str) -> bool:
        return os.path.isfile(os.path.join(self.path, name))

    def has_folder(self, name: str) -> bool:
        return os.path.isdir(os.path.join(self.path, name))

    def names(self, folder: str) -> Iterator[str]:
        try:
            yield from sorted(os.listdir(os.path.join(self.path, folder)))
        except OSError:
            return

    def read(self, name: str, limit: int) -> bytes | None:
        return read_file(os.path.join(self.path, name), limit)


class ZipTree:
    """Files in an archive, as of when it was first looked at."""

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Every file with the number of bytes it says it has."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                return {entry.filename: entry.file_size for entry in archive.infolist() if not entry.is_dir()}
        except (OSError, zipfile.BadZipFile, ValueError):
            return {}

    def has_file(self, name: str) -> bool:
        return name in self.sizes

    def has_folder(self, name: str) -> bool:
        return any(other.startswith(f'{name}/') for other in self.sizes)

    def names(self, folder: str) -> Iterator[str]:
        start = f'{folder}/' if folder else ''
        yield from sorted({name[len(start) :].partition('/')[0] for name in self.sizes if name.startswith(start)})

    def read(self, name: str, limit: int) -> bytes | None:
        if self.sizes.get(name, limit + 1) > limit:
            return None
        try:
            # What an archive says about a size need not be true.
            with zipfile.ZipFile(self.path) as archive, archive.open(name) as file:
                data = file.read(limit + 1)
        except (OSError, zipfile.BadZipFile, ValueError, KeyError, RuntimeError, EOFError, NotImplementedError):
            return None
        return data if len(data) <= limit else None
