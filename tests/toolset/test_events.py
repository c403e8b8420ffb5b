from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import CustomEvent, RunAgentInput
from anyio import to_thread
from dirty_equals import IsFloat, IsInt, IsStr
from inline_snapshot import snapshot
from pydantic import TypeAdapter
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, RunContext
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import AgentStreamEvent
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from pydantic_ai.ui.vercel_ai.request_types import SubmitMessage, TextUIPart, UIMessage
from pydantic_ai.ui.vercel_ai.response_types import DataChunk

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    CallableSkillScriptExecutor,
    LocalSkillScriptExecutor,
    ResourceRead,
    ScriptFinished,
    ScriptResult,
    Skill,
    SkillEvent,
    SkillLoaded,
    SkillsCapability,
    SkillScriptExecutor,
    SkillsToolset,
    send_to_ui,
)
from pydantic_ai_skills.execution import SkillScriptStoppedError
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

TOOK: Any = IsFloat(gt=0, lt=10)
A_TEXT: Any = IsStr(min_length=1)
ABOUT_300: Any = IsInt(gt=100, lt=500)

LOAD: Call = ('load_skill', {'skill_name': 'alpha'})


def read(name: str, **more: Any) -> Call:
    return 'read_skill_resource', {'skill_name': 'alpha', 'resource_name': name, **more}


def run(name: str, **more: Any) -> Call:
    return 'run_skill_script', {'skill_name': 'alpha', 'script_name': name, **more}


SCRIPTS: dict[str, str | bytes] = {
    'scripts/good.py': 'print("fine")',
    'scripts/bad.py': 'import sys; print("so far"); print("no more", file=sys.stderr); sys.exit(3)',
    'scripts/slow.py': 'import time; print("begun", flush=True); time.sleep(60)',
}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {**SCRIPTS, 'notes.md': 'Notes: ä', 'long.md': 'x' * 50_000, 'dot.png': b'\x89PNG'}
    write_skill(tmp_path / 'skills/alpha', body='Do it.', files=files)
    skill_md = tmp_path / 'skills/alpha/SKILL.md'
    skill_md.write_text(skill_md.read_text().replace('\n---\n', '\nmetadata:\n  version: "1.10"\n---\n'))
    return tmp_path / 'skills'


async def events_of(toolset: SkillsToolset[Any], *calls: Call) -> list[SkillEvent]:
    """What the application hears of a conversation."""
    told: list[SkillEvent] = []

    @toolset.on(SkillEvent)
    def remember(ctx: RunContext[Any], event: SkillEvent) -> None:
        told.append(event)

    await converse(toolset, *calls)
    return told


async def test_each_event_tells_what_happened(library: Path):
    loaded, resource, script = await events_of(
        SkillsToolset(directories=[library]), LOAD, read('notes.md'), run('good')
    )
    assert loaded == SkillLoaded(
        skill_name='alpha',
        version='1.10',
        run_id=A_TEXT,
        tool_call_id='call-1',
        tool_name='load_skill',
        duration=TOOK,
        bytes=ABOUT_300,
    )
    assert resource == ResourceRead(
        skill_name='alpha',
        version='1.10',
        run_id=A_TEXT,
        tool_call_id='call-2',
        tool_name='read_skill_resource',
        duration=TOOK,
        resource_name='notes.md',
        bytes=9,
    )
    assert script == ScriptFinished(
        skill_name='alpha',
        version='1.10',
        run_id=A_TEXT,
        tool_call_id='call-3',
        tool_name='run_skill_script',
        duration=TOOK,
        script_name='scripts/good.py',
        outcome='success',
        result=ScriptResult(exit_code=0, stdout='fine\n', stderr='', duration=TOOK),
    )


