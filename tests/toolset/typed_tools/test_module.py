"""Modules of `tools.py` files leave the process with the last toolset that uses them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import SkillsToolset
from tests.conversations import Call, converse
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

CALL: Call = ('adder__add', {'a': 1, 'b': 2})
LOAD: Call = ('load_skill', {'skill_name': 'adder'})
TOOLS = '''
from pydantic_ai_skills import tool
from .helpers import total


@tool
def add(a: int, b: int) -> int:
    """Add."""
    from .helpers import total  # while it is called

    return total(a, b)
'''


def write(folder: Path, tools: str = TOOLS) -> None:
    helpers = 'def total(a: int, b: int) -> int:\n    return a + b\n'
    write_skill(folder / 'adder', files={'tools.py': tools, 'helpers.py': helpers})


def modules(folder: Path) -> list[str]:
    files = (getattr(module, '__file__', None) for module in tuple(sys.modules.values()))
    return sorted(Path(file).name for file in files if file and Path(file).is_relative_to(folder))


async def use(toolset: SkillsToolset[Any]) -> Any:
    return (await converse(toolset, LOAD, CALL)).results[-1][2]


async def test_the_modules_of_a_skill_that_is_gone_or_replaced_are_forgotten(tmp_path: Path):
    write(tmp_path)
    toolset = SkillsToolset[Any](directories=[tmp_path], auto_reload=True)
    assert await use(toolset) == 3
    assert modules(tmp_path) == ['helpers.py', 'tools.py']
    for number in range(3):
        write(tmp_path, f'{TOOLS}\nVERSION = {number}\n')
        assert await use(toolset) == 3
        assert modules(tmp_path) == ['helpers.py', 'tools.py']
    shutil.rmtree(tmp_path / 'adder')
    await converse(toolset)
    assert modules(tmp_path) == []


async def test_a_module_stays_as_long_as_one_toolset_uses_it(tmp_path: Path):
    write(tmp_path)
    first, second = SkillsToolset[Any](directories=[tmp_path]), SkillsToolset[Any](directories=[tmp_path])
    assert await use(first) == await use(second) == 3
    second.actions.typed.keep_only({})
    assert await use(first) == 3
    first.actions.typed.keep_only({})
    assert modules(tmp_path) == []


async def test_a_module_that_cannot_be_imported_leaves_nothing_behind(tmp_path: Path):
    write(tmp_path, f'{TOOLS}\nraise RuntimeError("no")\n')
    await use(SkillsToolset[Any](directories=[tmp_path]))
    assert modules(tmp_path) == []
