"""`eval`: find out whether the right skills are loaded, and whether they help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from .command import SUCCESS, command
from .eval_new import new_evals
from .output import Output
from .skills import ChosenSkills, complete_skill_names

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
    """Cases are in the `evals` folder of each skill.

    Queries show which skills are loaded for which prompts. Tasks run with the skill and without it, and what comes of
    them is checked. `eval new NAME` writes a first set, to edit. With a model, the scores of skills that were fetched
    are recorded in `skills.lock`.

    Without --model nothing is sent anywhere: a simple offline stand-in shows the queries. The exit status is 1 if a
    case fails.
    """
    if targets and targets[0] == 'new':
        new_evals(out, targets[1:], chosen)
        return SUCCESS
    from .eval_run import run_evals  # imports pydantic-ai, which `--help` does without

    return run_evals(out, targets or (), trial, results, chosen)
