"""Runs cases with pydantic-evals: each configuration is an experiment of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

try:
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext
except ImportError as error:
    raise ImportError("Evaluations need pydantic-evals: pip install 'pydantic-ai-skills[evals]'.") from error

from pydantic_ai.models import Model

from pydantic_ai_skills.exceptions import SkillError

from .grading import grade
from .outcome_report import CheckResult
from .recording import RUN_NOW, RunNow
from .runner import Runner
from .runs import CaseRun, PlannedRun

UNCHECKED = 'unchecked'
"""The label of a check that nobody could make."""


@dataclass(repr=False)
class Checks(Evaluator[Any, Any, Any]):
    """Makes the checks of a case. A check that nobody could make is a label, the others are assertions."""

    runner: Runner = field(repr=False)
    """What ran the case."""

    judge: Model | None
    """The judging model, if there is one."""

    results: dict[str, list[CheckResult]]
    """Where the results are put, by the label of the run."""

    on_end: Callable[[CaseRun], None]
    """Called when a run is checked."""

    async def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> dict[str, Any]:
        """Make the checks, then remove the work folder."""
        run: CaseRun = ctx.output
        RUN_NOW.set(RunNow(label=run.label, folders=run.folders))  # for the answers of the judge in a recording
        try:
            results = self.results[run.label] = [] if run.planned.kind == 'trigger' else await grade(run, self.judge)
        finally:
            await self.runner.close(run)
        self.on_end(run)
        return {
            f'{number} {result.text}': EvaluationReason(_value(result), result.evidence)
            for number, result in enumerate(results, 1)
        }


def _value(result: CheckResult) -> bool | str:
    return UNCHECKED if result.passed is None else result.passed


@dataclass(kw_only=True)
class Experiments:
    """All runs of an evaluation and their checks."""

    runner: Runner
    """What runs the cases."""

    judge: Model | None
    """The judging model, if there is one."""

    repeat: int
    """How often each case runs."""

    max_concurrency: int
    """How many runs there are at a time."""

    on_end: Callable[[CaseRun], None]
    """Called when a run is checked."""

    runs: dict[str, list[CaseRun]] = field(default_factory=dict[str, list[CaseRun]])
    """The runs by the key of what was planned, in the order of their numbers."""

    checks: dict[str, list[CheckResult]] = field(default_factory=dict[str, list[CheckResult]])
    """The checks by the label of the run."""

    async def run(self, name: str, planned: Sequence[PlannedRun]) -> None:
        """Run an experiment, which has this name in traces."""
        if not planned:
            return
        started = Counter[str]()

        async def run_case(each: PlannedRun) -> CaseRun:
            # Repeats of a case do not differ, so they are numbered as they start.
            started[each.key] += 1
            return await self.runner.run(each, started[each.key])

        dataset = Dataset[Any, Any, Any](
            name=name,
            cases=[Case(name=each.key, inputs=each) for each in planned],
            evaluators=[Checks(self.runner, self.judge, self.checks, self.on_end)],
        )
        report = await dataset.evaluate(
            run_case, name=name, repeat=self.repeat, max_concurrency=self.max_concurrency, progress=False
        )
        for failure in report.failures:  # not in a run: that would be part of its result
            raise SkillError(f'The run {failure.name!r} could not begin: {failure.error_message}')
        for case in report.cases:
            self.runs.setdefault(case.inputs.key, []).append(case.output)
        for runs in self.runs.values():
            runs.sort(key=lambda run: run.number)
