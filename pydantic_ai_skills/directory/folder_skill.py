"""One folder as a skill: its instructions and its files, read when they are needed."""

from __future__ import annotations

import os
import re
import stat
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio.to_thread
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.filesystem.safe_open import (
    MAX_RESOURCE_BYTES,
    SNIFFED_BYTES,
    FileStamp,
    OpenFolder,
    SkillFolder,
    media_type,
    reason,
    stamp,
)
from pydantic_ai_skills.parsing import SkillHeader, decode_body, parse_head
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import Skill, SkillFiles, SkillResource, SkillScript, header_options

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

__all__ = (
    'MAX_FILES',
    'MAX_SKILL_BYTES',
    'NEVER',
    'TOOLS_MODULE',
    'FolderSkill',
    'SkillReader',
    'is_private_file',
    'is_skipped_folder',
    'settled',
)

MAX_SKILL_BYTES = 1024 * 1024
"""A larger `SKILL.md` is left out."""

MAX_FILES = 1_000
"""How many files of one skill are offered."""

MAX_ENTRIES = 5_000
"""How many files and folders of one skill are looked at."""

MAX_FOLDER_ENTRIES = 200_000
"""How much of one folder is listed at all."""

MAX_FOLDERS = 500
"""How many folders of one skill are looked into."""

MAX_FOLDER_DEPTH = 12
"""How deep below a skill's folder files are looked for."""

SKIPPED_FOLDERS = frozenset(
    {
        '__pycache__',
        'bower_components',
        'dist-packages',
        'node_modules',
        'site-packages',
        'third_party',
        'vendor',
        'venv',
    }
)
"""Caches, virtual environments and other people's packages."""

KEY_FILE_NAMES = frozenset({'credentials', 'id_dsa', 'id_ecdsa', 'id_ed25519', 'id_rsa', 'service-account.json'})
KEY_FILE_SUFFIXES = ('.jks', '.kdbx', '.key', '.keystore', '.p12', '.pem', '.pfx', '.ppk')
"""Files that hold secrets, whatever the skill's author meant."""

TOOLS_MODULE = 'tools.py'
"""The file beside `SKILL.md` that holds typed tools."""

PLACEHOLDER = re.compile(r'\$\{(?:CLAUDE_)?SKILL_DIR\}|\{baseDir\}')
"""What skills write in their instructions for the folder they are in."""

NEVER: FileStamp = (0, 0, 0, 0)
"""A stamp no file has: what carries it is read again at the next look."""

_CLOCK_TICK_NS = 20_000_000
_COARSE_CLOCK_TICK_NS = 2_000_000_000


class SkillFile(SkillResource):
    """A file of a skill's folder, read when it is asked for."""

    def __init__(self, name: str, folder: SkillFolder) -> None:
        super().__init__(name, uri=os.path.join(folder.path, name))
        self._folder = folder

    async def read(self, ctx: RunContext[Any] | None, args: object = None) -> str | BinaryContent:
        """The file's text as it was written, or an image or PDF, from inside the skill's folder only."""
        return await anyio.to_thread.run_sync(self._folder.read, self.name)


class FolderSkill(Skill[Any]):
    """A skill of which only the header was read; the rest is read when it is needed."""

    __slots__ = ('_reader', '_unread', 'listed')

    path: str

    def __init__(self, reader: SkillReader, path: str, header: Sequence[Any], headings: str) -> None:
        # Not by the constructor of `Skill`: thousands are made at once, of headers that were checked already.
        (
            self.name,
            self.description,
            self.license,
            self.compatibility,
            self.metadata,
            self.allowed_tools,
            self.disable_model_invocation,
            self.user_invocable,
            self.tool_specs,
        ) = header
        self.path = path
        self.source = self.model_settings = self._given_uri = self._tools = None
        self._content = ''
        self._headings = headings
        self._files = SkillFiles  # which is no list of files yet
        self._late = False
        self._reader = reader
        self._unread = True
        self.listed: tuple[tuple[str, FileStamp], ...] = ()
        """What the list of its files hangs on: the folders below its own, and the files that may be scripts."""

    @property
    def content(self) -> str:
        """The instructions. What the header says is taken from the same read, so that all is of one version."""
        if self._unread:
            header, instructions = self._reader.read_skill(self.path)
            # Another thread may have been first; what it gave out stays.
            if self._unread:
                if header is not None:
                    self.description = header.description
                    for name, value in header_options(header).items():
                        setattr(self, name, value)
                self._content = instructions
                self._unread = False
        return super().content

    @property
    def files(self) -> SkillFiles:
        """The resources and scripts, listed on first use."""
        if not isinstance(self._files, SkillFiles):
            self._files, self.listed = self._reader.list_files(self.path, self.name)
        return self._files

    @property
    def root(self) -> str:
        """The folder from which its own is reached without following links."""
        return self._reader.root

    def lists_are_current(self) -> bool:
        """Whether the list of its files, if it was made, still holds. The skill's own folder is not looked at.

        Raises:
            OSError: It does not: something is gone.
        """
        return all(stamp(os.lstat(path)) == folder_stamp for path, folder_stamp in self.listed)


