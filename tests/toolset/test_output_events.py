"""What scripts and commands print reaches the application while they run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.tools import RunContext

from pydantic_ai_skills import (
    LocalSkillScriptExecutor,
    ScriptFinished,
    ScriptOutput,
    SkillEvent,
    SkillsCapability,
    SkillsToolset,
)
from pydantic_ai_skills.execution.process import mask
from pydantic_ai_skills.execution.streaming import OutputStream, StreamName
from pydantic_ai_skills.toolset.events import MAX_STREAMED_CHARS
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import write_skill

WAITS = """
import pathlib, sys, time
print('first', flush=True)
while not pathlib.Path('go').exists():
    time.sleep(0.01)
print('second', file=sys.stderr)
"""
LOAD: Call = ('load_skill', {'skill_name': 'slow'})
RUN: Call = ('run_skill_script', {'skill_name': 'slow', 'script_name': 'waits'})


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path / 'skills/slow', files={'scripts/waits.py': WAITS, 'scripts/flood.sh': 'seq 1000000'})
    return tmp_path / 'skills'


async def test_a_handler_hears_a_script_before_it_ends(skills: Path, tmp_path: Path):
    toolset, heard = SkillsToolset[Any](directories=[skills], work_dir=tmp_path / 'work'), list[tuple[str, str]]()

    @toolset.on(ScriptOutput)
    async def hear(ctx: RunContext[Any], event: ScriptOutput) -> None:
        assert (event.skill_name, event.script_name, event.run_id) == ('slow', 'scripts/waits.py', ctx.run_id)
        heard.append((event.stream, event.text))
        await to_thread.run_sync((tmp_path / 'work/go').touch)  # the script waits for it

    events = list[str]()
    toolset.on(SkillEvent)(lambda ctx, event: events.append(type(event).__name__))
    await converse(toolset, LOAD, RUN)
    assert heard == [('stdout', 'first\n'), ('stderr', 'second\n')]
    assert events == ['SkillLoaded', 'ScriptFinished']


async def test_the_event_stream_of_a_run_has_the_output_of_scripts_and_commands(skills: Path, tmp_path: Path):
    (tmp_path / 'work').mkdir()
    (tmp_path / 'work/go').touch()
    capability = SkillsCapability[Any](directories=[skills], work_dir=tmp_path / 'work', workspace_tools='allow')
    script = ScriptedModel(calls=[LOAD, RUN, ('run_command', {'command': 'echo hi'})])
    heard = list[tuple[str, str]]()

    async def listen(ctx: Any, events: Any) -> None:
        async for event in events:
            if isinstance(event, ScriptOutput | ScriptFinished):
                heard.append((event.script_name, getattr(event, 'text', 'finished')))

    agent = Agent[Any, Any](script.streaming_model, capabilities=[capability])
    await agent.run('Go.', event_stream_handler=listen)
    assert heard == [
        ('scripts/waits.py', 'first\n'),
        ('scripts/waits.py', 'second\n'),
        ('scripts/waits.py', 'finished'),
        ('run_command', 'hi\n'),
        ('run_command', 'finished'),
    ]


async def test_a_flood_is_told_in_part_and_errors_pass(skills: Path, tmp_path: Path):
    toolset, heard = SkillsToolset[Any](directories=[skills], work_dir=tmp_path / 'work'), list[str]()
    toolset.on(ScriptOutput)(lambda ctx, event: heard.append(event.text))
    missing: Call = ('run_skill_script', {'skill_name': 'slow', 'script_name': 'flood', 'args': ['x\0']})
    script = await converse(
        toolset, LOAD, ('run_skill_script', {'skill_name': 'slow', 'script_name': 'flood'}), missing
    )
    assert sum(map(len, heard)) == MAX_STREAMED_CHARS
    assert ''.join(heard).startswith('1\n2\n3\n')
    assert script.results[-1][1] == 'failed'


@pytest.mark.parametrize(
    ('secrets', 'chunks', 'expected'),
    [
        ([], ['a', 'b'], ['a', 'b']),
        (['secret'], ['a secret b'], ['a [secret] b']),
        (['secret'], ['a sec', 'ret b'], ['a ', '[secret] b']),
        (['secret'], ['a sec', 'ond b'], ['a ', 'second b']),
        (['secret'], ['sec'], ['sec']),
        (['abcabc'], ['abcabc', 'abcx'], ['[secret]', 'abcx']),
        (['abc', 'abcdef'], ['xabc', 'def'], ['x', '[secret]']),
        (['abc', 'abcdef'], ['xabc', 'x'], ['x', '[secret]x']),
        (['abc', 'bcd'], ['abc', 'd'], ['[secret]d']),
        (['\u00e9\u00e8'], ['\u00e9'.encode() + '\u00e8'.encode()[:1], '\u00e8'.encode()[1:]], ['[secret]']),
    ],
)
def test_secrets_are_masked_across_the_borders_of_chunks(
    secrets: Sequence[str], chunks: Sequence[str | bytes], expected: list[str]
):
    told: list[str] = []

    def emit(name: StreamName, text: str) -> None:
        told.append(text)

    stream = OutputStream('stdout', emit, secrets=secrets, mask=lambda text: mask(text, secrets))
    for chunk in chunks:
        stream.feed(chunk.encode() if isinstance(chunk, str) else chunk)
    stream.feed(b'')
    assert ''.join(told) == ''.join(expected)


async def test_a_process_masks_what_it_prints_in_pieces(skills: Path, tmp_path: Path):
    executor = LocalSkillScriptExecutor(env={'TOKEN': 'open-sesame'})
    capability = SkillsCapability[Any](
        directories=[skills], work_dir=tmp_path / 'work', workspace_tools='allow', script_executor=executor
    )
    heard = list[str]()
    capability.toolset.on(ScriptOutput)(lambda ctx, event: heard.append(event.text))
    await converse(capability, ('run_command', {'command': 'echo x; printf open-; sleep 0.2; printf sesame'}))
    assert ''.join(heard) == 'x\n[secret]'


async def test_an_error_of_a_function_is_itself_and_functions_print_nothing(skills: Path):
    toolset, heard = SkillsToolset[Any](directories=[skills]), list[str]()
    toolset.on(ScriptOutput)(lambda ctx, event: heard.append(event.text))

    @toolset.skill
    def odd() -> str:
        """Odd."""
        return 'Odd.'

    @odd.script
    def again() -> str:
        raise ModelRetry('Try again.')

    call: Call = ('run_skill_script', {'skill_name': 'odd', 'script_name': 'again'})
    script = await converse(toolset, ('load_skill', {'skill_name': 'odd'}), call)
    assert 'Try again.' in str(script.received)
    assert heard == []


async def test_handlers_of_combined_capabilities_hear_it(skills: Path, tmp_path: Path):
    parts = [
        SkillsCapability[Any](directories=[skills], workspace_tools='allow', work_dir=tmp_path / 'work'),
        SkillsCapability[Any](skills=[]),
    ]
    heard = list[str]()
    parts[1].toolset.on(ScriptOutput)(lambda ctx, event: heard.append(event.text))
    script = ScriptedModel(calls=[('run_command', {'command': 'echo hi'})])
    await Agent[Any, Any](script.model, capabilities=parts).run('Go.')
    assert heard == ['hi\n']
    toolset = SkillsToolset[Any](directories=[skills], work_dir=tmp_path / 'work')
    toolset.actions.recorder.handlers.adopt([parts[1].toolset.actions.recorder.handlers])
    (tmp_path / 'work/go').touch()
    await converse(toolset, LOAD, RUN)
    assert heard == ['hi\n', 'first\n', 'second\n']
