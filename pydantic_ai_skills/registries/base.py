"""Base class of registries: sources of skills that are not a local folder."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.filesystem.locks import ThreadLock
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.found_skills import FoundSkills, failed
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.skill import Skill

if TYPE_CHECKING:
    from .cached import CachedRegistry
    from .filtered import FilteredRegistry, SkillPredicate
    from .prefixed import PrefixedRegistry
    from .renamed import RenamedRegistry

LOCK_FILE = 'skills.lock'

_CREATING_LOCKS = threading.Lock()

_NOT_COPIED = frozenset({'_lock', '_found', '_failures', '_current', '_failed', '_stop_refreshing'})
"""Results, the lock and background work, which a copy starts without. The class has a default for each."""


class SkillRegistry(ABC):
    """A source of skills that is not a local folder. A subclass implements `get_skills`.

    Skills with files but without a `source` are not trusted, unless the class has `trusted = True`.

    ```python
    from pydantic_ai_skills import Skill, SkillRegistry, SkillsToolset


    class Handbook(SkillRegistry):
        def get_skills(self) -> list[Skill]:
            return [Skill('travel', 'Books travel. Use for trips.', 'Ask for the dates first.')]


    toolset = SkillsToolset(registries=[Handbook().prefixed('acme-')])
    print(sorted(toolset.skills))
    #> ['acme-travel']
    ```
    """

    # Defaults of the class, so that a subclass need not call `super().__init__()`.
    _lock: ThreadLock | None = None
    _found: FoundSkills | None = None
    _failures: tuple[SkillProblem, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        # A copy fetches by itself.
        return {name: value for name, value in vars(self).items() if name not in _NOT_COPIED}

    @abstractmethod
    def get_skills(self) -> list[Skill[Any]]:
        """Return the skills. Called off the event loop, once, and again by `refresh()`.

        An exception becomes a problem: the last skills are kept, and other sources still load. After a
        `SkillRegistryRefusedError`, or an HTTP error with the status 401 or 403, no skills are kept.
        """

    @property
    def problems(self) -> list[SkillProblem]:
        """The problems of its last skills."""
        return list(self._failures)

    @property
    def latest(self) -> FoundSkills | None:
        """What it found last, without network or files; `None` before the first call of `find`."""
        return self._found

    @property
    def is_stale(self) -> bool:
        """Whether to ask the source again: it is known to have changed, or its answer has expired."""
        return False

    def find(self) -> FoundSkills:
        """The skills and the problems: fetched by the first call, and kept for later ones."""
        found = self._found
        if found is None:
            with self._own_lock:
                found = self._found or self._ask()
        return found

    def refresh(self) -> FoundSkills:
        """Fetch again. A failure becomes a problem, and the last skills are kept."""
        with self._own_lock:
            return self._ask()

    async def refresh_async(self) -> FoundSkills:
        """Fetch again, off the event loop."""
        return await anyio.to_thread.run_sync(self.refresh)

    def _ask(self) -> FoundSkills:
        self._failures = ()
        try:
            found = self._look()._replace(source=repr(self))
            self._note_source(found)
        except Exception as error:  # noqa: BLE001 - the border that keeps one source from hiding the others
            found = failed(self, error, self._found)
            self._failures = found.problems
        if self._found is None or not found.is_same(self._found):
            self._found = found
        return self._found

    def _look(self) -> FoundSkills:
        return FoundSkills(tuple(self.get_skills()), tuple(self.problems))

    def _note_source(self, found: FoundSkills) -> None:
        """Set the provenance of skills that bring programs and do not say where they come from."""
        trusted = getattr(self, 'trusted', False) is True
        for skill in found.skills:
            if skill.source is None and (skill.path is not None or _has_programs(skill)):
                skill.source = SkillProvenance(kind='registry', url=self._kind, trusted=trusted)

    @property
    def _kind(self) -> str:
        return type(self).__name__

    @property
    def _own_lock(self) -> ThreadLock:
        with _CREATING_LOCKS:
            if self._lock is None:
                self._lock = ThreadLock()
            return self._lock

    # --- Wrappers -------------------------------------------------------------------------------------------------

    def filtered(self, predicate: SkillPredicate) -> FilteredRegistry:
        """A registry with only the skills for which `predicate`, a sync or async function, is true."""
        from .filtered import FilteredRegistry

        return FilteredRegistry(self, predicate)

    def prefixed(self, prefix: str) -> PrefixedRegistry:
        """A registry that puts `prefix`, such as `'acme-'`, before the names of its skills."""
        from .prefixed import PrefixedRegistry

        return PrefixedRegistry(self, prefix)

    def renamed(self, mapping: Mapping[str, str]) -> RenamedRegistry:
        """A registry that renames skills: `{new name: old name}`, as for toolsets."""
        from .renamed import RenamedRegistry

        return RenamedRegistry(self, mapping)

    def cached(self, ttl: float | timedelta | None = None) -> CachedRegistry:
        """A registry that asks this one again only after `ttl` seconds; never for `None`."""
        from .cached import CachedRegistry

        return CachedRegistry(self, ttl=ttl)

    def lock(self, path: str | Path = LOCK_FILE) -> Path:
        """Record the commit and content of each skill, for `locked=True` to compare with. Other sources stay.

        Args:
            path: The lock file.

        Raises:
            SkillRegistryError: The skills cannot be fetched, or the file exists and is not a lock file.
        """
        from .lockfile import write_lock

        return write_lock(Path(path), self.get_skills())


class RegistryOfObject(SkillRegistry):
    """A registry made of any object that has `get_skills()`."""

    def __init__(self, source: Any) -> None:
        """Remember the object. Its skills are trusted if it has `trusted = True`."""
        self.source = source
        self.trusted = getattr(source, 'trusted', False) is True

    def __repr__(self) -> str:
        return repr(self.source)

    def get_skills(self) -> list[Skill[Any]]:
        """Ask the object for its skills, which it may return as a mapping by name."""
        found: Any = self.source.get_skills()
        return list(cast(Mapping[str, Any], found).values() if isinstance(found, Mapping) else found)

    @property
    def _kind(self) -> str:
        return type(self.source).__name__


def as_registry(given: Any) -> SkillRegistry:
    """The registry that a developer passed, or one made of any object that has `get_skills()`.

    Raises:
        TypeError: It has no `get_skills()`.
    """
    if isinstance(given, SkillRegistry):
        return given
    if callable(getattr(given, 'get_skills', None)) and not isinstance(given, type):
        return RegistryOfObject(given)
    raise TypeError(
        f'registries takes registries, such as GitSkillsRegistry(url), or objects with get_skills(), not {given!r}.'
    )


class FindingRegistry(SkillRegistry):
    """A registry that finds its skills and its problems in one step: in `_look`, or in its own `find` and `refresh`."""

    def get_skills(self) -> list[Skill[Any]]:
        """Return the skills.

        Raises:
            SkillRegistryError: There are none because the source failed.
        """
        found = self.find()
        failures = [problem.message for problem in found.problems if problem.is_source_failure]
        if failures and not found.skills:
            raise SkillRegistryError(' '.join(failures))
        return list(found.skills)

    @property
    def problems(self) -> list[SkillProblem]:
        """The problems of its skills."""
        return list(self.find().problems)


def _has_programs(skill: Skill[Any]) -> bool:
    return skill.is_listed and any(script.function is None for script in skill.scripts)
