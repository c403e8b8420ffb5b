"""Runs that see different skills of one toolset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from anyio import create_task_group, to_thread
from pydantic_ai import Agent, RunContext

from pydantic_ai_skills import Skill, SkillsCapability, SkillsToolset
from pydantic_ai_skills.toolset.prompt import MAX_NARROWED_VIEWS
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import write_skill

pytestmark = pytest.mark.anyio


@dataclass
class Tenant:
    name: str


def belongs(ctx: RunContext[Tenant], skill: Skill[Tenant]) -> bool:
    return skill.name.startswith((ctx.deps.name, 'common'))


CALLS: list[Call] = [
    ('list_skills', {}),
    ('load_skill', {'skill_name': 'blue-secret'}),
    ('read_skill_resource', {'skill_name': 'blue-secret', 'resource_name': 'notes.md'}),
    ('run_skill_script', {'skill_name': 'blue-secret', 'script_name': 'go.py'}),
]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for name in ('blue-secret', 'red-secret', 'common-sense'):
        write_skill(tmp_path / name, f'About {name}.', files={'notes.md': f'Notes of {name}.', 'go.py': 'print("ran")'})
    return tmp_path


async def test_a_skill_of_another_tenant_does_not_exist_for_a_run(library: Path):
    toolset = SkillsToolset[Tenant](directories=[library], skill_filter=belongs)
    scripts = {name: ScriptedModel(calls=CALLS) for name in ('red', 'blue')}

    async def run(name: str) -> None:
        agent = Agent(scripts[name].model, deps_type=Tenant, toolsets=[toolset])
        await agent.run('Go.', deps=Tenant(name))

    async with create_task_group() as group:
        for name in scripts:
            group.start_soon(run, name)
    red, blue = scripts['red'], scripts['blue']
    assert [outcome for _, outcome, _ in blue.results] == ['success'] * 4
    assert red.results == [
        ('list_skills', 'success', {'common-sense': 'About common-sense.', 'red-secret': 'About red-secret.'}),
        *(
            (tool, 'failed', "There is no skill 'blue-secret'. The skills are: 'red-secret', 'common-sense'.")
            for tool in ('load_skill', 'read_skill_resource', 'run_skill_script')
        ),
    ]
    assert 'blue' not in str(red.instructions)
    assert 'red' not in str(blue.instructions)


async def test_a_run_that_may_see_nothing_has_no_block_and_no_tools(library: Path):
    capability = SkillsCapability[Tenant](directories=[library], skill_filter=lambda ctx, skill: False)
    script = await converse(capability, deps=Tenant('red'))
    assert (script.instructions, script.tools) == ([None], [[]])


async def test_a_run_that_may_see_all_shares_the_text_of_the_others(library: Path):
    everyone = await converse(SkillsToolset(directories=[library]))
    filtered = await converse(SkillsToolset(directories=[library], skill_filter=lambda ctx, skill: True))
    assert filtered.instructions == everyone.instructions


async def test_what_a_run_sees_follows_a_reload(library: Path):
    toolset = SkillsToolset[Tenant](directories=[library], skill_filter=belongs)
    script = ScriptedModel(calls=[])
    agent = Agent(script.model, deps_type=Tenant, toolsets=[toolset])
    await agent.run('Go.', deps=Tenant('red'))
    write_skill(library / 'red-alert')
    await to_thread.run_sync(toolset.reload)
    await agent.run('Go.', deps=Tenant('red'))
    assert ['red-alert' in str(text) for text in script.instructions] == [False, True]


async def test_any_number_of_different_selections_can_be_asked_for():
    skills = [Skill(f'skill-{number}', 'Does.', '') for number in range(MAX_NARROWED_VIEWS + 2)]
    toolset = SkillsToolset[str](skills=skills, skill_filter=lambda ctx, skill: skill.name == ctx.deps)
    for skill in skills:
        script = await converse(toolset, deps=skill.name)
        assert [f'<skill name="{other.name}">' in str(script.instructions) for other in skills].count(True) == 1
