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
    """What a folder has and no other ever had: its inode number and the time it was made.

    A number alone is given to the next folder as soon as the first is removed. Where the system does not keep the time,
    the identity is the number and its device.

    Raises:
        OSError: There is no such folder.
    """
    status = os.stat(path)
    born = getattr(status, 'st_birthtime', None) or _born_on_linux(path)
    return f'{status.st_ino}@{born}' if born else f'{status.st_dev}:{status.st_ino}'


def _born_on_linux(path: Path) -> str | None:
    """When a file was made; `None` if that is not known. Before Python 3.15, `os.stat` does not tell it on Linux."""
    statx = getattr(ctypes.CDLL(None), 'statx', None) if sys.platform == 'linux' else None
    found = ctypes.create_string_buffer(_STATX_BYTES)
    if statx is None or statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, found) != 0:
        return None
    seconds, nanoseconds = struct.unpack_from('=qI', found, _BTIME_OFFSET)
    return f'{seconds}.{nanoseconds:09}' if struct.unpack_from('=I', found)[0] & _STATX_BTIME else None
