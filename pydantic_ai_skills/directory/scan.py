"""Scans a folder tree for skills: which folders are skills, what their headers say, which files are half written.

Each folder is kept with the stamps of its files, so that looking at it again costs two `stat` calls.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Any

from pydantic_ai_skills.filesystem.safe_open import (
    LOOK_AGAIN_S,
    QUIET_NS,
    SKIPPED_FOLDERS,
    FileStamp,
    Glance,
    OpenFolder,
    SkillFolder,
    is_fresh,
    reason,
)
from pydantic_ai_skills.parsing import MAX_FRONTMATTER_BYTES, ParsedHead, check_text, find_headings, parse_head
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.found_skills import FoundSkills, first_of_each_name
from pydantic_ai_skills.types.skill import Skill

from .folder_skill import NEVER, FolderSkill, ScannedFolder, SkillReader, settled
from .settings import MAX_SKILL_BYTES, SKILL_FILE, ScanSettings
from .standard import DOT_FOLDERS

HEAD_BYTES = 16 * 1024
"""How much of a `SKILL.md` is read at first; more only if its frontmatter is longer. Search finds headings in it."""

BATCH = 32
"""How many folders are read before the first of them is parsed."""

NESTED_FOLDER = 'skills'
"""The only folder of a skill that may hold other skills."""

TOOL_FOLDERS = frozenset(
    {
        *('.git', '.hg', '.svn', '.jj', '.venv', '.tox', '.nox', '.cache', '.mypy_cache', '.pytest_cache'),
        *('.ruff_cache', '.ipynb_checkpoints', '.next', '.nuxt', '.terraform', '.gradle', '.yarn', '.idea'),
    }
)
"""Hidden folders that belong to tools; skills are never looked for in them."""

_HOLD_NO_SKILLS = SKIPPED_FOLDERS | {'skill.md'}

HALF_WRITTEN = frozenset({'empty-file', 'not-utf8', 'unclosed-frontmatter'})
"""Problems of a file that is only partly written, or a mix of two versions."""

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors that say nothing about the file that was opened."""


def collect(folders: Mapping[str, ScannedFolder], problems: Iterable[SkillProblem] = ()) -> FoundSkills:
    """The skills of all folders, the first of each name, and all problems."""
    in_order = [folders[path] for path in sorted(folders)]
    skills, lost = first_of_each_name((folder.skill for folder in in_order if folder.skill is not None), _duplicate)
    found = [problem for folder in in_order if folder.problems for problem in folder.problems]
    return FoundSkills(tuple(skills.values()), (*problems, *found, *lost))


def _duplicate(loser: Skill[Any], winner: Skill[Any]) -> SkillProblem:
    message = f'The skill {winner.name!r} is in {winner.path} already; give one of them another name.'
    return problem('duplicate-name', loser.path or '', message)


def scan_directory(
    settings: ScanSettings,
    root: str,
    *,
    before: Mapping[str, ScannedFolder] = MappingProxyType({}),
    current: Collection[str] = (),
) -> Scan:
    """Scan a directory, and again while files are half written, until patience runs out.

    `before` has the folders of the last scan, `current` the paths of those known to be unchanged.
    """
    deadline = time.monotonic() + settings.limits.patience_s
    known = before
    while True:
        scan = Scan(settings, known=known, before=before, current=current)
        scan.run(root)
        if not scan.in_doubt or time.monotonic() >= deadline:
            break
        known, current = scan.folders, ()
        time.sleep(LOOK_AGAIN_S)
    scan.keep_last_good()
    return scan


