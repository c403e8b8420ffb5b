"""Agents with skills in real DBOS workflows, on SQLite."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS, SetWorkflowID
from inline_snapshot import snapshot
from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.exceptions import CallDeferred, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import ScriptFinished, Skill, SkillEvent, SkillsCapability, SkillsToolset
from tests.conversations import Call, ScriptedModel
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

PROGRAM = Path(__file__).with_name('dbos_program.py')


def count(folder: Path, name: str, also: str = '') -> str:
    """The text of a script that writes its name into a file, each time it runs."""
    return f'open({str(folder / "ran")!r}, "a").write("{name}\\n"); print("{name} ran"); {also}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    report = 'import os; open(os.environ["SKILL_WORK_DIR"] + "/report.txt", "w").write("all is well")'
    scripts: dict[str, str | bytes] = {
        'scripts/first.py': count(tmp_path, 'first', report),
        'scripts/second.py': count(tmp_path, 'second'),
        'scripts/bad.py': count(tmp_path, 'bad', 'import sys; sys.exit(3)'),
    }
    write_skill(tmp_path / 'skills/alpha', files={**scripts, 'notes.md': 'Notes.'})
    return tmp_path


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize('kind', ['toolset', 'capability'])
def test_a_workflow_killed_between_two_scripts_goes_on_without_running_the_first_again(folder: Path, kind: str):
    command = [sys.executable, str(PROGRAM), str(folder), kind]
    with subprocess.Popen([*command, 'start']) as process:
        deadline = time.monotonic() + 240
        while not (folder / 'waiting').exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    assert process.returncode == -9
    assert lines(folder / 'ran') == ['first']
    assert lines(folder / 'events') == ['SkillLoaded', 'ScriptFinished']

    resumed = subprocess.run([*command, 'resume'], capture_output=True, text=True, timeout=240, check=True)
    report = json.loads(resumed.stdout)
    assert lines(folder / 'ran') == ['first', 'second']
    assert lines(folder / 'events') == ['SkillLoaded', 'ScriptFinished', 'ScriptFinished', 'ResourceRead']
    # The file that the first script wrote before the kill can still be read.
    assert report['output'] == snapshot(
        [
            """\