@pytest.mark.parametrize('make_executor', [LocalSkillScriptExecutor, BubblewrapSkillScriptExecutor])
async def test_the_whole_result_of_a_process_is_told_however_it_ended(
    library: Path, make_executor: Callable[..., SkillScriptExecutor]
):
    executor = await to_thread.run_sync(lambda: make_executor(timeout=6))
    toolset = SkillsToolset(directories=[library], script_executor=executor)
    events = await events_of(toolset, run('good'), run('bad'), run('slow'))
    fine, failed, stopped = [event for event in events if isinstance(event, ScriptFinished)]
    assert (fine.outcome, fine.error) == ('success', None)
    assert fine.result == ScriptResult(exit_code=0, stdout='fine\n', stderr='', duration=TOOK)
    assert (failed.outcome, failed.error) == ('failed', None)
    assert failed.result == ScriptResult(exit_code=3, stdout='so far\n', stderr='no more\n', duration=TOOK)
    assert (stopped.outcome, stopped.error) == (
        'stopped',
        snapshot("The script 'scripts/slow.py' was stopped: it did not end within 6 s."),
    )
    assert stopped.result == ScriptResult(exit_code=137, stdout='begun\n', stderr='', duration=TOOK, timed_out=True)


def returning(result: Any) -> Callable[..., Any]:
    async def call(**_: Any) -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    return call


PRINTED = ScriptResult(exit_code=0, stdout='x', stderr='', duration=1.5)
FAILED = ScriptResult(exit_code=7, stdout='', stderr='x', duration=1.5)
STOPPED = ScriptResult(exit_code=137, stdout='x', stderr='', duration=1.5, timed_out=True)


@pytest.mark.parametrize(
    ('returned', 'outcome', 'error', 'result'),
    [
        (PRINTED, 'success', None, PRINTED),
        (FAILED, 'failed', None, FAILED),
        ('text', 'success', None, ScriptResult(exit_code=0, stdout='text', stderr='', duration=TOOK)),
        ({'n': 1}, 'success', None, ScriptResult(exit_code=0, stdout='{"n":1}', stderr='', duration=TOOK)),
        (None, 'success', None, ScriptResult(exit_code=0, stdout='', stderr='', duration=TOOK)),
        (
            ToolFailed('Not today.'),
            'failed',
            'Not today.',
            ScriptResult(exit_code=1, stdout='', stderr='Not today.', duration=TOOK),
        ),
        (SkillScriptStoppedError('Too much.', result=STOPPED), 'stopped', 'Too much.', STOPPED),
    ],
)
async def test_the_result_of_a_callable_is_told_in_the_same_form(
    library: Path, returned: Any, outcome: str, error: str | None, result: ScriptResult
):
    executor = CallableSkillScriptExecutor(returning(returned))
    (event,) = await events_of(SkillsToolset(directories=[library], script_executor=executor), run('good'))
    assert isinstance(event, ScriptFinished)
    assert (event.outcome, event.error, event.result) == (outcome, error, result)


async def test_how_a_python_function_ended_is_told_in_the_same_form():
    alpha = Skill[Any]('alpha', 'Does things.', 'Do it.')

    @alpha.script
    def double(n: int) -> int:
        return 2 * n

    @alpha.script
    async def explode() -> None:
        raise RuntimeError('boom')

    calls = run('double', args={'n': 4}), run('double', args={'n': 'x'}), run('explode')
    told: list[tuple[str, str, str, str]] = []
    for call in calls:
        (event,) = await events_of(SkillsToolset(skills=[alpha]), call)
        assert isinstance(event, ScriptFinished)
        told.append((event.script_name, event.outcome, event.result.stdout, event.result.stderr))
    assert told == snapshot(
        [
            ('double', 'success', '8', ''),
            (
                'double',
                'failed',
                '',
                "The arguments for script 'double' do not fit. n: Input should be a valid integer, unable to parse string as an integer. It takes: n (integer).",
            ),
            ('explode', 'failed', '', "The script 'explode' failed with RuntimeError: boom"),
        ]
    )


async def test_a_value_that_cannot_be_encoded_is_told_as_python_shows_it():
    toolset = SkillsToolset(skills=[Skill[Any]('alpha', 'Does things.', 'Do it.', scripts=[])])
    told: list[SkillEvent] = []
    toolset.on(SkillEvent)(lambda ctx, event: told.append(event))

    @toolset.get_skill('alpha').script
    def opaque() -> Any:
        return object

    script = await converse(toolset, run('opaque'))
    assert script.results[-1][2] == "<class 'object'>"
    (event,) = told
    assert isinstance(event, ScriptFinished)
    assert event.result.stdout == "<class 'object'>"


