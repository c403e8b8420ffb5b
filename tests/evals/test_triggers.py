"""Known answers: which rates, precision, recall and matrix models give that are scripted to load certain skills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import anyio
import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import Skill, SkillsCapability, SkillsToolset
from pydantic_ai_skills.evals import EvalReport, SkillCase, TriggerReport, evaluate
from tests.evals.scripted import choosing, is_listed, returns_in

pytestmark = pytest.mark.anyio

PDF, DOCX = Skill('pdf', 'Reads PDF files.', 'Use pdftotext.'), Skill('docx', 'Reads Word files.', 'Unzip it.')
NONE: list[list[str]] = [[]]
QUERY = SkillCase(skill='pdf', prompt='What does the PDF say?', should_trigger=True)


async def ask(model: Model, *cases: SkillCase, repeat: int = 4, **options: Any) -> TriggerReport:
    toolset = SkillsToolset[Any](skills=[PDF, DOCX])
    report = await evaluate(toolset, cases, model=model, repeat=repeat, **options)
    assert report.trigger is not None
    assert report.outcome is None
    return report.trigger


@pytest.mark.parametrize(
    ('turns', 'rate', 'passed', 'precision', 'recall', 'row'),
    [
        pytest.param([['pdf']], 1.0, True, 1.0, 1.0, (0, 4, 0), id='always'),
        pytest.param(NONE, 0.0, False, None, 0.0, (0, 0, 4), id='never'),
        pytest.param([['pdf'], []], 0.5, True, 1.0, 0.5, (0, 2, 2), id='half of the time'),
        pytest.param([['pdf'], [], [], []], 0.25, False, 1.0, 0.25, (0, 1, 3), id='a quarter of the time'),
        pytest.param([['docx']], 0.0, False, None, 0.0, (4, 0, 0), id='the wrong skill'),
        pytest.param([['pdf', 'docx']], 1.0, True, 1.0, 1.0, (4, 4, 0), id='the wrong skill, too'),
    ],
)
async def test_a_query_has_the_rate_at_which_its_skill_was_loaded(
    turns: Sequence[Sequence[str]],
    rate: float,
    passed: bool,
    precision: float | None,
    recall: float,
    row: tuple[int, int, int],
) -> None:
    report = await ask(choosing({QUERY.prompt: turns}), QUERY)
    (result,) = report.results
    assert (result.rate, result.passed, report.passed) == (rate, passed, int(passed))
    pdf = next(each for each in report.skills if each.skill == 'pdf')
    assert (pdf.precision, pdf.recall, pdf.queries, pdf.passed) == (precision, recall, 1, int(passed))
    assert tuple(report.matrix.count('pdf', name) for name in ('docx', 'pdf', 'none')) == row


async def test_the_wrong_skill_costs_the_precision_of_that_skill() -> None:
    query = SkillCase(skill='docx', prompt='What does the letter say?', should_trigger=True)
    wrong = {QUERY.prompt: [['docx']], query.prompt: [['docx']]}
    report = await ask(choosing(wrong), QUERY, query)
    docx, pdf = report.skills
    assert (docx.skill, docx.true_positives, docx.false_positives, docx.precision, docx.recall) == (
        'docx',
        4,
        4,
        0.5,
        1.0,
    )
    assert (pdf.false_negatives, pdf.true_negatives, pdf.precision, pdf.recall) == (4, 4, None, 0.0)
    assert (report.precision, report.recall) == (0.5, 0.5)
    assert report.matrix.expected == ('docx', 'pdf', 'none')
    assert report.matrix.loaded == ('docx', 'pdf', 'none')
    assert report.matrix.counts == ((4, 0, 0), (4, 0, 0), (0, 0, 0))
    assert report.matrix.count('pdf', 'nothing of that name') == 0


NEAR_MISS = SkillCase(skill='pdf', prompt='What is a PDF?', should_trigger=False)
INSTEAD = SkillCase(skill='pdf', prompt='Read my letter.', should_trigger=False, expected_skill='docx')
NOTHING = SkillCase(prompt='Hello!', should_trigger=False)


@pytest.mark.parametrize(
    ('case', 'turns', 'rate', 'passed', 'false_positives'),
    [
        pytest.param(NEAR_MISS, NONE, 0.0, True, {}, id='not loaded'),
        pytest.param(NEAR_MISS, [['pdf']], 1.0, False, {'pdf': 4}, id='loaded'),
        pytest.param(NEAR_MISS, [['pdf'], []], 0.5, False, {'pdf': 2}, id='loaded half of the time'),
        pytest.param(NEAR_MISS, [['pdf'], [], [], []], 0.25, True, {'pdf': 1}, id='loaded once'),
        pytest.param(NEAR_MISS, [['docx']], 0.0, True, {'docx': 0}, id='another one, about which it says nothing'),
        pytest.param(INSTEAD, [['docx']], 0.0, True, {'docx': 0, 'pdf': 0}, id='the one it wants instead'),
        pytest.param(INSTEAD, NONE, 0.0, False, {'docx': 0, 'pdf': 0}, id='none instead'),
        pytest.param(INSTEAD, [['docx', 'pdf']], 1.0, False, {'docx': 0, 'pdf': 4}, id='both'),
        pytest.param(NOTHING, NONE, 0.0, True, {}, id='no skill at all'),
        pytest.param(NOTHING, [['docx']], 1.0, False, {'docx': 4}, id='any skill'),
    ],
)
async def test_a_negative_case_passes_if_its_skill_is_rarely_loaded(
    case: SkillCase, turns: Sequence[Sequence[str]], rate: float, passed: bool, false_positives: dict[str, int]
) -> None:
    report = await ask(choosing({case.prompt: turns}), case)
    (result,) = report.results
    assert (result.rate, result.passed) == (rate, passed)
    found = {each.skill: each.false_positives for each in report.skills}
    assert found == {**dict.fromkeys(found, 0), **false_positives}
    assert report.matrix.expected == ('docx', 'none') if case is INSTEAD else ('none',)


async def test_the_threshold_is_an_option() -> None:
    model = choosing({QUERY.prompt: [['pdf'], ['pdf'], ['pdf'], []]})
    assert (await ask(model, QUERY, threshold=0.75)).passed == 1
    assert (await ask(model, QUERY, threshold=0.8)).passed == 0


async def test_a_run_that_fails_is_never_correct_and_tells_why() -> None:
    def fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if returns_in(messages):
            raise RuntimeError('the line is dead')
        return ModelResponse(parts=[ToolCallPart('load_skill', {'skill_name': 'pdf'})])

    toolset = SkillsToolset[Any](skills=[PDF])
    report = await evaluate(toolset, [QUERY, NEAR_MISS], model=FunctionModel(fail), repeat=2)
    assert report.trigger is not None
    first, second = report.trigger.results
    assert (first.rate, first.passed, second.passed) == (1.0, False, False)
    assert first.runs[0].loaded == ('pdf',)
    assert report.errors == ('pdf/1: RuntimeError: the line is dead', 'pdf/2: RuntimeError: the line is dead')


async def test_a_query_is_over_after_a_few_requests() -> None:
    def go_on(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart('load_skill', {'skill_name': 'pdf'})])

    (result,) = (await ask(FunctionModel(go_on), QUERY, repeat=1, max_trigger_requests=3)).results
    assert (result.passed, result.runs[0].used.requests, result.runs[0].error) == (True, 3, None)
    assert result.runs[0].loaded == ('pdf',)


@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_it_works_on_any_agent_with_skills(disclosure: Literal['tools', 'on-demand']) -> None:
    def load(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        tools = {tool.name: tool for tool in info.function_tools}
        if returns_in(messages):
            return ModelResponse(parts=[TextPart('done')])
        if 'load_capability' in tools:
            return ModelResponse(parts=[ToolCallPart('load_capability', {'id': 'pdf'})])
        return ModelResponse(parts=[ToolCallPart('load_skill', {'skill_name': 'pdf'})])

    capability = SkillsCapability[Any](skills=[PDF, DOCX], disclosure=disclosure)
    for target in (capability, Agent(FunctionModel(load), capabilities=[capability])):
        report = await evaluate(target, [QUERY], model=FunctionModel(load), repeat=1)
        assert report.trigger is not None
        assert report.trigger.results[0].runs[0].loaded == ('pdf',)


async def test_wrapped_toolsets_are_found_and_several_are_one_library() -> None:
    def load(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if returns_in(messages):
            return ModelResponse(parts=[TextPart('done')])
        assert is_listed('pdf', info)
        assert is_listed('docx', info)
        return ModelResponse(
            parts=[
                ToolCallPart('one_load_skill', {'skill_name': 'pdf'}),
                ToolCallPart('load_skill', {'skill_name': 'docx'}),
            ]
        )

    one, other = SkillsToolset[Any](skills=PDF, id='one'), SkillsToolset[Any](skills=DOCX, id='other')
    agent = Agent(FunctionModel(load), toolsets=[one.prefixed('one'), other])
    report: EvalReport = await evaluate(agent, [QUERY], repeat=1)
    assert report.trigger is not None
    assert set(report.trigger.results[0].runs[0].loaded) == {'pdf', 'docx'}


async def test_skills_are_told_in_the_order_in_which_the_model_asked_for_them() -> None:
    is_over = anyio.Event()

    async def slow(ctx: RunContext[Any]) -> str:
        await is_over.wait()
        return 'Slow.'

    async def fast(ctx: RunContext[Any]) -> str:
        is_over.set()
        return 'Fast.'

    toolset = SkillsToolset[Any](skills=[Skill('slow', 'Is slow.', slow), Skill('fast', 'Is fast.', fast)])
    query = SkillCase(skill='slow', prompt='Both.', should_trigger=True)
    report = await evaluate(toolset, [query], model=choosing({'Both.': [['slow', 'fast']]}), repeat=1)
    assert report.trigger is not None
    assert report.trigger.results[0].runs[0].loaded == ('slow', 'fast')
