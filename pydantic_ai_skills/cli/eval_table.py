"""Shows an evaluation at the terminal: a table for each question, then what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic_ai_skills.evals import (
    CheckResult,
    Configuration,
    EvalReport,
    OutcomeReport,
    OutcomeResult,
    SkillOutcomes,
    SkillTriggers,
    TriggerReport,
    TriggerResult,
    is_of_stand_in,
)

from .output import Output, counted, one_line

MAX_SHOWN = 20
"""How many failed cases the terminal shows; `--json` and `--html` have all of them."""

MAX_CHARS = 200
"""How much of a prompt, a check or its evidence the terminal shows."""

STAND_IN_LINE = 'by the offline stand-in, which compares words: no model made these figures'


def show_report(out: Output, report: EvalReport) -> None:
    """Write a report for people."""
    made_by = STAND_IN_LINE if is_of_stand_in(report) else f'by {report.model}, {counted(report.repeat, "run")} each'
    if report.trigger is not None:
        out.heading('Is the right skill loaded?')
        out.line((made_by, 'dim'))
        _show_triggers(out, report.trigger)
    if report.outcome is not None:
        out.heading('Does the skill help?')
        out.line((made_by, 'dim'))
        _show_outcomes(out, report.outcome, report.threshold)
    for problem in (*report.problems, *report.errors):
        out.note(('problem: ', 'yellow'), problem)


def failed_queries(report: EvalReport) -> list[TriggerResult]:
    """The queries that did not pass."""
    return [] if report.trigger is None else [each for each in report.trigger.results if not each.passed]


def failed_tasks(report: EvalReport) -> list[OutcomeResult]:
    """The tasks that failed with their skill: an error, or a check that passes in too few of the runs."""
    results = report.outcome.results if report.outcome is not None else ()
    return [each for each in results if each.configuration == 'with_skill' and _failed(each, report.threshold)]


def _failed(result: OutcomeResult, threshold: float) -> bool:
    return any(run.error for run in result.runs) or bool(failed_checks(result, threshold))


def failed_checks(result: OutcomeResult, threshold: float) -> list[CheckResult]:
    """The checks of a task that pass in too few of its runs, each with its result in the first run that failed it."""
    failed: list[CheckResult] = []
    for runs in zip(*(run.checks for run in result.runs), strict=False):
        made = [check for check in runs if check.passed is not None]
        wrong = [check for check in made if not check.passed]
        if wrong and 1 - len(wrong) / len(made) < threshold:
            failed.append(wrong[0])
    return failed


# --- Trigger ------------------------------------------------------------------------------------------------------


def _show_triggers(out: Output, trigger: TriggerReport) -> None:
    rows = ((each.skill, _passed(each), _number(each.precision), _number(each.recall)) for each in trigger.skills)
    out.table(('skill', '>queries passed', '>precision', '>recall'), rows)
    shares = f'precision {_number(trigger.precision)}, recall {_number(trigger.recall)}'
    out.line((f'{trigger.passed} of {len(trigger.results)} queries passed, {shares}.', 'bold'))
    failed = [each for each in trigger.results if not each.passed]
    for result in failed[:MAX_SHOWN]:
        out.line(('✗ ', 'red'), _about(result))
        out.line(('  ', ''), (_short(result.query), 'dim'))
    _show_rest(out, failed)
    if confused := _confused(trigger):
        out.heading('Loaded in place of another')
        out.table(('should load', 'loaded', '>runs'), confused)


def _passed(triggers: SkillTriggers) -> str:
    """How many of its own queries passed. A skill may have none, and be loaded for those of others."""
    return f'{triggers.passed} of {triggers.queries}' if triggers.queries else '–'


def _about(result: TriggerResult) -> str:
    """What was wrong with the runs of a query."""
    loaded = dict.fromkeys(name for run in result.runs for name in (run.loaded or ('nothing',)))
    right = sum(run.correct for run in result.runs)
    should = f'should load {result.target}' if result.target else f'should not load {result.skill or "anything"}'
    return f'{should}, loaded {", ".join(loaded)} ({right} of {counted(len(result.runs), "run")} right)'


def _confused(trigger: TriggerReport) -> list[tuple[str, str, str]]:
    """Which skills were loaded in place of which, and how often: the runs that were not right."""
    wrong = [(each.target or 'none', run) for each in trigger.results for run in each.runs if not run.correct]
    pairs = Counter((target, name) for target, run in wrong for name in run.loaded if name != target)
    return [(target, name, str(count)) for (target, name), count in sorted(pairs.items())]


# --- Outcome ------------------------------------------------------------------------------------------------------


def _show_outcomes(out: Output, outcome: OutcomeReport, threshold: float) -> None:
    has_baseline = any(each.summary('baseline') for each in outcome.skills)
    others: tuple[Configuration, ...] = ('without_skill', 'baseline') if has_baseline else ('without_skill',)
    names = {'without_skill': '>without', 'baseline': '>baseline'}
    columns = ('skill', '>tasks', '>with', *(names[name] for name in others), '>delta', '>tokens', 'verdict')
    out.table(columns, (_outcome_row(each, others) for each in outcome.skills))
    with_skill = [each for each in outcome.results if each.configuration == 'with_skill']
    failed = [each for each in with_skill if _failed(each, threshold)]
    total = counted(len(with_skill), 'task')
    out.line((f'{len(with_skill) - len(failed)} of {total} passed with the skill.', 'bold'))
    for result in failed[:MAX_SHOWN]:
        out.line(('✗ ', 'red'), f'{result.case_id}: {_short(result.prompt)}')
        for check in failed_checks(result, threshold):
            out.line(('  ', ''), _short(check.text), (f'  {_short(check.evidence)}', 'dim'))
    _show_rest(out, failed)
    unchecked = sum(each.unchecked for skill in outcome.skills for each in skill.summaries)
    if unchecked:
        out.note(f'{counted(unchecked, "check")} in words were not made: they need a judging model, --judge MODEL.')


def _outcome_row(outcomes: SkillOutcomes, others: Sequence[Configuration]) -> tuple[str, ...]:
    delta = outcomes.delta(others[-1]) or outcomes.delta()
    rate = None if delta is None else delta.pass_rate
    return (
        outcomes.skill or 'no skill',
        str(outcomes.tasks),
        *(_rate(outcomes, name) for name in ('with_skill', *others)),
        '–' if rate is None else f'{rate.mean:+.2f}',
        '–' if delta is None else f'{delta.tokens.mean:+,.0f}',
        '–' if delta is None else delta.verdict,
    )


def _rate(outcomes: SkillOutcomes, configuration: Configuration) -> str:
    summary = outcomes.summary(configuration)
    if summary is None or summary.pass_rate is None:
        return '–'
    return f'{summary.pass_rate.mean:.2f}'


def _show_rest(out: Output, failed: Sequence[object]) -> None:
    if len(failed) > MAX_SHOWN:
        out.line((f'… {len(failed) - MAX_SHOWN} more; --json and --html have all of them', 'dim'))


def _short(text: str) -> str:
    """A text on one line, cut if it is long."""
    line = one_line(text)
    return line if len(line) <= MAX_CHARS else f'{line[: MAX_CHARS - 1]}…'


def _number(value: float | None) -> str:
    return '–' if value is None else f'{value:.2f}'
