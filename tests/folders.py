"""Helpers that write skill folders and call a toolset's tools."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from pydantic_ai_skills import SkillsToolset

CONTEXT = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage())


def skill_md(name: str, description: str = 'Does things.', body: str = 'Do it.') -> str:
    return f'---\nname: {name}\ndescription: {description}\n---\n{body}\n'


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, given by their paths below a folder, and create the folders they need."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def write_skill(
    folder: Path,
    description: str = 'Does things.',
    body: str = 'Do it.',
    files: Mapping[str, str | bytes] | None = None,
) -> Path:
    """Write a skill named after its folder."""
    return write(folder, {'SKILL.md': skill_md(folder.name, description, body), **(files or {})})


def settle() -> None:
    """Wait until the file written last no longer counts as half written."""
    time.sleep(0.12)


@contextmanager
def at_first_wait(work: Callable[[], object]) -> Generator[None]:
    """Do something when the package first waits for whoever writes a file. Until then its clock stands still."""
    sleep, now, done = time.sleep, time.time_ns(), list[object]()
    with pytest.MonkeyPatch.context() as patch:

        def work_or_sleep(seconds: float) -> None:
            if done:
                return sleep(seconds)
            patch.undo()
            done.append(work())
            return None

        patch.setattr(time, 'sleep', work_or_sleep)
        patch.setattr(time, 'time_ns', lambda: now)
        yield
    assert done, 'nothing waited'


async def call_tool(toolset: SkillsToolset[Any], name: str, **args: Any) -> tuple[bool, Any]:
    """Call a tool as an agent does: whether it succeeded, and what the model is sent."""
    tools = await toolset.get_tools(CONTEXT)
    try:
        value = await toolset.call_tool(name, args, CONTEXT, tools[name])
        return True, value.return_value if name == 'load_skill' and isinstance(value, ToolReturn) else value
    except ToolFailed as failure:
        return False, str(failure)
