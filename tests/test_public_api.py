from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pydantic_ai_skills
from pydantic_ai_skills import exceptions

ROOT = Path(pydantic_ai_skills.__file__).parent.parent


def test_the_public_names_are_sorted_and_importable():
    assert list(pydantic_ai_skills.__all__) == sorted(pydantic_ai_skills.__all__)
    for name in pydantic_ai_skills.__all__:
        assert getattr(getattr(pydantic_ai_skills, name), '__name__', name) == name


@pytest.mark.parametrize('package', ['pydantic_ai_skills', 'pydantic_ai_skills.execution'])
def test_a_name_that_is_not_there_is_an_attribute_error(package: str):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nothing'"):
        importlib.import_module(package).Nothing  # noqa: B018


@pytest.mark.parametrize('module', ['capability', 'directory', 'registries', 'toolset', 'types'])
def test_these_module_paths_are_public(module: str):
    assert importlib.import_module(f'pydantic_ai_skills.{module}').__all__


def test_every_error_is_a_skill_error_and_public():
    for name in exceptions.__all__:
        assert issubclass(getattr(exceptions, name), pydantic_ai_skills.SkillError)
        assert name in pydantic_ai_skills.__all__
    assert issubclass(pydantic_ai_skills.SkillValidationError, ValueError)


def test_importing_the_package_brings_in_nothing_optional():
    code = 'import sys, pydantic_ai_skills; print({"git", "obstore", "pytest", "typer", "watchfiles", "sqlite3"} & set(sys.modules))'
    assert run(code) == 'set()\n'


def test_dir_lists_each_public_name_once():
    listed = dir(pydantic_ai_skills)
    assert {*pydantic_ai_skills.__all__} <= {*listed}
    assert len(listed) == len({*listed})


NOT_YET = [
    'directory.patterns',
    'directory.scan',
    'directory.standard',
    'execution.interpreters',
    'execution.result',
    'execution.work_files',
    'parsing.skill_md',
    'registries.base',
    'toolset.events',
    'toolset.recording',
    'toolset.skill_text',
    'types.provenance',
]


def test_the_toolset_is_imported_without_what_only_looks_calls_and_registries_need():
    loaded = run('import sys\nfrom pydantic_ai_skills import SkillsToolset\nprint(*sys.modules)').split()
    assert 'pydantic_ai_skills.toolset.toolset' in loaded
    assert {f'pydantic_ai_skills.{name}' for name in NOT_YET} & {*loaded} == set()
    for name in NOT_YET:
        importlib.import_module(f'pydantic_ai_skills.{name}')


CONVERSATION = """
import asyncio, sys, threading

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from pydantic_ai_skills import Skill, SkillResource, SkillsToolset

greeting = Skill('greeting', 'Greets people.', 'Say hello.', resources=[SkillResource('words', content='Hello')])


@greeting.script
def convert(name: str) -> str:
    return f'Hello {name}'


IN_FOLDER = 'unit-converter', SkillsToolset(directories=['examples/skills']), {'_': ['26.2', 'mi', 'km']}
IN_PYTHON = 'greeting', SkillsToolset(skills=[greeting]), {'name': 'Ada'}
skill, toolset, args = globals()[sys.argv[1]]
CALLS = [
    ('load_skill', {}),
    ('read_skill_resource', {'resource_name': 'SKILL.md'}),
    ('run_skill_script', {'script_name': 'convert', 'args': args}),
]
on_loop, results = [], []


class Watch:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is threading.main_thread() and name.startswith('pydantic_ai_skills'):
            on_loop.append(name)


async def answer(messages, info):
    results.extend(part.outcome for part in messages[-1].parts if part.part_kind == 'tool-return')
    if len(results) == len(CALLS):
        return ModelResponse(parts=[TextPart('Done')])
    name, args = CALLS[len(results)]
    return ModelResponse(parts=[ToolCallPart(name, {'skill_name': skill, **args})])


agent = Agent(FunctionModel(answer), toolsets=[toolset])
sys.meta_path.insert(0, Watch())
asyncio.run(agent.run('How far is a marathon?'))
print(results, on_loop)
"""


@pytest.mark.parametrize('kind', ['IN_FOLDER', 'IN_PYTHON'])
def test_a_conversation_imports_no_module_of_the_package_on_the_event_loop(kind: str):
    assert run(CONVERSATION, kind) == "['success', 'success', 'success'] []\n"


def run(code: str, *args: str) -> str:
    """What a new Python prints."""
    env = {name: value for name, value in os.environ.items() if not name.startswith('COVERAGE')}  # it uses SQLite
    command = [sys.executable, '-c', code, *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=env).stdout
