"""A registry that puts a prefix before the names of its skills."""

from __future__ import annotations

from pydantic_ai_skills.types.found_skills import FoundSkills

from .base import SkillRegistry
from .renamed import rename_all
from .wrapper import WrapperRegistry


class PrefixedRegistry(WrapperRegistry):
    """The skills of a registry, with a prefix before their names."""

    def __init__(self, wrapped: SkillRegistry, prefix: str) -> None:
        """Remember the registry and the prefix, including the hyphen at its end."""
        super().__init__(wrapped)
        self.prefix = prefix

    def __repr__(self) -> str:
        return f'{self.wrapped!r}.prefixed({self.prefix!r})'

    def change(self, found: FoundSkills) -> FoundSkills:
        """Rename the skills."""
        return rename_all(found, lambda skill: self.prefix + skill.name)
