"""`outdated`: show sources that have changed since they were locked."""

from __future__ import annotations

from collections.abc import Iterable

import pydantic_ai_skills as api

from .command import OPERATION_FAILED, PROBLEMS_FOUND, SUCCESS, command
from .output import Output
from .skills import find_project
from .sources import NO_SOURCES, SourceArgument, chosen_sources, local_skills

UP_TO_DATE = 'up to date'


@command
def outdated(out: Output, sources: SourceArgument = None) -> int:
    """It asks the sources of a trusted checkout, and installs nothing.

    The exit status is 1 if the revision of a source is not the locked one.
    """
    project = find_project()
    rows = [_commits(out, project, source) for source in chosen_sources(project, sources)]
    if out.as_json:
        out.data({'sources': rows})
    elif rows:
        out.table(('source', 'locked', 'now', 'state'), map(_cells, rows))
    else:
        out.line(NO_SOURCES)
    if any(row['error'] for row in rows):
        return OPERATION_FAILED
    return SUCCESS if all(_state(row) == UP_TO_DATE for row in rows) else PROBLEMS_FOUND


def _commits(out: Output, project: api.SkillsProject, source: api.ProjectSource) -> dict[str, str | None]:
    registry = project.registry(source)
    row: dict[str, str | None] = {'source': str(source), 'locked': None, 'now': None, 'error': None}
    try:
        row['locked'] = registry.locked_source().commit
        with out.progress(f'Asking {source}'):
            row['now'] = registry.remote_commit()
        edited = [found.message for found in local_skills(project, source).problems if found.code == 'lock-mismatch']
        row['error'] = ' '.join(edited) or None
    except api.SkillRegistryError as error:
        row['error'] = str(error)
    return row


def _cells(row: dict[str, str | None]) -> Iterable[str]:
    return row['source'] or '', (row['locked'] or '')[:12], (row['now'] or '')[:12], _state(row)


def _state(row: dict[str, str | None]) -> str:
    return row['error'] or (UP_TO_DATE if row['locked'] == row['now'] else 'outdated: pydantic-ai-skills lock')
