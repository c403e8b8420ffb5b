"""Builds the catalog: load every source, merge by priority, index by name.

Read `load_catalog` first: it is the spine of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pydantic_ai_skills.exceptions import SkillNotFoundError
from pydantic_ai_skills.parsing.skill_names import spellings
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.found_skills import FoundSkills, find_or_keep, keep_reachable, merge_sources, same_objects
from pydantic_ai_skills.types.lookup import MAX_NAMES_COMPARED, closest_first
from pydantic_ai_skills.types.skill import Skill

MAX_SKILLS_LISTED = 100
"""In a larger catalog, files are listed only when a skill is used."""


class SkillsSource(Protocol):
    """Where skills come from: a directory or a registry."""

    def find(self) -> FoundSkills:
        """The skills it has now."""
        ...


@runtime_checkable
class RemoteSource(Protocol):
    """A source that keeps what it fetched, and fetches again only when told to."""

    @property
    def latest(self) -> FoundSkills | None:
        """What it fetched last; costs nothing."""
        ...

    @property
    def is_stale(self) -> bool:
        """Whether it should fetch again, because the source has changed or may have changed; costs nothing."""
        ...

    def refresh(self) -> FoundSkills:
        """Fetch again."""
        ...


class Contents(NamedTuple):
    """What the sources of one library gave."""

    in_python: tuple[Skill[Any], ...] = ()
    """The skills written in Python."""

    directories: tuple[FoundSkills, ...] = ()
    """What each directory had. Of two with the same skill, the later one wins."""

    registries: tuple[FoundSkills, ...] = ()
    """What each registry had. Of two with the same skill, the earlier one wins."""


class Catalog(NamedTuple):
    """All skills of a toolset at one moment. It is immutable; a reload makes a new one."""

    skills: Mapping[str, Skill[Any]]
    """The skills by name, sorted."""

    problems: tuple[SkillProblem, ...]
    """What is wrong with the skills and their sources, and which skills lost their name to another."""

    parts: tuple[Contents, ...]
    """What it was merged from: the contents of one library, or of several that an agent combines."""

    part_of: Mapping[str, int]
    """Which of the parts each skill is from."""

    def only(self, names: Collection[str]) -> Catalog:
        """The same catalog with these skills only."""
        return self._replace(skills=MappingProxyType({name: self.skills[name] for name in names}))

    def get(self, name: str) -> Skill[Any] | None:
        """The skill of this name, if there is one; other spellings of the name (`GitHub`, `My_Skill`) find it too."""
        exact = self.skills.get(name)
        return exact or next((self.skills[known] for known in spellings(name) if known in self.skills), None)

    def find(self, name: str, close_to: Callable[[str], Sequence[str]] | None = None) -> Skill[Any]:
        """Like `get`, but raise `SkillNotFoundError` with the closest names if there is none.

        `close_to` finds those names in a catalog too large to compare them all.
        """
        skill = self.get(name)
        if skill is None:
            close = close_to(name) if close_to and len(self.skills) > MAX_NAMES_COMPARED else None
            told = closest_first('skill', name.lower(), self.skills, close)
            raise SkillNotFoundError(f'There is no skill {name!r}. {told}')
        return skill


def load_catalog(
    in_python: Iterable[Skill[Any]],
    directories: Sequence[SkillsSource],
    registries: Sequence[SkillsSource],
    *,
    last: Catalog | None = None,
    include_registries: bool = True,
    include_directories: bool = True,
    list_files: bool = True,
) -> Catalog:
    """Load every source, merge by priority, index by name.

    Args:
        in_python: Skills written in Python.
        directories: Of two with the same skill, the later one wins.
        registries: Of two with the same skill, the earlier one wins.
        last: The catalog so far. It is returned if nothing has changed, and a source that fails now keeps the skills it
            has there.
        include_registries: Whether the registries fetch again if there is a last catalog. Otherwise each gives what it
            has fetched on its own since then, and fetches again only if it is stale.
        include_directories: Whether the directories are read again if there is a last catalog.
        list_files: Whether to list the files of the skills if there are only a few, so that readers of the catalog need
            not go back to the disk to see which tools are of use.
    """
    if last is None:
        found, fetched = _ask(directories, ()), _ask(registries, ())
    else:
        (before,) = last.parts
        found = _ask(directories, before.directories) if include_directories else before.directories
        look = _fetch if include_registries else _latest
        fetched = tuple(look(registry, had) for registry, had in zip(registries, before.registries, strict=True))
        if same_objects(found, before.directories) and same_objects(fetched, before.registries):
            return last
    contents = Contents(in_python=tuple(in_python), directories=found, registries=fetched)
    if list_files:
        list_files_of([skill for _, found in _by_priority([contents]) for skill in found.skills])
    return merge(contents)


def merge(*parts: Contents) -> Catalog:
    """Merge by priority: skills written in Python come first, then directories, then registries.

    Of two parts, the later one's skills in Python and directories win, and the earlier one's registries.
    """
    finds = (found for part in parts for found in (*part.directories, *part.registries))
    sources = list(_by_priority(parts))
    reachable, renamed = keep_reachable(found for _, found in sources)
    skills, lost = merge_sources(reachable)
    part_of: dict[str, int] = {}
    for (number, _), found in zip(sources, reachable, strict=True):
        for skill in found.skills:
            part_of.setdefault(skill.name, number)
    return Catalog(
        skills=MappingProxyType(dict(sorted(skills.items()))),
        problems=(*(each for found in finds for each in found.problems), *renamed, *lost, *_ignored(skills.values())),
        parts=parts,
        part_of=part_of,
    )


def losers(catalog: Catalog) -> Iterator[tuple[Skill[Any], Skill[Any]]]:
    """The skills that are not used because another has their name, each with that other skill."""
    for _, found in _by_priority(catalog.parts):
        for skill in found.skills:
            winner = catalog.skills.get(skill.name)
            # One with a qualifier is offered under another name.
            qualified = skill.source is not None and skill.source.qualifier is not None
            if winner is not None and winner is not skill and not qualified:
                yield skill, winner


def _ignored(skills: Iterable[Skill[Any]]) -> Iterator[SkillProblem]:
    """A problem for each skill whose `allowed-tools` are ignored, because it is not trusted."""
    for skill in skills:
        if skill.allowed_tools and not skill.is_trusted:
            named = ', '.join(skill.allowed_tools)
            message = f'Its allowed-tools ({named}) approve nothing, because its source is not trusted.'
            yield problem('allowed-tools-ignored', skill.path or skill.uri, message)


def _by_priority(parts: Sequence[Contents]) -> Iterator[tuple[int, FoundSkills]]:
    """All sources, the highest priority first, each with the number of the part it is from."""
    numbered = list(enumerate(parts))
    for number, part in reversed(numbered):
        yield number, FoundSkills(part.in_python, source='Python')
    for number, part in reversed(numbered):
        yield from ((number, found) for found in reversed(part.directories))
    for number, part in numbered:
        yield from ((number, found) for found in part.registries)


def list_files_of(skills: Collection[Skill[Any]], *, judge: bool = False) -> None:
    """List the files of each skill, unless there are many or the listing has to wait until the skill is used.

    With `judge`, also find out which files are programs, which requires reading them.
    """
    if len(skills) <= MAX_SKILLS_LISTED:
        for skill in skills:
            # The error is reported when the skill is used; it must not hide the others.
            with suppress(Exception):
                _ = skill.late or (skill.files if judge else skill.look())


def _ask(sources: Sequence[SkillsSource], last: Sequence[FoundSkills]) -> tuple[FoundSkills, ...]:
    known = last or [None] * len(sources)
    return tuple(find_or_keep(source.find, source, before) for source, before in zip(sources, known, strict=True))


def _latest(source: SkillsSource, last: FoundSkills) -> FoundSkills:
    if not isinstance(source, RemoteSource):
        return last
    return _fetch(source, last) if source.is_stale else source.latest or last


def _fetch(source: SkillsSource, last: FoundSkills) -> FoundSkills:
    return find_or_keep(source.refresh if isinstance(source, RemoteSource) else source.find, source, last)
