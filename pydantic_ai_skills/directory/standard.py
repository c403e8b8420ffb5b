"""The folders where projects and users keep skills by convention, and whether a project is trusted."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic_ai_skills.filesystem.locks import ThreadLock
from pydantic_ai_skills.filesystem.user_dirs import expand_home, user_skills_folder
from pydantic_ai_skills.problems import SkillProblem, problem

AGENTS_FOLDER = '.agents/skills'

STANDARD_FOLDERS = ('.claude/skills', AGENTS_FOLDER)
"""Where projects and home folders keep skills by convention; a later one wins."""

PROJECT_FOLDERS = (*STANDARD_FOLDERS, 'skills')
"""Where a project keeps skills if its `pyproject.toml` does not say; a later one wins."""

PACKAGE_FOLDERS = (AGENTS_FOLDER, 'skills')
"""Where a Python package keeps skills."""

DOT_FOLDERS = frozenset(folder.partition('/')[0] for folder in STANDARD_FOLDERS)
"""The hidden folders that a scan looks into."""

Trust = Callable[[Path], bool] | Collection[str | Path]
"""Which projects are trusted: a function of a project's folder, or the trusted folders, with everything below them."""


class ProjectTrust:
    """Whether the skills of a project may be used. The developer is asked once, when there are skills."""

    def __init__(self, root: Path, trust: Trust | None) -> None:
        self.root = root
        """The root of its git repository, or its folder if it is in none."""
        self._trust = trust
        self._answer: bool | None = None
        self._lock = ThreadLock()

    def is_trusted(self) -> bool:
        """Whether its skills may be used."""
        with self._lock:
            if self._answer is None:
                self._answer = self._ask()
            return self._answer

    def _ask(self) -> bool:
        if self._trust is None:
            return False
        if callable(self._trust):
            return self._trust(self.root) is True
        folders = [self._trust] if isinstance(self._trust, str | Path) else self._trust
        # An empty string would mean the current folder, whichever that is.
        trusted = {Path(os.path.realpath(expand_home(folder))) for folder in folders if folder != ''}
        return not trusted.isdisjoint((self.root, *self.root.parents))


class StandardFolder(NamedTuple):
    """A standard folder, which may not exist."""

    path: Path
    """The folder."""

    project: ProjectTrust | None = None
    """The project it belongs to; `None` if it is the user's own."""

    def refusal(self) -> SkillProblem | None:
        """Why its skills are not used, if they are not."""
        if self.project is None or self.project.is_trusted():
            return None
        root = str(self.project.root)
        message = f'Its skills are not used: project {root!r} is not trusted. Read them, then add it to trust=[...].'
        return problem('project-untrusted', str(self.path), message)


def standard_folders(
    project: str | Path | bool | None, user: str | Path | bool | None, trust: Trust | None
) -> list[StandardFolder]:
    """The standard folders, the most important last: the user's, then the project's, the nearest last.

    `SkillsDirectory.standard` explains the arguments.
    """
    folders: dict[Path, StandardFolder] = {}
    if user is not None and user is not False:
        folders.update(_user_folders(user))
    if project is not None and project is not False:
        for path, folder in _project_folders(project, trust):
            # The folders of a home folder that is a git repository are the user's, not a project's.
            folders.setdefault(path, folder)
    return list(folders.values())


def _user_folders(user: str | Path | bool) -> Iterator[tuple[Path, StandardFolder]]:
    home = Path.home() if isinstance(user, bool) else expand_home(user)
    own = [home / folder for folder in STANDARD_FOLDERS]
    own.append(user_skills_folder(None if user is True or str(user) == '~' else home))
    # The keys have links resolved, like those of a project, which may lie in the home folder.
    real = Path(os.path.realpath(home))
    for path in own:
        key = real / path.relative_to(home) if path.is_relative_to(home) else Path(os.path.abspath(path))
        yield key, StandardFolder(Path(os.path.abspath(path)))


def _project_folders(project: str | Path | bool, trust: Trust | None) -> Iterator[tuple[Path, StandardFolder]]:
    start = Path(os.path.realpath('.' if isinstance(project, bool) else expand_home(project)))
    way = list(_way_up(start))
    # From the root of the git repository down to the folder; only the folder itself if it is in no repository.
    folders = way[::-1] if (way[-1] / '.git').exists() else [start]
    project_trust = ProjectTrust(folders[0], trust)
    for path in (folder / inner for folder in folders for inner in STANDARD_FOLDERS):
        yield path, StandardFolder(path, project_trust)


def _way_up(folder: Path) -> Iterator[Path]:
    for step in (folder, *folder.parents):
        yield step
        if (step / '.git').exists():
            return
