"""`import`: add what another installer has installed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument

import pydantic_ai_skills as api

from .command import OPERATION_FAILED, SUCCESS, command
from .output import Output, place
from .skills import find_project
from .sources import names_of


@command
def import_lock(
    out: Output,
    file: Annotated[Path, Argument(metavar='FILE', help='The file of the other installer.')] = Path('skills-lock.json'),
) -> int:
    """It reads the skills-lock.json of the npm installer.

    That file pins no commit, so what the sources have now is fetched and locked. Review it.
    """
    project = find_project()
    installed = project.installed_elsewhere(file)
    added: dict[str, list[str]] = {}
    failures = list(installed.left)
    for source in installed.sources:
        try:
            with out.progress(f'Fetching {source}') as working:
                added[str(source)] = names_of(project.add(source, progress=working.on_fetch).find())
        except api.SkillError as error:
            failures.append(str(error))
    _show(out, added, failures)
    return OPERATION_FAILED if failures else SUCCESS


def _show(out: Output, added: dict[str, Any], failures: list[str]) -> None:
    if out.as_json:
        out.data({'added': added, 'failures': failures})
        return
    for source, names in added.items():
        out.line(('added ', 'green'), (', '.join(names), 'bold'), f'  {source}')
    for failure in failures:
        out.line(('not added ', 'yellow'), failure)
    if added:
        project = find_project()
        out.line(('Written to ', 'dim'), f'{place(str(project.file))} and {place(str(project.lock_file))}.')
