"""One walk over a folder tree: which folders are skills, what their headers say, and what may still be written.

What was read is kept with the stamps of its files and folders, so that a second look costs two `stat` calls a skill.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai_skills.files import QUIET_NS, STALL_NS, FileStamp, OpenFolder, SkillFolder, is_fresh, reason, stamp
from pydantic_ai_skills.folder import MAX_SKILL_BYTES, NEVER, FolderSkill, SkillSource, is_skipped_folder, settled
from pydantic_ai_skills.parsing import parse_head
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types import FoundSkills, Skill

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

__all__ = ('Place', 'Scan', 'ScanSettings')

SKILL_FILE = 'SKILL.md'

HEAD_BYTES = 4096
"""How much of a `SKILL.md` is read at first; more only when its frontmatter is longer."""

MAX_SCANNED_FOLDERS = 200_000
"""How many folders are looked into below one directory."""

MAX_SCAN_DEPTH = 32
"""How deep skills are looked for when `max_depth` is `None`."""

PLUGIN_FOLDERS = frozenset({'.agents', '.claude'})
"""Dot folders that hold skills by convention; other ones are not looked into."""

NESTED_FOLDER = 'skills'
"""The only folder of a skill in which other skills are looked for."""


HALF_WRITTEN = frozenset({'empty-file', 'unclosed-frontmatter'})
"""What is wrong with the first part of a good file."""

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Why something cannot be opened that has nothing to do with it."""


@dataclass(frozen=True, kw_only=True)
class ScanSettings:
    """What a developer decides about a directory."""

    path: str
    """The directory as it was given, for the problems."""

    validate: bool
    """Whether to apply the Agent Skills rules beyond a usable name and description."""

    max_depth: int | None
    """How deep below it to look for skills."""

    executor: SkillScriptExecutor | None
    """What runs the scripts."""

    follow_links: bool
    """Whether a skill's folder may be a link."""


class Place:
    """A folder that was looked into: a skill, or a folder of folders."""

    __slots__ = ('file', 'file_stamp', 'inner', 'links', 'path', 'problems', 'skill', 'source', 'stamp')

    def __init__(self, path: str, folder_stamp: FileStamp) -> None:
        self.path = path
        self.stamp = folder_stamp
        self.inner: tuple[str, ...] = ()
        self.links: tuple[str, ...] = ()
        self.file: str | None = None
        self.file_stamp = NEVER
        self.skill: Skill[Any] | None = None
        self.source: SkillSource | None = None
        self.problems: tuple[SkillProblem, ...] = ()

    def is_current(self) -> bool:
        """Whether nothing on disk has changed since it was read."""
        try:
            return (
                stamp(os.lstat(self.path)) == self.stamp
                and (self.file is None or stamp(os.lstat(self.file)) == self.file_stamp)
                and (self.source is None or self.source.is_current())
            )
        except OSError:
            return False


