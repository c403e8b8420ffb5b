"""Writes a file whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace the content of a file. Nobody ever sees half of it; a failure changes nothing.

    Without a `mode` it keeps the one it has; a new file gets 0644.
    """
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
    try:
        with open(descriptor, 'wb') as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, _mode_of(path) if mode is None else mode)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _mode_of(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0o644