class ReadSkill(NamedTuple):
    """One version of a `SKILL.md`, whole."""

    header: SkillHeader | None
    instructions: str


class SkillReader:
    """How skills are read below a folder: their instructions and files, when they are needed.

    It knows of no skill in particular, so that one is enough for thousands of them.
    """

    __slots__ = ('executor', 'file_name', 'root', 'validate')

    def __init__(self, root: str, file_name: str, validate: bool, executor: SkillScriptExecutor | None) -> None:
        """Remember how to read.

        Args:
            root: The folder from which those of the skills are reached without following links.
            file_name: The name of their `SKILL.md`.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.
            executor: What runs their scripts.
        """
        self.root = root
        self.file_name = file_name
        self.validate = validate
        self.executor = executor

    def read_skill(self, path: str) -> ReadSkill:
        """Read the `SKILL.md` of a folder whole, with the placeholders for the folder filled in."""
        data = SkillFolder(self.root, path).read_bytes(self.file_name, MAX_SKILL_BYTES, quiet=True)
        head = parse_head(data, path=path, folder_name=os.path.basename(path), validate=self.validate, complete=True)
        return ReadSkill(head.header, PLACEHOLDER.sub(lambda _: path, decode_body(data)))

    def list_files(self, path: str, name: str) -> tuple[SkillFiles, tuple[tuple[str, FileStamp], ...]]:
        """The resources and scripts of the skill of this name in a folder; a file is one or the other.

        Returns:
            The files, and what the list hangs on: the folders below, and the files that may be scripts.
        """
        started = time.time_ns()
        folder, skill_dir = SkillFolder(self.root, path), Path(path)
        listing = Listing(folder)
        files = SkillFiles(problems=tuple(listing.problems))
        for file, executable in sorted(listing.files):
            if file == TOOLS_MODULE and _has_tools(folder):
                files.tools_module = True
            elif _is_script(file, executable):
                uri = str(skill_dir / file)
                script = SkillScript(file, uri=uri, skill_name=name, skill_dir=skill_dir, executor=self.executor)
                files.scripts.append(script)
            else:
                files.resources.append(SkillFile(file, folder))
        seen = (*listing.folders[1:], *listing.in_place)
        return files, tuple((path, settled(status, started)) for path, status in seen)


def _has_tools(folder: SkillFolder) -> bool:
    """Whether `tools.py` brings typed tools. Where it does not speak of them, it is a script like any other."""
    return b'pydantic_ai' in folder.read_bytes(TOOLS_MODULE)


