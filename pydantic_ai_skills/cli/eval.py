"""`eval`: find out whether the right skills are loaded, and whether they help."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from typer import Argument, Option

from pydantic_ai_skills import SkillsToolset
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

from .chat import named_model
from .command import PROBLEMS_FOUND, SUCCESS, command
from .eval_new import new_evals
from .eval_record import record_scores
from .eval_table import failed_queries, failed_tasks, show_report
from .output import Failure, Output, place
from .skills import ChosenSkills, complete_skill_names, find_project, find_skill, locked_skills

NO_MODEL = (
    'No model is set, so a simple offline stand-in chooses skills by their words.',
    'It shows the queries. To try a model, and the tasks, add --model MODEL.',
)

LOCKED = 'locked'
"""The baseline that the lock file pins."""

Part = Literal['trigger', 'outcome']


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The options that say what is tried, and how."""

    model: Annotated[
        str | None,
        Option('--model', '-m', metavar='MODEL', help='A model, such as openai:gpt-5.2, or stand-in for none.'),
    ] = None
    judge: Annotated[
        str | None, Option('--judge', metavar='MODEL', help='The model that judges checks in plain words.')
    ] = None
    repeat: Annotated[
        int | None,
        Option('--repeat', '-n', min=1, help='How often each case runs; 3 by default, once with the stand-in.'),
    ] = None
    only: Annotated[
        Part | None, Option('--only', help='Only see which skills are loaded, or only what tasks come to.')
    ] = None
    baseline: Annotated[
        str | None,
        Option(
            '--baseline',
            metavar='none|locked|REF',
            help='Also run tasks with the version in the lock file, or at a git ref.',
        ),
    ] = None
    max_concurrency: Annotated[int, Option('--max-concurrency', min=1, help='How many runs there are at a time.')] = 4
    record: Annotated[
        Path | None, Option('--record', metavar='FILE', help='Write what the models answer to a file, for --replay.')
    ] = None
    replay: Annotated[
        Path | None, Option('--replay', metavar='FILE', help='Take the answers from that file; no model is asked.')
    ] = None
    yes: Annotated[bool, Option('--yes', '-y', help='Approve scripts, if the policy asks.')] = False

    @property
    def is_offline(self) -> bool:
        """Whether the stand-in answers."""
        return self.model in (None, STAND_IN)

    @property
    def parts(self) -> tuple[bool, bool]:
        """Whether to run the queries, and whether to run the tasks."""
        only = self.only or ('trigger' if self.model is None else None)
        return only != 'outcome', only != 'trigger'


@dataclass(frozen=True, kw_only=True)
class ResultFiles:
    """The options that say where results are written to."""

    html: Annotated[
        Path | None, Option('--html', metavar='FILE', help='Write one page with charts, the matrix and every case.')
    ] = None
    output: Annotated[
        Path | None,
        Option('--output', '-o', metavar='DIR', help='Write benchmark.json, grading.json and timing.json there.'),
    ] = None


@command
def evaluate_skills(
    out: Output,
    targets: Annotated[
        list[str] | None,
        Argument(
            metavar='SKILL|PATH',
            autocompletion=complete_skill_names,
            help='Names of skills, skills or directories of skills; all by default. `new NAME` writes a first set.',
        ),
    ] = None,
    *,
    trial: Trial,
    results: ResultFiles,
    chosen: ChosenSkills,
) -> int:
    """Find out whether the right skills are loaded, and whether they help.

    Cases are in the `evals` folder of each skill. Queries show which skills are loaded for which prompts. Tasks run
    with the skill and without it, and what comes of them is checked. `eval new NAME` writes a first set, to edit. With
    a model, the scores of skills that were fetched are recorded in `skills.lock`.

    Without --model nothing is sent anywhere: a simple offline stand-in shows the queries. The exit status is 1 if a
    case fails.
    """
    if targets and targets[0] == 'new':
        new_evals(out, targets[1:], chosen)
        return SUCCESS
    _check_places(trial.record, results.html)
    chosen, names = _split(targets or (), chosen)
    with _open(out, trial, chosen) as toolset:
        cases = _cases(toolset, names)
        if trial.model is None and trial.replay is None and not out.as_json:
            for line in NO_MODEL:
                out.note(line)
        report = _run(out, toolset, cases, trial)
        recorded = record_scores(find_project(), toolset, report)
    return _finish(out, report, results, recorded)


def _check_places(*files: Path | None) -> None:
    """Refuse what cannot be written before models are asked, not when all is done."""
    for file in filter(None, files):
        if file.is_dir() or not file.absolute().parent.is_dir():
            raise Failure(f'{place(str(file))} cannot be written: name a file in a folder that exists.')


def _split(targets: Sequence[str], chosen: ChosenSkills) -> tuple[ChosenSkills, list[str]]:
    """The skills to choose from, with the paths among the targets, and the names among them."""
    paths = [Path(target) for target in targets if os.sep in target or Path(target).is_dir()]
    names = [target for target in targets if Path(target) not in paths]
    return (replace(chosen, directory=[*(chosen.directory or ()), *paths]) if paths else chosen), names


def _open(out: Output, trial: Trial, chosen: ChosenSkills) -> SkillsToolset[Any]:
    """The skills. Queries need no script, so for them alone nothing has to be trusted."""
    _, has_tasks = trial.parts
    if not has_tasks:
        return chosen.look(out, require=False)
    if find_project().settings.policy != 'ask':
        return chosen.open(require=False)
    if not trial.yes:
        out.note('The policy asks before a script runs, and nobody is asked here: without --yes, none runs.')
    return chosen.open(script_policy='allow' if trial.yes else 'deny', require=False)


def _cases(toolset: SkillsToolset[Any], names: Sequence[str]) -> CaseSet:
    skills = [find_skill(toolset, name) for name in names] or list(toolset.skills.values())
    cases = cases_of(skills)
    if not cases.cases and not cases.problems:
        some = skills[0].name if skills else 'NAME'
        raise Failure(f'No cases found. To write a first set, run: pydantic-ai-skills eval new {some}')
    return cases


def _run(out: Output, toolset: SkillsToolset[Any], cases: CaseSet, trial: Trial) -> EvalReport:
    has_queries, has_tasks = trial.parts
    with out.progress('Evaluating') as working:
        step = working.on_step
        try:
            report = asyncio.run(
                evaluate(
                    toolset,
                    cases,
                    model=None if trial.replay else _model(trial.model),
                    judge=named_model(trial.judge) if trial.judge and not trial.replay else None,
                    repeat=trial.repeat or (1 if trial.is_offline else 3),
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
    return stand_in_model() if name in (None, STAND_IN) else named_model(name)


def _finish(out: Output, report: EvalReport, results: ResultFiles, recorded: Sequence[str]) -> int:
    """Show a report, and write it where it was asked for."""
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
