"""Runs the cases of skills for `eval`, and shows the report."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model

import pydantic_ai_skills as api
from pydantic_ai_skills.evals import (
    STAND_IN,
    CaseSet,
    EvalReport,
    cases_of,
    evaluate,
    html_page,
    stand_in_model,
    write_results,
)

from .command import PROBLEMS_FOUND, SUCCESS
from .conversation import model_named
from .eval_record import record_scores
from .eval_table import failed_queries, failed_tasks, show_report
from .event_loop import run
from .output import Failure, Output, place
from .skills import ChosenSkills, find_project, find_skill, locked_skills

if TYPE_CHECKING:
    from .eval import ResultFiles, Trial

NO_MODEL = (
    'No model is set, so a simple offline stand-in chooses skills by their words.',
    'It shows the queries. To try a model, and the tasks, add --model MODEL.',
)

LOCKED = 'locked'
"""The baseline that the lock file pins."""


def run_evals(out: Output, targets: Sequence[str], trial: Trial, results: ResultFiles, chosen: ChosenSkills) -> int:
    """Run the chosen cases, show the report, and write it to the files that were asked for."""
    _check_places(trial.record, results.html)
    chosen, names = _split(targets, chosen)
    with _open(out, trial, chosen) as toolset:
        cases = _cases(toolset, names)
        if trial.model is None and trial.replay is None and not out.as_json:
            for line in NO_MODEL:
                out.note(line)
        report = _run(out, toolset, cases, trial)
        recorded = record_scores(find_project(), toolset, report)
    return _finish(out, report, results, recorded)


def _check_places(*files: Path | None) -> None:
    """Refuse files that cannot be written, before any model is asked instead of when all is done."""
    for file in filter(None, files):
        if file.is_dir() or not file.absolute().parent.is_dir():
            raise Failure(f'{place(str(file))} cannot be written: name a file in a folder that exists.')


def _split(targets: Sequence[str], chosen: ChosenSkills) -> tuple[ChosenSkills, list[str]]:
    """The skills to choose from, extended by the targets that are paths, and the targets that are names."""
    paths = [Path(target) for target in targets if os.sep in target or Path(target).is_dir()]
    names = [target for target in targets if Path(target) not in paths]
    return (replace(chosen, directory=[*(chosen.directory or ()), *paths]) if paths else chosen), names


def _open(out: Output, trial: Trial, chosen: ChosenSkills) -> api.SkillsToolset[Any]:
    """The skills. Queries need no script, so for them alone nothing has to be trusted."""
    _, has_tasks = trial.parts
    if not has_tasks:
        return chosen.look(out, require=False)
    if find_project().settings.policy != 'ask':
        return chosen.open(require=False)
    if not trial.yes:
        out.note('The policy asks before a script runs, and nobody is asked here: without --yes, none runs.')
    return chosen.open(script_policy='allow' if trial.yes else 'deny', require=False)


def _cases(toolset: api.SkillsToolset[Any], names: Sequence[str]) -> CaseSet:
    skills = [find_skill(toolset, name) for name in names] or list(toolset.skills.values())
    cases = cases_of(skills)
    if not cases.cases and not cases.problems:
        some = skills[0].name if skills else 'NAME'
        raise Failure(f'No cases found. To write a first set, run: pydantic-ai-skills eval new {some}')
    return cases


def _run(out: Output, toolset: api.SkillsToolset[Any], cases: CaseSet, trial: Trial) -> EvalReport:
    has_queries, has_tasks = trial.parts
    with out.progress('Evaluating') as working:
        step = working.on_step
        try:
            report = run(
                evaluate(
                    toolset,
                    cases,
                    model=None if trial.replay else _model(trial.model),
                    judge=model_named(trial.judge) if trial.judge and not trial.replay else None,
                    repeat=trial.repeat or (1 if trial.model in (None, STAND_IN) else 3),
                    trigger=has_queries,
                    outcome=has_tasks,
                    baseline=locked_skills(find_project()) if trial.baseline == LOCKED else trial.baseline,
                    max_concurrency=trial.max_concurrency,
                    record=trial.record,
                    replay=trial.replay,
                    on_progress=step and (lambda now: step(now.done, now.total)),
                )
            )
        except UserError as error:
            raise Failure(str(error)) from None
    return replace(report, baseline=LOCKED) if trial.baseline == LOCKED else report


def _model(name: str | None) -> Model:
    return stand_in_model() if name in (None, STAND_IN) else model_named(name)


def _finish(out: Output, report: EvalReport, results: ResultFiles, recorded: Sequence[str]) -> int:
    """Show a report, and write it to the files that were asked for."""
    if results.output is not None:
        write_results(report, results.output)
    if results.html is not None:
        results.html.write_text(html_page(report), 'utf-8')
    if out.as_json:
        out.data(json.loads(report.to_json()))
    else:
        show_report(out, report)
        for path in filter(None, (results.output, results.html)):
            out.note(('wrote ', 'dim'), place(str(path)))
        if recorded:
            out.note(('recorded in ', 'dim'), f'{place(str(find_project().lock_file))}: {", ".join(recorded)}')
    is_bad = failed_queries(report) or failed_tasks(report) or report.problems or report.errors
    return PROBLEMS_FOUND if is_bad else SUCCESS
