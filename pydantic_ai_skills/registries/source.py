"""Base of registries that have an address, and whose skills a lock file can pin."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic_ai_skills.types.found_skills import FoundSkills

from .base import LOCK_FILE, FindingRegistry
from .lockfile import LockedSource, locked_source
from .requirements import Requirement, Requirements
from .signatures import SkillSigner

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor


class SourceRegistry(FindingRegistry):
    """Skills of a source with an address. A project can name it, and its lock file can pin it."""

    kind: ClassVar[str]
    """The kind of source, as provenance, lock file, `pyproject.toml` and agent specs name it."""

    url: str = ''
    """The address of the source."""

    ref: str | None = None
    """What was asked for, such as a branch, a tag or a digest; `None` for whatever is there."""

    path: str = ''
    """The folder in it to look for skills in."""

    trusted: bool = False
    locked: bool = False
    lock_file: Path = Path(LOCK_FILE)
    require: tuple[Requirement, ...] = ()
    """What its skills must be to be offered."""

    signers: tuple[SkillSigner, ...] = ()
    """Who may sign its skills."""

    only: tuple[str, ...] | None = None
    """The names of the skills to offer; `None` for all."""

    script_executor: SkillScriptExecutor | None = None

    def __repr__(self) -> str:
        about = ''.join(f', {name}={value!r}' for name, value in (('path', self.path), ('ref', self.ref)) if value)
        return f'{type(self).__name__}({self.url!r}{about})'

    @property
    @abstractmethod
    def commit(self) -> str | None:
        """The revision its skills are from, such as a commit; `None` before the first look."""

    @property
    @abstractmethod
    def others(self) -> frozenset[str]:
        """The folders of the skills that `only` leaves out; none before the first look."""

    @abstractmethod
    def remote_commit(self) -> str:
        """Ask the source which revision it has now, without keeping anything.

        Raises:
            SkillRegistryError: It cannot be asked, or does not have what was asked for.
        """

    def fetch_all(self) -> FoundSkills:
        """Fetch every file, so that an offline start has them all, and return the skills and problems."""
        return self.find()

    def lock(self, path: str | Path | None = None) -> Path:
        """Record the revision and content of each skill, for `locked=True` to compare with.

        Other sources in the file stay. With `locked=True`, what the source has now is fetched first.

        Args:
            path: The lock file; `lock_file` when not given.

        Raises:
            SkillRegistryError: The skills cannot be fetched, or the file exists and is not a lock file.
        """
        path = path or self.lock_file
        if not self.locked and not self.require:
            return super().lock(path)
        self._unlocked().lock(path)
        self.refresh()
        return Path(path)

    def _unlocked(self) -> SourceRegistry:
        """A copy that has found nothing yet, and is not held to the lock file nor to what is required."""
        unlocked = copy(self)
        unlocked.locked, unlocked.require = False, ()
        return unlocked

    def requirements(self) -> Requirements:
        """The requirements that its skills must meet."""
        return Requirements(names=self.require, signers=self.signers, lock_file=self.lock_file)

    def locked_source(self) -> LockedSource:
        """What the lock file says about this source and the skills below `path`."""
        return locked_source(self.lock_file, kind=self.kind, url=self.url, ref=self.ref).beneath(self.path)
