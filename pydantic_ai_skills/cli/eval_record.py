"""Records the scores of `eval` in `skills.lock`."""

from __future__ import annotations

from typing import Any

import pydantic_ai_skills as api
from pydantic_ai_skills.evals import EvalReport, is_of_stand_in

from .trust_facts import is_of_source


def record_scores(project: api.SkillsProject, toolset: api.SkillsToolset[Any], report: EvalReport) -> list[str]:
    """Record the scores of skills of the project's sources, and return the names of the skills.

    Scores of the stand-in say little about a skill, so they are not recorded.
    """
    recorded: list[str] = []
    for skill in toolset.skills.values() if project.is_trusted and not is_of_stand_in(report) else ():
        score = _score(report, skill.name)
        content = api.skill_content_hash(skill) if score is not None and is_of_source(skill) else None
        if score is not None and content is not None:
            api.record_score(project.lock_file, content, score, name=skill.name)
            recorded.append(skill.name)
    return recorded


def _score(report: EvalReport, skill: str) -> api.EvalScore | None:
    """The score of a skill, with what the skill adds to the pass rate; `None` if nothing could be checked."""
    score = report.score(skill)
    if score.pass_rate is None:
        return None
    tasks = next((each for each in report.outcome.skills if each.skill == skill), None) if report.outcome else None
    against = tasks.delta() if tasks else None
    delta = against.pass_rate.mean if against and against.pass_rate else None
    return api.EvalScore(pass_rate=score.pass_rate, cases=score.cases, model=score.model, delta=delta)
