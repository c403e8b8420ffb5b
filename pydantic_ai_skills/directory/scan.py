"""One walk over a folder tree: which folders are skills, what their headers say, and what may still be written."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.safe_open import (
    QUIET_NS,
    STALL_NS,
    Glance,
    OpenFolder,
    SkillFolder,
    is_fresh,
    reason,
)
from pydantic_ai_skills.parsing import MAX_FRONTMATTER_BYTES, ParsedHead, check_text, find_headings, parse_head
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import FoundSkills

from .folder_skill import MAX_SKILL_BYTES, NEVER, FolderSkill, is_skipped_folder, settled
from .scanned import SKILL_FILE, OddPlace, Place, ScanSettings, collect

if TYPE_CHECKING:
    pass

__all__ = ('Scan',)

HEAD_BYTES = 16 * 1024
"""How much of a `SKILL.md` is read at first; more only when its frontmatter is longer. Its headings can be searched."""

BATCH = 32
"""How many folders are looked into before what was read there is parsed."""

MAX_SCANNED_FOLDERS = 200_000
"""How many folders are looked into below one directory."""

MAX_SCAN_DEPTH = 32
"""How deep skills are looked for when `max_depth` is `None`."""

PLUGIN_FOLDERS = frozenset({'.agents', '.claude'})
"""Dot folders that hold skills by convention; other ones are not looked into."""

NESTED_FOLDER = 'skills'
"""The only folder of a skill in which other skills are looked for."""


HALF_WRITTEN = frozenset({'empty-file', 'not-utf8', 'unclosed-frontmatter'})
"""What is wrong with the first part of a good file, or with parts of two versions of it."""

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Why something cannot be opened that has nothing to do with it."""


