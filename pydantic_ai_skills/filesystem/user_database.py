"""Opens the SQLite files in which this package keeps what it has found out, for the current user only."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from .ownership import make_folder, strangers_in

WAIT_S = 2.0
"""How long to wait for another process that is writing."""


def read_user_database(file: Path | None) -> sqlite3.Connection | None:
    """Open a file to read it; `None` if it is missing or empty.

    Raises:
        PermissionError: Other users can write to it, so its content is not trusted.
    """
    if file is None or not os.path.exists(file) or not os.path.getsize(file):
        return None
    _check_owner(file)
    return sqlite3.connect(file, timeout=WAIT_S)


def write_user_database(file: Path | None, option: str) -> sqlite3.Connection:
    """Open a file to write to it, and create it if there is none. Messages name `option` as the way to set its path.

    Raises:
        FileNotFoundError: The user has no home folder to put it in.
        PermissionError: Other users can write to it.
    """
    if file is None:
        raise FileNotFoundError(f'this user has no home directory: say where the index is, as {option}=')
    # Created before SQLite opens it, so that only the user can read which skills there are.
    _check_owner(file)
    make_folder(file.parent)
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    return sqlite3.connect(file, timeout=WAIT_S, isolation_level=None)


def _check_owner(file: Path) -> None:
    """Refuse a file that other users can write to: it holds the names and descriptions of skills."""
    strangers = strangers_in(file)
    if strangers is not None:
        raise PermissionError(strangers)
