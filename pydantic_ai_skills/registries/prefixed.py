"""A registry's skills under names of their own."""

from __future__ import annotations

from pydantic_ai_skills.types.skill import FoundSkills

from .base import SkillRegistry
from .renamed import rename_all
from .wrapper import WrapperRegistry

__all__ = ('PrefixedRegistry',)


class PrefixedRegistry(WrapperRegistry):
    """The skills of a registry under names that begin with a prefix."""

    def __init__(self, wrapped: SkillRegistry, prefix: str) -> None:
        """Remember the registry and the prefix, which ends with the hyphen that belongs before the name."""
        super().__init__(wrapped)
        self.prefix = prefix

    def __repr__(self) -> str:
        return f'{self.wrapped!r}.prefixed({self.prefix!r})'

    def change(self, found: FoundSkills) -> FoundSkills:
        """Give the skills their new names."""
        return rename_all(found, lambda skill: self.prefix + skill.name)