<script_stdout>first ran
</script_stdout>
It wrote files, which can be read with read_skill_resource: 'report.txt'\
""",
            'second ran\n',
            'all is well',
        ]
    )
    assert [step for step in report['steps'] if step.startswith('skills')] == snapshot(
        ['skills__load_skill', 'skills__run_skill_script', 'skills__run_skill_script', 'skills__read_skill_resource']
    )


@pytest.fixture
def dbos(tmp_path: Path) -> Iterator[None]:
    DBOS(
        config={
            'name': 'assistant',
            'system_database_url': f'sqlite:///{tmp_path / "dbos.sqlite"}',
            'application_version': '1',
            'log_level': 'ERROR',
        }
    )
    yield
    DBOS.destroy(destroy_registry=True)


class Workflow:
    """A workflow around one agent run."""

    def __init__(self, agent: Agent[None, Any]) -> None:
        @DBOS.workflow(name='assist')
        async def assist() -> list[Any]:
            result = await agent.run('Go.')
            parts = [part for message in result.all_messages() for part in message.parts]
            returns = [(part.outcome, part.content) for part in parts if isinstance(part, ToolReturnPart)]
            return [*returns, type(result.output).__name__]

        self._assist = assist
        DBOS.launch()

    async def run(self) -> list[Any]:
        with SetWorkflowID('run'):
            return await self._assist()

    async def run_again(self) -> list[Any]:
        """Run a copy that has everything recorded but the last step, which is a request to the model."""
        steps = await DBOS.list_workflow_steps_async('run')
        handle = await DBOS.fork_workflow_async('run', steps[-1]['function_id'])
        return await handle.get_result()


def run(script: str) -> Call:
    return 'run_skill_script', {'skill_name': 'alpha', 'script_name': script}


async def test_what_was_recorded_is_told_again_without_being_done_again(dbos: None, folder: Path):
    capability = SkillsCapability(directories=[folder / 'skills'])
    heard: list[str] = []
    streamed: list[str] = []

    @capability.toolset.on(SkillEvent)
    def hear(ctx: RunContext[Any], event: SkillEvent) -> None:
        heard.append(type(event).__name__)

    async def handle(ctx: RunContext[Any], events: Any) -> None:
        found = [event async for event in events if isinstance(event, ScriptFinished)]
        streamed.extend(f'{event.script_name} {event.result.exit_code}' for event in found)

    calls: list[Call] = [
        ('load_skill', {'skill_name': 'alpha'}),
        ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'notes.md'}),
        ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'nothing.md'}),
        run('bad'),
        run('second'),
    ]
    workflow = Workflow(
        Agent(
            ScriptedModel(calls=calls).streaming_model,
            name='assistant',
            capabilities=[capability, DBOSDurability(event_stream_handler=handle)],
        )
    )
    await capability.toolset.load()
    first = await workflow.run()
    assert [outcome for outcome, _ in first[:-1]] == ['success', 'success', 'failed', 'failed', 'success']
    assert heard == ['SkillLoaded', 'ResourceRead', 'ScriptFinished', 'ScriptFinished']
    assert streamed == ['scripts/bad.py 3', 'scripts/second.py 0']

    (folder / 'skills/alpha/notes.md').write_text('Other notes.')
    assert await workflow.run_again() == first
    assert lines(folder / 'ran') == ['bad', 'second']
    assert len(heard) == 4


async def test_steps_have_names_that_stay(dbos: None, folder: Path):
    toolset = SkillsToolset(directories=[folder / 'skills'], id='library', search_tool='always')
    calls: list[Call] = [
        ('list_skills', {}),
        ('search_skills', {'query': 'things'}),
        ('load_skill', {'skill_name': 'alpha'}),
        ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'notes.md'}),
        run('second'),
    ]
    agent = Agent(
        ScriptedModel(calls=calls).model, name='assistant', toolsets=[toolset], capabilities=[DBOSDurability()]
    )
    await Workflow(agent).run()
    steps = [step['function_name'] for step in await DBOS.list_workflow_steps_async('run')]
    assert steps == snapshot(
        [
            'assistant__model.request',
            'assistant__model.request',
            'library__search_skills',
            'assistant__model.request',
            'library__load_skill',
            'assistant__model.request',
            'library__read_skill_resource',
            'assistant__model.request',
            'library__run_skill_script',
            'assistant__model.request',
        ]
    )


async def test_scripts_called_at_the_same_time_are_recorded_in_the_order_of_the_calls(dbos: None, folder: Path):
    names = ['second', 'bad', 'first', 'second']

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart('done')])
        return ModelResponse(parts=[ToolCallPart(*run(name), tool_call_id=f'{i}') for i, name in enumerate(names)])

    toolset = SkillsToolset(directories=[folder / 'skills'])
    agent = Agent(FunctionModel(respond), name='assistant', toolsets=[toolset], capabilities=[DBOSDurability()])
    workflow = Workflow(agent)
    first = await workflow.run()
    assert [outcome for outcome, _ in first[:-1]] == ['success', 'failed', 'success', 'success']
    assert await workflow.run_again() == first
    assert sorted(lines(folder / 'ran')) == ['bad', 'first', 'second', 'second']


async def test_a_typed_tool_in_python_is_a_step_if_it_says_so(dbos: None):
    done: list[str] = []
    skill = Skill('alpha', 'Does things.', 'Do it.')

    @skill.tool_plain
    @DBOS.step()
    def recorded() -> str:
        """Do it once."""
        done.append('recorded')
        return 'once'

    @skill.tool_plain
    def repeated() -> str:
        """Do it again."""
        done.append('repeated')
        return 'again'

    calls: list[Call] = [('load_skill', {'skill_name': 'alpha'}), ('alpha__recorded', {}), ('alpha__repeated', {})]
    agent = Agent(
        ScriptedModel(calls=calls).model,
        name='assistant',
        toolsets=[SkillsToolset(skills=[skill])],
        capabilities=[DBOSDurability()],
    )
    workflow = Workflow(agent)
    assert await workflow.run() == await workflow.run_again()
    assert done == ['recorded', 'repeated', 'repeated']


async def test_a_question_to_a_person_is_recorded_as_one(dbos: None, folder: Path):
    toolset = SkillsToolset(directories=[folder / 'skills'], script_policy='ask')
    agent = Agent(
        ScriptedModel(calls=[run('second')]).model,
        name='assistant',
        toolsets=[toolset],
        capabilities=[DBOSDurability()],
        output_type=[str, DeferredToolRequests],
    )
    workflow = Workflow(agent)
    assert await workflow.run() == ['DeferredToolRequests']
    (folder / 'skills/alpha/scripts/second.py').unlink()
    steps = await DBOS.list_workflow_steps_async('run')
    handle = await DBOS.fork_workflow_async('run', steps[-1]['function_id'] + 1)
    assert await handle.get_result() == ['DeferredToolRequests']


@pytest.mark.parametrize(
    ('raised', 'ending'),
    [
        (ModelRetry('Once more.'), [('retried', 'Once more.'), ('success', 'fine'), 'str']),
        (CallDeferred(), ['DeferredToolRequests']),
    ],
)
async def test_what_a_function_says_to_pydantic_ai_is_recorded(dbos: None, raised: Exception, ending: list[Any]):
    toolset = SkillsToolset(skills=[])
    calls: list[str] = []

    @toolset.skill
    def alpha() -> str:
        """Alpha."""
        return ''

    @alpha.script
    def go() -> str:
        calls.append('go')
        if len(calls) == 1:
            raise raised
        return 'fine'

    agent = Agent(
        ScriptedModel(calls=[run('go'), run('go')]).model,
        name='assistant',
        toolsets=[toolset],
        capabilities=[DBOSDurability()],
        output_type=[str, DeferredToolRequests],
    )
    assert await Workflow(agent).run() == ending


async def test_outside_of_a_workflow_everything_is_as_without_dbos(dbos: None, folder: Path):
    toolset = SkillsToolset(directories=[folder / 'skills'])
    script = ScriptedModel(calls=[run('second')])
    DBOS.launch()
    agent = Agent(script.model, name='assistant', toolsets=[toolset], capabilities=[DBOSDurability()])
    assert (await agent.run('Go.')).output == 'done'
    assert script.results == [('run_skill_script', 'success', 'second ran\n')]
    assert await DBOS.list_workflows_async() == []
