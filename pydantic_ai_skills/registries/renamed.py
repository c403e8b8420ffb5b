"""A registry's skills under other names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import FoundSkills, Skill

from .base import SkillRegistry
from .wrapper import WrapperRegistry

__all__ = ('RenamedRegistry', 'rename_all')


class RenamedRegistry(WrapperRegistry):
    """The skills of a registry, some of them under other names."""

    def __init__(self, wrapped: SkillRegistry, mapping: Mapping[str, str]) -> None:
        """Remember the registry and the names.

        Args:
            wrapped: The registry.
            mapping: New names and the names they replace. A pair that is the other way round is understood if only
                one of its names is the name of a skill.
        """
        super().__init__(wrapped)
        self.mapping = dict(mapping)

    def __repr__(self) -> str:
        return f'{self.wrapped!r}.renamed({self.mapping!r})'

    def change(self, found: FoundSkills) -> FoundSkills:
        """Give the skills their new names; a pair that names no skill is a problem."""
        known = {skill.name for skill in found.skills}
        new_names: dict[str, str] = {}
        strangers: list[SkillProblem] = []
        for new, old in self.mapping.items():
            if old in known:
                new_names[old] = new
            elif new in known:
                new_names[new] = old
            else:
                message = f'There is no skill {old!r} to rename to {new!r}.'
                strangers.append(problem('rename-unknown', repr(self), message))
        renamed = rename_all(found, lambda skill: new_names.get(skill.name, skill.name))
        return FoundSkills(renamed.skills, (*renamed.problems, *strangers))


def rename_all(found: FoundSkills, new_name: Callable[[Skill[Any]], str]) -> FoundSkills:
    """The skills under new names. A name that breaks the rules, or that is taken, costs the skill, not the others."""
    skills: dict[str, Skill[Any]] = {}
    problems = list(found.problems)
    for skill in found.skills:
        name = new_name(skill)
        place = skill.path or skill.uri
        try:
            renamed = skill if name == skill.name else skill.renamed(name)
        except SkillValidationError as error:
            problems.append(problem('name-unusable', place, str(error)))
            continue
        if renamed.name in skills:
            message = f'The skill {skill.name!r} is not used: another one is called {renamed.name!r} already.'
            problems.append(problem('shadowed', place, message))
        else:
            skills[renamed.name] = renamed
    return FoundSkills(tuple(skills.values()), tuple(problems))
