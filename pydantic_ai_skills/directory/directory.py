"""A folder tree as skills: bounded, link-safe, lazy, and cheap to look at again.

Discovery reads the head of each `SKILL.md`. What was read is kept with the stamps of its files and folders, so that a
second look costs two `stat` calls a skill.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_ai_skills.filesystem.safe_open import LOOK_AGAIN_S, PATIENCE_S
from pydantic_ai_skills.filesystem.user_dirs import expand_home
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import FoundSkills, Skill

from .scan import Scan
from .scanned import Place, ScanSettings, collect
from .standard import StandardPlace, Trust, standard_places

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

    from .disk_index import DiskIndex

__all__ = ('SkillsDirectory',)


class SkillsDirectory:
    """A directory of skills, each a folder with a `SKILL.md`, at any depth down to `max_depth`.

    ```python
    from pydantic_ai_skills import SkillsDirectory

    skills = SkillsDirectory('examples/skills').get_skills()
    print(sorted(skills))
    #> ['csv-report', 'release-notes', 'unit-converter']
    ```
    """

    def __init__(
        self,
        path: str | Path,
        *,
        validate: bool = True,
        max_depth: int | None = 3,
        script_executor: SkillScriptExecutor | None = None,
        follow_links: bool = False,
        disk_index: bool | str | Path = False,
    ) -> None:
        """Remember a directory; it is read on first use.

        Args:
            path: The directory. It may be a skill itself.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.
            max_depth: How deep below `path` to look for skills; `None` for no limit.
            script_executor: What runs the scripts; a `LocalSkillScriptExecutor` when not given.
            follow_links: Whether a skill's folder may be a link. Links inside a skill are never followed.
            disk_index: Whether to keep what was found on disk, so that a later process reads only what has changed
                since: in the user's cache folder, or in this file.

        Raises:
            ValueError: `max_depth` is negative.
        """
        if max_depth is not None and max_depth < 0:
            raise ValueError(f'max_depth must be 0 or more, or None for no limit, not {max_depth}.')
        # Looking up the home folder is not allowed where Temporal imports a workflow, so only where it is asked for.
        self.path = expand_home(path) if str(path).startswith('~') else Path(path)
        self.validate = validate
        self.max_depth = max_depth
        self.script_executor = script_executor
        self.follow_links = follow_links
        self.disk_index = disk_index
        self._index: DiskIndex | None = None
        self._absolute = ''
        self._root = ''
        self.is_in_doubt = False
        """Whether the last look saw something that may be half written, so that the next one may see something else."""
        self._places: dict[str, Place] = {}
        self._found: FoundSkills | None = None
        self._lock = threading.Lock()
        self._standard: StandardPlace | None = None
        self._refused: FoundSkills | None = None

    @classmethod
    def standard(
        cls,
        *,
        project: str | Path | bool | None = True,
        user: str | Path | bool | None = True,
        trust: Trust | None = None,
        validate: bool = True,
        max_depth: int | None = 3,
        script_executor: SkillScriptExecutor | None = None,
        follow_links: bool = False,
        disk_index: bool | str | Path = False,
    ) -> list[SkillsDirectory]:
        """The directories where skills are by convention, the most important last. Those that are missing are empty.

        Those of the user are `~/.claude/skills`, `~/.agents/skills` and `user_skills_folder()`. Those of the project
        are `.claude/skills` and `.agents/skills` in its folder and in the folders above, up to the root of the git
        repository. Skills of a project come with whatever is checked out, so they are used only if it is trusted.

        ```python
        from pydantic_ai_skills import SkillsDirectory, SkillsToolset

        directories = SkillsDirectory.standard(trust=['~/work'])
        toolset = SkillsToolset(directories=directories)
        ```

        Args:
            project: A folder of the project; `True` for the current one, `False` or `None` for no project.
            user: The home folder of the user; `True` for this user's, `False` or `None` for no user.
            trust: The projects that are trusted, as folders with all that is in them, or a function that is called once
                with the folder of the project: the root of its git repository, if it is in one. None by default.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.
            max_depth: How deep below a directory to look for skills; `None` for no limit.
            script_executor: What runs the scripts; a `LocalSkillScriptExecutor` when not given.
            follow_links: Whether a skill's folder may be a link.
            disk_index: Whether to keep what was found on disk, or in which file.
        """
        directories: list[SkillsDirectory] = []
        for place in standard_places(project, user, trust):
            directory = cls(
                place.path,
                validate=validate,
                max_depth=max_depth,
                script_executor=script_executor,
                follow_links=follow_links,
                disk_index=disk_index,
            )
            directory._standard = place
            directories.append(directory)
        return directories

    def __repr__(self) -> str:
        return f'SkillsDirectory({str(self.path)!r})'

    def get_skills(self) -> dict[str, Skill[Any]]:
        """The skills that are there now, by name."""
        return {skill.name: skill for skill in self.find().skills}

    @property
    def problems(self) -> list[SkillProblem]:
        """What a person should know about the skills that are there now."""
        return list(self.find().problems)

    def find(self) -> FoundSkills:
        """Look at the directory. Where nothing has changed since the last look, its result is returned again."""
        with self._lock:
            if self._standard is not None and (refused := self._refuse(self._standard)) is not None:
                return refused
            last = self._found
            root = os.path.realpath(self.absolute_path)
            if last is None or root != self._root:
                # A link that leads elsewhere now makes it another directory.
                self._root, self._places = root, {}
                self._found = last = self._first_look()
            else:
                current = {path for path, place in self._places.items() if place.is_current()}
                if not current or len(current) < len(self._places):
                    found = self._look(current)
                    if found != last:
                        self._found = last = found
            return last

    def _refuse(self, place: StandardPlace) -> FoundSkills | None:
        """What to give in place of the skills of a standard place that is missing, or in a project nobody trusts."""
        if not os.path.isdir(self.path):
            given = FoundSkills()
        elif (refusal := place.refusal()) is not None:
            given = FoundSkills(problems=(refusal,))
        else:
            return None
        if given != self._refused:
            self._refused = given
        return self._refused

    @property
    def absolute_path(self) -> str:
        """The path, taken from the folder the program was in at the first look."""
        self._absolute = self._absolute or os.path.abspath(self.path)
        return self._absolute

    @property
    def folders(self) -> frozenset[str]:
        """The folders that were looked into for skills at the last look, and could be."""
        return frozenset(place.path for place in self._places.values() if place.was_open)

    def rest_is_current(self) -> bool:
        """Whether what lies outside `folders` is as it was: the folders in skills, and the ends of links."""
        return all(
            place.is_current()
            for place in self._places.values()
            if place.ends or (place.skill is not None and place.skill.listed)
        )

    def _first_look(self) -> FoundSkills:
        if self.disk_index is False:
            return self._look()
        from .disk_index import DiskIndex  # brings in SQLite, which most directories do without

        file = None if self.disk_index is True else self.disk_index
        self._index = DiskIndex(file, self._settings(), self._root)
        self._places, all_there = self._index.load()
        return collect(self._places) if all_there else self._look(self._places.keys())

    def _settings(self) -> ScanSettings:
        return ScanSettings(
            path=str(self.path),
            validate=self.validate,
            max_depth=self.max_depth,
            executor=self.script_executor,
            follow_links=self.follow_links,
        )

    def _look(self, current: Collection[str] = ()) -> FoundSkills:
        """Look at what has changed; where that is half written, once more after the writer had time to go on.

        Args:
            current: The places that were just seen to be as they were.
        """
        settings = self._settings()
        deadline = time.monotonic() + PATIENCE_S
        before = known = self._places
        while True:
            scan = Scan(settings, known=known, before=before, current=current)
            scan.visit(self._root)
            if not scan.in_doubt or time.monotonic() >= deadline:
                break
            known, current = scan.places, ()
            time.sleep(LOOK_AGAIN_S)
        scan.keep_half_written()
        self.is_in_doubt = bool(scan.in_doubt)
        self._places = scan.places
        if self._index is not None and not scan.was_cut:
            self._index.save(scan.places)
            scan.problems += [self._index.problem] if self._index.problem else []
        return scan.result()
