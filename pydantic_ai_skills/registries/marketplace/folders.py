"""The folders of plugins as one source, in which several skills may have the same name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pydantic_ai_skills.registries.checkout import FoundDirectory
from pydantic_ai_skills.types.found_skills import FoundSkills, same_objects


class PluginFolders:
    """The skills in the folders of plugins."""

    def __init__(self, root: Path, open_folder: Callable[[Path], FoundDirectory]) -> None:
        """Remember the folder that holds the plugins' folders, and how to open one of them."""
        self._root = root
        self._open = open_folder
        self._directories: dict[str, FoundDirectory] = {}
        self._last: list[FoundSkills] = []
        self._found = FoundSkills()

    def find(self) -> FoundSkills:
        """The skills of all plugins. If nothing has changed, the result is the same object."""
        for name in sorted(entry.name for entry in os.scandir(self._root) if entry.is_dir()):
            # Hidden folders hold no plugins.
            if not name.startswith('.') and name not in self._directories:
                self._directories[name] = self._open(self._root / name)
        now = [self._directories[name].find() for name in sorted(self._directories)]
        if not same_objects(now, self._last):
            skills = tuple(skill for found in now for skill in found.skills)
            self._last, self._found = now, FoundSkills(skills, tuple(each for found in now for each in found.problems))
        return self._found
