"""The places where the skills of a project and of a user are by convention, and whether a project is trusted."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from pydantic_ai_skills.filesystem.user_dirs import expand_home, user_skills_folder
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem

__all__ = ('Checkout', 'StandardPlace', 'Trust', 'standard_places')

FOLDERS = (('.claude', 'skills'), ('.agents', 'skills'))
"""Where skills are in a project and in a home folder. The later one wins."""

Trust = Callable[[Path], bool] | Collection[str | Path]
"""Which checkouts are trusted: a function of the folder of a checkout, or the folders, with all that is in them."""


class Checkout:
    """A project whose skills are used only if somebody trusts it. That is asked once, when there are skills."""

    def __init__(self, root: Path, trust: Trust | None) -> None:
        """Remember a project.

        Args:
            root: Its folder: that of its git repository, if it is in one.
            trust: Which projects are trusted; `None` for none.
        """
        self.root = root
        self._trust = trust
        self._answer: bool | None = None
        self._lock = threading.Lock()

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
        # An empty text would mean the current folder, whichever that is.
        trusted = {Path(os.path.realpath(expand_home(folder))) for folder in folders if folder != ''}
        return not trusted.isdisjoint((self.root, *self.root.parents))


class StandardPlace:
    """A folder that may have skills, or not be there at all."""

    __slots__ = ('checkout', 'path')

    def __init__(self, path: Path, checkout: Checkout | None = None) -> None:
        """Remember a folder.

        Args:
            path: The folder.
            checkout: The project it is in; `None` if it is the user's own.
        """
        self.path = path
        self.checkout = checkout

    def refusal(self) -> SkillProblem | None:
        """Why its skills are not used, if they are not."""
        if self.checkout is None or self.checkout.is_trusted():
            return None
        message = (
            f'Its skills are not used: the project {str(self.checkout.root)!r} is not trusted. If you have read them, '
            'say so with trust=[...].'
        )
        return problem('project-untrusted', str(self.path), message)


def standard_places(
    project: str | Path | bool | None, user: str | Path | bool | None, trust: Trust | None
) -> list[StandardPlace]:
    """The standard places, the most important last: those of the user, then those of the project, the nearest last.

    Args:
        project: A folder of the project; `True` for the current one, `False` or `None` for no project.
        user: The home folder of the user; `True` for this user's, `False` or `None` for no user.
        trust: Which projects are trusted.
    """
    places: dict[Path, StandardPlace] = {}
    if user is not None and user is not False:
        home = Path.home() if user is True else expand_home(user)
        own = [home.joinpath(*folder) for folder in FOLDERS]
        own.append(user_skills_folder(None if user is True or str(user) == '~' else home))
        # Known by where the home folder really is, as a project is, which may be in it.
        real = Path(os.path.realpath(home))
        for path in own:
            known = real / path.relative_to(home) if path.is_relative_to(home) else Path(os.path.abspath(path))
            places[known] = StandardPlace(Path(os.path.abspath(path)))
    if project is not None and project is not False:
        start = Path(os.path.realpath('.' if project is True else expand_home(project)))
        folders = _up_to_repository(start)
        checkout = Checkout(folders[0], trust)
        for path in (folder.joinpath(*inner) for folder in folders for inner in FOLDERS):
            # A home folder that is a repository itself has the user's skills, not those of a project.
            places.setdefault(path, StandardPlace(path, checkout))
    return list(places.values())


def _up_to_repository(start: Path) -> list[Path]:
    """The folders from the root of the git repository that a folder is in down to it; only itself if it is in none."""
    way = list(_way_up(start))
    return way[::-1] if (way[-1] / '.git').exists() else [start]


def _way_up(folder: Path) -> Iterator[Path]:
    for step in (folder, *folder.parents):
        yield step
        if (step / '.git').exists():
            return
