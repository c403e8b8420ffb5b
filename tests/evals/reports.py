"""A report made by hand, with something of everything in it."""

from __future__ import annotations

from dataclasses import replace

from pydantic_ai_skills.evals import (
    CheckResult,
    Configuration,
    ConfusionMatrix,
    Delta,
    EvalReport,
    OutcomeDelta,
    OutcomeReport,
    OutcomeResult,
    OutcomeRun,
    OutcomeSummary,
    RunCost,
    SkillOutcomes,
    SkillTriggers,
    Spread,
    TriggerReport,
    TriggerResult,
    TriggerRun,
)

USED = RunCost(input_tokens=300, output_tokens=40, requests=3, tool_calls=2, seconds=0.5)


def query(
    text: str, skill: str | None, *loaded: str, should: bool = True, error: str | None = None, runs: int = 2
) -> TriggerResult:
    """A query whose runs all loaded the same skills."""
    hit = skill in loaded
    right = hit == should and error is None
    run = TriggerRun(number=1, loaded=loaded, correct=right, used=USED, error=error)
    return TriggerResult(
        case_id=f'{skill}-{text}',
        query=text,
        skill=skill,
        should_trigger=should,
        target=skill if should else None,
        rate=float(hit),
        passed=right,
        runs=tuple(replace(run, number=number) for number in range(1, runs + 1)),
    )


def triggers(*results: TriggerResult, matrix: ConfusionMatrix) -> TriggerReport:
    skills = (
        SkillTriggers(
            skill='pdf',
            queries=len(results),
            passed=1,
            true_positives=2,
            false_positives=0,
            false_negatives=2,
            true_negatives=0,
            precision=1.0,
            recall=0.5,
        ),
        SkillTriggers(
            skill='zip',
            queries=0,
            passed=0,
            true_positives=0,
            false_positives=0,
            false_negatives=0,
            true_negatives=0,
            precision=None,
            recall=None,
        ),
    )
    passed = sum(result.passed for result in results)
    return TriggerReport(results=results, skills=skills, matrix=matrix, precision=1.0, recall=0.5, passed=passed)


def task(
    *checks: CheckResult,
    configuration: Configuration = 'with_skill',
    skill: str | None = 'pdf',
    output: str = 'Filled.',
    error: str | None = None,
) -> OutcomeResult:
    made = [check.passed for check in checks if check.passed is not None]
    rate = sum(made) / len(made) if made else None
    run = OutcomeRun(number=1, checks=checks, pass_rate=rate, loaded=('pdf',), output=output, used=USED, error=error)
    return OutcomeResult(
        case_id='1',
        prompt='Fill in form.pdf.',
        skill=skill,
        configuration=configuration,
        pass_rate=rate,
        runs=(run,),
    )


def summary(configuration: Configuration, rate: float | None, tokens: float, unchecked: int = 0) -> OutcomeSummary:
    def spread(mean: float, deviation: float = 0.0) -> Spread:
        return Spread(mean=mean, stddev=deviation, min=mean - deviation, max=mean + deviation)

    return OutcomeSummary(
        configuration=configuration,
        runs=1,
        failed=0,
        unchecked=unchecked,
        pass_rate=None if rate is None else spread(rate, 0.1),
        tokens=spread(tokens, 20),
        requests=spread(3),
        seconds=spread(0.5),
        cost=None,
    )


def delta(against: Configuration, rate: float | None, *, pairs: int = 2) -> OutcomeDelta:
    def change(mean: float) -> Delta:
        return Delta.of([mean] if pairs == 1 else [mean - 0.1, mean + 0.1])

    return OutcomeDelta(
        against=against,
        pass_rate=None if rate is None else change(rate),
        tokens=change(120),
        requests=change(2),
        seconds=change(0.25),
        cost=None,
        verdict='unclear',
    )


CONTAINS = CheckResult(text="The answer contains '<b>'.", kind='contains', passed=True, evidence='Found: <b>')
MISSING = CheckResult(
    text='There is a file.', kind='file', passed=False, evidence='There are: <script>alert(1)</script>'
)
JUDGED = CheckResult(text='It is polite.', kind='judge', passed=None)

MATRIX = ConfusionMatrix(expected=('pdf', 'none'), loaded=('pdf', 'zip', 'none'), counts=((2, 1, 1), (0, 0, 2)))

REPORT = EvalReport(
    model='openai:gpt-5.2',
    judge=None,
    repeat=2,
    threshold=0.5,
    baseline='the lock file',
    hashes={'pdf': 'sha256:1'},
    trigger=triggers(
        query('Fill in this form.', 'pdf', 'pdf'),
        query('Fill in that <form>.', 'pdf', 'zip'),
        query('Fill it.', 'pdf', error='ModelError: no'),
        query('Hello', None, should=False),
        matrix=MATRIX,
    ),
    outcome=OutcomeReport(
        results=(
            task(CONTAINS, MISSING, JUDGED),
            task(CONTAINS, replace(MISSING, passed=True), configuration='without_skill', output='\u202eevil</pre>'),
            task(JUDGED, configuration='baseline', error='<i>late</i>'),
            task(skill=None),
        ),
        skills=(
            SkillOutcomes(
                skill='pdf',
                tasks=1,
                summaries=(
                    summary('with_skill', 0.5, 340, unchecked=1),
                    summary('without_skill', 1.0, 220),
                    summary('baseline', None, 300),
                ),
                deltas=(delta('without_skill', -0.5), delta('baseline', None)),
            ),
            SkillOutcomes(skill=None, tasks=1, summaries=(summary('with_skill', None, 0),), deltas=()),
        ),
    ),
    problems=('skills/pdf/evals/evals.json: evals[3] has no <prompt>.',),
)
"""Everything: passed and failed, judged and not, with errors, and texts that mean something in HTML."""
