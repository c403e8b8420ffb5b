"""A skill in a folder: its instructions and the list of its files are read when they are needed."""

from __future__ import annotations

import os
import re
import stat
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import anyio.to_thread
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.filesystem.content import SNIFFED_BYTES, media_type
from pydantic_ai_skills.filesystem.safe_open import FileStamp, OpenFolder, SkillFolder, reason, stamp
from pydantic_ai_skills.parsing import decode_body, parse_head
from pydantic_ai_skills.parsing.characters import HIDDEN
from pydantic_ai_skills.parsing.header import SkillHeader
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.resource import SkillResource
from pydantic_ai_skills.types.script import ImportedCode, SkillScript, local_executor
from pydantic_ai_skills.types.skill import Skill, SkillFiles

from .settings import MAX_SKILL_BYTES, ScanLimits, ScanSettings

MAX_FOLDER_ENTRIES = 200_000
"""How many entries of one folder are read at all."""

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
"""Caches, virtual environments and third-party packages."""

KEY_FILE_NAMES = frozenset({'credentials', 'id_dsa', 'id_ecdsa', 'id_ed25519', 'id_rsa', 'service-account.json'})
KEY_FILE_SUFFIXES = ('.jks', '.kdbx', '.key', '.keystore', '.p12', '.pem', '.pfx', '.ppk')
"""Files that hold secrets."""

TOOLS_MODULE = 'tools.py'
"""The file beside `SKILL.md` that holds typed tools."""

PLACEHOLDER = re.compile(r'\$\{(?:CLAUDE_)?SKILL_DIR\}|\{baseDir\}')
"""Placeholders for the skill's folder in its instructions."""

NEVER: FileStamp = (0, 0, 0, 0)
"""A stamp no file has: whatever carries it is read again at the next look."""

_CLOCK_TICK_NS = 20_000_000


class SkillFile(SkillResource):
    """A file in a skill's folder, read on demand."""

    def __init__(self, name: str, folder: SkillFolder) -> None:
        super().__init__(name, uri=os.path.join(folder.path, name))
        self._folder = folder

    async def read(self, ctx: RunContext[Any] | None, args: object = None) -> str | BinaryContent:
        """The file's text, unchanged, or an image or PDF; never a file outside the skill's folder."""
        return await anyio.to_thread.run_sync(self._folder.read, self.name)


class FolderSkill(Skill[Any]):
    """A skill of which only the header was read; the rest is read on demand."""

    __slots__ = ('_read_header', '_reader', 'listed')

    path: str

    def __init__(self, reader: SkillReader, path: str, header: SkillHeader, headings: str) -> None:
        # Does not call `Skill.__init__`, which would check each of thousands of headers a second time.
        self.header = header
        self.path = path
        self.source = reader.settings.source
        self.model_settings = self.pinned = self._given_uri = self._tools = None
        self._content = ''
        self._headings = headings
        self._files = SkillFiles  # not listed yet
        self._late = False
        self._reader = reader
        self._read_header: SkillHeader | None = None
        self.listed: tuple[tuple[str, FileStamp], ...] = ()
        """What the list of its files depends on: the folders below its own, and the files that may be scripts."""

    @property
    def content(self) -> str:
        """The instructions, read on first use. The header stays as it was when the directory was scanned."""
        if self._read_header is None:
            self.check_unchanged()
            header, instructions = self._reader.read(self.path)
            # If another thread was faster, keep what it has given out already.
            if self._read_header is None:
                self._content = instructions
                self._read_header = (header or self.header)._replace(name=self.name)
        return super().content

    def read(self) -> tuple[SkillHeader, str]:
        """The header and the instructions of one version of the file, which may be newer than the scan."""
        content = self.content
        assert self._read_header is not None
        return self._read_header, content

    def _list_files(self, files: Callable[[], SkillFiles]) -> SkillFiles:
        listed, self.listed = self._reader.list_files(self.path, self.name)
        return listed

    @property
    def root(self) -> str:
        """The folder from which the skill's own is reached without following links."""
        return self._reader.root

    def lists_are_current(self) -> bool:
        """Whether the list of its files, if it was made, is up to date. `OSError` if something in it is gone."""
        return all(stamp(os.lstat(path)) == folder_stamp for path, folder_stamp in self.listed)


