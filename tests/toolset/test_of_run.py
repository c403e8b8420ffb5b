"""`get_instructions` called by a developer: with any context, in `@agent.instructions`, with `auto_reload`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import InstructionPart

from pydantic_ai_skills import Skill, SkillsCapability, SkillsToolset
from tests.conversations import ScriptedModel
from tests.folders import CONTEXT, write_skill

pytestmark = pytest.mark.anyio

LIST = '<available_skills>'


def made_toolset(**options: Any) -> SkillsToolset[Any]:
    return SkillsToolset(skills=[Skill('alpha', 'Does it.', 'Do it.')], **options)


async def content(toolset: SkillsToolset[Any], ctx: Any) -> str:
    part = await toolset.get_instructions(ctx)
    assert isinstance(part, InstructionPart)
    return part.content


@pytest.mark.parametrize('ctx', [None, MagicMock(), Mock(), Mock(spec=RunContext), object(), CONTEXT])
async def test_any_context_gets_the_list(ctx: Any):
    assert LIST in await content(made_toolset(), ctx)
    capability = SkillsCapability(skills=[Skill('beta', 'Does it.', 'Do it.')], disclosure='on-demand')
    assert await capability.toolset.get_instructions(ctx) is None  # pydantic-ai lists them


async def test_a_filter_is_called_with_what_stands_for_the_context():
    def is_wanted(ctx: RunContext[Any], skill: Skill[Any]) -> bool:
        return ctx.deps == 'yes'

    toolset = made_toolset(skill_filter=is_wanted)

    assert 'alpha' in await content(toolset, Mock(deps='yes'))
    assert await toolset.get_instructions(Mock(deps='no')) is None


@pytest.mark.parametrize('whole', [False, True])
async def test_the_list_is_sent_once_if_a_developer_adds_it(whole: bool):
    toolset = made_toolset()
    scripted = ScriptedModel(calls=[('load_skill', {'skill_name': 'alpha'})])
    agent = Agent(scripted.model, toolsets=[toolset])

    @agent.instructions
    async def skills(ctx: RunContext) -> Any:
        part = await toolset.get_instructions(ctx)
        assert isinstance(part, InstructionPart)
        return part if whole else f'Be kind.\n{part.content}'

    await agent.run('Hello')

    assert [(text or '').count(LIST) for text in scripted.instructions] == [1, 1]


async def test_the_list_is_sent_if_another_toolset_or_nobody_is_asked():
    toolset, other = made_toolset(), made_toolset(id='other')
    scripted = ScriptedModel(calls=[('load_skill', {'skill_name': 'alpha'})])
    agent = Agent(scripted.model, toolsets=[toolset])

    @agent.instructions
    async def ask(ctx: RunContext) -> str:
        await other.get_instructions(ctx)
        return 'Be kind.'

    await agent.run('Hello')

    assert [(text or '').count(LIST) for text in scripted.instructions] == [1, 1]


async def test_a_tool_can_ask_for_the_list_as_often_as_it_likes():
    toolset = made_toolset()
    seen: list[str] = []
    scripted = ScriptedModel(calls=[('look', {})])
    agent = Agent(scripted.model, toolsets=[toolset])

    @agent.tool
    async def look(ctx: RunContext) -> str:
        seen.extend([await content(toolset, ctx), await content(toolset, ctx)])
        return 'seen'

    await agent.run('Hello')

    assert [LIST in text for text in seen] == [True, True]
    assert [(text or '').count(LIST) for text in scripted.instructions] == [1, 1]


async def test_the_toolset_of_a_run_is_called_like_the_toolset():
    toolset = made_toolset(id='mine')

    of_run = await toolset.for_run(CONTEXT)

    assert (of_run.id, of_run.label) == ('mine', toolset.label)
    assert of_run.tool_name_conflict_hint == toolset.tool_name_conflict_hint


@pytest.mark.parametrize('ctx', [None, CONTEXT])
async def test_auto_reload_picks_up_changes_when_a_developer_asks(ctx: Any, tmp_path: Path):
    write_skill(tmp_path / 'alpha')
    toolset = SkillsToolset[Any](directories=[tmp_path], auto_reload=True)
    assert 'beta' not in await content(toolset, ctx)

    write_skill(tmp_path / 'beta')

    assert 'beta' in await content(toolset, ctx)


async def test_auto_reload_looks_once_a_run(tmp_path: Path):
    write_skill(tmp_path / 'alpha')
    toolset = SkillsToolset[Any](directories=[tmp_path], auto_reload=True)
    agent = Agent(ScriptedModel(calls=[]).model, toolsets=[toolset])
    seen: list[str] = []

    @agent.instructions
    async def ask(ctx: RunContext) -> str:
        write_skill(tmp_path / 'beta')
        seen.append(await content(toolset, ctx))
        return seen[-1]

    await agent.run('Hello')
    await agent.run('Hello')

    assert ['beta' in text for text in seen] == [False, True]
