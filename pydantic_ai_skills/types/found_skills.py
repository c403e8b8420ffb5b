"""What a source of skills found: which skill keeps a name, and what remains when the source fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.problems import SkillProblem, problem

from .skill import Skill


class FoundSkills(NamedTuple):
    """What a source has at one time. As long as nothing changes, a source returns the same object again."""

    skills: tuple[Skill[Any], ...] = ()
    """The skills, each name once."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know about them and about those that were left out."""


def shadowed(loser: Skill[Any], winner: Skill[Any]) -> SkillProblem:
    """The problem of a skill that is not used because an earlier one has the same name."""
    message = f'The skill {loser.name!r} is not used: the one in {winner.path or winner.uri} comes first.'
    return problem('shadowed', loser.path or loser.uri, message)


def first_of_each_name(
    skills: Iterable[Skill[Any]], about_loser: Callable[[Skill[Any], Skill[Any]], SkillProblem] = shadowed
) -> tuple[dict[str, Skill[Any]], list[SkillProblem]]:
    """The only merge by name: the first skill of each name wins; `about_loser` makes a problem of each other one."""
    winners: dict[str, Skill[Any]] = {}
    problems: list[SkillProblem] = []
    for skill in skills:
        winner = winners.setdefault(skill.name, skill)
        if winner is not skill:
            problems.append(about_loser(skill, winner))
    return winners, problems


def find_or_keep(find: Callable[[], FoundSkills], source: object, last: FoundSkills | None) -> FoundSkills:
    """Call `find`. If it raises, keep the skills of the last look, so that one source never hides the others.

    If the source refused, it has no skills.
    """
    try:
        return find()
    except Exception as error:  # noqa: BLE001 - the border around a failing source
        return failed(source, error, last)


def failed(source: object, error: Exception, last: FoundSkills | None) -> FoundSkills:
    """The skills that a source had at the last look, with the problem that it failed now; none if it refused."""
    refused = _is_refusal(error)
    skills = last.skills if last and not refused else ()
    what = str(error) if isinstance(error, SkillRegistryError) else f'It failed with {type(error).__name__}: {error}'
    kept = f' Its {len(skills)} skills from before are kept.' if skills else ''
    code = 'source-refused' if refused else 'source-failed'
    return FoundSkills(skills, (problem(code, repr(source), f'{what.rstrip(".")}.{kept}'),))


def _is_refusal(error: Exception) -> bool:
    """Whether a source does not accept the credential: by its own word, or by the status of an HTTP error."""
    response = getattr(error, 'response', None)
    statuses = [getattr(given, name, None) for given in (error, response) for name in ('code', 'status_code')]
    return isinstance(error, SkillRegistryRefusedError) or any(status in (401, 403) for status in statuses)
