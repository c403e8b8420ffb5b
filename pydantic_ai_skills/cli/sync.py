"""`sync`: install exactly what the lock file pins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

import pydantic_ai_skills as api

from .command import OPERATION_FAILED, SUCCESS, command
from .output import Output
from .skills import find_project
from .sources import SourceArgument, chosen_sources, finish, found_data, local_skills, names_of

if TYPE_CHECKING:
    from pydantic_ai_skills.types import FoundSkills


@command
def sync(
    out: Output,
    sources: SourceArgument = None,
    frozen: Annotated[
        bool, Option('--frozen', help='Fail if a source is not in the lock file, instead of locking it.')
    ] = False,
) -> int:
    """Run it after a clone and in CI.

    It needs no network for what is already here. A source that is not in the lock file yet is locked.
    """
    project = find_project()
    results: dict[str, Any] = {}
    failed = False
    for source in chosen_sources(project, sources):
        with out.progress(f'Fetching {source}') as working:
            found = _install(project, source, working.on_fetch, frozen=frozen)
        failed |= any(problem.severity == 'error' for problem in found.problems)
        results[str(source)] = found_data(found)
        if not out.as_json:
            out.line((str(source), 'bold'), f': {", ".join(names_of(found)) or "no skills"}')
            out.problems(found.problems)
    finish(out, results)
    return OPERATION_FAILED if failed else SUCCESS


def _install(project: api.SkillsProject, source: api.ProjectSource, progress: Any, *, frozen: bool) -> FoundSkills:
    if not frozen and not project.is_locked(source):
        return project.lock(source, progress=progress).find()
    local = local_skills(project, source)
    if not _is_incomplete(local):
        return local
    registry = project.registry(source, progress=progress)
    registry.fetch_all()
    fetched = source.named(registry).find()
    # `fetched` may have the problem that a ref has moved, which does not matter for what is locked.
    local = local_skills(project, source)
    return fetched if _is_incomplete(local) else local


def _is_incomplete(found: FoundSkills) -> bool:
    return any(problem.is_source_failure or problem.code == 'lock-mismatch' for problem in found.problems)
