"""What pydantic-ai wraps around a toolset does what it says here too, and the instructions name the tools as seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset

from pydantic_ai_skills import Skill, SkillsDirectory, SkillsToolset
from tests.conversations import ScriptedModel, converse
from tests.folders import write_skill
from tests.toolset.test_skill_toolsets import functions

pytestmark = pytest.mark.anyio


def base() -> SkillsToolset[Any]:
    skill = Skill('ledger', 'Keeps books.', 'Book it.', toolsets=[functions()])

    @skill.resource
    def accounts() -> str:
        return 'cash, bank'

    @skill.tool_plain
    def close() -> str:
        """Close the books."""
        return 'closed'

    return SkillsToolset[Any](skills=[skill])


def shout(ctx: RunContext[Any], tools: list[ToolDefinition]) -> list[ToolDefinition]:
    return [replace(tool, description=f'{tool.description}!') for tool in tools]


def without_list(ctx: RunContext[Any], tool: ToolDefinition) -> bool:
    return tool.name not in ('list_skills', 'balance')


CASES: dict[str, tuple[Callable[[SkillsToolset[Any]], AbstractToolset[Any]], Callable[[str], str]]] = {
    'plain': (lambda toolset: toolset, lambda name: name),
    'prefixed': (lambda toolset: toolset.prefixed('team'), lambda name: f'team_{name}'),
    'prefixed twice': (lambda toolset: toolset.prefixed('a').prefixed('b'), lambda name: f'b_a_{name}'),
    'renamed': (
        lambda toolset: toolset.renamed({'open_skill': 'load_skill', 'saldo': 'balance'}),
        lambda name: {'load_skill': 'open_skill', 'balance': 'saldo'}.get(name, name),
    ),
    'prepared': (lambda toolset: toolset.prepared(shout), lambda name: name),
    'filtered': (lambda toolset: toolset.filtered(lambda _, tool: tool.name != 'list_skills'), lambda name: name),
    'with metadata': (lambda toolset: toolset.with_metadata(team='a'), lambda name: name),
}


@pytest.mark.parametrize('case', CASES)
async def test_a_conversation_through_a_wrapper(case: str):
    wrap, seen = CASES[case]
    read = (seen('read_skill_resource'), {'skill_name': 'ledger', 'resource_name': 'accounts'})
    load = (seen('load_skill'), {'skill_name': 'ledger'})
    script = await converse(wrap(base()), load, read, (seen('balance'), {}), (seen('ledger__close'), {}))
    assert [result[2] for result in script.results[1:]] == ['cash, bank', 7, 'closed']
    assert f'`{seen("load_skill")}`' in str(script.instructions[0])
    assert seen('balance') not in script.tools[0]
    assert {seen('balance'), seen('ledger__close')} <= set(script.tools[1])
    if case == 'filtered':
        assert 'list_skills' not in script.tools[0]
    if case == 'prepared':
        assert script.definitions['balance']['description'].endswith('!')
        assert script.definitions['load_skill']['description'].endswith('!')


async def test_a_filtered_tool_of_a_skill_stays_away():
    script = await converse(base().filtered(without_list), ('load_skill', {'skill_name': 'ledger'}))
    assert ('balance' in script.tools[-1], 'book' in script.tools[-1]) == (False, True)


async def test_calls_wait_for_approval():
    script = ScriptedModel(calls=[('load_skill', {'skill_name': 'ledger'})])
    agent = Agent(script.model, toolsets=[base().approval_required()], output_type=[str, DeferredToolRequests])
    output = (await agent.run('Go.')).output
    assert isinstance(output, DeferredToolRequests)
    assert [call.tool_name for call in output.approvals] == ['load_skill']


async def test_deferred_tools_are_found_by_a_search_and_those_of_a_skill_by_its_load():
    script = await converse(
        base().defer_loading(['balance', 'ledger__close']), ('load_skill', {'skill_name': 'ledger'})
    )
    assert {'balance', 'ledger__close'}.isdisjoint(script.tools[0])
    assert {'balance', 'ledger__close'} <= set(script.tools[1])


def test_label_and_id_are_those_of_a_toolset():
    assert (base().id, base().label) == ('skills', "SkillsToolset 'skills'")
    named = SkillsToolset[Any](skills=[], id='billing')
    assert (named.id, named.label) == ('billing', "SkillsToolset 'billing'")
    assert 'SkillsToolset(...).prefixed' in named.tool_name_conflict_hint
    assert named.prefixed('x').label == "PrefixedToolset(SkillsToolset 'billing')"


# --- Dynamic toolsets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize('per_run_step', [False, True])
async def test_a_function_may_make_the_toolset_of_each_run(per_run_step: bool, tmp_path: Path):
    for tenant in ('ada', 'bob'):
        write_skill(tmp_path / tenant / f'skill-of-{tenant}')
    script = ScriptedModel(
        calls=[('load_skill', {'skill_name': 'skill-of-bob'}), ('load_skill', {'skill_name': 'ledger'})]
    )
    script.calls = [*script.calls, ('balance', {})]
    agent = Agent(script.model, deps_type=str)

    @agent.toolset(per_run_step=per_run_step)
    def skills(ctx: RunContext[str]) -> AbstractToolset[str]:
        ledger = Skill('ledger', 'Keeps books.', 'Book it.', toolsets=[functions()])
        return SkillsToolset(skills=[ledger], directories=[tmp_path / ctx.deps])

    with warnings.catch_warnings():
        warnings.simplefilter('error')
        await agent.run('Go.', deps='bob')
    assert [outcome for _, outcome, _ in script.results] == ['success'] * 3
    assert 'skill-of-ada' not in str(script.instructions)


@pytest.mark.parametrize(('per_run_step', 'shared', 'scans'), [(False, False, 1), (True, True, 1), (True, False, 3)])
async def test_sources_are_read_once_for_a_run_or_once_for_a_shared_directory(
    per_run_step: bool, shared: bool, scans: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_skill(tmp_path / 'alpha')
    looks: list[int] = []
    first_look = SkillsDirectory._first_look  # pyright: ignore[reportPrivateUsage] - counted  # noqa: SLF001

    def counted(self: SkillsDirectory) -> Any:
        looks.append(1)
        return first_look(self)

    monkeypatch.setattr(SkillsDirectory, '_first_look', counted)
    directory = SkillsDirectory(tmp_path)
    agent = Agent(ScriptedModel(calls=[('load_skill', {'skill_name': 'alpha'})] * 2).model)

    @agent.toolset(per_run_step=per_run_step)
    def skills(ctx: RunContext[object]) -> AbstractToolset[object]:
        return SkillsToolset(directories=[directory if shared else tmp_path])

    await agent.run('Go.')
    assert len(looks) == scans
