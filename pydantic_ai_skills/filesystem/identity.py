"""Tells a folder apart from another that was put in its place."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

_AT_FDCWD = -100
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_BTIME_OFFSET = 80


def folder_identity(path: Path) -> str:
    """The unique identity of a folder: its inode number and the time it was created.

    The number alone is not unique: a new folder may get that of a removed one. Where the system does not record the
    time, the identity is the number and the device.

    Raises:
        OSError: There is no such folder.
    """
    status = os.stat(path)
    born = getattr(status, 'st_birthtime', None) or _born_on_linux(path)
    return f'{status.st_ino}@{born}' if born else f'{status.st_dev}:{status.st_ino}'


def _born_on_linux(path: Path) -> str | None:
    """When a file was created; `None` if unknown. Before Python 3.15, `os.stat` does not report it on Linux."""
    statx = getattr(ctypes.CDLL(None), 'statx', None) if sys.platform == 'linux' else None
    found = ctypes.create_string_buffer(_STATX_BYTES)
    if statx is None or statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, found) != 0:
        return None
    seconds, nanoseconds = struct.unpack_from('=qI', found, _BTIME_OFFSET)
    return f'{seconds}.{nanoseconds:09}' if struct.unpack_from('=I', found)[0] & _STATX_BTIME else None