class Scan:
    """One walk over a directory, which reuses the folders that have not changed."""

    def __init__(
        self,
        settings: ScanSettings,
        *,
        known: Mapping[str, ScannedFolder],
        before: Mapping[str, ScannedFolder],
        current: Collection[str],
    ) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.known = known
        """The folders of an earlier scan, finished or not."""
        self.current = current
        """The paths of known folders that need not be checked for changes."""
        self.before = before
        """The folders of the last finished scan."""
        self.folders: dict[str, ScannedFolder] = {}
        self.problems: list[SkillProblem] = []
        self.in_doubt: set[str] = set()
        """Folders in which something broke or vanished so recently that it may be back soon."""
        self.ordinary: set[str] = set()
        """Folders of skills whose files were seen to break no rule."""
        self.was_cut = False
        """Whether there were more folders than the limits allow."""
        self._links: list[tuple[int, str]] = []
        self._max_depth = self.limits.scan_depth if settings.max_depth is None else settings.max_depth
        self._started = time.time_ns()
        self._reader = SkillReader(settings.path, SKILL_FILE, settings)

    def result(self) -> FoundSkills:
        """The skills of all folders, the first of each name, and all problems."""
        if self.was_cut:
            most, depth = self.limits.scanned_folders, self.limits.scan_depth
            message = f'Only the first {most:,} folders, at most {depth} deep, were scanned; name a smaller directory.'
            self.problems.append(problem('too-many-folders', self.settings.path, message))
        return collect(self.folders, self.problems)

    def keep_last_good(self) -> None:
        """Keep the last good version of each file that was never seen whole because it is written all the time."""
        for path in self.in_doubt & self.folders.keys() & self.before.keys():
            last = self.before[path]
            if self.folders[path].file is not None and last.skill is not None:
                last.stamp = NEVER
                self.folders[path] = last

    # --- Folders --------------------------------------------------------------------------------------------------

    def run(self, root: str) -> None:
        """Scan a trusted directory, its links resolved, and the folders in it."""
        self._visit(SkillFolder(root), None, 0)
        # Shortest way first: the depth of a folder decides how far the scan goes from there.
        while self._links:
            depth, link = heappop(self._links)
            scanned = self._visit(SkillFolder(os.path.realpath(link)), None, depth)
            if scanned is not None:
                # The dot makes `lstat` follow the link, so that a new target is noticed.
                scanned.path = f'{link}{os.sep}.'

    def _visit(self, folder: SkillFolder, parent: OpenFolder | None, depth: int) -> ScannedFolder | None:
        """Scan a folder, through its open parent if there is one. Returns it only if it was read now."""
        path = folder.path
        if path in self.folders:
            return None
        if len(self.folders) >= self.limits.scanned_folders:
            self.was_cut = True
            return None
        known = self.known.get(path)
        if known is not None and (path in self.current or known.is_current()):
            self.folders[path] = known
            self._visit_inner(folder, known, None, depth)
            return None
        scanned = None
        try:
            with folder.open() if parent is None else parent.folder(path[len(parent.path) + 1 :]) as opened:
                scanned = self.folders[path] = self._read_folder(folder, opened)
                self._visit_inner(folder, scanned, opened, depth)
        except OSError as error:
            self._cannot_open(path, depth, error)
        return scanned

    def _visit_inner(self, folder: SkillFolder, scanned: ScannedFolder, opened: OpenFolder | None, depth: int) -> None:
        names: Sequence[str] = scanned.inner
        if depth >= self._max_depth:
            self.was_cut |= bool(names) and self.settings.max_depth is None
            return
        if names and opened is not None and opened.descriptor is not None and not self.known:
            names = self._read_simple_skills(folder, names, opened)
        for name in names:
            self._visit(SkillFolder(folder.root, f'{folder.path}{os.sep}{name}'), opened, depth + 1)
        if self.settings.follow_links:
            for link in scanned.folder_links:
                heappush(self._links, (depth + 1, link))

    def _read_simple_skills(self, folder: SkillFolder, names: Sequence[str], opened: OpenFolder) -> list[str]:
        """Add the folders that are nothing but good skills; return the names of the others.

        In each batch all system calls come first, then all parsing: to alternate would take a third longer.
        """
        others: list[str] = []
        for start in range(0, len(names), BATCH):
            batch = names[start : start + BATCH]
            if self.settings.whole_files:
                from .ordinary import read_ordinary_skill  # only needed to validate

                glances = [read_ordinary_skill(opened, name, NESTED_FOLDER) for name in batch]
            else:
                glances = [opened.glance(name, SKILL_FILE, NESTED_FOLDER, HEAD_BYTES) for name in batch]
            for name, glance in zip(batch, glances, strict=True):
                if glance is None or not self._add_simple_skill(folder, name, glance):
                    others.append(name)
        return others

    def _add_simple_skill(self, parent: SkillFolder, name: str, glance: Glance) -> bool:
        """Add a skill from a glance at its folder, unless more has to be read."""
        status, data = glance.file, glance.head
        path = f'{parent.path}{os.sep}{name}'
        if glance.has_inner or not data or status.st_size > MAX_SKILL_BYTES or path in self.folders:
            return False
        file = f'{path}{os.sep}{SKILL_FILE}'
        head = self._parse(file, name, data, complete=len(data) >= status.st_size)
        if head.header is None or len(self.folders) >= self.limits.scanned_folders:
            return False
        skill = self._skill(path, parent.root, SKILL_FILE, head, data)
        folder_stamp, file_stamp = self._stamp(glance.folder), self._stamp(status)
        self.folders[path] = ScannedFolder(path, folder_stamp, file, file_stamp, skill, head.problems)
        if self.settings.whole_files:
            self.ordinary.add(path)
        return True

    def _stamp(self, status: os.stat_result) -> FileStamp:
        return settled(status, self._started, self.limits.coarse_tick_ns)

    def _skill(self, folder: str, root: str, file_name: str, head: ParsedHead, data: bytes) -> FolderSkill:
        assert head.header is not None
        if (self._reader.root, self._reader.file_name) != (root, file_name):
            self._reader = SkillReader(root, file_name, self.settings)
        headings = '' if self.settings.whole_files else find_headings(data, head.body_start or 0)
        return FolderSkill.found(self._reader, folder, head.header, headings)

    def _cannot_open(self, path: str, depth: int, error: OSError) -> None:
        if error.errno in _EXHAUSTED:
            # It says nothing about the folder. The catalog keeps the skills of the last scan.
            raise error
        if depth == 0 and isinstance(error, (FileNotFoundError, NotADirectoryError)):
            self.problems.append(problem('directory-missing', self.settings.path, 'There is no such directory.'))
        elif not isinstance(error, FileNotFoundError):
            # Without a stamp, it is opened again at each look: no stamp changes when it becomes readable.
            unreadable = problem('unreadable', path, f'The folder cannot be read: {reason(error)}.')
            self.folders[path] = ScannedFolder(path, NEVER, problems=(unreadable,))
            self.folders[path].was_readable = False
        if path in self.before and _has_fresh_parent(path):
            self.in_doubt.add(path)

    def _read_folder(self, folder: SkillFolder, opened: OpenFolder) -> ScannedFolder:
        """Read the head of the folder's `SKILL.md`, and note which folders in it may hold skills."""
        scanned = ScannedFolder(folder.path, self._stamp(opened.status()))
        has_file = self._read_skill(folder, scanned, opened, SKILL_FILE)
        if scanned.skill is None:
            # A `SKILL.md` that is not a skill hides none of the skills below it.
            self._read_entries(scanned, opened)
            if not has_file and scanned.file is not None:
                self._read_skill(folder, scanned, opened, os.path.basename(scanned.file))
        if scanned.skill is not None:
            scanned.inner = (NESTED_FOLDER,) if opened.has_folder(NESTED_FOLDER) else ()
            scanned.links = ()
        elif self._has_lost(scanned) and is_fresh(opened.status()):
            self._doubt(scanned)
        return scanned

    def _read_entries(self, scanned: ScannedFolder, opened: OpenFolder) -> None:
        """Note the folders and links in a folder, and its `SKILL.md` in whatever case."""
        entries = opened.entries(self.limits.scanned_folders)
        self.was_cut |= len(entries) == self.limits.scanned_folders
        names = {entry.name.lower(): entry.name for entry in entries}
        if 'skill.md' in names:
            scanned.file = f'{scanned.path}{os.sep}{names["skill.md"]}'
        if 'pyvenv.cfg' in names:
            return
        entries = [entry for entry in entries if may_hold_skills(entry.name, hidden=self.limits.hidden_folders)]
        scanned.inner = tuple(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        self._note_links(scanned, [entry.name for entry in entries if entry.is_symlink()])

    def _note_links(self, scanned: ScannedFolder, names: Iterable[str]) -> None:
        links = [f'{scanned.path}{os.sep}{name}' for name in names]
        scanned.links = tuple((link, os.path.isdir(link)) for link in links)
        if not self.settings.follow_links:
            message = 'It is a link and is not followed; use SkillsDirectory(..., follow_links=True) to allow it.'
            scanned.problems += tuple(problem('folder-link', link, message) for link in scanned.folder_links)

    def _has_lost(self, scanned: ScannedFolder) -> bool:
        """Whether a skill or a folder that was in it before is gone."""
        last = self.before.get(scanned.path)
        return last is not None and (last.skill is not None or not set(last.inner) <= set(scanned.inner))

    def _doubt(self, scanned: ScannedFolder) -> None:
        scanned.stamp = NEVER
        self.in_doubt.add(scanned.path)

    # --- Files ----------------------------------------------------------------------------------------------------

    def _read_skill(self, folder: SkillFolder, scanned: ScannedFolder, opened: OpenFolder, name: str) -> bool:
        """Make a skill of the head of a file, or note why not; `False` if there is no such file."""
        path = f'{scanned.path}{os.sep}{name}'
        try:
            status, data = opened.head(name, MAX_SKILL_BYTES if self.settings.whole_files else HEAD_BYTES)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno in _EXHAUSTED:
                raise
            scanned.file = path
            scanned.problems = (problem('unreadable', path, f'The file cannot be read: {reason(error)}.'),)
            return True
        scanned.file, scanned.file_stamp = path, self._stamp(status)
        if not stat.S_ISREG(status.st_mode):
            scanned.problems = (problem('special-file', path, 'It is not a regular file.'),)
        elif status.st_size > MAX_SKILL_BYTES:
            message = f'It has {status.st_size:,} bytes; at most {MAX_SKILL_BYTES:,} are read.'
            scanned.problems = (problem('too-large', path, message),)
        else:
            folder_name = scanned.path[scanned.path.rfind(os.sep) + 1 :]
            head = self._parse(path, folder_name, data, complete=len(data) >= status.st_size)
            if head.needs_more:
                _, data = opened.head(name, MAX_FRONTMATTER_BYTES + 1)
                head = self._parse(path, folder_name, data, complete=len(data) <= MAX_FRONTMATTER_BYTES)
            self._take(folder, scanned, opened, name, head, data)
        return True

    def _parse(self, file: str, folder_name: str, data: bytes, *, complete: bool) -> ParsedHead:
        """Parse the beginning of a file. Its body is only checked for being text."""
        validate = self.settings.validate
        head = parse_head(data, path=file, folder_name=folder_name, validate=validate, complete=complete)
        if head.header is None or data.isascii():
            return head
        # Never taken for complete: a file that is being written may end in the middle of a character.
        wrong = check_text(data[:HEAD_BYTES], file, complete=False)
        if wrong:
            return ParsedHead(header=None, problems=wrong)
        wrong = check_text(data, file) if self.settings.whole_files else ()
        return head._replace(problems=head.problems + wrong) if wrong else head

    def _take(
        self, folder: SkillFolder, scanned: ScannedFolder, opened: OpenFolder, name: str, head: ParsedHead, data: bytes
    ) -> None:
        """Keep what the head of a file says, or note that the file may be half written."""
        scanned.problems = head.problems
        if name != SKILL_FILE:
            message = f'The file is called {name}; rename it to {SKILL_FILE}.'
            scanned.problems += (problem('file-name', scanned.file or '', message),)
        if head.header is not None:
            scanned.skill = self._skill(folder.path, folder.root, name, head, data)
        elif head.problems[-1].code in HALF_WRITTEN:
            # Asked again, because the file may have been emptied after it was opened.
            status = opened.status_of(name)
            last = self.before.get(scanned.path)
            pause = self.limits.stall_ns if last is not None and last.skill is not None else QUIET_NS
            if status is None or is_fresh(status, pause):
                self._doubt(scanned)


def may_hold_skills(name: str, *, hidden: bool) -> bool:
    """Whether skills are looked for in folders of this name; with `hidden`, in hidden ones too."""
    if name.startswith('.'):
        return name in DOT_FOLDERS or (hidden and name.lower() not in TOOL_FOLDERS)
    return name.lower() not in _HOLD_NO_SKILLS


def _has_fresh_parent(path: str) -> bool:
    try:
        return is_fresh(os.lstat(os.path.dirname(path)))
    except OSError:
        return False
