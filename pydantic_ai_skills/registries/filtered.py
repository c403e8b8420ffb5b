"""A registry with some of another one's skills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.skill import Skill

from .base import SkillRegistry
from .wrapper import WrapperRegistry


class FilteredRegistry(WrapperRegistry):
    """The skills of a registry for which a predicate is true."""

    def __init__(self, wrapped: SkillRegistry, predicate: Callable[[Skill[Any]], bool]) -> None:
        """Remember the registry and the predicate, which is called off the event loop."""
        super().__init__(wrapped)
        self.predicate = predicate

    def __repr__(self) -> str:
        return f'{self.wrapped!r}.filtered({getattr(self.predicate, "__name__", "…")})'

    def change(self, found: FoundSkills) -> FoundSkills:
        """Keep the skills for which the predicate is true."""
        return FoundSkills(tuple(filter(self.predicate, found.skills)), found.problems)
