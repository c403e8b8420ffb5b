"""The sources of the project that a command works with: how they are named, and their skills on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

import pydantic_ai_skills as api

from .closest import did_you_mean
from .formats import problems_data
from .output import Failure, Output
from .skills import hint_for

if TYPE_CHECKING:
    from pydantic_ai_skills.types import FoundSkills

SourceArgument = Annotated[
    list[str] | None, Argument(metavar='SOURCE', help='Addresses of sources, or names of their skills; all by default.')
]
NO_SOURCES = 'This project has no sources. Add one with: pydantic-ai-skills add ADDRESS'


def chosen_sources(project: api.SkillsProject, names: Iterable[str] | None) -> list[api.ProjectSource]:
    """The sources that were named, or all of them."""
    if not names:
        return list(project.sources)
    return list(dict.fromkeys(source for name in names for source in matching_sources(project, name)))


def matching_sources(project: api.SkillsProject, name: str) -> list[api.ProjectSource]:
    """The sources with this address, with or without a ref, or with a skill of this name; fails if there are none."""
    wanted = name.removesuffix('/').removesuffix('.git')
    spellings = {name, wanted, wanted.partition('+')[2]}
    with suppress(api.SkillValidationError):  # the name of a skill is not an address
        spellings.add(str(api.ProjectSource.parse(wanted)))
    sources = project.sources
    matches = [source for source in sources if spellings & {source.url.removesuffix('.git'), source.url, str(source)}]
    matches = matches or [source for source in sources if f'{source.url}@{source.ref}' in spellings]
    return matches or _with_skill(project, name)


def _with_skill(project: api.SkillsProject, name: str) -> list[api.ProjectSource]:
    local = {source: local_skills(project, source) for source in project.sources}
    if matches := [source for source, found in local.items() if name in names_of(found)]:
        return matches
    problems = [problem for found in local.values() for problem in found.problems if problem.is_source_failure]
    known = ', '.join(map(str, local)) or 'none'
    close = did_you_mean(name, (*map(str, local), *(each for found in local.values() for each in names_of(found))))
    why = (*(problem.message for problem in problems), hint_for(problems))
    told = f'{name!r} is not a source of this project, nor a skill of one.', close, f'Its sources: {known}.', *why
    raise Failure(' '.join(filter(None, told)))


def local_skills(project: api.SkillsProject, source: api.ProjectSource) -> FoundSkills:
    """The skills of a source that are on this machine."""
    project.is_locked(source)  # fails if the lock file cannot be read
    return source.named(project.registry(source, offline=True, require=False)).find()


def names_of(found: FoundSkills) -> list[str]:
    """The names of skills."""
    return [skill.name for skill in found.skills]


def found_data(found: FoundSkills) -> dict[str, Any]:
    """The skills and problems of a source as JSON."""
    return {'skills': names_of(found), 'problems': problems_data(found.problems)}


def finish(out: Output, results: dict[str, Any]) -> None:
    """Print the results of all sources as JSON, or say that there are none."""
    if out.as_json:
        out.data({'sources': results})
    elif not results:
        out.line(NO_SOURCES)
