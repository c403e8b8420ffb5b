"""What a source of skills found: which skill keeps a name, and what remains when the source fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import is_
from typing import Any, NamedTuple

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.parsing.skill_names import MAX_NAME_LENGTH, shorten_skill_name
from pydantic_ai_skills.problems import SkillProblem, problem

from .skill import Skill


class FoundSkills(NamedTuple):
    """What a source has at one time. As long as nothing changes, a source returns the same object again."""

    skills: tuple[Skill[Any], ...] = ()
    """The skills, each name once."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about them and about those that were left out."""

    source: str = ''
    """What the source is called, for skills that do not say where they come from."""

    def is_same(self, other: FoundSkills) -> bool:
        """Whether both have the very same skills and equal problems. Comparing skills by value would read files."""
        return same_objects(self.skills, other.skills) and self.problems == other.problems


def same_objects(now: Sequence[object], before: Sequence[object]) -> bool:
    """Whether two lists hold the very same objects."""
    return len(now) == len(before) and all(map(is_, now, before))


def shadowed(loser: Skill[Any], winner: Skill[Any], loser_source: str = '', winner_source: str = '') -> SkillProblem:
    """The problem of a skill that is not used because an earlier one has the same name."""
    first = _origin(winner, winner_source)
    where = f'in {first}' if first == winner.path else f'of {first}'
    message = f'The skill {loser.name!r} is not used: the one {where} comes first.'
    return problem('shadowed', loser.path or _origin(loser, loser_source), message)


def _origin(skill: Skill[Any], source: str) -> str:
    """Where a skill comes from, for messages: the name in its provenance, its folder, `source`, or else its URI."""
    about = skill.source
    if about is None or (about.kind == 'directory' and about.label is None):
        return skill.path or source or skill.uri
    return f'{about.label} ({skill.path})' if about.label and skill.path else about.name


def first_of_each_name(
    skills: Iterable[Skill[Any]], about_loser: Callable[[Skill[Any], Skill[Any]], SkillProblem] = shadowed
) -> tuple[dict[str, Skill[Any]], list[SkillProblem]]:
    """The only merge by name: the first skill of each name wins; `about_loser` makes a problem for each other one."""
    winners: dict[str, Skill[Any]] = {}
    problems: list[SkillProblem] = []
    for skill in skills:
        winner = winners.setdefault(skill.name, skill)
        if winner is not skill:
            problems.append(about_loser(skill, winner))
    return winners, problems


def keep_reachable(sources: Iterable[FoundSkills]) -> tuple[list[FoundSkills], list[SkillProblem]]:
    """The sources, with each skill renamed that has a qualifier and the name of another, and a problem for each.

    A skill with a qualifier is never left out, and never takes the name of a skill without one, from any source.
    """
    given = list(sources)
    skills = [skill for found in given for skill in found.skills]
    if not any(map(_qualifier, skills)):
        return given, []
    taken = {skill.name: skill for skill in skills if _qualifier(skill) is None}
    reserved = {skill.name for skill in skills}
    problems: list[SkillProblem] = []

    def reachable(skill: Skill[Any]) -> Skill[Any]:
        other = taken.get(skill.name)
        if other is not None and other is not skill and (qualifier := _qualifier(skill)):
            name = _free_name(f'{qualifier}-{skill.name}', reserved)
            message = (
                f'The skill {skill.name!r} is offered as {name!r}: another one, of {_origin(other, "")}, has its name.'
            )
            problems.append(problem('renamed', _origin(skill, ''), message))
            reserved.add(name)
            skill = skill.renamed(name)
        taken.setdefault(skill.name, skill)
        return skill

    return [found._replace(skills=tuple(map(reachable, found.skills))) for found in given], problems


def _qualifier(skill: Skill[Any]) -> str | None:
    return skill.source.qualifier if skill.source is not None else None


def _free_name(wanted: str, reserved: Collection[str]) -> str:
    """A name that no skill has, as much like the wanted one as the rules allow."""
    base = shorten_skill_name(wanted)
    ends = ('', *(f'-{number}' for number in range(2, len(reserved) + 3)))
    names = (f'{base[: MAX_NAME_LENGTH - len(end)].rstrip("-")}{end}' for end in ends)
    return next(name for name in names if name not in reserved)


def merge_sources(sources: Iterable[FoundSkills]) -> tuple[dict[str, Skill[Any]], list[SkillProblem]]:
    """Merge the skills of several sources: the first of each name wins, and problems name the sources involved."""
    source_of: dict[str, str] = {}
    current = ''

    def in_order() -> Iterator[Skill[Any]]:
        nonlocal current
        for found in sources:
            current = found.source
            for skill in found.skills:
                source_of.setdefault(skill.name, current)
                yield skill

    return first_of_each_name(
        in_order(), lambda loser, winner: shadowed(loser, winner, current, source_of[winner.name])
    )


def find_or_keep(find: Callable[[], FoundSkills], source: object, last: FoundSkills | None) -> FoundSkills:
    """Call `find`. If it raises, keep the skills of the last look, so that one source never hides the others.

    A source that refuses the credential keeps no skills.
    """
    try:
        return find()
    except Exception as error:  # noqa: BLE001 - the border around a failing source
        return failed(source, error, last)


def failed(source: object, error: Exception, last: FoundSkills | None) -> FoundSkills:
    """The skills that a source had at the last look, none if it refused, and a problem that says how it failed."""
    refused = _is_refusal(error)
    skills = last.skills if last and not refused else ()
    what = str(error) if isinstance(error, SkillRegistryError) else f'It failed with {type(error).__name__}: {error}'
    kept = f' Its {len(skills)} skills from before are kept.' if skills else ''
    code = 'source-refused' if refused else 'source-failed'
    problems = (problem(code, repr(source), f'{what.rstrip(".")}.{kept}'),)
    return FoundSkills(skills, problems, last.source if last else '')


def _is_refusal(error: Exception) -> bool:
    """Whether a source does not accept the credential, by the type of the error or its HTTP status."""
    response = getattr(error, 'response', None)
    statuses = [getattr(given, name, None) for given in (error, response) for name in ('code', 'status_code')]
    return isinstance(error, SkillRegistryRefusedError) or any(status in (401, 403) for status in statuses)
