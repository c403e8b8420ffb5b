"""Several registries as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic_ai_skills.types.found_skills import FoundSkills, find_or_keep, keep_reachable, merge_sources

from .base import FindingRegistry, SkillRegistry, as_registry


class CombinedRegistry(FindingRegistry):
    """Several registries as one. Of two skills with the same name, the one from the earlier registry is used."""

    def __init__(self, registries: Sequence[SkillRegistry]) -> None:
        """Remember the registries, the most important first. Any object with `get_skills()` works."""
        self.registries = tuple(map(as_registry, registries))
        self._combined: tuple[Sequence[FoundSkills], FoundSkills] | None = None

    def __repr__(self) -> str:
        return f'CombinedRegistry({list(self.registries)!r})'

    @property
    def latest(self) -> FoundSkills | None:
        """What they found last, without any work; `None` until each of them was asked."""
        given = [registry.latest for registry in self.registries]
        known = [found for found in given if found is not None]
        return self._combine(known) if len(known) == len(given) else None

    @property
    def is_stale(self) -> bool:
        """Whether one of them is to be asked again."""
        return any(registry.is_stale for registry in self.registries)

    def find(self) -> FoundSkills:
        """What all of them have. One that fails does not hide the others."""
        return self._ask_all(lambda registry: registry.find())

    def refresh(self) -> FoundSkills:
        """Let all of them fetch again."""
        return self._ask_all(lambda registry: registry.refresh())

    def _ask_all(self, ask: Callable[[SkillRegistry], FoundSkills]) -> FoundSkills:
        last = self._combined[0] if self._combined else [None] * len(self.registries)
        return self._combine(
            [
                find_or_keep(lambda registry=registry: ask(registry), registry, before)
                for registry, before in zip(self.registries, last, strict=True)
            ]
        )

    def _combine(self, given: Sequence[FoundSkills]) -> FoundSkills:
        last = self._combined
        if last is None or any(now is not before for now, before in zip(given, last[0], strict=True)):
            reachable, renamed = keep_reachable(given)
            skills, lost = merge_sources(reachable)
            problems = (problem for found in given for problem in found.problems)
            self._combined = last = (given, FoundSkills(tuple(skills.values()), (*problems, *renamed, *lost)))
        return last[1]
