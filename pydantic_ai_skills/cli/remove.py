"""`remove`: remove the skills of a source from the project."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from .command import command
from .output import Failure, Output
from .skills import find_project
from .sources import local_skills, matching_sources, names_of


@command
def remove(
    out: Output,
    source: Annotated[str, Argument(metavar='SOURCE', help='The address of a source, or the name of its skill.')],
) -> None:
    """An address removes all skills of a source; the name of a skill added with `--skill` removes only that one."""
    project = find_project()
    chosen, *others = matching_sources(project, source)
    if others:
        matches = ', '.join(map(str, (chosen, *others)))
        raise Failure(f'{source!r} is ambiguous: {matches}. Name one with its ref, or as ADDRESS (PATH).')
    names = names_of(local_skills(project, chosen))
    skill = source.removeprefix(chosen.prefix) if source in names else None
    if skill is not None and skill not in chosen.skills and len(names) > 1:
        raise Failure(
            f'{source!r} is one of {len(names)} skills of {chosen}: {", ".join(names)}. Remove all of them by the '
            'address, or choose those to keep: add it again with --skill.'
        )
    project.remove(chosen, skill=skill)
    if skill is not None:
        names = [source]
    if out.as_json:
        out.data({'removed': chosen.fields(), 'skills': names})
    else:
        out.line(('removed ', 'green'), (str(chosen), 'bold'), f'  {", ".join(names)}')
