"""Checks whether another user can change a file or folder that this package relies on: a cache, an index, a lock."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = 0
"""The user who can change everything anyway."""

_CHECKS_OWNERS = os.name == 'posix'
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def strangers_in(path: Path, *, above: bool = True) -> str | None:
    """Why users other than this one and root can change what is at a path, in words; `None` if they cannot.

    A path that does not exist is fine. With `above`, the folders above count too: whoever can write to one of them
    can put something else in its place. A folder above may have the sticky bit, as `/tmp` has. On Windows nothing is
    checked.
    """
    if not _CHECKS_OWNERS:
        return None
    for step in _steps(path, above=above):
        try:
            status = os.lstat(step)
        except OSError:
            continue  # missing, or it will be an error where it is opened
        if status.st_uid not in (os.geteuid(), ROOT):
            return f'{step!r} belongs to another user'
        is_sticky = bool(status.st_mode & stat.S_ISVTX) and stat.S_ISDIR(status.st_mode)
        if not (is_sticky and step != str(path)) and _others_may_write(status):
            return f'{step!r} can be written by other users'
    return None


def is_ours(status: os.stat_result) -> bool:
    """Whether only this user and root can change a file, by its status."""
    if not _CHECKS_OWNERS:
        return True
    # Usually nobody else may write at all, so no closer look is needed.
    writable = status.st_mode & _OTHERS_WRITE and _others_may_write(status)
    return not writable and status.st_uid in (os.geteuid(), ROOT)


def make_folder(path: Path, mode: int = 0o700) -> None:
    """Make a folder and those above it that are missing, none of them writable for others."""
    if not path.is_dir():
        make_folder(path.parent, mode)
        path.mkdir(mode & ~0o022, exist_ok=True)


def _steps(path: Path, *, above: bool) -> Iterator[str]:
    """The path and all folders above it, or only its parent, as written and with links resolved."""
    for each in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        yield each
        yield from _folders_above(each) if above else [os.path.dirname(each)]


def _folders_above(path: str) -> Iterator[str]:
    while (parent := os.path.dirname(path)) != path:
        yield parent
        path = parent


def _others_may_write(status: os.stat_result) -> bool:
    if stat.S_ISLNK(status.st_mode):
        return False
    in_group = status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid, os.geteuid())
    return bool(in_group or status.st_mode & stat.S_IWOTH)


@cache
def _is_private_group(group: int, user: int) -> bool:
    """Whether an ordinary user is the only member of a group, as where each user has a group of the same name."""
    pwd, grp = _databases()
    try:
        account, entry = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    own = user != ROOT and account.pw_gid == group and entry.gr_name == account.pw_name
    return own and set(entry.gr_mem) <= {account.pw_name}


def _databases() -> tuple[Any, Any]:
    return import_module('pwd'), import_module('grp')
