"""A skill in a folder: its instructions and the list of its files are read when they are needed."""

from __future__ import annotations

import os
import re
import stat
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, cast

from pydantic_ai_skills.filesystem.content import SNIFFED_BYTES, media_type
from pydantic_ai_skills.filesystem.safe_open import FileStamp, OpenFolder, SkillFolder, is_skipped_folder, reason, stamp
from pydantic_ai_skills.parsing import decode_body, parse_head
from pydantic_ai_skills.parsing.characters import hidden_characters
from pydantic_ai_skills.parsing.header import SkillHeader
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.script import local_executor
from pydantic_ai_skills.types.skill import Skill, SkillFiles

from .settings import MAX_SKILL_BYTES, TOOLS_MODULE, ScanLimits, ScanSettings

MAX_FOLDER_ENTRIES = 200_000
"""How many entries of one folder are read at all."""

KEY_FILE_NAMES = frozenset({'credentials', 'id_dsa', 'id_ecdsa', 'id_ed25519', 'id_rsa', 'service-account.json'})
KEY_FILE_SUFFIXES = ('.jks', '.kdbx', '.key', '.keystore', '.p12', '.pem', '.pfx', '.ppk')
"""Files that hold secrets."""

PLACEHOLDER = re.compile(r'\$\{(?:CLAUDE_)?SKILL_DIR\}|\{baseDir\}')
"""Placeholders for the skill's folder in its instructions."""

EVALS = 'evals/'
"""The folder with the evaluation cases of a skill. A model that could read them would know the answers."""

NEVER: FileStamp = (0, 0, 0, 0)
"""A stamp no file has: whatever carries it is read again at the next look."""

HEAD_BYTES = 8
"""How many bytes of each file are kept to recognize programs."""

_CLOCK_TICK_NS = 20_000_000


class FolderSkill(Skill[Any]):
    """A skill of which only the header was read; the rest is read on demand."""

    __slots__ = ('_assigned', '_listing', '_read_header', '_reader', 'listed')

    def __init__(self, *args: Any, **fields: Any) -> None:
        """Make a skill of which everything is known, as `dataclasses.replace` does. A scan calls `found`."""
        super().__init__(*args, **fields)
        self._reader: SkillReader | None = None
        self._read_header: SkillHeader | None = self.header
        self._assigned: dict[str, Any] | None = None
        self._listing: Listing | None = None
        self.listed: tuple[tuple[str, FileStamp], ...] = ()
        """What the list of its files depends on: the folders below its own, and the files that may be scripts."""

    @classmethod
    def found(cls, reader: SkillReader, path: str, header: SkillHeader, headings: str) -> FolderSkill:
        """Make the skill of a folder; its file and the list of its files are read when they are needed."""
        # Does not call `__init__`, which would check each of thousands of headers a second time.
        skill = cls.__new__(cls)
        skill._remember(reader, path, header, headings)  # noqa: SLF001 - its own
        return skill

    def _remember(self, reader: SkillReader, path: str, header: SkillHeader, headings: str) -> None:
        self.header = header
        self.path = path
        self.source = reader.settings.source
        self.model_settings = self.pinned = self.own_uri = self._tools = self._toolsets = None
        self._content = ''
        self._headings = headings
        self._file_list = SkillFiles
        self.known_files = None
        self.late = False
        self._reader = reader
        self._read_header = self._assigned = self._listing = None
        self.listed = ()

    def _assign(self, name: str, value: Any) -> None:
        super()._assign(name, value)
        if name in SkillHeader._fields:
            self._assigned = {**(self._assigned or {}), name: value}
        elif name == 'content':
            self._read_header = self._read_header or self.header

    def _get_content(self) -> str:
        """The instructions, read on first use. The header stays as it was when the directory was scanned."""
        if self._reader is not None and self._read_header is None:
            self.check_unchanged()
            header, instructions = self._reader.read(self._path)
            # If another thread was faster, keep what it has given out already.
            if self._read_header is None:
                self._content = instructions
                self._read_header = header or self.header
        return super()._get_content()

    def read(self) -> tuple[SkillHeader, str]:
        """The header and the instructions of one version of the file, which may be newer than the scan."""
        content = self.content
        header = self._read_header or self.header
        return header._replace(name=self.name, **(self._assigned or {})), content

    def look(self) -> None:
        """List its files. Which of them are programs is found out when they are used, since it takes reading them."""
        if self.known_files is None and self._listing is None:
            assert self._reader is not None
            listing = self._reader.list_folder(self._path)
            self._listing, self.listed = listing, listing.seen()
        if self.tool_specs or (self._listing and self._listing.has_tools_module):
            _ = self.files  # its tools are made of them

    @property
    def may_read(self) -> bool:
        """Whether it has any files; true if they are not listed yet."""
        listing = self._listing
        return super().may_read if listing is None or self.known_files else bool(listing.files)

    @property
    def may_run(self) -> bool:
        """Whether it has files that can be run, programs or not; true if they are not listed yet."""
        listing = self._listing
        return super().may_run if listing is None or self.known_files else any(file.can_run for file in listing.files)

    @property
    def file_problems(self) -> tuple[SkillProblem, ...]:
        """What was found while its files were listed."""
        listing = self._listing
        return super().file_problems if listing is None or self.known_files else tuple(listing.problems)

    def _get_files(self) -> SkillFiles:
        if self.known_files is None:
            assert self._reader is not None
            listing = self._listing or self._reader.list_folder(self._path)
            self.known_files = self._reader.judge(listing, self.name)
            self._listing, self.listed = listing, listing.seen()
        return self.known_files

    @property
    def _path(self) -> str:
        return cast(str, self.path)

    @property
    def root(self) -> str:
        """The folder from which the skill's own folder is reached without following links."""
        return self._path if self._reader is None else self._reader.root

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

    def list_folder(self, path: str) -> Listing:
        """List the files of the skill in a folder, without those that the directory does not offer."""
        settings = self.settings
        listing = Listing(SkillFolder(self.root, path), settings.limits)
        listing.files = [file for file in listing.files if not file.name.startswith(EVALS)]
        if settings.offers is not None:
            listing.files = [file for file in listing.files if settings.offers.fit(file.name)]
        listing.problems = labelled(listing.problems, settings.label)
        return listing

    def judge(self, listing: Listing, name: str) -> SkillFiles:
        """Divide the listed files of a skill into those to run and those to read."""
        from .programs import judge_files  # not needed before files are used

        return judge_files(listing, name, self.settings.executor or local_executor(), self.root)


