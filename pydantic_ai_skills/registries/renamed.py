"""A registry that renames skills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.found_skills import FoundSkills, first_of_each_name
from pydantic_ai_skills.types.skill import Skill

from .base import SkillRegistry
from .wrapper import WrapperRegistry


class RenamedRegistry(WrapperRegistry):
    """The skills of a registry, some of them under other names."""

    def __init__(self, wrapped: SkillRegistry, mapping: Mapping[str, str]) -> None:
        """Remember the registry and the names.

        Args:
            wrapped: The registry.
            mapping: New names and the names they replace. A reversed pair is understood if only one of its names is
                that of a skill.
        """
        super().__init__(wrapped)
        self.mapping = dict(mapping)

    def __repr__(self) -> str:
        return f'{self.wrapped!r}.renamed({self.mapping!r})'

    def change(self, found: FoundSkills) -> FoundSkills:
        """Rename the skills; a pair that names no skill is a problem."""
        known = {skill.name for skill in found.skills}
        new_names: dict[str, str] = {}
        unknown: list[SkillProblem] = []
        for new, old in self.mapping.items():
            if old in known:
                new_names[old] = new
            elif new in known:
                new_names[new] = old
            else:
                message = f'There is no skill {old!r} to rename to {new!r}.'
                unknown.append(problem('rename-unknown', repr(self), message))
        renamed = rename_all(found, lambda skill: new_names.get(skill.name, skill.name))
        return renamed._replace(problems=(*renamed.problems, *unknown))


def rename_all(found: FoundSkills, new_name: Callable[[Skill[Any]], str]) -> FoundSkills:
    """Rename all skills. A name that is invalid or taken drops that skill only."""
    renamed: list[Skill[Any]] = []
    problems = list(found.problems)
    for skill in found.skills:
        name = new_name(skill)
        try:
            renamed.append(skill if name == skill.name else skill.renamed(name))
        except SkillValidationError as error:
            problems.append(problem('name-unusable', skill.path or skill.uri, str(error)))
    skills, lost = first_of_each_name(renamed)
    return found._replace(skills=tuple(skills.values()), problems=(*problems, *lost))
