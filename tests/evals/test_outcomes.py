"""Known answers: skills that help, harm or do nothing are told apart, with the spread of the difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from pydantic_ai_skills import Skill, SkillsCapability, SkillsToolset
from pydantic_ai_skills.evals import (
    EvalReport,
    OutcomeReport,
    OutputContains,
    SkillCase,
    Spread,
    evaluate,
)
from pydantic_ai_skills.evals.spread import Delta
from tests.evals.scripted import choosing, prompt_of, returns_in

pytestmark = pytest.mark.anyio

HELPS = Skill('helps', 'Knows the answer.', 'The answer is 42.')
HARMS = Skill('harms', 'Knows a wrong answer.', 'The answer is 41.')


async def outcomes(toolset: SkillsToolset[Any], cases: Sequence[SkillCase], model: FunctionModel) -> OutcomeReport:
    report = await evaluate(toolset, cases, model=model)
    assert report.outcome is not None
    return report.outcome


def tasks(skill: str, count: int) -> list[SkillCase]:
    """Tasks that are right if 42 is in the answer, and 41 is not."""
    checks = [OutputContains('42'), OutputContains('41', absent=True)]
    return [
        SkillCase(skill=skill, id=number, prompt=f'{skill}, task {number}', checks=checks) for number in range(count)
    ]


@pytest.mark.parametrize('count', [1, 3], ids=['one task', 'three tasks'])
async def test_a_skill_that_helps_and_one_that_harms_are_told_apart(count: int) -> None:
    cases = [*tasks('helps', count), *tasks('harms', count)]
    model = choosing({case.prompt: [[case.skill or '']] for case in cases})
    report = await outcomes(SkillsToolset(skills=[HELPS, HARMS]), cases, model)
    harms, helps = report.skills
    assert (helps.skill, helps.tasks, harms.skill, harms.tasks) == ('helps', count, 'harms', count)
    delta = helps.delta()
    assert delta is not None
    # Without a skill, one of two checks passes: nothing wrong is said.
    pairs = 3  # tasks, or the repeats of the only one
    assert delta.pass_rate == Delta(mean=0.5, stderr=0.0, low=0.5, high=0.5, pairs=pairs)
    assert delta.verdict == 'helps'
    delta = harms.delta()
    assert delta is not None
    assert delta.pass_rate == Delta(mean=-0.5, stderr=0.0, low=-0.5, high=-0.5, pairs=pairs)
    assert delta.verdict == 'harms'
    with_skill, without = helps.summary('with_skill'), helps.summary('without_skill')
    assert with_skill is not None
    assert without is not None
    assert with_skill.pass_rate == Spread(mean=1.0, stddev=0.0, min=1.0, max=1.0)
    assert without.pass_rate == Spread(mean=0.5, stddev=0.0, min=0.5, max=0.5)
    assert (with_skill.runs, with_skill.failed, with_skill.unchecked) == (count * 3, 0, 0)
    assert (helps.summary('baseline'), helps.delta('baseline')) == (None, None)


async def test_a_difference_within_its_spread_is_unclear() -> None:
    helped, harmed, same = cases = tasks('helps', 3)
    model = choosing({helped.prompt: [['helps']], harmed.prompt: [['harms']], same.prompt: [[]]})
    report = await outcomes(SkillsToolset(skills=[HELPS, HARMS]), cases, model)
    delta = report.skills[0].delta()
    assert delta is not None
    assert delta.pass_rate is not None
    # 'harms' is there without 'helps', too, so that task differs by nothing.
    assert delta.pass_rate.mean == pytest.approx(0.5 / 3)
    assert delta.pass_rate.stderr == pytest.approx(0.5 / 3)
    assert delta.pass_rate.low == pytest.approx(0.5 / 3 - 4.303 * 0.5 / 3)
    assert delta.verdict == 'unclear'


async def test_one_run_of_one_task_has_no_spread_and_so_no_verdict() -> None:
    report = await evaluate(
        SkillsToolset[Any](skills=[HELPS]), tasks('helps', 1), model=choosing({'helps, task 0': [['helps']]}), repeat=1
    )
    assert report.outcome is not None
    delta = report.outcome.skills[0].delta()
    assert delta is not None
    assert delta.pass_rate == Delta(mean=0.5, stderr=None, low=None, high=None, pairs=1)
    assert delta.verdict == 'unclear'


async def test_without_the_skill_it_is_gone_from_the_prompt_and_cannot_be_loaded() -> None:
    heard: list[tuple[str | None, str]] = []

    def insist(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not returns_in(messages):
            return ModelResponse(parts=[ToolCallPart('load_skill', {'skill_name': 'helps'})])
        heard.append((info.instructions, returns_in(messages)[0].model_response_str()))
        return ModelResponse(parts=[TextPart('done')])

    toolset = SkillsToolset[Any](skills=[HELPS, HARMS])
    report = await evaluate(toolset, tasks('helps', 1), model=FunctionModel(insist), repeat=1, max_concurrency=1)
    (given, said), (left, refused) = heard
    assert 'name="helps"' in str(given)
    assert 'The answer is 42.' in said
    assert 'name="helps"' not in str(left)
    assert 'name="harms"' in str(left)
    assert "There is no skill 'helps'" in refused
    assert report.outcome is not None
    assert [result.runs[0].loaded for result in report.outcome.results] == [('helps',), ()]
    assert set(toolset.skills) == {'helps', 'harms'}


async def test_without_the_skill_it_is_gone_where_skills_are_on_demand() -> None:
    listed: list[bool] = []

    def look(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        listed.append('Knows the answer.' in f'{info.instructions} {messages}')
        return ModelResponse(parts=[TextPart('done')])

    capability = SkillsCapability[Any](skills=[HELPS, HARMS], disclosure='on-demand')
    await evaluate(capability, tasks('helps', 1), model=FunctionModel(look), repeat=1)
    assert listed == [True, False]


async def test_halves_of_characters_do_no_harm() -> None:
    def halves(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if prompt_of(messages) == 'helps, task 0':
            raise RuntimeError('\ud800')
        return ModelResponse(parts=[TextPart('half: \ud800')])

    report = await evaluate(SkillsToolset[Any](skills=[HELPS]), tasks('helps', 2), model=FunctionModel(halves))
    assert report.errors == ('helps/0: RuntimeError: ?',)
    assert 'half: ?' in report.to_json()


async def test_a_task_of_no_skill_is_compared_with_an_agent_without_any() -> None:
    case = SkillCase(prompt='Anything.', checks=[OutputContains('42')])
    model = choosing({case.prompt: [['helps', 'harms']]})
    report = await outcomes(SkillsToolset(skills=[HELPS, HARMS]), [case], model)
    assert [result.case_id for result in report.results] == ['library/1', 'library/1']
    assert [result.runs[0].loaded for result in report.results] == [('helps', 'harms'), ()]
    assert report.skills[0].skill is None


async def test_a_task_that_is_a_query_too_runs_once_for_both() -> None:
    case = SkillCase(skill='helps', prompt='Both.', should_trigger=True, checks=[OutputContains('42')])
    log: list[str] = []
    model = choosing({case.prompt: [['helps']]}, log=log)
    report = await evaluate(SkillsToolset[Any](skills=[HELPS]), [case], model=model, without_skill=False)
    assert len(log) == 3
    assert report.trigger is not None
    assert report.outcome is not None
    assert report.trigger.results[0].rate == 1.0
    assert [result.configuration for result in report.outcome.results] == ['with_skill']
    assert report.outcome.skills[0].deltas == ()


@pytest.mark.parametrize(('parts', 'runs'), [({'outcome': False}, 3), ({'trigger': False}, 6)])
async def test_queries_and_tasks_can_be_left_out(parts: dict[str, Any], runs: int) -> None:
    case = SkillCase(skill='helps', prompt='Both.', should_trigger=True, checks=[OutputContains('42')])
    log: list[str] = []
    report = await evaluate(SkillsToolset[Any](skills=[HELPS]), [case], model=choosing({}, log=log), **parts)
    assert len(log) == runs
    assert (report.trigger is None) is ('trigger' in parts)
    assert (report.outcome is None) is ('outcome' in parts)


# --- What runs take -----------------------------------------------------------------------------------------------


def priced(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    usage = RequestUsage(input_tokens=1000, output_tokens=100)
    return ModelResponse(
        parts=[TextPart('42')],
        usage=usage,
        model_name='gpt-4o',
        provider_name='openai',
        provider_url='https://api.openai.com',
    )


async def test_tokens_requests_time_and_money_are_told_of_each_run() -> None:
    report = await evaluate(
        SkillsToolset[Any](skills=[HELPS]), tasks('helps', 1), model=FunctionModel(priced, model_name='gpt-4o')
    )
    assert report.outcome is not None
    summary = report.outcome.skills[0].summary('with_skill')
    assert summary is not None
    assert summary.tokens == Spread(mean=1100, stddev=0.0, min=1100, max=1100)
    assert summary.requests.mean == 1
    assert summary.seconds.min > 0
    assert summary.cost is not None
    assert summary.cost.mean == pytest.approx(0.0035)  # 1000 tokens at 2.50 and 100 at 10 dollars a million
    delta = report.outcome.skills[0].delta()
    assert delta is not None
    assert delta.cost is not None
    assert delta.cost.mean == 0.0
    run = report.outcome.results[0].runs[0]
    assert (run.used.input_tokens, run.used.output_tokens, run.used.tokens) == (1000, 100, 1100)


async def test_money_is_not_told_if_a_price_is_not_known() -> None:
    report = await outcomes(SkillsToolset(skills=[HELPS]), tasks('helps', 1), choosing({}))
    assert report.skills[0].summaries[0].cost is None
    delta = report.skills[0].delta()
    assert delta is not None
    assert delta.cost is None


# --- Failures -----------------------------------------------------------------------------------------------------


async def test_a_task_that_raises_is_a_failed_run_and_the_others_go_on() -> None:
    def sometimes(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if prompt_of(messages) == 'helps, task 0':
            raise RuntimeError('the line is dead')
        return ModelResponse(parts=[TextPart('42')])

    report = await evaluate(SkillsToolset[Any](skills=[HELPS]), tasks('helps', 2), model=FunctionModel(sometimes))
    assert report.outcome is not None
    failed = report.outcome.results[0].runs[0]
    assert (failed.error, failed.pass_rate) == ('RuntimeError: the line is dead', 0.0)
    assert [check.passed for check in failed.checks] == [False, False]
    assert failed.checks[0].evidence == 'The run failed: RuntimeError: the line is dead'
    summary = report.outcome.skills[0].summaries[0]
    assert (summary.runs, summary.failed) == (6, 3)
    assert summary.pass_rate is not None
    assert summary.pass_rate.mean == 0.5
    assert report.errors == ('helps/0: RuntimeError: the line is dead',)


async def test_a_task_that_takes_too_many_requests_has_failed() -> None:
    def go_on(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart('list_skills', {})])

    report = await evaluate(
        SkillsToolset[Any](skills=[HELPS, HARMS]),
        tasks('helps', 1),
        model=FunctionModel(go_on),
        repeat=1,
        max_requests=5,
    )
    assert report.outcome is not None
    run = report.outcome.results[0].runs[0]
    assert run.used.requests == 5
    assert 'request_limit of 5' in str(run.error)


async def test_a_file_of_a_case_that_is_missing_fails_the_run(tmp_path: Path) -> None:
    case = SkillCase(skill='helps', prompt='Read it.', files={'in.txt': tmp_path / 'missing.txt'})
    report = await evaluate(SkillsToolset[Any](skills=[HELPS]), [case], model=choosing({}), repeat=1)
    assert 'FileNotFoundError' in report.errors[0]
    assert report.score('helps').pass_rate == 0.0


# --- Scores -------------------------------------------------------------------------------------------------------


async def test_the_score_of_a_skill_is_the_mean_over_its_queries_and_tasks() -> None:
    query = SkillCase(skill='helps', prompt='What is it?', should_trigger=True)
    missed = SkillCase(skill='helps', prompt='And this?', should_trigger=True)
    (task,) = tasks('helps', 1)
    model = choosing({query.prompt: [['helps']], task.prompt: [[]]})
    report = await evaluate(SkillsToolset[Any](skills=[HELPS, HARMS]), [query, missed, task], model=model)
    score = report.score('helps')
    assert (score.pass_rate, score.cases, score.model) == (0.5, 3, 'function:choosing')
    assert (report.score('harms').pass_rate, report.score('harms').cases) == (None, 0)
    assert EvalReport.from_json(report.to_json()) == report


async def test_a_report_that_was_not_written_by_it_is_a_value_error() -> None:
    with pytest.raises(ValueError, match='model'):
        EvalReport.from_json('{}')


async def test_many_tasks_use_the_normal_distribution() -> None:
    delta = Delta.of([0.0, 1.0] * 20)
    assert delta.stderr is not None
    assert delta.high == pytest.approx(0.5 + 1.96 * delta.stderr)