class Scan:
    """One walk over a directory, which reuses the places that are still as they were."""

    def __init__(self, settings: ScanSettings, *, known: dict[str, Place], before: dict[str, Place]) -> None:
        self.settings = settings
        self.known = known
        self.before = before
        self.places: dict[str, Place] = {}
        self.problems: list[SkillProblem] = []
        self.in_doubt: set[str] = set()
        """Folders in which something that is broken or gone changed so short a time ago that it may be back soon."""
        self._max_depth = MAX_SCAN_DEPTH if settings.max_depth is None else settings.max_depth
        self._started = time.time_ns()
        self._was_cut = False

    def result(self) -> FoundSkills:
        """The skills of all places, the first of each name."""
        skills: dict[str, Skill[Any]] = {}
        for place in self.places.values():
            self.problems += place.problems
            if place.skill is None:
                continue
            first = skills.setdefault(place.skill.name, place.skill)
            if first is not place.skill:
                message = f'The skill {first.name!r} is in {first.path} already; give one of them another name.'
                self.problems.append(problem('duplicate-name', place.skill.path or '', message))
        if self._was_cut:
            message = (
                f'Only the first {MAX_SCANNED_FOLDERS:,} folders, at most {MAX_SCAN_DEPTH} deep, were looked into; '
                'name a smaller directory.'
            )
            self.problems.append(problem('too-many-folders', self.settings.path, message))
        return FoundSkills(tuple(skills.values()), tuple(self.problems))

    def keep_half_written(self) -> None:
        """Keep the last good version of a file that is never found whole because somebody writes it all the time."""
        for path in self.in_doubt & self.places.keys() & self.before.keys():
            last = self.before[path]
            if self.places[path].file is not None and last.skill is not None:
                last.stamp = NEVER
                self.places[path] = last

    # --- Folders --------------------------------------------------------------------------------------------------

    def visit(self, folder: SkillFolder, parent: OpenFolder | None, depth: int = 0, link: str | None = None) -> None:
        """Look at a folder and at the folders in it.

        Args:
            folder: The folder.
            parent: The folder it is in, where that is open.
            depth: How far below the directory it is.
            link: The link that led there, if one did.
        """
        path = folder.path
        if path in self.places:
            return
        if len(self.places) >= MAX_SCANNED_FOLDERS:
            self._was_cut = True
            return
        place = self.known.get(path)
        if place is not None and place.is_current():
            self.places[path] = place
            self._visit_inner(folder, place, None, depth)
            return
        try:
            with folder.open() if parent is None else parent.folder(folder.steps[-1]) as opened:
                place = self.places[path] = self._look_at(folder, opened)
                if link is not None:
                    # With the dot, the link is followed: where it leads elsewhere, that is seen.
                    place.path = f'{link}{os.sep}.'
                self._visit_inner(folder, place, opened, depth)
        except OSError as error:
            self._cannot_open(folder, depth, error)

    def _visit_inner(self, folder: SkillFolder, place: Place, opened: OpenFolder | None, depth: int) -> None:
        if depth < self._max_depth:
            for name in place.inner:
                self.visit(SkillFolder(folder.root, (*folder.steps, name)), opened, depth + 1)
            for link in place.links:
                self.visit(SkillFolder(os.path.realpath(link)), None, depth + 1, link)
        elif place.inner and self.settings.max_depth is None:
            self._was_cut = True

    def _cannot_open(self, folder: SkillFolder, depth: int, error: OSError) -> None:
        if error.errno in _EXHAUSTED:
            # It says nothing about the folder. What was found before is kept by the catalog.
            raise error
        path = folder.path
        if depth == 0 and isinstance(error, (FileNotFoundError, NotADirectoryError)):
            self.problems.append(problem('directory-missing', self.settings.path, 'There is no such directory.'))
        elif not isinstance(error, FileNotFoundError):
            self.problems.append(problem('unreadable', path, f'The folder cannot be read: {reason(error)}.'))
        if path in self.before and _has_fresh_parent(path):
            self.in_doubt.add(path)

    def _look_at(self, folder: SkillFolder, opened: OpenFolder) -> Place:
        """Read the head of the folder's `SKILL.md`, and note in which folders there may be others."""
        place = Place(opened.path, settled(opened.status(), self._started))
        if not self._read_skill(folder, place, opened, SKILL_FILE):
            self._look_inside(place, opened)
            if place.file is not None:
                self._read_skill(folder, place, opened, os.path.basename(place.file))
        elif place.skill is None:
            # A file that is no skill hides none.
            self._look_inside(place, opened)
        if place.skill is not None:
            place.inner, place.links = (NESTED_FOLDER,) if opened.has_folder(NESTED_FOLDER) else (), ()
        elif self._has_lost(place) and is_fresh(opened.status()):
            self._doubt(place)
        return place

    def _look_inside(self, place: Place, opened: OpenFolder) -> None:
        """Note the folders in a folder, and its `skill.md` in whatever letters."""
        inner: list[str] = []
        links: list[str] = []
        entries = opened.entries(MAX_SCANNED_FOLDERS)
        self._was_cut |= len(entries) == MAX_SCANNED_FOLDERS
        for entry in entries:
            if entry.name.lower() == SKILL_FILE.lower():
                place.file = f'{place.path}{os.sep}{entry.name}'
            elif entry.name == 'pyvenv.cfg':
                return
            elif is_skipped_folder(entry.name) and entry.name not in PLUGIN_FOLDERS:
                continue
            elif entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            elif entry.is_symlink() and entry.is_dir():
                links.append(f'{place.path}{os.sep}{entry.name}')
        place.inner = tuple(inner)
        if self.settings.follow_links:
            place.links = tuple(links)
        else:
            message = 'It is a link and is not followed; use SkillsDirectory(..., follow_links=True) to allow it.'
            place.problems += tuple(problem('folder-link', link, message) for link in links)

    def _was_skill(self, place: Place) -> bool:
        last = self.before.get(place.path)
        return last is not None and last.skill is not None

    def _has_lost(self, place: Place) -> bool:
        """Whether a skill or a folder that was there before is not there now."""
        last = self.before.get(place.path)
        return last is not None and (last.skill is not None or not set(last.inner) <= set(place.inner))

    def _doubt(self, place: Place) -> None:
        place.stamp = NEVER
        self.in_doubt.add(place.path)

    # --- Files ----------------------------------------------------------------------------------------------------

    def _read_skill(self, folder: SkillFolder, place: Place, opened: OpenFolder, name: str) -> bool:
        """Make a skill of the head of a file, or say why not; `False` if there is no such file."""
        path = f'{place.path}{os.sep}{name}'
        try:
            file = opened.file(name)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno in _EXHAUSTED:
                raise
            place.file = path
            place.problems = (problem('unreadable', path, f'The file cannot be read: {reason(error)}.'),)
            return True
        place.file = path
        try:
            status = os.fstat(file)
            place.file_stamp = settled(status, self._started)
            if not stat.S_ISREG(status.st_mode):
                place.problems = (problem('special-file', path, 'It is not a regular file.'),)
            elif status.st_size > MAX_SKILL_BYTES:
                message = f'It has {status.st_size:,} bytes; at most {MAX_SKILL_BYTES:,} are read.'
                place.problems = (problem('too-large', path, message),)
            else:
                self._read_head(folder, place, name, file, status)
        finally:
            os.close(file)
        return True

    def _read_head(self, folder: SkillFolder, place: Place, name: str, file: int, status: os.stat_result) -> None:
        path = f'{place.path}{os.sep}{name}'
        validate = self.settings.validate
        folder_name = os.path.basename(place.path)
        data = os.read(file, HEAD_BYTES)
        complete = len(data) >= status.st_size
        while (
            head := parse_head(data, path=path, folder_name=folder_name, validate=validate, complete=complete)
        ).needs_more:
            more = os.read(file, HEAD_BYTES)
            data += more
            complete = not more
        place.problems = head.problems
        if name != SKILL_FILE:
            message = f'The file is called {name}; rename it to {SKILL_FILE}.'
            place.problems += (problem('file-name', path, message),)
        if head.header is not None:
            executor = self.settings.executor
            place.source = SkillSource(folder, name, head.header.name, validate=validate, executor=executor)
            place.skill = FolderSkill(place.source, head.header)
        # As it is now: it may have been emptied after its size was looked at.
        elif head.problems[-1].code in HALF_WRITTEN and is_fresh(
            os.fstat(file), STALL_NS if self._was_skill(place) else QUIET_NS
        ):
            self._doubt(place)


def _has_fresh_parent(path: str) -> bool:
    try:
        return is_fresh(os.lstat(os.path.dirname(path)))
    except OSError:
        return False
