"""What a registry is: a source of skills that is not a local folder, and the wrappers that can be put around it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import FoundSkills, Skill, SkillProvenance

if TYPE_CHECKING:
    from .cached import CachedRegistry
    from .filtered import FilteredRegistry
    from .prefixed import PrefixedRegistry
    from .renamed import RenamedRegistry

__all__ = ('LOCK_FILE', 'FindingRegistry', 'SkillRegistry', 'failed', 'guarded')

LOCK_FILE = 'skills.lock'


class SkillRegistry(ABC):
    """A source of skills that is not a local folder. Subclass it and say how to get them.

    Skills with files for which it gives no `source` are a stranger's, unless the class has `trusted = True`.

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
    _found: FoundSkills | None = None
    _failures: tuple[SkillProblem, ...] = ()

    @abstractmethod
    def get_skills(self) -> list[Skill[Any]]:
        """The skills it has. Called off the event loop, once, and again by `refresh()`.

        What it raises becomes a problem: the skills it gave before are kept, and other sources still load.
        """

    @property
    def problems(self) -> list[SkillProblem]:
        """What a person should know about the skills it gave last."""
        return list(self._failures)

    @property
    def latest(self) -> FoundSkills | None:
        """What it has now, without any work: no network, no files. `None` before the first look."""
        return self._found

    def find(self) -> FoundSkills:
        """The skills and the problems together: fetched the first time, and as they were after that."""
        found = self._found
        if found is None:
            with self._own_lock:
                found = self._found or self._ask()
        return found

    def refresh(self) -> FoundSkills:
        """Fetch again. What failed is a problem, and the skills from before are kept."""
        with self._own_lock:
            return self._ask()

    async def refresh_async(self) -> FoundSkills:
        """Fetch again, off the event loop."""
        return await anyio.to_thread.run_sync(self.refresh)

    def _ask(self) -> FoundSkills:
        self._failures = ()
        try:
            found = FoundSkills(tuple(self.get_skills()), tuple(self.problems))
            self._note_source(found)
        except Exception as error:  # noqa: BLE001 - the border that keeps one source from hiding the others
            found = failed(self, error, self._found)
            self._failures = found.problems
        if found != self._found or self._found is None:
            self._found = found
        return self._found

    def _note_source(self, found: FoundSkills) -> None:
        """Note where programs come from, where that was not said: they are a stranger's unless this is trusted."""
        trusted = getattr(self, 'trusted', False) is True
        for skill in found.skills:
            if skill.source is None and (skill.path is not None or _has_programs(skill)):
                skill.source = SkillProvenance(kind='registry', url=type(self).__name__, trusted=trusted)

    @property
    def _own_lock(self) -> threading.RLock:
        # `setdefault` is atomic: two threads get the same lock.
        return vars(self).setdefault('_lock_of_registry', threading.RLock())

    # --- Wrappers -------------------------------------------------------------------------------------------------

    def filtered(self, predicate: Callable[[Skill[Any]], bool]) -> FilteredRegistry:
        """A registry with those of its skills for which `predicate` is true."""
        from .filtered import FilteredRegistry

        return FilteredRegistry(self, predicate)

    def prefixed(self, prefix: str) -> PrefixedRegistry:
        """A registry with its skills under names that begin with `prefix`, such as `'acme-'`."""
        from .prefixed import PrefixedRegistry

        return PrefixedRegistry(self, prefix)

    def renamed(self, mapping: Mapping[str, str]) -> RenamedRegistry:
        """A registry with some of its skills under other names: `{new name: name it has}`, as for toolsets."""
        from .renamed import RenamedRegistry

        return RenamedRegistry(self, mapping)

    def cached(self, ttl: float | timedelta | None = None) -> CachedRegistry:
        """A registry that asks this one again only when what it gave is older than `ttl` seconds; `None`: never."""
        from .cached import CachedRegistry

        return CachedRegistry(self, ttl=ttl)

    def lock(self, path: str | Path = LOCK_FILE) -> Path:
        """Write down which commit and content each of its skills has now, for `locked=True` to hold them to.

        What the file says about other sources stays.

        Args:
            path: The lock file.

        Raises:
            SkillRegistryError: Its skills cannot be fetched, or the file is there and is no lock file.
        """
        from .lockfile import write_lock

        return write_lock(Path(path), self.get_skills())


class FindingRegistry(SkillRegistry):
    """A registry that knows its skills and its problems together."""

    @abstractmethod
    def find(self) -> FoundSkills:
        """The skills and the problems together."""

    @abstractmethod
    def refresh(self) -> FoundSkills:
        """Fetch again. What failed is a problem, and the skills from before are kept."""

    def get_skills(self) -> list[Skill[Any]]:
        """The skills it has.

        Raises:
            SkillRegistryError: It has none because its source failed.
        """
        found = self.find()
        failures = [problem.message for problem in found.problems if problem.code == 'source-failed']
        if failures and not found.skills:
            raise SkillRegistryError(' '.join(failures))
        return list(found.skills)

    @property
    def problems(self) -> list[SkillProblem]:
        """What a person should know about the skills it has."""
        return list(self.find().problems)


def _has_programs(skill: Skill[Any]) -> bool:
    return skill.is_listed and any(script.function is None for script in skill.scripts)


def guarded(find: Callable[[], FoundSkills], registry: SkillRegistry, last: FoundSkills | None) -> FoundSkills:
    """What `find` gives; where it raises, the skills from before with the problem."""
    try:
        return find()
    except Exception as error:  # noqa: BLE001 - the border that keeps one source from hiding the others
        return failed(registry, error, last)


def failed(registry: SkillRegistry, error: Exception, last: FoundSkills | None) -> FoundSkills:
    """The skills from before, with the problem that there are no newer ones."""
    skills = last.skills if last else ()
    what = str(error) if isinstance(error, SkillRegistryError) else f'It failed with {type(error).__name__}: {error}'
    kept = f' Its {len(skills)} skills from before are kept.' if skills else ''
    return FoundSkills(skills, (problem('source-failed', repr(registry), f'{what.rstrip(".")}.{kept}'),))
