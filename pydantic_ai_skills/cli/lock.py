"""`lock`: pin what the sources contain now."""

from __future__ import annotations

from typing import Any

import pydantic_ai_skills as api

from .command import command
from .output import Output
from .skills import find_project
from .sources import SourceArgument, chosen_sources, finish, found_data


@command
def lock(out: Output, sources: SourceArgument = None) -> None:
    """Review the changes it shows before you commit the lock file."""
    project = find_project()
    results: dict[str, Any] = {}
    for source in chosen_sources(project, sources):
        before = _locked_skills(project.registry(source))
        with out.progress(f'Fetching {source}') as working:
            found = project.lock(source, progress=working.on_fetch).find()
        after = _locked_skills(project.registry(source))
        changes = _changes(before, after)
        results[str(source)] = {**found_data(found), 'changes': changes}
        if not out.as_json:
            out.line((str(source), 'bold'), f': {len(after)} locked' if changes else ': no changes')
            for skill, what in changes.items():
                out.line((f'  {what:<8}', 'yellow'), skill)
            out.problems(found.problems)
    finish(out, results)


def _locked_skills(registry: api.SourceRegistry) -> dict[str, str]:
    try:
        return dict(registry.locked_source().skills)
    except api.SkillRegistryError:
        return {}


def _changes(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """What happened to each skill that is not the same as before."""
    return {
        skill: 'added' if skill not in before else 'changed' if skill in after else 'removed'
        for skill in {**before, **after}
        if before.get(skill) != after.get(skill)
    }