class Listing:
    """A walk over a skill's folder: the files that can be offered, and what is left out and why."""

    def __init__(self, folder: SkillFolder) -> None:
        self.folder = folder
        self.files: list[tuple[str, bool]] = []
        self.folders: list[tuple[str, os.stat_result]] = []
        self.in_place: list[tuple[str, os.stat_result]] = []
        self.problems: list[SkillProblem] = []
        self._room = MAX_ENTRIES
        self._was_cut = False
        pending: deque[tuple[str, ...]] = deque([()])
        while pending and not self._was_cut:
            steps = pending.popleft()
            try:
                with folder.open(*steps) as opened:
                    self.folders.append((opened.path, opened.status()))
                    pending += self._look_into(opened, steps)
            except OSError as error:
                self._leave_out('file-unreadable', '/'.join(steps), f'The folder cannot be read: {reason(error)}.')
            self._was_cut |= len(self.folders) >= MAX_FOLDERS and bool(pending)
        if self._was_cut:
            message = f'It has too many files: only {len(self.files)}, the first ones, are offered.'
            self._leave_out('too-many-files', '', message)

    def _leave_out(self, code: str, name: str, message: str) -> None:
        self.problems.append(problem(code, os.path.join(self.folder.path, name), message))

    def _look_into(self, opened: OpenFolder, steps: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Take in the files of one folder; return the folders in it."""
        inner: list[tuple[str, ...]] = []
        for entry in opened.entries(MAX_FOLDER_ENTRIES):
            name = '/'.join((*steps, entry.name))
            is_folder = entry.is_dir(follow_symlinks=False)
            if (is_skipped_folder if is_folder else is_private_file)(entry.name) or name.lower() == 'skill.md':
                continue
            if len(self.files) >= MAX_FILES or not self._room:
                self._was_cut = True
                break
            self._room -= 1
            if not _can_be_shown(entry.name):
                message = 'Its name has characters that a model cannot be shown; rename it.'
                self._leave_out('file-unreadable', name, message)
            elif entry.is_symlink():
                self._leave_out('file-link', name, 'Links are not followed; put the file itself into the skill.')
            elif not is_folder:
                self._look_at(opened, entry.name, name)
            elif len(steps) < MAX_FOLDER_DEPTH:
                inner.append((*steps, entry.name))
            else:
                message = f'Folders more than {MAX_FOLDER_DEPTH} deep are not looked into.'
                self._leave_out('folder-too-deep', name, message)
        return inner

    def _look_at(self, opened: OpenFolder, entry_name: str, name: str) -> None:
        """Take in one file if a model can read it or it can be run."""
        try:
            descriptor = opened.file(entry_name)
        except OSError as error:
            self._leave_out('file-unreadable', name, f'The file cannot be read: {reason(error)}.')
            return
        try:
            status = os.fstat(descriptor)
            # Only a regular file may be read: reading another one may wait for ever.
            head = os.read(descriptor, SNIFFED_BYTES) if stat.S_ISREG(status.st_mode) else b''
        finally:
            os.close(descriptor)
        if _is_in_place(name):
            self.in_place.append((f'{opened.path}{os.sep}{entry_name}', status))
        executable = status.st_mode & 0o111 != 0 or head.startswith(b'#!')
        if not stat.S_ISREG(status.st_mode):
            self._leave_out('file-special', name, 'Only regular files are offered.')
        elif status.st_size > MAX_RESOURCE_BYTES:
            self._leave_out('file-too-large', name, f'Files over {MAX_RESOURCE_BYTES:,} bytes are not offered.')
        elif executable or b'\0' not in head or media_type(name):
            self.files.append((name, executable))


def is_skipped_folder(name: str) -> bool:
    """Whether a folder of this name is not looked into."""
    return name.startswith('.') or name.lower() in SKIPPED_FOLDERS


def is_private_file(name: str) -> bool:
    """Whether a file of this name is not for the model: it is hidden, or holds a secret."""
    lower = name.lower()
    return lower.startswith('.') or lower in KEY_FILE_NAMES or lower.endswith(KEY_FILE_SUFFIXES)


def settled(status: os.stat_result, started: int) -> FileStamp:
    """The stamp of something that was looked at after `started`, if a later change is sure to change the stamp.

    A file that changed within the same tick of its clock keeps its times, so what has only just changed is looked at
    again next time. Whole seconds are taken for the times of a file system that keeps no finer ones.
    """
    found = stamp(status)
    changed = max(found[0], found[1])
    if changed < started - _COARSE_CLOCK_TICK_NS:
        return found
    tick = _CLOCK_TICK_NS if changed % 1_000_000_000 else _COARSE_CLOCK_TICK_NS
    # A time that is still to come was set on purpose; a change will not set it again.
    return NEVER if started - tick <= changed <= time.time_ns() + tick else found


def _can_be_shown(name: str) -> bool:
    """Whether a model can be shown the name as it is, and so can ask for it."""
    return name.isprintable() and name == ' '.join(name.split())


def _is_script(name: str, executable: bool) -> bool:
    """Whether a file is run rather than read: it can be, and is where a skill keeps its scripts."""
    from pydantic_ai_skills.execution.interpreters import SCRIPT_SUFFIXES  # needed when files are listed, not before

    return _is_in_place(name) and (executable or PurePosixPath(name).suffix.lower() in SCRIPT_SUFFIXES)


def _is_in_place(name: str) -> bool:
    """Whether a file is where a skill keeps its scripts."""
    return '/' not in name or name.startswith('scripts/')
