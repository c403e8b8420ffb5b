"""Skills in which nothing is unusual, checked in one pass.

Finding a skill, listing its files and reading it whole is what a check is made of, one after the other. For a skill
with nothing but regular files of plain names all three can be had from few system calls, because no rule about files
can be broken. Everything else is left to those who know what to do with it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable

from pydantic_ai_skills.filesystem.safe_open import MAX_RESOURCE_BYTES
from pydantic_ai_skills.parsing import check_text, parse_head
from pydantic_ai_skills.problems import SkillProblem

from .folder_skill import MAX_SKILL_BYTES, is_skipped_folder
from .scan import NESTED_FOLDER, PLUGIN_FOLDERS
from .scanned import SKILL_FILE

__all__ = ('PlainSkills', 'UnusualFolder', 'read_file')

MAX_FILES = 200
"""How many files a plain skill may have."""

MAX_FOLDERS = 10
"""How many folders it may have, which is also how deep they can be."""

MAX_SKILLS = 50_000
"""With more than that, a directory is not plain."""

BATCH = 64
"""How many folders are looked at before the first of them is parsed."""

NO_SKILL = b''

_PLAIN_NAME = re.compile(r'[\w.+-]+', re.ASCII).fullmatch
_KIND_AND_READING = 0o170444
_PLAIN_FILE = stat.S_IFREG | 0o444
"""The kind and the rights of a regular file that everybody can read."""

_READ_FLAGS = sum(getattr(os, flag, 0) for flag in ('O_RDONLY', 'O_NONBLOCK', 'O_NOFOLLOW', 'O_CLOEXEC', 'O_BINARY'))


class UnusualFolder(Exception):
    """A directory has something in it that decides what its other folders mean."""


class PlainSkills:
    """What was found below a directory."""

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        """Begin with nothing.

        Args:
            progress: Called with the number of folders that were looked at and the number of all that are known.
        """
        self.folders: dict[str, str] = {}
        """The folder of each skill, by the skill's name."""
        self.problems: list[SkillProblem] = []
        """What is wrong with them."""
        self.rest: list[tuple[str, int]] = []
        """Folders that are not plain, with the depth to which skills are looked for in them."""
        self._progress = progress
        self._seen = self._known = 0

    def walk(self, directory: str, depth: int) -> None:
        """Look at a directory, and at the folders in it down to a depth.

        Raises:
            UnusualFolder: It is a skill itself, or has links or folders that are looked into by convention; or two of
                its skills have one name.
            OSError: It cannot be read.
        """
        inner: list[tuple[str, str]] = []
        with os.scandir(directory) as entries:
            for entry in entries:
                name = entry.name
                if entry.is_symlink() or name in PLUGIN_FOLDERS or name.lower() in ('skill.md', 'pyvenv.cfg'):
                    raise UnusualFolder
                if depth and entry.is_dir(follow_symlinks=False) and not is_skipped_folder(name):
                    inner.append((name, entry.path))
        self._known += len(inner)
        if self._known > MAX_SKILLS:
            raise UnusualFolder
        for start in range(0, len(inner), BATCH):
            batch = inner[start : start + BATCH]
            # First all system calls, then all parsing: turns of one and the other would cost a third more.
            looks = [_look(path) for _, path in batch]
            for (name, path), look in zip(batch, looks, strict=True):
                if self._progress is not None:
                    self._progress(self._seen, self._known)
                self._seen += 1
                if look is NO_SKILL:
                    self.walk(path, depth - 1)
                elif look is None or not self._take(name, path, look):
                    self.rest.append((path, depth - 1))

    def _take(self, name: str, folder: str, data: bytes) -> bool:
        """Take in a skill, if it is one that loads."""
        path = f'{folder}{os.sep}{SKILL_FILE}'
        head = parse_head(data, path=path, folder_name=name, complete=True)
        if head.header is None or check_text(data, path):
            return False
        if self.folders.setdefault(head.header.name, folder) != folder:
            raise UnusualFolder
        self.problems += head.problems
        return True


def _look(folder: str) -> bytes | None:
    """The `SKILL.md` of a plain skill; `NO_SKILL` if there is none; `None` if the folder is not plain."""
    try:
        size = _plain_size(folder)
        return read_file(f'{folder}{os.sep}{SKILL_FILE}', size) if size else NO_SKILL if size == 0 else None
    except OSError:
        return None


def _plain_size(folder: str) -> int | None:
    """How long the `SKILL.md` of a plain skill is; 0 if there is none; `None` if the folder is not plain."""
    found = 0
    pending, count = [folder], 0
    for path in pending:
        with os.scandir(path) as entries:
            for entry in entries:
                name = entry.name
                if _PLAIN_NAME(name) is None:
                    return None
                if entry.is_dir(follow_symlinks=False):
                    if name == NESTED_FOLDER and path is folder:
                        return None
                    if not is_skipped_folder(name):
                        pending.append(entry.path)
                    continue
                status = entry.stat(follow_symlinks=False)
                if status.st_mode & _KIND_AND_READING != _PLAIN_FILE or status.st_size > MAX_RESOURCE_BYTES:
                    return None
                if path is folder and name.lower() == 'skill.md':
                    found = status.st_size
                    if name != SKILL_FILE or not 0 < found <= MAX_SKILL_BYTES:
                        return None
                count += 1
        if not found:
            return 0
        if count > MAX_FILES or len(pending) > MAX_FOLDERS:
            return None
    return found


def read_file(path: str, size: int) -> bytes:
    """Read as much of a file; a link is not followed, and nothing is waited for.

    Raises:
        OSError: It cannot be read.
    """
    descriptor = os.open(path, _READ_FLAGS)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)
