"""A folder tree as skills: bounded, link-safe, lazy, and cheap to look at again.

Discovery reads the head of each `SKILL.md`. What was read is kept with the stamps of its files and folders, so that a
second look costs two `stat` calls a skill.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_ai_skills.files import LOOK_AGAIN_S, PATIENCE_S, SkillFolder
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.scan import Place, Scan, ScanSettings
from pydantic_ai_skills.types import FoundSkills, Skill

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

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
    ) -> None:
        """Remember a directory; it is read on first use.

        Args:
            path: The directory. It may be a skill itself.
            validate: Whether to apply the Agent Skills rules beyond a usable name and description.
            max_depth: How deep below `path` to look for skills; `None` for no limit.
            script_executor: What runs the scripts; a `LocalSkillScriptExecutor` when not given.
            follow_links: Whether a skill's folder may be a link. Links inside a skill are never followed.

        Raises:
            ValueError: `max_depth` is negative.
        """
        if max_depth is not None and max_depth < 0:
            raise ValueError(f'max_depth must be 0 or more, or None for no limit, not {max_depth}.')
        self.path = Path(path).expanduser()
        self.validate = validate
        self.max_depth = max_depth
        self.script_executor = script_executor
        self.follow_links = follow_links
        self._places: dict[str, Place] = {}
        self._found: FoundSkills | None = None
        self._lock = threading.Lock()

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
            last = self._found
            if last is None or not self._places or not all(map(Place.is_current, self._places.values())):
                found = self._look()
                if last is None or found != last:
                    self._found = last = found
            return last

    def _look(self) -> FoundSkills:
        """Look at what has changed; where that is half written, once more after the writer had time to go on."""
        settings = ScanSettings(
            path=str(self.path),
            validate=self.validate,
            max_depth=self.max_depth,
            executor=self.script_executor,
            follow_links=self.follow_links,
        )
        deadline = time.monotonic() + PATIENCE_S
        before = known = self._places
        while True:
            scan = Scan(settings, known=known, before=before)
            scan.visit(SkillFolder(os.path.realpath(self.path)), None)
            if not scan.in_doubt or time.monotonic() >= deadline:
                break
            known = scan.places
            time.sleep(LOOK_AGAIN_S)
        scan.keep_half_written()
        self._places = scan.places
        return scan.result()
