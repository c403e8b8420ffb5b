"""Lets DBOS use a SQLite that is older than it expects."""

from __future__ import annotations

import sqlite3
import sys
import time
from typing import Any


def teach_fractions_of_seconds() -> None:
    """From Python 3.12 on, DBOS calls `unixepoch('subsec')`, which SQLite has from 3.42 on."""
    if sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42):
        from sqlalchemy import Engine, event

        def add(connection: Any, record: object) -> None:
            connection.create_function('unixepoch', 1, lambda _: time.time())

        event.listen(Engine, 'connect', add)
