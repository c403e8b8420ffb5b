"""A registry around another one."""

from __future__ import annotations

from abc import abstractmethod

from pydantic_ai_skills.types.skill import FoundSkills

from .base import FindingRegistry, SkillRegistry, guarded

__all__ = ('WrapperRegistry',)


class WrapperRegistry(FindingRegistry):
    """A registry that changes what another one gives. The other one's skills stay as they are."""

    def __init__(self, wrapped: SkillRegistry) -> None:
        """Remember the registry to wrap."""
        self.wrapped = wrapped
        self._changed: tuple[FoundSkills, FoundSkills] | None = None

    @abstractmethod
    def change(self, found: FoundSkills) -> FoundSkills:
        """What this registry makes of what the other one found."""

    @property
    def latest(self) -> FoundSkills | None:
        """What it has now, without any work."""
        found = self.wrapped.latest
        return None if found is None else self._change(found)

    def find(self) -> FoundSkills:
        """What the wrapped registry has, changed."""
        return self._change(self.wrapped.find())

    def refresh(self) -> FoundSkills:
        """Let the wrapped registry fetch again."""
        return self._change(self.wrapped.refresh())

    def _change(self, found: FoundSkills) -> FoundSkills:
        last = self._changed
        if last is None or last[0] is not found:
            # The result is kept beside what it was made of, so that nothing changed gives the same object again.
            result = guarded(lambda: self.change(found), self, None if last is None else last[1])
            self._changed = last = (found, result)
        return last[1]
