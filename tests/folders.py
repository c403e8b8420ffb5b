"""Folders of skills to test with, and a short way to a toolset's tools."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from pydantic_ai_skills import SkillsToolset

CONTEXT = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage())


def skill_md(name: str, description: str = 'Does it.', body: str = 'Do it.') -> str:
    return f'---\nname: {name}\ndescription: {description}\n---\n{body}\n'


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, by their paths below a folder, and make the folders they need."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def write_skill(
    folder: Path,
    description: str = 'Does it.',
    body: str = 'Do it.',
    files: Mapping[str, str | bytes] | None = None,
) -> Path:
    """Write a skill that has its folder's name."""
    return write(folder, {'SKILL.md': skill_md(folder.name, description, body), **(files or {})})


def settle() -> None:
    """Wait until what was written last is no longer taken for half written."""
    time.sleep(0.12)


async def call_tool(toolset: SkillsToolset[Any], name: str, **args: Any) -> tuple[bool, Any]:
    """Call a tool as an agent does: whether it succeeded, and what the model is sent."""
    tools = await toolset.get_tools(CONTEXT)
    try:
        return True, await toolset.call_tool(name, args, CONTEXT, tools[name])
    except ToolFailed as failure:
        return False, str(failure)
