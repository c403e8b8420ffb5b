"""Summarises the runs of tasks: the results of each configuration, and what the skill changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Literal

from .outcome_report import (
    CheckResult,
    Configuration,
    OutcomeDelta,
    OutcomeReport,
    OutcomeResult,
    OutcomeRun,
    OutcomeSummary,
    SkillOutcomes,
)
from .runs import CaseRun, PlannedRun
from .spread import Delta, Spread

Measure = Callable[[OutcomeRun], float | None]

_OTHERS: tuple[Configuration, ...] = ('without_skill', 'baseline')


def report_outcomes(
    tasks: Sequence[PlannedRun],
    runs: Mapping[str, Sequence[CaseRun]],
    checks: Mapping[str, Sequence[CheckResult]],
) -> OutcomeReport | None:
    """The report on tasks; `None` if there are none.

    The `runs` are by the key of their task, the `checks` by the label of their run.
    """
    if not tasks:
        return None
    results = tuple(_result(task, [_run(run, checks[run.label]) for run in runs[task.key]]) for task in tasks)
    skills = sorted({result.skill for result in results}, key=lambda name: (name is None, name))
    return OutcomeReport(results=results, skills=tuple(_of_skill(name, results) for name in skills))


def _run(run: CaseRun, checks: Sequence[CheckResult]) -> OutcomeRun:
    made = [check.passed for check in checks if check.passed is not None]
    rate = sum(made) / len(made) if made else None
    return OutcomeRun(
        number=run.number,
        checks=tuple(checks),
        pass_rate=rate if run.error is None else 0.0,
        loaded=run.loaded,
        output=run.folders.hide(run.output),
        used=run.used,
        error=run.error,
    )


def _result(task: PlannedRun, runs: Sequence[OutcomeRun]) -> OutcomeResult:
    assert task.kind != 'trigger'
    rates = [run.pass_rate for run in runs if run.pass_rate is not None]
    return OutcomeResult(
        case_id=task.case_id,
        prompt=task.case.prompt,
        skill=task.case.skill,
        configuration=task.kind,
        pass_rate=fmean(rates) if rates else None,
        runs=tuple(runs),
    )


def _of_skill(name: str | None, results: Sequence[OutcomeResult]) -> SkillOutcomes:
    own = [result for result in results if result.skill == name]
    there = {result.configuration for result in own}
    others: list[Configuration] = [each for each in _OTHERS if each in there]
    configurations: list[Configuration] = ['with_skill', *others]
    return SkillOutcomes(
        skill=name,
        tasks=len({result.case_id for result in own}),
        summaries=tuple(_summary(each, own) for each in configurations),
        deltas=tuple(_delta(each, own) for each in others),
    )


# --- One configuration --------------------------------------------------------------------------------------------


def _summary(configuration: Configuration, results: Sequence[OutcomeResult]) -> OutcomeSummary:
    runs = [run for result in results if result.configuration == configuration for run in result.runs]
    return OutcomeSummary(
        configuration=configuration,
        runs=len(runs),
        failed=sum(run.error is not None for run in runs),
        unchecked=sum(check.passed is None for run in runs for check in run.checks),
        pass_rate=_spread(runs, _rate, some=True),
        tokens=_measured(runs, _tokens),
        requests=_measured(runs, _requests),
        seconds=_measured(runs, _seconds),
        cost=_spread(runs, _cost),
    )


def _rate(run: OutcomeRun) -> float | None:
    return run.pass_rate


def _tokens(run: OutcomeRun) -> float:
    return run.used.tokens


def _requests(run: OutcomeRun) -> float:
    return run.used.requests


def _seconds(run: OutcomeRun) -> float:
    return run.used.seconds


def _cost(run: OutcomeRun) -> float | None:
    return run.used.cost


def _measured(runs: Sequence[OutcomeRun], measure: Callable[[OutcomeRun], float]) -> Spread:
    return Spread.of([measure(run) for run in runs])


def _spread(runs: Sequence[OutcomeRun], measure: Measure, *, some: bool = False) -> Spread | None:
    """The spread of a measure; `None` if no run has a value or, unless `some` is set, if any run has none."""
    values = [value for run in runs if (value := measure(run)) is not None]
    return Spread.of(values) if values and (some or len(values) == len(runs)) else None


# --- Two configurations -------------------------------------------------------------------------------------------


def _delta(against: Configuration, results: Sequence[OutcomeResult]) -> OutcomeDelta:
    ours = {result.case_id: result.runs for result in results if result.configuration == 'with_skill'}
    theirs = {result.case_id: result.runs for result in results if result.configuration == against}
    pairs = [(ours[case], theirs[case]) for case in ours if case in theirs]
    rate = _difference(pairs, _rate)
    return OutcomeDelta(
        against=against,
        pass_rate=rate,
        tokens=_certain(_difference(pairs, _tokens)),
        requests=_certain(_difference(pairs, _requests)),
        seconds=_certain(_difference(pairs, _seconds)),
        cost=_difference(pairs, _cost),
        verdict=_verdict(rate),
    )


def _certain(delta: Delta | None) -> Delta:
    assert delta is not None  # every run has a value, and each task runs with its skill
    return delta


Pair = tuple[Sequence[OutcomeRun], Sequence[OutcomeRun]]


def _difference(pairs: Sequence[Pair], measure: Measure) -> Delta | None:
    """The difference over all tasks, or over the repeats of a task if there is only one."""
    measured = [(_values(ours, measure), _values(theirs, measure)) for ours, theirs in pairs]
    whole = [(ours, theirs) for ours, theirs in measured if ours and theirs]
    if len(whole) == 1:
        ours, theirs = whole[0]
        return Delta.of([mine - other for mine, other in zip(ours, theirs, strict=False)])
    return Delta.of([fmean(ours) - fmean(theirs) for ours, theirs in whole]) if whole else None


def _values(runs: Sequence[OutcomeRun], measure: Measure) -> list[float]:
    return [value for run in runs if (value := measure(run)) is not None]


def _verdict(rate: Delta | None) -> Literal['helps', 'harms', 'unclear']:
    if rate is None or rate.low is None or rate.high is None:
        return 'unclear'
    return 'helps' if rate.low > 0 else 'harms' if rate.high < 0 else 'unclear'
