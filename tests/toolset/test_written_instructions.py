"""Instructions that a function writes for each run: what it is given, how often it is called, and who reads them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from pydantic_ai.messages import TextContent
from pydantic_ai.tools import RunContext

from pydantic_ai_skills import (
    Skill,
    SkillClass,
    SkillResourceLoadError,
    SkillsCapability,
    SkillsToolset,
    SkillValidationError,
)
from tests.conversations import Call, converse
from tests.toolset.test_skill_toolsets import WAYS, Way, all_instructions, load_in, skills_of

pytestmark = pytest.mark.anyio

LOAD: Call = ('load_skill', {'skill_name': 'greeting'})


@dataclass
class Tenant:
    name: str


def sync(ctx: RunContext[Tenant]) -> str:
    """Greets."""
    return f'Greet for {ctx.deps.name}.'


async def waiting(ctx: RunContext[Tenant]) -> str:
    """Greets."""
    await anyio.sleep(0)
    return f'Greet for {ctx.deps.name}.'


async def same_for_all() -> str:
    """Greets."""
    await anyio.sleep(0)
    return 'Greet for Ada.'


class AsObject:
    async def __call__(self, ctx: RunContext[Tenant]) -> str:
        return f'Greet for {ctx.deps.name}.'


class Greeting(SkillClass[Tenant]):
    """Greets."""

    async def instructions(self, ctx: RunContext[Tenant]) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - a method may write them
        return f'Greet for {ctx.deps.name}.'


def by_decorator(function: Any) -> Skill[Any]:
    return SkillsToolset[Any](skills=[]).skill(name='greeting')(function)


def greeting(function: Any) -> Skill[Any]:
    return Skill('greeting', 'Greets.', function)


MAKERS: dict[str, Callable[[], Skill[Any]]] = {
    'sync': lambda: greeting(sync),
    'async': lambda: greeting(waiting),
    'async without parameters': lambda: greeting(same_for_all),
    'an object': lambda: greeting(AsObject()),
    'decorated': lambda: by_decorator(sync),
    'decorated async': lambda: by_decorator(waiting),
    'class': Greeting,
    'renamed': lambda: Skill('hello', 'Greets.', waiting).renamed('greeting'),
}


def told(script: Any) -> str:
    return all_instructions(script) + ''.join(str(result[2]) for result in script.results)


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('made', MAKERS)
async def test_the_function_writes_the_instructions_for_the_run_that_loads_the_skill(way: Way, made: str):
    script = await converse(skills_of(way, MAKERS[made]()), load_in(way, 'greeting'), deps=Tenant('Ada'))
    assert 'Greet for Ada.' in told(script)


@pytest.mark.parametrize('way', WAYS)
async def test_tenants_never_share_what_was_written_for_one_of_them(way: Way):
    skills = skills_of(way, greeting(waiting))
    texts: dict[str, str] = {}

    async def run(name: str) -> None:
        texts[name] = told(
            await converse(skills, load_in(way, 'greeting'), load_in(way, 'greeting'), deps=Tenant(name))
        )

    async with anyio.create_task_group() as group:
        for name in ('Ada', 'Bob', 'Eve'):
            group.start_soon(run, name)
    for name, text in texts.items():
        assert [other in text for other in texts] == [other == name for other in texts]


async def test_on_demand_the_text_stays_the_same_for_all_requests_of_a_run():
    calls: list[str] = []

    def write(ctx: RunContext[Tenant]) -> str:
        calls.append(ctx.deps.name)
        return f'Text {len(calls)}.'

    skills = SkillsCapability[Any](skills=[greeting(write)], disclosure='on-demand')
    load = load_in('on-demand', 'greeting')
    script = await converse(skills, load, ('nothing', {}), deps=Tenant('Ada'))
    assert calls == ['Ada']
    resumed = await converse(skills, ('nothing', {}), deps=Tenant('Ada'), history=script.saved)
    assert calls == ['Ada', 'Ada']
    assert 'Text 2.' in all_instructions(resumed)


async def test_a_function_without_parameters_is_called_once():
    calls: list[int] = []

    async def write() -> str:
        calls.append(1)
        return 'Greet.'

    skill = greeting(write)
    with pytest.raises(SkillResourceLoadError, match='depend on the run'):
        _ = skill.content
    for _ in range(2):
        await converse(SkillsToolset[Any](skills=[skill]), LOAD)
    assert (len(calls), skill.content) == (1, 'Greet.')


async def test_long_instructions_can_be_read_in_pages():
    def write(ctx: RunContext[Tenant]) -> str:
        return f'{ctx.deps.name}\n' * 30_000

    skill = greeting(write)
    read = ('read_skill_resource', {'skill_name': 'greeting', 'resource_name': 'SKILL.md', 'args': {'page': 2}})
    script = await converse(SkillsToolset[Any](skills=[skill], auto_reload=True), LOAD, read, deps=Tenant('Ada'))
    assert [outcome for _, outcome, _ in script.results] == ['success', 'success']
    assert 'Ada\nAda' in script.results[1][2]


def none(ctx: RunContext[Any]) -> str:
    return None  # pyright: ignore[reportReturnType] - the mistake


def fail(ctx: RunContext[Any]) -> str:
    raise RuntimeError('no database')


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize(
    ('function', 'message'),
    [(none, "The function 'none' returned None, not the instructions."), (fail, 'RuntimeError: no database')],
)
async def test_the_model_is_told_if_the_function_fails(way: Way, function: Any, message: str):
    script = await converse(skills_of(way, greeting(function)), load_in(way, 'greeting'))
    assert (script.results[0][1], message in script.results[0][2]) == ('failed', True)


async def test_a_person_invokes_such_a_skill_with_the_dependencies_of_the_run():
    toolset = SkillsToolset[Any](skills=[greeting(waiting)])
    prompt = await toolset.invoke('greeting', 'now', deps=Tenant('Ada'))
    assert isinstance(prompt[1], TextContent)
    assert 'Greet for Ada.' in prompt[1].content
    with pytest.raises(SkillResourceLoadError, match=r'toolset\.invoke\(name, arguments, deps=…\)'):
        await toolset.invoke('greeting')
    assert 'Greet for Ada.' in str(await SkillsToolset[Any](skills=[greeting(same_for_all)]).invoke('greeting'))


def test_outside_of_a_run_there_is_a_clear_error():
    for make in MAKERS.values():
        with pytest.raises(SkillResourceLoadError, match="instructions of skill 'greeting' depend on the run"):
            _ = make().content


def test_skills_with_such_functions_are_equal_by_the_function_and_can_be_copied():
    assert greeting(sync) == greeting(sync)
    assert greeting(sync) != greeting(waiting)
    for skill in (greeting(sync), by_decorator(sync)):
        assert copy.deepcopy(skill) == copy.copy(skill) == skill


def test_a_function_with_more_parameters_is_refused_where_it_is_given():
    with pytest.raises(SkillValidationError, match='it takes nothing, or a RunContext'):
        greeting(str.join)


async def test_what_a_function_in_c_returns_is_taken_once():
    assert greeting(str).content == ''
