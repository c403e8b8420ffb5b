"""`search`: search skills, the best match first."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from .command import PROBLEMS_FOUND, SUCCESS, command
from .formats import skill_data
from .output import Failure, Output
from .skills import ChosenSkills, source_of


@command
def search(
    out: Output,
    query: Annotated[str, Argument(metavar='QUERY', help='Words to look for.')],
    limit: Annotated[int, Option('--limit', '-n', min=1, help='How many skills to show at most.')] = 10,
    *,
    chosen: ChosenSkills,
) -> int:
    """Search skills, the best match first."""
    if not query.strip():
        raise Failure('The query is empty.')
    found = chosen.look(out).search(query, limit)
    if out.as_json:
        out.data({'query': query, 'skills': [skill_data(skill) for skill in found]})
    elif found:
        rows = ((skill.name, skill.description, source_of(skill)) for skill in found)
        out.table(('name', 'description', 'source'), rows, wide='description')
    else:
        out.line(f'No skill matches {query!r}.')
    return SUCCESS if found else PROBLEMS_FOUND
