"""Writes a file whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Replace the content of a file, which keeps its mode. Nobody ever sees half of it; a failure changes nothing."""
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
    try:
        with open(descriptor, 'wb') as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            mode = 0o644
        os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