def labelled(problems: Iterable[SkillProblem], label: str | None) -> list[SkillProblem]:
    """The problems with the label of their directory, if it has one."""
    return [problem if label is None else replace(problem, source=label) for problem in problems]


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


class ListedFile(NamedTuple):
    """A file in a skill's folder."""

    name: str
    """Its path below the folder."""

    head: bytes
    """Its first bytes, which tell what kind of program it is."""

    can_run: bool
    """Whether it can be started, by its name, its first bytes or its rights."""


class Listing:
    """One walk over a skill's folder: the files that can be offered, and a problem for each one that cannot."""

    def __init__(self, folder: SkillFolder, limits: ScanLimits) -> None:
        self.folder = folder
        self.limits = limits
        self.files: list[ListedFile] = []
        """The files below the folder that can be offered."""
        self.folders: list[tuple[str, os.stat_result]] = []
        self.possible_scripts: list[tuple[str, os.stat_result]] = []
        self.problems: list[SkillProblem] = []
        self._entries_left = limits.entries
        self._was_cut = False
        self._started = time.time_ns()
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

    def read_head(self, name: str, count: int) -> bytes:
        """The first bytes of a file in the folder; none if it is gone."""
        *steps, last = name.split('/')
        with suppress(OSError), self.folder.open(*steps) as opened:
            return opened.head(last, count)[1]
        return b''

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
        if not can_be_shown(entry.name):
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
        executable = status.st_mode & 0o111 != 0
        if not stat.S_ISREG(status.st_mode):
            self._leave_out('file-special', name, 'Only regular files are offered.')
        elif status.st_size > self.limits.resource_bytes:
            self._leave_out('file-too-large', name, f'Files over {self.limits.resource_bytes:,} bytes are not offered.')
        elif executable or b'\0' not in head or media_type(name):
            self.files.append(ListedFile(name, head[:HEAD_BYTES], _can_run(name, head, executable=executable)))

    @property
    def has_tools_module(self) -> bool:
        """Whether one of the files may hold typed tools."""
        return any(file.name == TOOLS_MODULE for file in self.files)

    def seen(self) -> tuple[tuple[str, FileStamp], ...]:
        """What the list depends on: the folders below the skill's own, and the files that may be scripts."""
        seen, tick = (*self.folders[1:], *self.possible_scripts), self.limits.coarse_tick_ns
        return tuple((path, settled(status, self._started, tick)) for path, status in seen)


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


def can_be_shown(name: str) -> bool:
    """Whether a model sees the name as it is, and so can ask for it."""
    return name.isprintable() and name == ' '.join(name.split()) and not hidden_characters().search(name)


def _may_be_script(name: str) -> bool:
    """Whether the text and the rights of a file decide how it is offered."""
    from pydantic_ai_skills.execution.interpreters import SCRIPT_NAME  # not needed before files are listed

    is_at_home = '/' not in name or name.startswith('scripts/')
    return is_at_home or SCRIPT_NAME.match(name) is not None or '.' not in name.rpartition('/')[2]


def _can_run(name: str, head: bytes, *, executable: bool) -> bool:
    """Whether a file can be started. The right to execute alone says little: many archives give it to every file."""
    from pydantic_ai_skills.execution.interpreters import PROGRAM_MAGIC, SCRIPT_NAME

    if SCRIPT_NAME.match(name) or head.startswith(b'#!'):
        return True
    return executable and (head.startswith(PROGRAM_MAGIC) or '.' not in name.rpartition('/')[2].lstrip('.'))