class Scan:
    """One walk over a directory, which reuses the places that are still as they were."""

    def __init__(
        self,
        settings: ScanSettings,
        *,
        known: Mapping[str, Place],
        before: Mapping[str, Place],
        current: Collection[str] = (),
    ) -> None:
        """Begin a walk.

        Args:
            settings: What the developer decided.
            known: The places of an earlier walk.
            before: The places as they were before anything changed.
            current: Those that were just seen to be as they were.
        """
        self.settings = settings
        self.current = current
        self.known = known
        self.before = before
        self.places: dict[str, Place] = {}
        self.problems: list[SkillProblem] = []
        self.in_doubt: set[str] = set()
        """Folders in which something that is broken or gone changed so short a time ago that it may be back soon."""
        self._links: list[tuple[int, str]] = []
        self._max_depth = MAX_SCAN_DEPTH if settings.max_depth is None else settings.max_depth
        self._started = time.time_ns()
        self._reader = settings.reader(settings.path, SKILL_FILE)
        self.was_cut = False
        """Whether there was more than is looked at."""

    def result(self) -> FoundSkills:
        """The skills of all places, the first of each name."""
        if self.was_cut:
            message = (
                f'Only the first {MAX_SCANNED_FOLDERS:,} folders, at most {MAX_SCAN_DEPTH} deep, were looked into; '
                'name a smaller directory.'
            )
            self.problems.append(problem('too-many-folders', self.settings.path, message))
        return collect(self.places, self.problems)

    def keep_half_written(self) -> None:
        """Keep the last good version of a file that is never found whole because somebody writes it all the time."""
        for path in self.in_doubt & self.places.keys() & self.before.keys():
            last = self.before[path]
            if self.places[path].file is not None and last.skill is not None:
                last.stamp = NEVER
                self.places[path] = last

    # --- Folders --------------------------------------------------------------------------------------------------

    def visit(self, root: str) -> None:
        """Look at a folder that may be trusted to be what it is, links resolved, and at the folders in it."""
        self._visit(SkillFolder(root), None, 0)
        # The shortest way to a folder counts, because only so many steps are taken from there.
        while self._links:
            depth, link = heappop(self._links)
            place = self._visit(SkillFolder(os.path.realpath(link)), None, depth)
            if place is not None:
                # With the dot, the link is followed: where it leads elsewhere, that is seen.
                place.path = f'{link}{os.sep}.'

    def _visit(self, folder: SkillFolder, parent: OpenFolder | None, depth: int) -> Place | None:
        """Look at a folder, through the one it is in where that is open; the place, unless it is known or not there."""
        path = folder.path
        if path in self.places:
            return None
        if len(self.places) >= MAX_SCANNED_FOLDERS:
            self.was_cut = True
            return None
        place = self.known.get(path)
        if place is not None and (path in self.current or place.is_current()):
            self.places[path] = place
            if place.inner or place.links:
                self._visit_inner(folder, place, None, depth)
            return None
        try:
            with folder.open() if parent is None else parent.folder_at(path) as opened:
                place = self.places[path] = self._look_at(folder, opened)
                if place.inner or place.links:
                    self._visit_inner(folder, place, opened, depth)
        except OSError as error:
            self._cannot_open(path, depth, error)
        return place

    def _visit_inner(self, folder: SkillFolder, place: Place, opened: OpenFolder | None, depth: int) -> None:
        if depth < self._max_depth:
            root, path, names = folder.root, folder.path, place.inner
            if opened is not None and opened.is_by_descriptor and not self.known:
                names = self._glance_at(folder, names, opened)
            for name in names:
                self._visit(SkillFolder(root, f'{path}{os.sep}{name}'), opened, depth + 1)
            for link in place.links:
                heappush(self._links, (depth + 1, link))
        elif place.inner and self.settings.max_depth is None:
            self.was_cut = True

    def _glance_at(self, folder: SkillFolder, names: Sequence[str], opened: OpenFolder) -> list[str]:
        """Take in the folders that are simply skills, a batch at a time: first all system calls, then all parsing.

        Turns of one and the other would cost a third more. Returns the names of those that are not so simple.
        """
        left: list[str] = []
        for start in range(0, len(names), BATCH):
            batch = names[start : start + BATCH]
            glances = [opened.glance(name, SKILL_FILE, NESTED_FOLDER, HEAD_BYTES) for name in batch]
            for name, glance in zip(batch, glances, strict=True):
                if glance is None or not self._take_glance(folder, name, glance):
                    left.append(name)
        return left

    def _take_glance(self, parent: SkillFolder, name: str, glance: Glance) -> bool:
        """Take in a skill from a glance at its folder, if it is as simple as that."""
        status, data = glance.file, glance.head
        path = f'{parent.path}{os.sep}{name}'
        if glance.has_inner or not data or status.st_size > MAX_SKILL_BYTES or path in self.places:
            return False
        file = f'{path}{os.sep}{SKILL_FILE}'
        head = self._parse(file, name, data, complete=len(data) >= status.st_size)
        if head.header is None or len(self.places) >= MAX_SCANNED_FOLDERS:
            return False
        stamps = settled(glance.folder, self._started), settled(status, self._started)
        skill = self._skill(path, parent.root, SKILL_FILE, head, data)
        if head.problems:
            place = OddPlace(path, stamps[0])
            place.file, place.file_stamp, place.skill, place.problems = file, stamps[1], skill, head.problems
        else:
            place = Place(path, stamps[0], file, stamps[1], skill)
        self.places[path] = place
        return True

    def _skill(self, folder: str, root: str, file_name: str, head: ParsedHead, data: bytes) -> FolderSkill:
        assert head.header is not None
        if (self._reader.root, self._reader.file_name) != (root, file_name):
            self._reader = self.settings.reader(root, file_name)
        return FolderSkill(self._reader, folder, head.header, find_headings(data, head.body_start or 0))

    def _cannot_open(self, path: str, depth: int, error: OSError) -> None:
        if error.errno in _EXHAUSTED:
            # It says nothing about the folder. What was found before is kept by the catalog.
            raise error
        if depth == 0 and isinstance(error, (FileNotFoundError, NotADirectoryError)):
            self.problems.append(problem('directory-missing', self.settings.path, 'There is no such directory.'))
        elif not isinstance(error, FileNotFoundError):
            # Looked at again each time: nothing else changes when it can be read.
            place = self.places[path] = OddPlace(path, NEVER)
            place.was_open = False
            place.problems = (problem('unreadable', path, f'The folder cannot be read: {reason(error)}.'),)
        if path in self.before and _has_fresh_parent(path):
            self.in_doubt.add(path)

    def _look_at(self, folder: SkillFolder, opened: OpenFolder) -> OddPlace:
        """Read the head of the folder's `SKILL.md`, and note in which folders there may be others."""
        place = OddPlace(folder.path, settled(opened.status(), self._started))
        if not self._read_skill(folder, place, opened, SKILL_FILE):
            self._look_inside(place, opened)
            if place.file is not None:
                self._read_skill(folder, place, opened, os.path.basename(place.file))
        elif place.skill is None:
            # A file that is no skill hides none.
            self._look_inside(place, opened)
        if place.skill is not None:
            place.inner, place.links = (NESTED_FOLDER,) if opened.has_folder(NESTED_FOLDER) else (), ()
            place.ends = ()
        elif self._has_lost(place) and is_fresh(opened.status()):
            self._doubt(place)
        return place

    def _look_inside(self, place: OddPlace, opened: OpenFolder) -> None:
        """Note the folders in a folder, and its `skill.md` in whatever letters."""
        inner: list[str] = []
        ends: list[tuple[str, bool]] = []
        entries = opened.entries(MAX_SCANNED_FOLDERS)
        self.was_cut |= len(entries) == MAX_SCANNED_FOLDERS
        for entry in entries:
            name = entry.name
            if len(name) == len(SKILL_FILE) and name.lower() == 'skill.md':
                place.file = f'{place.path}{os.sep}{name}'
            elif name == 'pyvenv.cfg':
                return
            elif is_skipped_folder(name) and name not in PLUGIN_FOLDERS:
                continue
            elif entry.is_dir(follow_symlinks=False):
                inner.append(name)
            elif entry.is_symlink():
                link = f'{place.path}{os.sep}{name}'
                ends.append((link, os.path.isdir(link)))
        place.inner = tuple(inner)
        place.ends = tuple(ends)
        links = [link for link, is_folder in ends if is_folder]
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

    def _read_skill(self, folder: SkillFolder, place: OddPlace, opened: OpenFolder, name: str) -> bool:
        """Make a skill of the head of a file, or say why not; `False` if there is no such file."""
        try:
            status, data = opened.head(name, HEAD_BYTES)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno in _EXHAUSTED:
                raise
            path = place.file = f'{place.path}{os.sep}{name}'
            place.problems = (problem('unreadable', path, f'The file cannot be read: {reason(error)}.'),)
            return True
        path = place.file = f'{place.path}{os.sep}{name}'
        place.file_stamp = settled(status, self._started)
        if not stat.S_ISREG(status.st_mode):
            place.problems = (problem('special-file', path, 'It is not a regular file.'),)
        elif status.st_size > MAX_SKILL_BYTES:
            message = f'It has {status.st_size:,} bytes; at most {MAX_SKILL_BYTES:,} are read.'
            place.problems = (problem('too-large', path, message),)
        else:
            folder_name = place.path[place.path.rfind(os.sep) + 1 :]
            head = self._parse(path, folder_name, data, complete=len(data) >= status.st_size)
            if head.needs_more:
                _, data = opened.head(name, MAX_FRONTMATTER_BYTES + 1)
                head = self._parse(path, folder_name, data, complete=len(data) <= MAX_FRONTMATTER_BYTES)
            self._take(folder, place, opened, name, head, data)
        return True

    def _parse(self, file: str, folder_name: str, data: bytes, *, complete: bool) -> ParsedHead:
        """What the first bytes of a file say. Those of its body need only be text."""
        validate = self.settings.validate
        head = parse_head(data, path=file, folder_name=folder_name, validate=validate, complete=complete)
        # Never taken for complete: while it is written, a file may end in the middle of a character.
        wrong = check_text(data, file, complete=False) if head.header is not None else ()
        return ParsedHead(header=None, problems=wrong) if wrong else head

    def _take(
        self, folder: SkillFolder, place: OddPlace, opened: OpenFolder, name: str, head: ParsedHead, data: bytes
    ) -> None:
        """Take in what the head of a file says, or note that it may be half written."""
        place.problems = head.problems
        if name != SKILL_FILE:
            message = f'The file is called {name}; rename it to {SKILL_FILE}.'
            place.problems += (problem('file-name', place.file or '', message),)
        if head.header is not None:
            place.skill = self._skill(folder.path, folder.root, name, head, data)
        elif head.problems[-1].code in HALF_WRITTEN:
            # As it is now: it may have been emptied after its size was looked at.
            status = opened.status_of(name)
            if status is None or is_fresh(status, STALL_NS if self._was_skill(place) else QUIET_NS):
                self._doubt(place)


def _has_fresh_parent(path: str) -> bool:
    try:
        return is_fresh(os.lstat(os.path.dirname(path)))
    except OSError:
        return False
