"""Functions as resources, scripts and tools: given by decorator or by name, with or without a name of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_ai.tools import RunContext

from pydantic_ai_skills import Skill, SkillResource, SkillScript, SkillScriptExecutionError, SkillsToolset
from tests.folders import CONTEXT, call_tool

pytestmark = pytest.mark.anyio


def add(first: int, second: int = 2) -> str:
    """Add two numbers.

    Args:
        first: The first number.
        second: The second number.
    """
    return str(first + second)


class Adder:
    """Adds to a number it knows."""

    def __init__(self, known: int) -> None:
        self.known = known

    def __call__(self, number: int) -> str:
        """Add a number."""
        return str(self.known + number)


class AsyncAdder(Adder):
    """Adds with the run's own number."""

    async def __call__(self, ctx: RunContext[int], number: int) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return str(self.known + ctx.deps + number)


def made_skill() -> Skill[Any]:
    return Skill('alpha', 'Does it.', 'Do it.')


async def test_func_adds_a_function_like_the_decorator(ctx: RunContext[Any]):
    skill = made_skill()

    assert skill.resource(func=add) is add
    assert skill.script(func=add, name='sum', description='Sums up.', schema_generator=None) is add
    assert skill.script(add, name='total') is add  # pyright: ignore[reportCallIssue] - not documented
    assert skill.resource(func=None, name='later')(add) is add

    assert [resource.name for resource in skill.resources] == ['add', 'later']
    assert [(script.name, script.description) for script in skill.scripts] == [
        ('sum', 'Sums up.'),
        ('total', 'Add two numbers.'),
    ]
    assert await skill.scripts[0].run(ctx, {'first': 1}) == '3'


def test_a_schema_generator_makes_the_schema():
    class Titled(GenerateJsonSchema):
        def generate(self, schema: Any, mode: Any = 'validation') -> dict[str, Any]:
            return {**super().generate(schema, mode), 'title': 'Mine'}

    skill = made_skill()
    skill.script(func=add, schema_generator=Titled)

    assert skill.scripts[0].schema is not None
    assert skill.scripts[0].schema.json_schema['title'] == 'Mine'


@pytest.mark.parametrize(
    ('function', 'name', 'description', 'args', 'result'),
    [
        (partial(add, 1), 'add', 'Add two numbers.', {'second': 4}, '5'),
        (partial(partial(add, 1), second=5), 'add', 'Add two numbers.', {}, '6'),
        (Adder(7), 'Adder', 'Add a number.', {'number': 1}, '8'),
        (partial(Adder(7), 2), 'Adder', 'Add a number.', {}, '9'),
        (AsyncAdder(7), 'AsyncAdder', "Adds with the run's own number.", {'number': 1}, '108'),
    ],
)
async def test_a_function_needs_no_name(
    function: Callable[..., Any], name: str, description: str, args: dict[str, Any], result: str
):
    ctx: Any = RunContext[int](deps=100, model=CONTEXT.model, usage=CONTEXT.usage)
    skill = made_skill()
    skill.resource(function)
    skill.script(function)
    tool = skill.tool if isinstance(function, AsyncAdder) else skill.tool_plain
    tool(function)

    for item in (skill.resources[0], skill.scripts[0]):
        assert (item.name, item.description) == (name, description)
        schema = item.function_schema
        assert item.schema is schema  # it is not read again
    assert skill.tools[0].name == name
    assert await skill.resources[0].load(ctx, args) == result
    assert await skill.scripts[0].run(ctx, args) == result
    assert await SkillScript('own', function=function).run(ctx, args) == result
    assert await SkillResource('own', function=function).load(ctx, args) == result


def test_a_partial_can_be_a_skill():
    def greeting(word: str) -> str:
        """Greets people."""
        return f'Say {word}.'

    toolset = SkillsToolset[Any](skills=[])
    skill = toolset.skill(func=partial(greeting, 'hello'))

    assert (skill.name, skill.description, skill.content) == ('greeting', 'Greets people.', 'Say hello.')


class Address(BaseModel):
    city: str
    street: str | None = None


class Empty(BaseModel):
    pass


def send(to: Address, copy: Address | None, notes: list[str], nothing: Empty, anything: Any) -> str:
    return to.city


async def test_a_misfit_tells_what_each_parameter_takes(ctx: RunContext[Any]):
    with pytest.raises(SkillScriptExecutionError) as caught:
        await SkillScript('send', function=send).run(ctx, {})

    takes = (
        'It takes: to (object with city, street), copy (object with city, street or null), notes (array), '
        'nothing (object), anything (any).'
    )
    assert str(caught.value).endswith(takes)


async def test_the_model_can_run_a_function_without_a_name():
    skill = made_skill()
    skill.script(func=partial(add, 1), name='add-one')

    answer = await call_tool(
        SkillsToolset(skills=[skill]), 'run_skill_script', skill_name='alpha', script_name='add-one', args={'second': 1}
    )

    assert answer == (True, '2')