class SkillReader:
    """Reads the instructions and lists the files of the skills below one folder; thousands of skills share one."""

    __slots__ = ('file_name', 'root', 'settings')

    def __init__(self, root: str, file_name: str, settings: ScanSettings) -> None:
        self.root = root
        """The folder from which the skills' folders are reached without following links."""
        self.file_name = file_name
        self.settings = settings

    def read(self, path: str) -> tuple[SkillHeader | None, str]:
        """The header of the skill in a folder, and its instructions with the placeholders for the folder filled in."""
        data = SkillFolder(self.root, path).read_bytes(self.file_name, MAX_SKILL_BYTES, quiet=True)
        name = os.path.basename(path)
        head = parse_head(data, path=path, folder_name=name, validate=self.settings.validate, complete=True)
        return head.header, PLACEHOLDER.sub(lambda _: path, decode_body(data, head.body_start or 0))

    def list_files(self, path: str, name: str) -> tuple[SkillFiles, tuple[tuple[str, FileStamp], ...]]:
        """List the resources and scripts of the skill in a folder; each file is one or the other.

        Also returns what the list depends on: the folders below, and the files that may be scripts.
        """
        started = time.time_ns()
        folder, skill_dir, settings = SkillFolder(self.root, path), Path(path), self.settings
        listing = Listing(folder, settings.limits)
        executor = settings.executor or local_executor()
        files = SkillFiles(problems=tuple(listing.problems), executor=executor)
        for file, executable in sorted(listing.files):
            uri = os.path.join(path, file)
            if file == TOOLS_MODULE and _has_tools(folder):
                files.tools_module = ImportedCode(file, uri=uri, skill_name=name, skill_dir=skill_dir)
            elif _is_script(file, executable):
                script = SkillScript(file, uri=uri, skill_name=name, skill_dir=skill_dir, executor=executor)
                script.root = self.root
                files.scripts.append(script)
            else:
                files.resources.append(SkillFile(file, folder))
        seen = (*listing.folders[1:], *listing.possible_scripts)
        tick = settings.limits.coarse_tick_ns
        return files, tuple((path, settled(status, started, tick)) for path, status in seen)


class ScannedFolder:
    """What a scan found in one folder."""

    __slots__ = ('file', 'file_stamp', 'inner', 'links', 'path', 'problems', 'skill', 'stamp', 'was_readable')

    def __init__(
        self,
        path: str,
        folder_stamp: FileStamp,
        file: str | None = None,
        file_stamp: FileStamp = NEVER,
        skill: FolderSkill | None = None,
        problems: tuple[SkillProblem, ...] = (),
    ) -> None:
        self.path = path
        self.stamp = folder_stamp
        self.file = file
        """Its `SKILL.md`, if it has one."""
        self.file_stamp = file_stamp
        self.skill = skill
        self.problems = problems
        self.inner: tuple[str, ...] = ()
        """The names of the folders in it that may hold skills."""
        self.links: tuple[tuple[str, bool], ...] = ()
        """The links in it, and whether each leads to a folder, which may change without changing this folder."""
        self.was_readable = True

    @property
    def folder_links(self) -> list[str]:
        """The links that lead to folders."""
        return [link for link, is_folder in self.links if is_folder]

    def is_current(self) -> bool:
        """Whether nothing on disk has changed since the scan."""
        try:
            return (
                stamp(os.lstat(self.path)) == self.stamp
                and (self.file is None or stamp(os.lstat(self.file)) == self.file_stamp)
                and (self.skill is None or not self.skill.listed or self.skill.lists_are_current())
                and (not self.links or all(os.path.isdir(link) == was_folder for link, was_folder in self.links))
            )
        except OSError:
            return False


def _has_tools(folder: SkillFolder) -> bool:
    """Whether `tools.py` brings typed tools. One that never mentions pydantic_ai is a script like any other."""
    return b'pydantic_ai' in folder.read_bytes(TOOLS_MODULE)


