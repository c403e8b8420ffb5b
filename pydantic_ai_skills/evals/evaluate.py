"""`evaluate`: does a skill trigger, and does it help?"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from pydantic_ai.exceptions import UserError

from pydantic_ai_skills.types.skill import Skill

from .baseline import Baseline, name_of, other_versions, replaced
from .case_files import cases_of
from .cases import CaseSet, SkillCase
from .outcome import report_outcomes
from .plan import Plan, make_plan
from .report import EvalReport
from .runner import Runner
from .runs import CaseRun, RunKind
from .subject import AnyModel, Subject, Target, model_id, subject_of, tried_models
from .trigger import report_triggers

if TYPE_CHECKING:
    from .experiment import Experiments

T = TypeVar('T')


@dataclass(frozen=True, kw_only=True)
class EvalProgress:
    """How far an evaluation is, after each run."""

    done: int
    """How many runs are over."""

    total: int
    """How many there are in all."""

    case_id: str
    """The case whose run is over."""

    configuration: RunKind
    """With which version of the skill it ran; `'trigger'` for a query."""

    error: str | None = None
    """Why the run failed, if it did."""


async def evaluate(
    target: Target,
    cases: CaseSet | Iterable[SkillCase] | None = None,
    *,
    model: AnyModel | None = None,
    judge: AnyModel | None = None,
    repeat: int = 3,
    threshold: float = 0.5,
    trigger: bool = True,
    outcome: bool = True,
    without_skill: bool = True,
    baseline: Baseline | None = None,
    deps: Any = None,
    max_concurrency: int = 4,
    max_requests: int = 50,
    max_trigger_requests: int = 4,
    record: str | Path | None = None,
    replay: str | Path | None = None,
    on_progress: Callable[[EvalProgress], None] | None = None,
) -> EvalReport:
    """Find out which skills a model loads for which prompts, and whether they help.

    ```python
    import asyncio

    from pydantic_ai.models.test import TestModel

    from pydantic_ai_skills import Skill, SkillCase, SkillsToolset, evaluate

    toolset = SkillsToolset(skills=[Skill('greeting', 'Greets people. Use when somebody new arrives.', 'Say hello.')])
    cases = [SkillCase(skill='greeting', prompt='Sam is new here.', should_trigger=True)]

    # A model for tests, which loads nothing. Take a real one.
    report = asyncio.run(evaluate(toolset, cases, model=TestModel(call_tools=[])))
    assert report.trigger is not None
    print(report.trigger.results[0].rate)
    #> 0.0
    ```

    Each run has a conversation and a private work folder of its own. Without its skill, a task runs as if there were no
    such skill. While the baseline is tried, the toolsets have the other version of each skill, so do not use them
    elsewhere meanwhile.

    Args:
        target: An agent with skills, or the skills, which then need a `model`.
        cases: What to try; by default the cases in the `evals` folders of the skills.
        model: The model to try, in place of the agent's own.
        judge: The model that judges statements in plain words. Without one they count as not checked.
        repeat: How often each case runs in each configuration.
        threshold: The share of correct runs at which a query or a check passes. A query that should not load its skill
            passes if the share of wrong runs is below it.
        trigger: Whether to run the queries.
        outcome: Whether to run the tasks.
        without_skill: Whether to run each task without its skill, too.
        baseline: What else to compare the skills with.
        deps: The dependencies of the runs.
        max_concurrency: How many runs there are at a time.
        max_requests: How many requests a run of a task may make. One that needs more has failed.
        max_trigger_requests: After how many requests a run of a query is over: by then it has loaded what it needs.
        record: A file to write all answers of the models to, for `replay`.
        replay: A file to take the answers of the models from. No model is asked, and the report is the same.
        on_progress: Called after each run.

    Returns:
        The report. A run that raises an error is in it, with its reason.

    Raises:
        ImportError: pydantic-evals is not installed.
        UserError: The agent has no skills, there is no model, or the options contradict each other.
        SkillError: The baseline or the recording cannot be read, or a request is not in the recording.
    """
    _check_options(repeat=repeat, threshold=threshold, max_concurrency=max_concurrency)
    if record is not None and replay is not None:
        raise UserError('An evaluation is recorded or replayed, not both.')
    from .experiment import Experiments  # only there with the extra

    subject = await subject_of(target)
    case_set = await _case_set(cases, subject)
    models = await tried_models(subject.agent, model, judge, record=record, replay=replay)
    limits = {'task': max_requests, 'trigger': max_trigger_requests, 'concurrency': max_concurrency}
    runner = Runner(subject, models, deps=deps, limits=limits)
    tried = subject.skills
    named = [tried[name] for name in _named(case_set) if name in tried]
    async with _in_thread(other_versions(baseline, named)) as others:
        plan = make_plan(
            case_set.cases, trigger=trigger, outcome=outcome, without_skill=without_skill, with_baseline=others
        )
        told = _Progress(plan.runs * repeat, on_progress)
        experiments = Experiments(
            runner=runner, judge=models.judge, repeat=repeat, max_concurrency=max_concurrency, on_end=told
        )
        await _run(subject, plan, experiments, others)
    models.check_replay()
    if record is not None:
        await anyio.to_thread.run_sync(models.recording.write, Path(record))
    return EvalReport(
        model=model_id(models.model),
        judge=None if models.judge is None else model_id(models.judge),
        repeat=repeat,
        threshold=threshold,
        baseline=name_of(baseline),
        hashes=_hashes(tried),
        trigger=report_triggers(plan.queries, experiments.runs, threshold),
        outcome=report_outcomes(plan.tasks, experiments.runs, experiments.checks),
        problems=tuple(_problems(case_set, tried, None if name_of(baseline) is None else others)),
    )


async def _run(subject: Subject, plan: Plan, experiments: Experiments, others: Mapping[str, Skill[Any]]) -> None:
    """Run one configuration after the other: while the baseline runs, the toolsets have the other versions."""
    kinds: tuple[RunKind, ...] = ('trigger', 'with_skill', 'without_skill')
    with experiments.runner.watching():
        for kind in kinds:
            await experiments.run(kind, plan.of(kind))
        async with _in_thread(replaced(subject.toolsets, others)):
            await experiments.run('baseline', plan.of('baseline'))


@asynccontextmanager
async def _in_thread(context: AbstractContextManager[T]) -> AsyncGenerator[T]:
    """Enter and leave a context off the event loop."""
    value = await anyio.to_thread.run_sync(context.__enter__)
    try:
        yield value
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(context.__exit__, None, None, None)


async def _case_set(cases: CaseSet | Iterable[SkillCase] | None, subject: Subject) -> CaseSet:
    if isinstance(cases, CaseSet):
        return cases
    if cases is not None:
        return CaseSet(cases=tuple(cases))
    return await anyio.to_thread.run_sync(cases_of, subject.skills.values())


def _check_options(*, repeat: int, threshold: float, max_concurrency: int) -> None:
    for name, number in (('repeat', repeat), ('max_concurrency', max_concurrency)):
        if number < 1:
            raise UserError(f'`{name}` is at least 1, not {number}.')
    if not 0 < threshold <= 1:
        raise UserError(f'`threshold` is a share, more than 0 and at most 1, not {threshold:g}.')


def _named(case_set: CaseSet) -> list[str]:
    """The skills that cases are for."""
    return sorted({case.skill for case in case_set.cases if case.skill is not None})


def _hashes(skills: Mapping[str, Skill[Any]]) -> dict[str, str]:
    sources = {name: skill.source for name, skill in sorted(skills.items())}
    return {name: source.content_hash for name, source in sources.items() if source and source.content_hash}


def _problems(
    case_set: CaseSet, skills: Mapping[str, Skill[Any]], others: Mapping[str, Skill[Any]] | None
) -> Iterator[str]:
    """What keeps cases from being tried as they are meant. Files are named without the folders of this machine."""
    for problem in case_set.problems:
        yield f'{"/".join(Path(problem.path).parts[-3:])}: {problem.message}'
    for name in _named(case_set):
        if name not in skills:
            yield f'There are cases for the skill {name!r}, which the agent does not have.'
        elif others is not None and name not in others:
            yield f'The skill {name!r} has no other version to compare with.'


class _Progress:
    """Counts the runs that are over."""

    def __init__(self, total: int, tell: Callable[[EvalProgress], None] | None) -> None:
        self._done = 0
        self._total = total
        self._tell = tell

    def __call__(self, run: CaseRun) -> None:
        self._done += 1
        if self._tell is not None:
            planned = run.planned
            self._tell(
                EvalProgress(
                    done=self._done,
                    total=self._total,
                    case_id=planned.case_id,
                    configuration=planned.kind,
                    error=run.error,
                )
            )
