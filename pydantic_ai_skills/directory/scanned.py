"""What is kept of the folders that were looked into for skills.

It is kept with the stamps of its files and folders, so that a second look costs two `stat` calls a skill.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai_skills.filesystem.safe_open import FileStamp, stamp
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import FoundSkills, Skill

from .folder_skill import NEVER, FolderSkill, SkillReader

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

__all__ = ('SKILL_FILE', 'OddPlace', 'Place', 'ScanSettings', 'collect')

SKILL_FILE = 'SKILL.md'


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
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

    def reader(self, root: str, file_name: str) -> SkillReader:
        """What reads the skills below a folder whose `SKILL.md` has a certain name."""
        return SkillReader(root, file_name, self.validate, self.executor)


class Place:
    """A folder that was looked into, and is a skill and nothing else."""

    __slots__ = ('file', 'file_stamp', 'path', 'skill', 'stamp')

    inner: tuple[str, ...] = ()
    """The names of the folders in it in which there may be skills."""
    links: tuple[str, ...] = ()
    """The links in it that are followed."""
    ends: tuple[tuple[str, bool], ...] = ()
    """The links in it, and whether each leads to a folder, which can change where it ends."""
    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about it."""
    was_open = True
    """Whether it could be looked into."""

    def __init__(
        self, path: str, folder_stamp: FileStamp, file: str | None, file_stamp: FileStamp, skill: FolderSkill | None
    ) -> None:
        self.path = path
        self.stamp = folder_stamp
        self.file = file
        self.file_stamp = file_stamp
        self.skill = skill

    def is_current(self) -> bool:
        """Whether nothing on disk has changed since it was read."""
        try:
            return (
                stamp(os.lstat(self.path)) == self.stamp
                and (self.file is None or stamp(os.lstat(self.file)) == self.file_stamp)
                and (self.skill is None or not self.skill.listed or self.skill.lists_are_current())
                and (not self.ends or all(os.path.isdir(link) == was_folder for link, was_folder in self.ends))
            )
        except OSError:
            return False


class OddPlace(Place):
    """Any other folder that was looked into: one with problems, a folder of folders, or a skill with skills in it."""

    __slots__ = ('ends', 'inner', 'links', 'problems', 'was_open')

    def __init__(self, path: str, folder_stamp: FileStamp) -> None:
        super().__init__(path, folder_stamp, None, NEVER, None)
        self.inner = self.links = ()
        self.ends = ()
        self.problems = ()
        self.was_open = True


def collect(places: Mapping[str, Place], problems: Iterable[SkillProblem] = ()) -> FoundSkills:
    """The skills of all places, the first of each name, with the problems of all places and some others."""
    skills: dict[str, Skill[Any]] = {}
    found: list[SkillProblem] = []
    for path in sorted(places):
        place = places[path]
        if place.problems:
            found += place.problems
        skill = place.skill
        if skill is None:
            continue
        first = skills.setdefault(skill.name, skill)
        if first is not skill:
            message = f'The skill {first.name!r} is in {first.path} already; give one of them another name.'
            found.append(problem('duplicate-name', skill.path or '', message))
    return FoundSkills(tuple(skills.values()), (*problems, *found))
