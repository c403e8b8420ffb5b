"""Summarises the runs of queries: rates, precision, recall, and which skills were loaded in place of which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .cases import SkillCase
from .runs import CaseRun, PlannedRun
from .trigger_report import NONE, ConfusionMatrix, SkillTriggers, TriggerReport, TriggerResult, TriggerRun


def report_triggers(
    queries: Sequence[PlannedRun], runs: Mapping[str, Sequence[CaseRun]], threshold: float
) -> TriggerReport | None:
    """The report on queries and their runs, by the key of the query; `None` if there are none."""
    if not queries:
        return None
    results = tuple(_result(query, runs[query.key], threshold) for query in queries)
    names = {name for each in results for name in _names_in(each)}
    skills = tuple(_of_skill(name, queries, results) for name in sorted(names))
    right = sum(each.true_positives for each in skills)
    return TriggerReport(
        results=results,
        skills=skills,
        matrix=_matrix(results),
        precision=_share(right, right + sum(each.false_positives for each in skills)),
        recall=_share(right, right + sum(each.false_negatives for each in skills)),
        passed=sum(each.passed for each in results),
    )


def _result(query: PlannedRun, runs: Sequence[CaseRun], threshold: float) -> TriggerResult:
    case = query.case
    told = tuple(
        TriggerRun(number=run.number, loaded=run.loaded, correct=_is_correct(case, run), used=run.used, error=run.error)
        for run in runs
    )
    triggered = sum(bool(run.loaded) if case.skill is None else case.skill in run.loaded for run in told)
    correct = sum(run.correct for run in told)
    # At exactly the threshold, a skill that should be loaded has passed, and one that should not has failed.
    passed = correct / len(told) >= threshold if case.should_trigger else 1 - correct / len(told) < threshold
    return TriggerResult(
        case_id=query.case_id,
        query=case.prompt,
        skill=case.skill,
        should_trigger=bool(case.should_trigger),
        target=case.target,
        rate=triggered / len(told),
        passed=passed,
        runs=told,
    )


def _is_correct(case: SkillCase, run: CaseRun) -> bool:
    if run.error is not None or (case.target is not None and case.target not in run.loaded):
        return False
    if case.should_trigger:
        return True
    return not run.loaded if case.skill is None else case.skill not in run.loaded


def _names_in(result: TriggerResult) -> Iterable[str]:
    named = (result.skill, result.target, *(name for run in result.runs for name in run.loaded))
    return (name for name in named if name is not None)


def _of_skill(name: str, queries: Sequence[PlannedRun], results: Sequence[TriggerResult]) -> SkillTriggers:
    counts = {(should, was): 0 for should in (True, False) for was in (True, False)}
    for query, result in zip(queries, results, strict=True):
        should = _should_load(query.case, name)
        for run in result.runs if should is not None else ():
            counts[should is True, name in run.loaded] += 1
    own = [result for result in results if result.skill == name]
    right, wrong, missed = counts[True, True], counts[False, True], counts[True, False]
    return SkillTriggers(
        skill=name,
        queries=len(own),
        passed=sum(result.passed for result in own),
        true_positives=right,
        false_positives=wrong,
        false_negatives=missed,
        true_negatives=counts[False, False],
        precision=_share(right, right + wrong),
        recall=_share(right, right + missed),
    )


def _should_load(case: SkillCase, name: str) -> bool | None:
    """Whether a query should load a skill; `None` if it says nothing about that one."""
    if case.target is not None:
        return case.target == name
    return False if case.skill in (None, name) else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _matrix(results: Sequence[TriggerResult]) -> ConfusionMatrix:
    targets = sorted({result.target for result in results if result.target is not None})
    columns = sorted({*targets, *(name for result in results for run in result.runs for name in run.loaded)})
    counts = {(row, column): 0 for row in (*targets, NONE) for column in (*columns, NONE)}
    for result in results:
        for run in result.runs:
            for name in run.loaded or (NONE,):
                counts[result.target or NONE, name] += 1
    return ConfusionMatrix(
        expected=(*targets, NONE),
        loaded=(*columns, NONE),
        counts=tuple(tuple(counts[row, column] for column in (*columns, NONE)) for row in (*targets, NONE)),
    )