async def test_what_was_not_run_or_read_is_no_event(library: Path):
    calls = run('missing'), read('missing'), ('load_skill', {'skill_name': 'missing'}), run('good')
    assert await events_of(SkillsToolset(directories=[library], script_policy='deny'), *calls) == []


async def test_a_script_that_waits_for_approval_is_no_event(library: Path):
    toolset = SkillsToolset(directories=[library], script_policy='ask')
    told: list[SkillEvent] = []
    toolset.on(SkillEvent)(lambda ctx, event: told.append(event))
    agent = Agent(ScriptedModel(calls=[run('good')]).model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    assert isinstance((await agent.run('Go.')).output, DeferredToolRequests)
    assert told == []


async def test_loading_again_is_told_as_such(library: Path):
    first, second = await events_of(SkillsToolset(directories=[library]), LOAD, LOAD)
    assert isinstance(first, SkillLoaded)
    assert isinstance(second, SkillLoaded)
    assert (first.repeated, second.repeated) == (False, True)
    assert second.bytes < first.bytes


async def test_bytes_are_what_the_model_is_sent(library: Path):
    toolset = SkillsToolset(directories=[library])

    @toolset.skill
    def alpha() -> str:
        """Alpha."""
        return ''

    @alpha.resource
    def table() -> list[int]:
        return [1, 2]

    @alpha.resource
    def picture() -> BinaryContent:
        return BinaryContent(b'\x89PNG', media_type='image/png')

    on_disk = await events_of(SkillsToolset(directories=[library]), read('long.md'), read('dot.png'))
    in_python = await events_of(toolset, read('table'), read('picture'))
    assert [(e.resource_name, e.bytes) for e in (*on_disk, *in_python) if isinstance(e, ResourceRead)] == snapshot(
        [('long.md', 40079), ('dot.png', 4), ('table', 5), ('picture', 4)]
    )


async def test_a_handler_hears_of_its_type_of_event_with_the_run_it_happened_in(library: Path):
    toolset = SkillsToolset[str](directories=[library])
    heard: list[str] = []

    @toolset.on(ResourceRead)
    async def slowly(ctx: RunContext[str], event: ResourceRead) -> None:
        await asyncio.sleep(0)
        heard.append(f'{ctx.deps} read {event.resource_name}')

    @toolset.on(ScriptFinished)
    def at_once(ctx: RunContext[str], event: ScriptFinished) -> None:
        heard.append(f'{ctx.deps} ran {event.script_name}')

    await converse(toolset, LOAD, read('notes.md'), run('good'), deps='Ada')
    assert heard == ['Ada read notes.md', 'Ada ran scripts/good.py']


async def test_a_handler_that_fails_is_logged_and_stops_nothing(library: Path, caplog: pytest.LogCaptureFixture):
    toolset = SkillsToolset(directories=[library])

    @toolset.on(SkillLoaded)
    def fail(ctx: RunContext[Any], event: SkillLoaded) -> None:
        raise LookupError('no such table')

    (event,) = await events_of(toolset, LOAD)
    assert isinstance(event, SkillLoaded)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage() == 'A handler of SkillLoaded failed'
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == 'no such table'


async def test_with_the_capability_the_events_are_in_the_stream_of_the_run(library: Path):
    script = ScriptedModel(calls=[LOAD, read('notes.md'), run('bad')])
    agent = Agent(script.streaming_model, capabilities=[SkillsCapability(directories=[library])])
    async with agent.run_stream_events('Go.') as stream:
        events = [event async for event in stream if isinstance(event, SkillEvent)]
    assert [(type(event).__name__, event.kind, event.tool_call_id) for event in events] == snapshot(
        [
            ('SkillLoaded', 'skills.skill_loaded', 'call-1'),
            ('ResourceRead', 'skills.resource_read', 'call-2'),
            ('ScriptFinished', 'skills.script_finished', 'call-3'),
        ]
    )
    assert isinstance(events[-1], ScriptFinished)
    assert events[-1].result.stderr == 'no more\n'


ACTIVITIES: list[dict[str, Any]] = [
    {'activity': 'loaded', 'skill_name': 'alpha', 'item': None, 'outcome': 'success', 'duration': TOOK},
    {'activity': 'read', 'skill_name': 'alpha', 'item': 'notes.md', 'outcome': 'success', 'duration': TOOK},
    {'activity': 'ran', 'skill_name': 'alpha', 'item': 'scripts/bad.py', 'outcome': 'failed', 'duration': TOOK},
]


def telling_agent(library: Path, brought: str) -> Agent[Any, str]:
    """An agent that tells its front end of skills, with a capability or with a toolset alone."""
    script = ScriptedModel(calls=[LOAD, read('notes.md'), run('bad')])
    if brought == 'capability':
        agent = Agent(script.streaming_model, capabilities=[SkillsCapability[Any](directories=[library])])
        agent.on_event(SkillEvent)(send_to_ui)
        return agent
    toolset = SkillsToolset[Any](directories=[library])
    toolset.on(SkillEvent)(send_to_ui)
    return Agent(script.streaming_model, toolsets=[toolset])


@pytest.mark.parametrize('brought', ['capability', 'toolset'])
async def test_ag_ui_front_ends_can_be_told_without_content(library: Path, brought: str):
    message = {'id': '1', 'role': 'user', 'content': 'Go.'}
    body: dict[str, Any] = {'threadId': 't', 'runId': 'r', 'messages': [message], 'tools': [], 'context': []}
    run_input = RunAgentInput.model_validate({**body, 'state': {}, 'forwardedProps': {}})
    adapter = AGUIAdapter(agent=telling_agent(library, brought), run_input=run_input)
    sent = [event async for event in adapter.run_stream() if isinstance(event, CustomEvent)]
    assert [(event.name, event.value) for event in sent] == [('skill_activity', told) for told in ACTIVITIES]


@pytest.mark.parametrize('brought', ['capability', 'toolset'])
async def test_vercel_front_ends_can_be_told_without_content(library: Path, brought: str):
    message = UIMessage(id='1', role='user', parts=[TextUIPart(text='Go.')])
    adapter = VercelAIAdapter(
        agent=telling_agent(library, brought), run_input=SubmitMessage(id='1', messages=[message])
    )
    sent = [chunk async for chunk in adapter.run_stream() if isinstance(chunk, DataChunk)]
    assert [(chunk.type, chunk.data) for chunk in sent] == [('data-skill_activity', told) for told in ACTIVITIES]


async def test_in_the_code_of_a_temporal_workflow_a_load_on_demand_is_told(
    library: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    importlib.import_module('temporalio.workflow')  # as in a worker
    capability = SkillsCapability(directories=[library], disclosure='on-demand')
    await capability.load()
    caplog.set_level(logging.INFO, 'pydantic_ai_skills')
    monkeypatch.setattr('temporalio.workflow.in_workflow', lambda: True)
    for is_replaying, logged in ((False, ["Loaded skill 'alpha'"]), (True, [])):
        caplog.clear()
        monkeypatch.setattr('temporalio.workflow.unsafe.is_replaying', lambda told=is_replaying: told)
        script = ScriptedModel(calls=[('load_capability', {'id': 'alpha'}), ('load_capability', {'id': 'alpha'})])
        agent = Agent(script.streaming_model, capabilities=[capability])
        async with agent.run_stream_events('Go.') as stream:
            (event,) = [event async for event in stream if isinstance(event, SkillLoaded)]
        assert (event.skill_name, event.bytes) == ('alpha', ABOUT_300)
        assert [record.getMessage() for record in caplog.records] == logged


async def test_events_come_back_from_json_as_they_were(library: Path):
    adapter: TypeAdapter[Any] = TypeAdapter(AgentStreamEvent)
    for event in await events_of(SkillsToolset(directories=[library]), LOAD, read('notes.md'), run('bad')):
        assert adapter.validate_json(adapter.dump_json(event)) == event


async def test_a_function_that_asks_for_another_try_is_left_to_pydantic_ai():
    alpha = Skill[Any]('alpha', 'Does things.', 'Do it.')

    @alpha.script
    def again() -> None:
        raise ModelRetry('Once more.')

    assert await events_of(SkillsToolset(skills=[alpha]), run('again')) == []
