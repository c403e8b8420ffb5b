"""Reads a whole skill at once if its files are so ordinary that none can break a rule.

Most skills are ordinary, and this takes far fewer system calls than listing their files.
"""

from __future__ import annotations

import os
import re
import stat

from pydantic_ai_skills.filesystem.safe_open import MAX_RESOURCE_BYTES, Glance, OpenFolder

from .folder_skill import is_skipped_folder
from .settings import SKILL_FILE

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
    path = f'{parent.path}{os.sep}{name}'
    try:
        size = _ordinary_size(path, nested_folder)
        if size == 0:
            return None
        status, data = parent.head(f'{name}{os.sep}{SKILL_FILE}', size)
        # The status of the folder is not needed: a scan that reads whole files is not kept for another look.
        return Glance(status, status, data, has_inner=False)
    except OSError:
        return None


def _ordinary_size(folder: str, nested_folder: str) -> int:
    """The size of the skill's `SKILL.md`; 0 if there is none, or anything in the folder is not ordinary."""
    folders, files, size = [folder], 0, 0
    for path in folders:
        sizes = _ordinary_files(path, folders, nested_folder)
        if sizes is None:
            return 0
        files += len(sizes)
        size = size or sizes.get(SKILL_FILE, 0)
        if not size or files > MAX_FILES or len(folders) > MAX_FOLDERS:
            return 0
    return size


def _ordinary_files(folder: str, folders: list[str], nested_folder: str) -> dict[str, int] | None:
    """The sizes of the files in a folder, if all are ordinary; adds the folders in it to `folders`."""
    sizes: dict[str, int] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if _SIMPLE_NAME(name) is None or name == nested_folder:
                return None
            if entry.is_dir(follow_symlinks=False):
                folders += () if is_skipped_folder(name) else (entry.path,)
                continue
            status = entry.stat(follow_symlinks=False)
            if status.st_mode & _KIND_AND_READABLE != _READABLE_FILE or status.st_size > MAX_RESOURCE_BYTES:
                return None
            sizes[name] = status.st_size
    return sizes
