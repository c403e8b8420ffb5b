"""Renders an evaluation as one HTML page without scripts, other files or addresses. Everything in it is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, tostring

from .html_parts import Child, bar, element, folded, mark, matrix_table, number, table
from .html_style import STYLE
from .outcome_report import OutcomeDelta, OutcomeReport, OutcomeResult, OutcomeRun, OutcomeSummary, SkillOutcomes
from .report import EvalReport
from .stand_in import STAND_IN
from .trigger_report import SkillTriggers, TriggerReport, TriggerResult

CONFIGURATIONS = {'with_skill': 'with the skill', 'without_skill': 'without it', 'baseline': 'baseline'}
"""What the configurations are called, for people."""

STAND_IN_NOTE = (
    'Made by the offline stand-in, which compares words. It is not a model, and its figures say nothing about one.'
)
"""The note beside all figures of the stand-in."""

MATRIX_NOTE = (
    'Counts of runs. A query that says only which skill should not be loaded is in the row of none, where another '
    'skill may be right.'
)

_VERDICTS = {'helps': 'that help', 'harms': 'that harm', 'unclear': 'unclear'}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html_page(report: EvalReport) -> str:
    """A report as one self-contained page: results with and without skills, trigger rates, the matrix, every case."""
    head = element(
        'head',
        element('meta', charset='utf-8'),
        element('meta', name='viewport', content='width=device-width, initial-scale=1'),
        Element('meta', {'http-equiv': 'Content-Security-Policy', 'content': _POLICY}),
        element('title', 'Skill evaluation'),
        element('style', STYLE),
    )
    parts = [*_introduction(report)]
    if report.outcome is not None:
        parts += _outcomes(report.outcome)
    if report.trigger is not None:
        parts += _triggers(report.trigger)
    parts += _cases(report)
    page = element('html', head, element('body', element('main', *parts)), lang='en')
    return f'<!doctype html>\n{tostring(page, encoding="unicode", method="html")}\n'


def is_of_stand_in(report: EvalReport) -> bool:
    """Whether the figures are from the stand-in, and not from a model."""
    return STAND_IN in report.model.split(':')


def _introduction(report: EvalReport) -> Iterator[Element]:
    yield element('h1', 'Skill evaluation')
    facts = {'model': report.model, 'judge': report.judge, 'baseline': report.baseline, 'runs': str(report.repeat)}
    known = ' · '.join(f'{name}: {value}' for name, value in facts.items() if value)
    yield element('p', known, class_='dim')
    if is_of_stand_in(report):
        yield element('p', STAND_IN_NOTE, class_='note')
    for problem in (*report.problems, *report.errors):
        yield element('p', problem, class_='note')
    yield element('div', *_tiles(report), class_='tiles')


def _tiles(report: EvalReport) -> Iterator[Element]:
    trigger, outcome = report.trigger, report.outcome
    if trigger is not None:
        yield _tile('queries passed', f'{trigger.passed} of {len(trigger.results)}')
        yield _tile('precision', number(trigger.precision))
        yield _tile('recall', number(trigger.recall))
    if outcome is not None:
        verdicts = [delta.verdict for each in outcome.skills if (delta := each.delta())]
        yield _tile('skills with tasks', str(len(outcome.skills)))
        yield from (_tile(_VERDICTS[verdict], str(verdicts.count(verdict))) for verdict in dict.fromkeys(verdicts))


def _tile(name: str, value: str) -> Element:
    return element('div', element('b', value), name, class_='tile')


# --- Outcome ------------------------------------------------------------------------------------------------------


def _outcomes(outcome: OutcomeReport) -> Iterator[Element]:
    there = {summary.configuration for each in outcome.skills for summary in each.summaries}
    keys = [
        element('span', f'■ {text} ', class_=f'key {name}') for name, text in CONFIGURATIONS.items() if name in there
    ]
    yield element('h2', 'Does the skill help?')
    yield element('p', *keys, 'The line at the end of a bar is the standard deviation.', class_='dim')
    yield element('h3', 'Share of checks that passed')
    yield from (_group(each, [_pass_bar(summary) for summary in each.summaries]) for each in outcome.skills)
    yield element('h3', 'Tokens of a run')
    most = max((summary.tokens.mean for each in outcome.skills for summary in each.summaries), default=0)
    yield from (_group(each, [_token_bar(summary, most) for summary in each.summaries]) for each in outcome.skills)
    headings = ('skill', 'against', 'pass rate', '95 % interval', 'tokens', 'seconds', 'verdict')
    rows = [_delta_row(each, delta) for each in outcome.skills for delta in each.deltas]
    if rows:
        yield element('h3', 'What the skill changes')
        yield table(headings, rows)


def _group(outcomes: SkillOutcomes, bars: Sequence[Element]) -> Element:
    return element('div', element('b', outcomes.skill or 'no skill'), element('div', *bars), class_='group')


def _pass_bar(summary: OutcomeSummary) -> Element:
    rate = summary.pass_rate
    if rate is None:
        return bar(0, 1, 'nothing checked', summary.configuration)
    return bar(rate.mean, 1, f'{rate.mean:.2f} ± {rate.stddev:.2f}', summary.configuration, spread=rate.stddev)


def _token_bar(summary: OutcomeSummary, most: float) -> Element:
    tokens = summary.tokens
    label = f'{tokens.mean:,.0f} ± {tokens.stddev:,.0f}'
    return bar(tokens.mean, most, label, summary.configuration, spread=tokens.stddev)


def _delta_row(outcomes: SkillOutcomes, delta: OutcomeDelta) -> Sequence[Child]:
    rate = delta.pass_rate
    interval = '–' if rate is None or rate.low is None or rate.high is None else f'{rate.low:+.2f} to {rate.high:+.2f}'
    return (
        outcomes.skill or 'no skill',
        CONFIGURATIONS[delta.against],
        '–' if rate is None else f'{rate.mean:+.2f}',
        interval,
        f'{delta.tokens.mean:+,.0f}',
        f'{delta.seconds.mean:+.2f}',
        delta.verdict,
    )


# --- Trigger ------------------------------------------------------------------------------------------------------


def _triggers(trigger: TriggerReport) -> Iterator[Element]:
    yield element('h2', 'Is the right skill loaded?')
    rows = ((each.skill, _passed(each), _share(each.precision), _share(each.recall)) for each in trigger.skills)
    yield table(('skill', 'queries passed', 'precision', 'recall'), rows)
    yield element('h3', 'Which skill was loaded in place of which')
    yield matrix_table(trigger.matrix)
    yield element('p', MATRIX_NOTE, class_='dim')


def _passed(triggers: SkillTriggers) -> str:
    return f'{triggers.passed} of {triggers.queries}' if triggers.queries else '–'


def _share(value: float | None) -> Child:
    return number(value) if value is None else bar(value, 1, number(value), 'with_skill')


# --- Cases --------------------------------------------------------------------------------------------------------


def _cases(report: EvalReport) -> Iterator[Element]:
    yield element('h2', 'Cases')
    queries = report.trigger.results if report.trigger else ()
    tasks = report.outcome.results if report.outcome else ()
    for skill in sorted({each.skill or '' for each in (*queries, *tasks)}, key=lambda name: (not name, name)):
        own_queries = [each for each in queries if (each.skill or '') == skill]
        own_tasks = [each for each in tasks if (each.skill or '') == skill]
        tasks_of = len({each.case_id for each in own_tasks})
        title = f'{skill or "no skill"} · queries: {len(own_queries)} · tasks: {tasks_of}'
        parts = [_query_table(own_queries)] if own_queries else []
        yield folded([title], *parts, *map(_task, own_tasks))


def _query_table(results: Sequence[TriggerResult]) -> Element:
    rows = (
        (
            mark(result.passed),
            result.query,
            'load it' if result.should_trigger else 'leave it',
            number(result.rate),
            _loaded(result),
        )
        for result in results
    )
    return table(('', 'query', 'should', 'rate', 'loaded'), rows)


def _loaded(result: TriggerResult) -> str:
    """What the runs of a query loaded, each once."""
    runs = (', '.join(run.loaded) or run.error or 'none' for run in result.runs)
    return ' | '.join(dict.fromkeys(runs))


def _task(result: OutcomeResult) -> Element:
    passed = None if result.pass_rate is None else result.pass_rate == 1
    title = [mark(passed), f'{CONFIGURATIONS[result.configuration]}: {number(result.pass_rate)} · {result.prompt}']
    return folded(title, *(part for run in result.runs for part in _run(run)))


def _run(run: OutcomeRun) -> Iterator[Element]:
    used = f'{run.used.tokens:,} tokens, {run.used.requests} requests, {run.used.seconds:.2f} s'
    loaded = ', '.join(run.loaded) or 'none'
    yield element('p', f'Run {run.number}: {used}. Loaded: {loaded}.', class_='dim')
    if run.error is not None:
        yield element('p', run.error, class_='bad')
    yield element('ul', *(_check(each.text, each.passed, each.evidence) for each in run.checks))
    yield folded(['Answer'], element('pre', run.output))


def _check(text: str, passed: bool | None, evidence: str) -> Element:
    found = [folded(['Evidence'], element('pre', evidence))] if evidence else []
    return element('li', mark(passed), text, *found)
