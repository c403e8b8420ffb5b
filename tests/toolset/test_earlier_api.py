"""Calls that programs written for the published 1.x line make: they mean the same here."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import GenerateToolJsonSchema, RunContext, Tool

from pydantic_ai_skills import (
    CallableSkillScriptExecutor,
    GitCloneOptions,
    GitSkillsRegistry,
    LocalSkillScriptExecutor,
    Skill,
    SkillResource,
    SkillsCapability,
    SkillScript,
    SkillsDirectory,
    SkillsToolset,
    SkillWrapper,
    normalize_skill_name,
)
from tests.folders import CONTEXT, call_tool, write_skill

pytestmark = pytest.mark.anyio


def shout(word: str, times: int = 1) -> str:
    """Say it loudly."""
    return word.upper() * times


def test_the_toolset_takes_the_documented_parameters(tmp_path: Path):
    write_skill(tmp_path / 'one/alpha')
    write_skill(tmp_path / 'two/beta')
    executor = LocalSkillScriptExecutor(python_executable='python3', timeout=5)
    directory = SkillsDirectory(path=tmp_path / 'two', validate=True, max_depth=None, script_executor=executor)
    registry = GitSkillsRegistry(
        repo_url='https://git.example/skills',
        path='skills',
        target_dir=tmp_path / 'copy',
        clone_options=GitCloneOptions(depth=1, single_branch=True),
    )
    toolset = SkillsToolset[Any](
        skills=[Skill(name='gamma', description='Does it.', content='Do it.')],
        directories=[str(tmp_path / 'one'), directory],
        validate=True,
        max_depth=3,
        id='mine',
        instruction_template='Skills:\n{skills_list}',
        exclude_tools={'list_skills'},
        max_retries=2,
    )

    assert sorted(toolset.skills) == ['alpha', 'beta', 'gamma']
    assert (toolset.id, toolset.max_retries) == ('mine', 2)
    assert len(toolset.skills['alpha'].scripts) == len(toolset.get_skill('gamma').resources) == 0
    assert isinstance(registry, GitSkillsRegistry)
    assert Agent(TestModel(), toolsets=[toolset], capabilities=[SkillsCapability(skills=[], id='others')])


async def test_items_can_be_made_with_a_schema_of_the_function():
    schema: Any = Tool(shout).function_schema
    resource = SkillResource(
        name='shouted',
        description='Loud.',
        content=None,
        function=shout,
        takes_ctx=False,
        function_schema=schema,
        uri=None,
    )
    script = SkillScript(name='shout', description='Loud.', function=shout, takes_ctx=False, function_schema=schema)
    skill = Skill('loud', 'Is loud.', 'Shout.', None, None, [resource], [script], None, {'version': '1'})

    assert await resource.load(CONTEXT, {'word': 'a'}) == 'A'
    assert await script.run(CONTEXT, {'word': 'a', 'times': 2}) == 'AA'
    assert skill.uri == 'skill://loud'
    assert [field.name for field in fields(skill)][:9] == [
        *('name', 'description', 'content', 'license', 'compatibility', 'resources', 'scripts', 'uri', 'metadata')
    ]
    assert asdict(SkillResource('n', 'd', 'text'))['content'] == 'text'
    assert replace(skill, description='Is very loud.') != skill


async def test_decorators_take_the_documented_parameters():
    toolset = SkillsToolset[Any](skills=[])

    @toolset.skill(
        name='loud', license='MIT', compatibility='Ears', metadata={'version': '1'}, resources=[], scripts=[]
    )
    def any_name() -> str:
        """Is loud."""
        return 'Shout.'

    @any_name.resource(
        name='hint',
        description='A hint.',
        takes_ctx=True,
        docstring_format='google',
        schema_generator=GenerateToolJsonSchema,
    )
    def hint(ctx: RunContext[Any], about: str) -> str:
        """Give a hint.

        Args:
            about: What the hint is about.
        """
        return f'about {about}'

    any_name.script(func=shout, name='yell', schema_generator=None)

    assert isinstance(any_name, SkillWrapper)
    assert any_name.to_skill().name == 'loud'
    read = await call_tool(
        toolset, 'read_skill_resource', skill_name='loud', resource_name='hint', args={'about': 'noise'}
    )
    ran = await call_tool(toolset, 'run_skill_script', skill_name='loud', script_name='yell', args={'word': 'a'})
    assert (read, ran) == ((True, 'about noise'), (True, 'A'))


async def test_a_callable_executor_gets_the_script_and_its_arguments(tmp_path: Path):
    async def run(script: SkillScript, args: dict[str, Any] | None = None) -> str:
        return f'{script.skill_name}/{script.name} {args}'

    write_skill(tmp_path / 'alpha', files={'scripts/go.py': 'print(1)'})
    directory = SkillsDirectory(path=tmp_path, script_executor=CallableSkillScriptExecutor(func=run))

    answer = await call_tool(
        SkillsToolset(directories=[directory]),
        'run_skill_script',
        skill_name='alpha',
        script_name='scripts/go.py',
        args={'n': 1},
    )

    assert answer == (True, "alpha/scripts/go.py {'n': 1}")


@pytest.mark.parametrize(('given', 'name'), [('data_analyzer', 'data-analyzer'), ('my_cool_skill', 'my-cool-skill')])
def test_names_are_made_as_before(given: str, name: str):
    assert normalize_skill_name(given) == name
