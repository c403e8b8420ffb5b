"""Who wins: every source is asked, their skills are merged by priority, and the losers are kept as problems.

`load_catalog` is the spine of the package; the rest hangs off its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from pydantic_ai_skills.exceptions import SkillNotFoundError
from pydantic_ai_skills.parsing.rules import problem, spellings
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.lookup import MAX_NAMES_COMPARED, closest_first
from pydantic_ai_skills.types.skill import FoundSkills, Skill

__all__ = ('Catalog', 'Owners', 'SkillsSource', 'load_catalog', 'merge')


class SkillsSource(Protocol):
    """Where skills come from: a directory or a registry."""

    def find(self) -> FoundSkills:
        """Look at what is there now."""
        ...


@runtime_checkable
class RemoteSource(Protocol):
    """A source that keeps what it fetched: looking at it costs nothing, and it fetches again when told to."""

    @property
    def latest(self) -> FoundSkills | None:
        """What it has now, without any work."""
        ...

    def refresh(self) -> FoundSkills:
        """Fetch again."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Catalog:
    """All skills of a toolset as of one look at its sources. It never changes; a reload makes another one."""

    skills: Mapping[str, Skill[Any]]
    """The skills by name, sorted."""

    problems: tuple[SkillProblem, ...]
    """What a person should know: about the skills, their sources, and who lost against whom."""

    directories: tuple[FoundSkills, ...] = ()
    """What each directory had."""

    registries: tuple[FoundSkills, ...] = ()
    """What each registry had."""

    def only(self, names: Collection[str]) -> Catalog:
        """The same catalog with these skills only."""
        return replace(self, skills=MappingProxyType({name: self.skills[name] for name in names}))

    def get(self, name: str) -> Skill[Any] | None:
        """The skill of this name, if there is one; a name in other letters (`GitHub`, `My_Skill`) finds it too."""
        return next((self.skills[known] for known in spellings(name) if known in self.skills), None)

    def find(self, name: str, close_to: Callable[[str], Sequence[str]] | None = None) -> Skill[Any]:
        """Like `get`, for a name that should be there.

        Args:
            name: The name.
            close_to: Gives the closest names where there are too many to compare them all.

        Raises:
            SkillNotFoundError: There is none; the message tells the closest names.
        """
        skill = self.get(name)
        if skill is None:
            close = close_to(name) if close_to and len(self.skills) > MAX_NAMES_COMPARED else None
            told = closest_first('skill', name.lower(), self.skills, close)
            raise SkillNotFoundError(f'There is no skill {name!r}. {told}')
        return skill


class Owners:
    """Which of several groups of sources each skill of their common catalog is from."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._groups: dict[int, int] = {}

    def index(
        self, skill: Skill[Any], catalog: Catalog, groups: Sequence[tuple[Iterable[Skill[Any]], int, int]]
    ) -> int:
        """The group a skill is from.

        Args:
            skill: The skill.
            catalog: The catalog of all groups.
            groups: Of each group the skills written in Python, and how many directories and registries it has.
        """
        if self._catalog is not catalog:
            self._groups, self._catalog = {}, catalog
            directories, registries = iter(catalog.directories), iter(catalog.registries)
            for number, (written, directory_count, registry_count) in enumerate(groups):
                finds = (*islice(directories, directory_count), *islice(registries, registry_count))
                for found in (*written, *_skills_of(finds)):
                    self._groups[id(found)] = number
        return self._groups.get(id(skill), 0)


def load_catalog(
    written: Iterable[Skill[Any]],
    directories: Sequence[SkillsSource],
    registries: Sequence[SkillsSource],
    *,
    last: Catalog | None = None,
    include_registries: bool = True,
) -> Catalog:
    """Load every source, merge by priority, index by name.

    Args:
        written: Skills written in Python.
        directories: Of two with the same skill, the later one wins.
        registries: Of two with the same skill, the earlier one wins.
        last: The catalog so far. It is returned again if nothing has changed, and its skills are kept for a source
            that fails now.
        include_registries: Whether to let the registries fetch again if there is a last catalog. Otherwise what they
            have fetched by themselves meanwhile is taken.
    """
    found = _ask(directories, last.directories if last else ())
    if last is None:
        fetched = _ask(registries, ())
    else:
        look = _fetch if include_registries else _latest
        fetched = tuple(look(registry, before) for registry, before in zip(registries, last.registries, strict=True))
    if last and _same(found, last.directories) and _same(fetched, last.registries):
        return last
    return merge(written, found, fetched)


def merge(
    written: Iterable[Skill[Any]], directories: Sequence[FoundSkills], registries: Sequence[FoundSkills]
) -> Catalog:
    """Merge what the sources gave: skills written in Python first, then directories, then registries."""
    skills: dict[str, Skill[Any]] = {}
    problems = [problem for found in (*directories, *registries) for problem in found.problems]
    for skill in (*written, *_skills_of(reversed(directories)), *_skills_of(registries)):
        winner = skills.setdefault(skill.name, skill)
        if winner is not skill:
            message = f'The skill {skill.name!r} is not used: the one in {_place_of(winner)} comes first.'
            problems.append(problem('shadowed', _place_of(skill), message))
    return Catalog(
        skills=MappingProxyType(dict(sorted(skills.items()))),
        problems=tuple(problems),
        directories=tuple(directories),
        registries=tuple(registries),
    )


def _ask(sources: Sequence[SkillsSource], last: Sequence[FoundSkills]) -> tuple[FoundSkills, ...]:
    known = [*last, *[FoundSkills()] * len(sources)]
    return tuple(_find(source, before) for source, before in zip(sources, known, strict=False))


def _latest(source: SkillsSource, last: FoundSkills) -> FoundSkills:
    return (source.latest or last) if isinstance(source, RemoteSource) else last


def _fetch(source: SkillsSource, last: FoundSkills) -> FoundSkills:
    return _find(source, last, source.refresh if isinstance(source, RemoteSource) else None)


def _find(source: SkillsSource, last: FoundSkills, look: Callable[[], FoundSkills] | None = None) -> FoundSkills:
    try:
        return (look or source.find)()
    except Exception as error:  # noqa: BLE001 - the border that keeps one source from hiding the others
        kept = f' Its {len(last.skills)} skills from before are kept.' if last.skills else ''
        message = f'The source failed with {type(error).__name__}: {error}.{kept}'
        return FoundSkills(last.skills, (problem('source-failed', repr(source), message),))


def _same(found: Sequence[FoundSkills], last: Sequence[FoundSkills]) -> bool:
    return all(now is before for now, before in zip(found, last, strict=True))


def _skills_of(finds: Iterable[FoundSkills]) -> Iterator[Skill[Any]]:
    return (skill for found in finds for skill in found.skills)


def _place_of(skill: Skill[Any]) -> str:
    return skill.path or skill.uri
