"""Installed files by their path with `/`, in a folder or in an archive that Python imports from."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterator
from functools import cached_property

_FLAGS = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ('O_NONBLOCK', 'O_NOCTTY', 'O_CLOEXEC', 'O_BINARY'))


class FolderTree:
    """Files below a folder."""

    def __init__(self, path: str) -> None:
        self.path = path

    def has_file(self, name: str) -> bool:
        return os.path.isfile(os.path.join(self.path, name))

    def has_folder(self, name: str) -> bool:
        return os.path.isdir(os.path.join(self.path, name))

    def names(self, folder: str) -> Iterator[str]:
        """The names of what is in a folder, sorted; none if it cannot be read."""
        try:
            yield from sorted(os.listdir(os.path.join(self.path, folder)))
        except OSError:
            return

    def read(self, name: str, limit: int) -> bytes | None:
        """Read a file, following links as installers make them; `None` if that fails or it is longer than `limit`."""
        try:
            with open(os.path.join(self.path, name), 'rb', opener=lambda path, _: os.open(path, _FLAGS)) as file:
                status = os.fstat(file.fileno())
                # Reading anything but a regular file may block forever.
                is_readable = stat.S_ISREG(status.st_mode) and status.st_size <= limit
                return file.read(limit) if is_readable else None
        except OSError:
            return None


class ZipTree:
    """Files in an archive, as it was at the first access."""

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Every file with the size the archive declares."""
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
        """The names of what is in a folder, sorted."""
        start = f'{folder}/' if folder else ''
        yield from sorted({name[len(start) :].partition('/')[0] for name in self.sizes if name.startswith(start)})

    def read(self, name: str, limit: int) -> bytes | None:
        """Read a file; `None` if it cannot be read or is longer than `limit`."""
        if self.sizes.get(name, limit + 1) > limit:
            return None
        try:
            # The declared size may be wrong.
            with zipfile.ZipFile(self.path) as archive, archive.open(name) as file:
                data = file.read(limit + 1)
        except (OSError, zipfile.BadZipFile, ValueError, KeyError, RuntimeError, EOFError, NotImplementedError):
            return None
        return data if len(data) <= limit else None


Tree = FolderTree | ZipTree
