"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

__all__ = ('replace_file',)


def replace_file(path: Path, data: bytes) -> None:
    """Put new content in place of a file, which keeps its mode; nobody ever sees half of it, and a failure leaves it.

    Raises:
        OSError: It cannot be written.
    """
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
