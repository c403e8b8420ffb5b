"""Toolsets that come with a skill: when a run enters them, what the model sees of them, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import UserPromptPart
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool, WrapperToolset

from pydantic_ai_skills import (
    ScriptFinished,
    Skill,
    SkillClass,
    SkillsCapability,
    SkillsToolset,
)
from pydantic_ai_skills.types.skill import SkillOptions
from tests.conversations import Call, ScriptedModel, converse

pytestmark = pytest.mark.anyio

LOAD = ('load_skill', {'skill_name': 'ledger'})
Way = Literal['toolset', 'capability', 'on-demand']
WAYS: list[Way] = ['toolset', 'capability', 'on-demand']


def book(amount: int) -> str:
    """Book an amount."""
    return f'booked {amount}'


def balance() -> int:
    """Tell the balance."""
    return 7


@dataclass
class Server(WrapperToolset[Any]):
    """A toolset that has to be connected before its tools can be listed, like an MCP server."""

    log: list[str] = field(default_factory=list[str])
    is_down: bool = False

    async def __aenter__(self) -> Any:
        if self.is_down:
            raise ConnectionError('no answer')
        self.log.append('enter')
        return await super().__aenter__()

    async def __aexit__(self, *args: Any) -> bool | None:
        self.log.append('exit')
        return await super().__aexit__(*args)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        self.log.append('list')
        return await super().get_tools(ctx)

    def apply(self, visitor: Any) -> None:
        visitor(self)


def functions() -> FunctionToolset[Any]:
    return FunctionToolset[Any](tools=[book, balance], instructions='Book nothing twice.')


def ledger(*toolsets: AbstractToolset[Any], **options: Any) -> Skill[Any]:
    return Skill('ledger', 'Keeps books.', 'Call `book`.', toolsets=toolsets, **options)


def skills_of(way: Way, *skills: Skill[Any]) -> Any:
    if way == 'toolset':
        return SkillsToolset[Any](skills=skills)
    return SkillsCapability[Any](skills=skills, disclosure='on-demand' if way == 'on-demand' else 'tools')


def load_in(way: Way, name: str = 'ledger') -> Call:
    return ('load_capability', {'id': name}) if way == 'on-demand' else ('load_skill', {'skill_name': name})


def all_instructions(script: ScriptedModel) -> str:
    """All that the model was told beside the conversation, appended changes included."""
    parts = (part for message in script.messages for part in message.parts)
    appended = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    return '\n'.join([*map(str, script.instructions), *appended])


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('connects', [False, True])
async def test_the_tools_and_instructions_of_a_toolset_come_with_the_loaded_skill(way: Way, connects: bool):
    server = Server(functions())
    skill = ledger(server if connects else functions())
    script = await converse(skills_of(way, skill), load_in(way), ('book', {'amount': 3}), ('balance', {}))
    assert [name in script.tools[0] for name in ('book', 'balance')] == [False, False]
    assert [name in script.tools[1] for name in ('book', 'balance')] == [True, True]
    assert script.results[1:] == [('book', 'success', 'booked 3'), ('balance', 'success', 7)]
    assert 'Book nothing twice.' not in str(script.instructions[0])
    assert 'Book nothing twice.' in all_instructions(script)
    if connects:
        assert server.log[:2] == ['enter', 'list']
        assert (server.log.count('enter'), server.log.count('exit'), server.log[-1]) == (1, 1, 'exit')


@pytest.mark.parametrize('way', WAYS)
async def test_a_toolset_is_left_alone_until_its_skill_is_loaded(way: Way):
    server = Server(functions())
    other = Skill('other', 'Does more.', 'Do more.')
    await converse(skills_of(way, ledger(server), other), load_in(way, 'other'))
    assert server.log == []


@pytest.mark.parametrize('way', WAYS)
async def test_a_tool_called_too_early_is_answered_as_often_as_it_takes(way: Way):
    script = await converse(skills_of(way, ledger(functions())), *[('book', {'amount': 3})] * 4, load_in(way))
    told = ("The skill 'ledger' is not loaded", "Tool 'book' is not available yet")
    assert [str(result[2]).startswith(told) for result in script.results] == [True] * 4 + [False]


async def test_async_with_agent_connects_once_for_all_runs():
    server = Server(functions())
    other = Skill('audit', 'Checks books.', 'Call `balance`.', toolsets=[server])
    agent = Agent(ScriptedModel(calls=[LOAD]).model, toolsets=[SkillsToolset(skills=[ledger(server), other])])
    async with agent:
        assert server.log == ['enter']
        await agent.run('Go.')
        assert 'list' in server.log
    assert server.log.count('enter') == server.log.count('exit')
    assert server.log[-1] == 'exit'


async def test_each_run_has_its_own_copy_if_the_toolset_makes_one():
    made: list[Server] = []

    class PerRun(Server):
        async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
            made.append(Server(functions()))
            return made[-1]

    toolset = SkillsToolset[Any](skills=[ledger(PerRun(functions()))])
    for _ in range(2):
        assert (await converse(toolset, LOAD, ('balance', {}))).results[-1] == ('balance', 'success', 7)
    assert [(copy.log.count('enter'), copy.log.count('exit')) for copy in made] == [(1, 1), (1, 1)]


async def test_a_toolset_may_change_from_step_to_step():
    class Growing(Server):
        steps: int = 0

        async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
            self.steps += 1
            return self

        async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
            tools = await super().get_tools(ctx)
            return tools if self.steps > 1 else {'balance': tools['balance']}

    script = await converse(SkillsToolset[Any](skills=[ledger(Growing(functions()))]), LOAD, ('balance', {}))
    assert ['book' in tools for tools in script.tools] == [False, False, True]


@pytest.mark.parametrize('way', WAYS)
async def test_a_server_that_is_down_does_not_end_the_run(way: Way):
    skill = ledger(Server(functions(), is_down=True), FunctionToolset[Any](tools=[balance]))
    script = await converse(skills_of(way, skill), load_in(way), ('balance', {}))
    assert script.results[-1] == ('balance', 'success', 7)
    assert "A part of the tools of the skill 'ledger' cannot be reached at the moment." in all_instructions(script)


async def test_a_server_that_cannot_list_its_tools_has_none():
    class Broken(Server):
        async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
            raise ConnectionError('gone')

    script = await converse(SkillsToolset[Any](skills=[ledger(Broken(functions()))]), LOAD)
    assert 'book' not in script.tools[-1]


async def test_a_toolset_that_two_skills_share_is_offered_once():
    shared = functions()
    other = Skill('audit', 'Checks books.', 'Call `balance`.', toolsets=[shared])
    script = await converse(SkillsToolset[Any](skills=[ledger(shared), other]), LOAD, ('balance', {}))
    assert script.tools[1].count('balance') == 1
    assert script.results[-1] == ('balance', 'success', 7)


@pytest.mark.parametrize('connects', [False, True])
async def test_two_tools_of_one_name_are_an_error_that_says_what_to_do(connects: bool):
    toolset = Server(functions()) if connects else functions()
    other = Skill('audit', 'Checks books.', 'Call `balance`.', toolsets=[FunctionToolset[Any](tools=[balance])])
    message = r"has a tool 'balance', and so has the skill '(ledger|audit)'.*toolset\.prefixed\('billing'\)"
    with pytest.raises(UserError, match=message):
        await converse(SkillsToolset[Any](skills=[ledger(toolset), other]), LOAD)
    prefixed = SkillsToolset[Any](skills=[ledger(toolset.prefixed('billing')), other])
    script = await converse(prefixed, LOAD, ('billing_balance', {}))
    assert script.results[-1] == ('billing_balance', 'success', 7)


def load_skill() -> str:
    """Load the truck."""
    return ''


@pytest.mark.parametrize('toolsets', [[FunctionToolset[Any](tools=[load_skill])]])
async def test_a_tool_named_like_those_of_the_skills_toolset_is_an_error(toolsets: Any):
    with pytest.raises(UserError, match="has a tool 'load_skill', and so has this toolset"):
        await converse(SkillsToolset[Any](skills=[ledger(*toolsets)]))


async def test_a_conflict_with_another_toolset_of_the_agent_gets_the_same_hint():
    agent = Agent(
        ScriptedModel(calls=[]).model,
        toolsets=[FunctionToolset([balance]), SkillsToolset(skills=[ledger(functions())])],
    )
    with pytest.raises(UserError, match=r'SkillsToolset .skills. defines a tool.*wrap that toolset'):
        await agent.run('Go.')


@pytest.mark.parametrize(
    ('wrapped', 'tool'),
    [
        (functions().prefixed('x'), 'x_balance'),
        (functions().renamed({'saldo': 'balance'}), 'saldo'),
        (functions().filtered(lambda _, tool: tool.name == 'balance'), 'balance'),
    ],
)
async def test_wrapped_toolsets_do_what_they_say(wrapped: AbstractToolset[Any], tool: str):
    script = await converse(SkillsToolset[Any](skills=[ledger(wrapped)]), LOAD, (tool, {}))
    assert script.results[-1] == (tool, 'success', 7)


async def test_failures_and_calls_are_recorded_like_those_of_other_tools():
    def fail() -> str:
        """Fail."""
        raise RuntimeError('broken')

    skills = SkillsToolset[Any](skills=[ledger(FunctionToolset[Any](tools=[fail, book]))])
    events: list[tuple[str, str]] = []
    skills.on(ScriptFinished)(lambda _, event: events.append((event.script_name, event.outcome)))
    script = await converse(skills, LOAD, ('fail', {}), ('book', {'amount': 'many'}), ('book', {'amount': 1}))
    assert [outcome for _, outcome, _ in script.results[1:]] == ['failed', 'failed', 'success']
    assert 'RuntimeError: broken' in script.results[1][2]
    assert events == [('fail', 'failed'), ('book', 'success')]


async def test_a_decorated_function_and_a_class_can_bring_toolsets():
    class Ledger(SkillClass[Any]):
        """Keeps books."""

        instructions = 'Call `book`.'
        skill_options: ClassVar[SkillOptions] = {'toolsets': [functions()]}

    skills = SkillsToolset[Any](skills=[])

    @skills.skill(toolsets=[functions()])
    def ledger() -> str:
        """Keeps books."""
        return 'Call `book`.'

    for each in (skills, SkillsToolset[Any](skills=[Ledger()])):
        assert (await converse(each, LOAD, ('balance', {}))).results[-1] == ('balance', 'success', 7)
    assert len(ledger.toolsets) == 1


async def test_a_toolset_can_be_added_and_assigned_later():
    skill = ledger()
    skills = SkillsToolset[Any](skills=[skill])
    assert 'balance' not in (await converse(skills, LOAD)).tools[-1]
    skill.toolsets.append(functions())
    assert 'balance' in (await converse(skills, LOAD)).tools[-1]
    skill.toolsets = []
    assert 'balance' not in (await converse(skills, LOAD)).tools[-1]


async def test_a_resumed_conversation_has_the_tools_back():
    def make() -> SkillsToolset[Any]:
        return SkillsToolset[Any](skills=[ledger(Server(functions()))])

    history = (await converse(make(), LOAD)).saved
    script = await converse(make(), ('balance', {}), history=history)
    assert script.results[-1] == ('balance', 'success', 7)


async def test_where_nobody_would_exit_it_a_toolset_is_not_entered(ctx: RunContext[Any]):
    server = Server(functions())
    toolset = SkillsToolset[Any](skills=[ledger(server)])
    history = (await converse(toolset, LOAD)).saved
    server.log.clear()
    ctx.messages.extend(history)
    of_run = await (await toolset.for_run(ctx)).for_run_step(ctx)  # without `async with`
    assert 'balance' in await of_run.get_tools(ctx)
    assert set(server.log) == {'list'}


async def test_a_renamed_skill_brings_the_same_toolsets():
    skill = ledger(functions()).renamed('books')
    script = await converse(
        SkillsToolset[Any](skills=[skill]), ('load_skill', {'skill_name': 'books'}), ('balance', {})
    )
    assert script.results[-1] == ('balance', 'success', 7)
