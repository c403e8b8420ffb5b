"""`search`: search skills, the best match first."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from .command import PROBLEMS_FOUND, SUCCESS, command
from .formats import skill_data
from .output import Failure, Output
from .skills import ChosenSkills


@command
def search(
    out: Output,
    query: Annotated[str, Argument(metavar='QUERY', help='Words to look for.')],
    limit: Annotated[int, Option('--limit', '-n', min=1, help='How many skills to show at most.')] = 10,
    *,
    chosen: ChosenSkills,
) -> int:
    """The best match comes first. The exit status is 1 if no skill matches."""
    if not query.strip():
        raise Failure('The query is empty.')
    found = chosen.look(out).search(query, limit)
    if out.as_json:
        out.data({'query': query, 'skills': [skill_data(skill) for skill in found]})
    elif found:
        out.lines((skill.name, skill.description) for skill in found)
    else:
        out.line(f'No skill matches {query!r}.')
    return SUCCESS if found else PROBLEMS_FOUND
