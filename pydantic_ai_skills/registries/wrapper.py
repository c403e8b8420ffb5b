"""A registry around another one."""

from __future__ import annotations

from abc import abstractmethod

from pydantic_ai_skills.types.found_skills import FoundSkills, find_or_keep

from .base import FindingRegistry, SkillRegistry


class WrapperRegistry(FindingRegistry):
    """A registry that changes what another one finds. The skills of the other one stay as they are."""

    def __init__(self, wrapped: SkillRegistry) -> None:
        """Remember the registry to wrap."""
        self.wrapped = wrapped
        self._changed: tuple[FoundSkills, FoundSkills] | None = None

    @abstractmethod
    def change(self, found: FoundSkills) -> FoundSkills:
        """Change what the other registry found."""

    @property
    def latest(self) -> FoundSkills | None:
        """What the wrapped registry found last, changed; nothing is fetched for it."""
        found = self.wrapped.latest
        return None if found is None else self._change(found)

    @property
    def is_stale(self) -> bool:
        """Whether the wrapped registry is to be asked again."""
        return self.wrapped.is_stale

    def find(self) -> FoundSkills:
        """What the wrapped registry has, changed."""
        return self._change(self.wrapped.find())

    def refresh(self) -> FoundSkills:
        """Let the wrapped registry fetch again."""
        return self._change(self.wrapped.refresh())

    def _change(self, found: FoundSkills) -> FoundSkills:
        last = self._changed
        if last is None or last[0] is not found:
            # Kept with its origin, so that an unchanged origin gives the same object again.
            result = find_or_keep(lambda: self.change(found), self, None if last is None else last[1])
            self._changed = last = (found, result)
        return last[1]
