"""The shape of the package: what a newcomer can rely on when looking for a line."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import tomllib
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage

import pydantic_ai_skills
from pydantic_ai_skills import LocalSkillScriptExecutor, ScriptLimits, SkillsToolset

PACKAGE = Path(pydantic_ai_skills.__file__).parent
ROOT = PACKAGE.parent
SKILLS = ROOT / 'examples/skills'
LOAD = {'skill_name': 'unit-converter'}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    'load_skill': ('load_skill', LOAD),
    'run_skill_script': ('run_skill_script', {**LOAD, 'script_name': 'convert', 'args': ['26.2', 'mi', 'km']}),
    'run_skill_script, with arguments that are matched to what the script declares': (
        'run_skill_script',
        {**LOAD, 'script_name': 'convert', 'args': {'_': ['26.2', 'mi', 'km']}},
    ),
}


def test_at_most_14_entries_stand_at_the_root():
    modules = [*PACKAGE.glob('*.py'), *(path.parent for path in PACKAGE.glob('*/__init__.py'))]
    entries = {path.stem for path in modules if not path.name.startswith('__')}
    assert len(entries) <= 14, sorted(entries)


def test_there_are_at_most_10_layers():
    contract = tomllib.loads((ROOT / 'pyproject.toml').read_text())['tool']['importlinter']['contracts'][0]
    rooms = [layer for layer in contract['layers'] if '__main__' not in layer]
    assert len(rooms) <= 10


def test_no_file_is_longer_than_400_lines():
    sizes = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in PACKAGE.rglob('*.py')}
    assert {name: size for name, size in sizes.items() if size > 400} == {}


@pytest.mark.parametrize(('step', 'limit'), list(zip(('prompt', *CALLS), (12, 14, 18, 20), strict=True)))
def test_a_reader_follows_a_skill_through_few_files(step: str, limit: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, 'dbos', raising=False)  # as in a program without a durable engine
    files = {file for file, _ in walk(step)}
    assert len(files) <= limit, sorted(files)


def test_nothing_is_opened_between_the_merge_and_the_prompt():
    calls = walk('prompt')
    after = calls[calls.index(('catalog/merge.py', 'merge')) :]
    assert [file for file, _ in after if file.startswith('filesystem')] == []


def walk(step: str) -> list[tuple[str, str]]:
    """The functions of the package that run for a step, as files and names, once everything is imported."""
    asyncio.run(_take(step, Recorder()))
    recorder = Recorder()
    # What other tests have left behind is removed before, not meanwhile.
    gc.collect()
    gc.disable()
    # The threads that are started from now on, and this one.
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        asyncio.run(_take(step, recorder))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.enable()
    return recorder.calls


class Recorder:
    """Notes calls of functions in the package while it is switched on."""

    def __init__(self) -> None:
        self.is_on = False
        self.calls: list[tuple[str, str]] = []

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if self.is_on and event == 'call' and frame.f_code.co_filename.startswith(f'{PACKAGE}/'):
            file = frame.f_code.co_filename.removeprefix(f'{PACKAGE}/')
            self.calls.append((file, frame.f_code.co_name))


async def _take(step: str, recorder: Recorder) -> None:
    # Without a control group, as for most users. Files are only counted when a script takes long, as on a busy machine.
    executor = LocalSkillScriptExecutor(control_group=None, limits=ScriptLimits(work_folder=None))
    toolset = SkillsToolset[None](directories=[SKILLS], script_executor=executor)
    ctx = RunContext(deps=None, model=TestModel(), usage=RunUsage(), run_id='walk')
    if step == 'prompt':
        recorder.is_on = True
        await toolset.get_instructions(ctx)
    else:
        tools = await toolset.get_tools(ctx)
        tool, arguments = CALLS[step]
        if tool == 'run_skill_script':  # of a skill that was loaded, as in a conversation
            await toolset.call_tool('load_skill', LOAD, ctx, tools['load_skill'])
        recorder.is_on = True
        await toolset.call_tool(tool, arguments, ctx, tools[tool])
    recorder.is_on = False
