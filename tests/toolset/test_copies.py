"""Copies of toolsets and capabilities, deep or pickled: what can be copied of a `FunctionToolset` can be copied here."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from pydantic_ai_skills import (
    GitSkillsRegistry,
    Skill,
    SkillRegistry,
    SkillsCapability,
    SkillsDirectory,
    SkillsToolset,
)
from tests.conversations import converse
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

LOAD = ('load_skill', {'skill_name': 'adder'})
TOOLS = """
from pydantic_ai_skills import tool


@tool
def add(a: int, b: int) -> int:
    \"\"\"Add.\"\"\"
    return a + b
"""


def deep(value: Any) -> Any:
    return copy.deepcopy(value)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


both = pytest.mark.parametrize('copied', [deep, pickled])


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def is_visible(ctx: RunContext[Any], skill: Skill[Any]) -> bool:
    return skill.name != 'hidden'


class Handbook(SkillRegistry):
    def get_skills(self) -> list[Skill[Any]]:
        return [Skill('travel', 'Books travel.', 'Ask.'), Skill('hidden', 'Is hidden.', 'Hide.')]


def in_python() -> Skill[Any]:
    return Skill('adder', 'Adds.', 'Call `add`.', tools=[Tool(double)], toolsets=[FunctionToolset([double])])


def options(folder: Path) -> dict[str, Any]:
    write_skill(folder / 'adder', 'Adds.', 'Call `add`.', {'tools.py': TOOLS})
    return {
        'directories': [SkillsDirectory(folder), folder],
        'registries': [Handbook(), Handbook().prefixed('acme-').cached(ttl=60)],
        'skill_filter': is_visible,
        'auto_reload': True,
        'search_tool': True,
    }


@both
@pytest.mark.parametrize('kind', [SkillsToolset, SkillsCapability])
@pytest.mark.parametrize('was_used', [False, True])
async def test_a_copy_works_like_the_original_and_reads_its_sources_itself(
    copied: Callable[[Any], Any], kind: Any, was_used: bool, tmp_path: Path
):
    skills = kind(**options(tmp_path))
    calls = (LOAD, ('adder__add', {'a': 1, 'b': 2}), ('search_skills', {'query': 'travel'}))
    if was_used:
        await converse(skills, *calls)
    again = copied(skills)
    write_skill(tmp_path / 'later')
    script = await converse(again, *calls)
    assert script.results[1] == ('adder__add', 'success', 3)
    assert 'travel' in script.results[2][2]
    assert '"later"' in str(script.instructions[0])
    assert '"hidden"' not in str(script.instructions[0])
    toolset = getattr(again, 'toolset', again)
    assert toolset.library is not getattr(skills, 'toolset', skills).library


@both
async def test_skills_in_python_are_copied_with_their_tools_and_toolsets(copied: Callable[[Any], Any]):
    skill = in_python()
    toolset = SkillsToolset[Any](skills=[skill])
    again = copied(toolset)
    again.add_skill(Skill('later', 'Comes later.', 'Wait.'))
    assert (list(toolset.skills), sorted(again.skills)) == (['adder'], ['adder', 'later'])
    assert again.get_skill('adder') is not skill
    calls = ('adder__double', {'number': 2}), ('double', {'number': 4})
    assert [result[2] for result in (await converse(again, LOAD, *calls)).results[1:]] == [4, 8]


@both
@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_a_capability_that_was_combined_can_be_copied(copied: Callable[[Any], Any], disclosure: Any):
    parts: list[Any] = [
        SkillsCapability[Any](skills=[Skill(name, 'Does it.', 'Do it.')], disclosure=disclosure)
        for name in ('one', 'two')
    ]
    again = copied(SkillsCapability.combine(parts))
    script = await converse(again)
    assert all(name in str(script.instructions[0]) for name in ('one', 'two'))


@both
def test_a_search_that_a_developer_ranks_knows_the_skills_of_the_copy(copied: Callable[[Any], Any]):
    from pydantic_ai_skills import FullTextRanker

    toolset = SkillsToolset[Any](skills=[in_python()], ranker=FullTextRanker())
    assert [skill.name for skill in toolset.search('adds')] == ['adder']
    again = copied(toolset)
    assert [skill.name for skill in again.search('adds')] == ['adder']


@both
def test_a_git_registry_is_copied_but_a_token_is_not(copied: Callable[[Any], Any], tmp_path: Path):
    url = 'https://git.example/acme/skills.git'
    again = copied(SkillsToolset(registries=[GitSkillsRegistry(url, target_dir=tmp_path)]))
    assert again.library.registries[0].url == url
    with_token = SkillsToolset(registries=[GitSkillsRegistry(url, target_dir=tmp_path, token='s3cret')])
    if copied is deep:  # which stays in the memory of this process
        copied(with_token)
    else:
        with pytest.raises(TypeError, match='A secret cannot be pickled'):
            copied(with_token)


def test_what_cannot_be_pickled_of_a_function_toolset_cannot_be_pickled_here():
    def local() -> str:
        """Local."""
        return ''

    for toolset in (FunctionToolset([local]), SkillsToolset(skills=[Skill('a', 'A.', 'A.', tools=[Tool(local)])])):
        with pytest.raises((AttributeError, pickle.PicklingError), match='local'):
            pickle.dumps(toolset)
        copy.deepcopy(toolset)


async def test_a_copy_of_a_toolset_in_use_has_entered_nothing():
    from tests.toolset.test_skill_toolsets import Server, functions

    server = Server(functions())
    toolset = SkillsToolset[Any](skills=[Skill('adder', 'Adds.', 'Add.', toolsets=[server])])
    async with toolset:
        again = deep(toolset)
        await again.__aexit__(None, None, None)
    assert server.log == ['enter', 'exit']
