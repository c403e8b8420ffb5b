from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic_ai import Agent

from pydantic_ai_skills import SkillsToolset, estimate_tokens
from pydantic_ai_skills.directory.scan import HEAD_BYTES
from tests.cli.conftest import Cli
from tests.conversations import ScriptedModel
from tests.folders import skill_md, write, write_skill


@pytest.fixture
def skills(here: Path) -> Path:
    write_skill(here / 'skills/a', 'Does <a>.', files={'run.sh': ''})
    write_skill(here / 'skills/b', 'Does b.')
    return here / 'skills'


def sent(folder: Path) -> ScriptedModel:
    """What a model really is sent."""
    model = ScriptedModel(calls=[('load_skill', {'skill_name': 'a'})])
    asyncio.run(Agent(model.model, toolsets=[SkillsToolset(directories=[folder])]).run('Hello'))
    return model


def test_it_is_what_the_model_is_sent(cli: Cli, skills: Path):
    model = sent(skills)
    data = cli('prompt', 'a', '--json').data
    assert data['instructions'] == model.instructions[0]
    assert {tool['name']: tool for tool in data['tools']} == {
        name: {'name': name, **definition} for name, definition in model.definitions.items()
    }
    assert data['loaded'] == {'a': model.results[0][2]}
    assert data['budget'] == 10_000
    assert data['skills'][0]['loaded'] == estimate_tokens(data['loaded']['a'])
    assert data['skills'][0]['listed'] == estimate_tokens('<skill name="a">Does &lt;a&gt;.</skill>')


def test_people_see_the_same(cli: Cli, skills: Path):
    done = cli('prompt', 'a')
    model = sent(skills)
    assert done.status == 0
    assert str(model.instructions[0]) in done.out
    assert model.results[0][2] in done.out
    assert done.out.startswith(f'Instructions: {len(model.instructions[0] or ""):,} of 10,000 characters, about ')


def test_the_projects_budget_is_used(cli: Cli, here: Path, skills: Path):
    write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\ncatalog-budget = 1200\n'})
    write_skill(skills / 'long', 'x' * 1000)
    data = cli('prompt', '--json').data
    assert data['budget'] == 1200
    assert data['characters'] <= 1200
    write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\ncatalog-budget = 0\n'})
    assert cli('prompt', '--json').data['budget'] == 0


def test_many_skills_are_counted_without_loading_them(cli: Cli, here: Path):
    for number in range(201):
        write_skill(here / f'skills/s{number}')
    write(here, {'skills/s0/SKILL.md': skill_md('s0', body='x' * HEAD_BYTES).encode() + b'\xff'})
    data = cli('prompt', 's1', '--json').data
    assert [skill['loaded'] for skill in data['skills'][:2]] == [0, estimate_tokens(data['loaded']['s1'])]


def test_without_skills_nothing_is_sent(cli: Cli, here: Path):
    assert '(none: there are no skills)' in cli('prompt').out
    assert cli('prompt', '--json').data['tools'] == []


def test_an_unknown_skill_is_a_mistake(cli: Cli, skills: Path):
    assert cli('prompt', 'nobody').status == 2
