"""Several registries as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.types.skill import FoundSkills, Skill

from .base import FindingRegistry, SkillRegistry, guarded

__all__ = ('CombinedRegistry',)


class CombinedRegistry(FindingRegistry):
    """Several registries as one. Of two skills with the same name the one of the earlier registry is used."""

    def __init__(self, registries: Sequence[SkillRegistry]) -> None:
        """Remember the registries, the most important first."""
        self.registries = tuple(registries)
        self._combined: tuple[Sequence[FoundSkills], FoundSkills] | None = None

    def __repr__(self) -> str:
        return f'CombinedRegistry({list(self.registries)!r})'

    @property
    def latest(self) -> FoundSkills | None:
        """What they have now, without any work; `None` before the first look at one of them."""
        given = [registry.latest for registry in self.registries]
        known = [found for found in given if found is not None]
        return self._combine(known) if len(known) == len(given) else None

    def find(self) -> FoundSkills:
        """What all of them have. One that fails hides no other."""
        return self._ask_all(lambda registry: registry.find())

    def refresh(self) -> FoundSkills:
        """Let all of them fetch again."""
        return self._ask_all(lambda registry: registry.refresh())

    def _ask_all(self, ask: Callable[[SkillRegistry], FoundSkills]) -> FoundSkills:
        last = self._combined[0] if self._combined else [None] * len(self.registries)
        return self._combine(
            [
                guarded(lambda registry=registry: ask(registry), registry, before)
                for registry, before in zip(self.registries, last, strict=True)
            ]
        )

    def _combine(self, given: Sequence[FoundSkills]) -> FoundSkills:
        last = self._combined
        if last is None or any(now is not before for now, before in zip(given, last[0], strict=True)):
            self._combined = last = (given, _merge(given))
        return last[1]


def _merge(given: Sequence[FoundSkills]) -> FoundSkills:
    skills: dict[str, Skill[Any]] = {}
    problems = [problem for found in given for problem in found.problems]
    for found in given:
        for skill in found.skills:
            first = skills.setdefault(skill.name, skill)
            if first is not skill:
                message = f'The skill {skill.name!r} is not used: the one in {first.path or first.uri} comes first.'
                problems.append(problem('shadowed', skill.path or skill.uri, message))
    return FoundSkills(tuple(skills.values()), tuple(problems))
