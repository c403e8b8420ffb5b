"""The folder of a project: what its files say about skills, and how far they are believed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.directory.standard import PROJECT_FOLDERS
from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.user_dirs import expand_home
from pydantic_ai_skills.registries.address import origin_of
from pydantic_ai_skills.registries.base import LOCK_FILE
from pydantic_ai_skills.registries.git.address import github_url
from pydantic_ai_skills.registries.requirements import Requirement, check_requirements
from pydantic_ai_skills.registries.signatures import SigstoreIdentity

from . import pyproject_toml as toml
from .checkout_trust import UserTrust, checkout_of, is_users_own, refusal, token_refusal
from .pyproject_toml import ProjectSettings, ProjectSource
from .write_folder import folder_in

if TYPE_CHECKING:
    from .known_facts import KnownFacts
    from .skills_lock_json import InstalledSkills

PROJECT_FILE = 'pyproject.toml'


class ProjectFolder:
    """What the files of a project say. Until the user trusts the project, that is only data to look at."""

    def __init__(self, root: str | Path, *, trust: UserTrust | None = None) -> None:
        """Remember a project; its file is read on first use.

        Args:
            root: The folder of its `pyproject.toml`, which need not exist.
            trust: What the user trusts, for a program that people start in folders of others: an untrusted project can
                be looked at, and nothing of it is run, imported or fetched. Without it, you vouch for the project.
        """
        self.root = Path(root).absolute()
        self.trust = trust
        self.file = self.root / PROJECT_FILE
        self.lock_file = self.root / LOCK_FILE

    @cached_property
    def settings(self) -> ProjectSettings:
        """What the file says about skills; for an untrusted project, only where they are and how to list them.

        Raises:
            SkillValidationError: The file is not TOML, or a setting does not exist or fit.
        """
        said = toml.read_settings(self.file)
        return said if self.is_trusted else said.as_data()

    def known_facts(self) -> KnownFacts:
        """What its lock file knows about skills now; nothing for an untrusted project."""
        from .known_facts import KnownFacts

        return KnownFacts(self)

    @cached_property
    def checkout(self) -> Path:
        """The folder that is trusted or not: the root of its git repository, or its own if it is in none."""
        return checkout_of(self.root)

    @cached_property
    def is_trusted(self) -> bool:
        """Whether its skills may run and its sources may be fetched."""
        return self.trust is None or self.trust.is_trusted(self.checkout)

    def check_trusted(self) -> None:
        """Raise a `SkillValidationError` that says how to trust it, unless it is trusted."""
        if self.trust is not None and not self.is_trusted:
            raise SkillValidationError(refusal(self.checkout, self.trust))

    def check_directory(self, directory: str | Path) -> None:
        """The same for a directory of skills, which may be elsewhere. The user's own folders are always trusted."""
        if self.trust is not None and not is_users_own(expand_home(directory)):
            type(self).find(expand_home(directory), trust=self.trust).check_trusted()

    @classmethod
    def find(cls, start: str | Path = '.', *, trust: UserTrust | None = None) -> Self:
        """The project a folder belongs to: the nearest `pyproject.toml` with a table for skills.

        Without one, the nearest folder that has a `pyproject.toml` or a usual folder of skills, or else the folder
        itself. Folders above the git repository and above the user's home do not count.

        Args:
            start: The folder.
            trust: As for the constructor.

        Raises:
            SkillValidationError: A file on the way is not TOML.
        """
        folders = list(_up_to_the_repository(Path(start).absolute()))
        files = (folder for folder in folders if (folder / PROJECT_FILE).is_file())
        for folder in files:
            if toml.read_table(toml.text_of(folder / PROJECT_FILE), label=str(folder / PROJECT_FILE)) is not None:
                return cls(folder, trust=trust)
        signs = (PROJECT_FILE, *PROJECT_FOLDERS)
        root = next((folder for folder in folders if any((folder / sign).exists() for sign in signs)), folders[0])
        return cls(root, trust=trust)

    @property
    def directories(self) -> list[Path]:
        """The directories of skills: those in the settings, or else the usual ones that exist.

        With `directories = "standard"` they are those of `SkillsDirectory.standard()`. An untrusted project has none
        outside its checkout, except for those of the user.
        """
        named = self.settings.directories
        if named == 'standard':
            paths = [directory.path for directory in SkillsDirectory.standard(project=self.root)]
        elif named is not None:
            paths = [self.root / expand_home(path) for path in named]
        else:
            paths = [self.root / path for path in PROJECT_FOLDERS if (self.root / path).is_dir()]
        return [path for path in paths if self._may_look_at(path)]

    def _may_look_at(self, path: Path) -> bool:
        inside = self.is_trusted or Path(os.path.realpath(path)).is_relative_to(self.checkout)
        return inside or is_users_own(path)

    @property
    def new_skills_folder(self) -> Path:
        """Where a new skill of the project belongs.

        Raises:
            SkillValidationError: The last of its directories is not a folder inside the project.
        """
        last = self.directories[-1] if self.directories else self.root / 'skills'
        return folder_in(self.root, last, setting='directories')

    @property
    def sources(self) -> tuple[ProjectSource, ...]:
        """The sources it has skills from, besides its directories."""
        return self.settings.sources

    @staticmethod
    def installed_elsewhere(file: str | Path) -> InstalledSkills:
        """The sources in the `skills-lock.json` of the npm installer `skills`, to be added here.

        Raises:
            SkillValidationError: It cannot be read, or is not such a file.
        """
        from .skills_lock_json import read_skills_lock_json  # seldom needed

        return read_skills_lock_json(file)

    def local_path(self, source: ProjectSource) -> Path:
        """The folder or file on this machine that a source names; its path starts from the project's folder."""
        path = Path(os.path.normpath(self.root / expand_home(source.url)))
        if (on_github := github_url(source.url)) and not path.exists():
            # Never assumed: a folder that went missing must not become the repository of a stranger.
            raise SkillValidationError(
                f'url = {source.url!r} is a folder of the project, and there is none. If you mean the repository on '
                f'GitHub, write url = "{on_github}".'
            )
        return path

    def required_of(self, source: ProjectSource) -> tuple[Requirement, ...]:
        """What the project and a source require of the source's skills."""
        return check_requirements((*self.settings.require, *source.require))

    def signers_of(self, source: ProjectSource) -> list[str | SigstoreIdentity]:
        """Who may sign skills of a source; paths of files start from the project's folder."""
        return [self._signer(signer) for signer in (*self.settings.signers, *source.signers)]

    def _signer(self, signer: str | SigstoreIdentity) -> str | SigstoreIdentity:
        if isinstance(signer, str):
            return str(self.root / expand_home(signer))
        if 'trust_config' in signer:
            return {**signer, 'trust_config': str(self.root / expand_home(signer['trust_config']))}
        return signer

    def token_env(self, source: ProjectSource, *, offline: bool) -> str | None:
        """The variable with the token of a source. The file asks for it, and the user allows it for a host."""
        if self.trust is None or source.token_env is None or source.is_local:
            return source.token_env
        origin = origin_of(source.url)
        if not origin or self.trust.may_send(source.token_env, origin):
            return source.token_env
        if offline:
            return None
        raise SkillValidationError(token_refusal(source.token_env, origin))


def _up_to_the_repository(start: Path) -> Iterator[Path]:
    home = Path(os.path.expanduser('~'))
    for folder in (start, *start.parents):
        yield folder
        if (folder / '.git').exists() or folder == home:
            return