class Listing:
    """One walk over a skill's folder: the files that can be offered, and a problem for each one that cannot."""

    def __init__(self, folder: SkillFolder, limits: ScanLimits) -> None:
        self.folder = folder
        self.limits = limits
        self.files: list[tuple[str, bool]] = []
        """The path of each file below the folder, and whether it is executable."""
        self.folders: list[tuple[str, os.stat_result]] = []
        self.possible_scripts: list[tuple[str, os.stat_result]] = []
        self.problems: list[SkillProblem] = []
        self._entries_left = limits.entries
        self._was_cut = False
        pending: deque[tuple[str, ...]] = deque([()])
        while pending and not self._was_cut:
            steps = pending.popleft()
            try:
                with folder.open(*steps) as opened:
                    self.folders.append((opened.path, opened.status()))
                    pending += self._list_folder(opened, steps)
            except OSError as error:
                self._leave_out('file-unreadable', '/'.join(steps), f'The folder cannot be read: {reason(error)}.')
            self._was_cut |= len(self.folders) >= limits.folders and bool(pending)
        if self._was_cut:
            message = f'It has too many files: only the first {len(self.files)} are offered.'
            self._leave_out('too-many-files', '', message)

    def _leave_out(self, code: str, name: str, message: str) -> None:
        self.problems.append(problem(code, os.path.join(self.folder.path, name), message))

    def _list_folder(self, opened: OpenFolder, steps: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Add the files of one folder; return the folders in it."""
        inner: list[tuple[str, ...]] = []
        for entry in opened.entries(MAX_FOLDER_ENTRIES):
            name = '/'.join((*steps, entry.name))
            is_folder = entry.is_dir(follow_symlinks=False)
            if (is_skipped_folder if is_folder else is_private_file)(entry.name) or name.lower() == 'skill.md':
                continue
            if len(self.files) >= self.limits.files or not self._entries_left:
                self._was_cut = True
                break
            self._entries_left -= 1
            if self._is_refused(entry, name):
                continue
            if not is_folder:
                self._list_file(opened, entry.name, name)
            elif len(steps) < self.limits.folder_depth:
                inner.append((*steps, entry.name))
            else:
                message = f'Folders more than {self.limits.folder_depth} deep are not looked into.'
                self._leave_out('folder-too-deep', name, message)
        return inner

    def _is_refused(self, entry: os.DirEntry[str], name: str) -> bool:
        """Whether an entry is never offered, whatever it holds; notes why."""
        if not _can_be_shown(entry.name):
            message = 'Its name has characters that a model cannot be shown; rename it.'
            self._leave_out('file-unreadable', name, message)
            return True
        if entry.is_symlink():
            self._leave_out('file-link', name, 'Links are not followed; put the file itself into the skill.')
            return True
        return False

    def _list_file(self, opened: OpenFolder, entry_name: str, name: str) -> None:
        """Add a file if a model can read it or it can be run."""
        try:
            status, head = opened.head(entry_name, SNIFFED_BYTES)
        except OSError as error:
            self._leave_out('file-unreadable', name, f'The file cannot be read: {reason(error)}.')
            return
        if _may_be_script(name):
            self.possible_scripts.append((f'{opened.path}{os.sep}{entry_name}', status))
        executable = status.st_mode & 0o111 != 0 or head.startswith(b'#!')
        if not stat.S_ISREG(status.st_mode):
            self._leave_out('file-special', name, 'Only regular files are offered.')
        elif status.st_size > self.limits.resource_bytes:
            self._leave_out('file-too-large', name, f'Files over {self.limits.resource_bytes:,} bytes are not offered.')
        elif executable or b'\0' not in head or media_type(name):
            self.files.append((name, executable))


def is_skipped_folder(name: str) -> bool:
    """Whether folders of this name are never looked into."""
    return name.startswith('.') or name.lower() in SKIPPED_FOLDERS


def is_private_file(name: str) -> bool:
    """Whether files of this name are not for the model: they are hidden or hold a secret."""
    lower = name.lower()
    return lower.startswith('.') or lower in KEY_FILE_NAMES or lower.endswith(KEY_FILE_SUFFIXES)


def settled(status: os.stat_result, started: int, coarse_tick_ns: int = ScanLimits().coarse_tick_ns) -> FileStamp:
    """The stamp of a file, or `NEVER` if the file could change again without changing the stamp.

    A file that changes twice within one tick of the file system's clock keeps its times. So a file that changed just
    before the scan `started` is read again at the next look. Times in whole seconds mean that the file system keeps no
    finer ones.
    """
    found = stamp(status)
    changed = max(found[0], found[1])
    if changed < started - coarse_tick_ns:
        return found
    tick = _CLOCK_TICK_NS if changed % 1_000_000_000 else coarse_tick_ns
    # A time in the future was set on purpose; a change will not set it again.
    return NEVER if started - tick <= changed <= time.time_ns() + tick else found


def _can_be_shown(name: str) -> bool:
    """Whether a model sees the name as it is, and so can ask for it."""
    return name.isprintable() and name == ' '.join(name.split()) and not HIDDEN.search(name)


def _is_script(name: str, executable: bool) -> bool:
    """Whether a file is run rather than read: it can be, and is where skills keep their scripts."""
    from pydantic_ai_skills.execution.interpreters import SCRIPT_SUFFIXES  # not needed before files are listed

    return _may_be_script(name) and (executable or PurePosixPath(name).suffix.lower() in SCRIPT_SUFFIXES)


def _may_be_script(name: str) -> bool:
    """Whether a file is where skills keep their scripts: beside `SKILL.md` or in `scripts/`."""
    return '/' not in name or name.startswith('scripts/')
