"""Reads a whole skill at once if its files are so ordinary that none can break a rule.

Most skills are ordinary, and this takes far fewer system calls than listing their files.
"""

from __future__ import annotations

import os
import re
import stat

from pydantic_ai_skills.filesystem.safe_open import MAX_RESOURCE_BYTES, Glance, OpenFolder

from .folder_skill import is_skipped_folder
from .settings import MAX_SKILL_BYTES, SKILL_FILE

MAX_FILES = 200
MAX_FOLDERS = 10
"""A skill with more files or folders is not ordinary."""

_SIMPLE_NAME = re.compile(r'[\w.+-]+', re.ASCII).fullmatch
_KIND_AND_READABLE = 0o170444
_READABLE_FILE = stat.S_IFREG | 0o444
"""The kind and the rights of a regular file that everybody can read."""


def read_ordinary_skill(parent: OpenFolder, name: str, nested_folder: str) -> Glance | None:
    """Read the whole `SKILL.md` of the skill in folder `name`; `None` if its files are not all ordinary.

    A skill with a `nested_folder`, which may hold other skills, is not ordinary.
    """
    try:
        if not _is_ordinary(f'{parent.path}{os.sep}{name}', nested_folder):
            return None
        status, data = parent.head(f'{name}{os.sep}{SKILL_FILE}', MAX_SKILL_BYTES)
    except OSError:
        return None
    # The status of the folder is not needed: a scan that reads whole files is not kept for another look.
    return Glance(status, status, data, has_inner=False) if _is_ordinary_file(status) else None


def _is_ordinary(folder: str, nested_folder: str) -> bool:
    """Whether there is a `SKILL.md`, and everything else in the folder is ordinary."""
    folders, count = [folder], 0
    for path in folders:
        names = _ordinary_files(path, folders, nested_folder)
        if names is None or (not count and SKILL_FILE not in names):
            return False
        count += len(names)
        if count > MAX_FILES or len(folders) > MAX_FOLDERS:
            return False
    return True


def _ordinary_files(folder: str, folders: list[str], nested_folder: str) -> list[str] | None:
    """The names of the files in a folder, if all are ordinary; adds the folders in it to `folders`.

    A skill's `SKILL.md` is not checked here, because it is opened anyway.
    """
    names: list[str] = []
    is_checked_later = SKILL_FILE if folder is folders[0] else None
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if _SIMPLE_NAME(name) is None or name == nested_folder:
                return None
            if entry.is_dir(follow_symlinks=False):
                folders += () if is_skipped_folder(name) else (entry.path,)
            elif name == is_checked_later or _is_ordinary_file(entry.stat(follow_symlinks=False)):
                names.append(name)
            else:
                return None
    return names


def _is_ordinary_file(status: os.stat_result) -> bool:
    return status.st_mode & _KIND_AND_READABLE == _READABLE_FILE and status.st_size <= MAX_RESOURCE_BYTES
