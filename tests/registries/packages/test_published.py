"""Packages from PyPI that bring skills, in an environment that has only them.

The environment is made with the pinned versions, which `make install` has brought into the cache of uv already, so that
this takes seconds and no network. Only where they are not in the cache are they fetched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = {'fastapi': 'fastapi', 'pydantic-ai-slim': 'pydantic_ai', 'pyskills': 'pyskills', 'typer': 'typer'}
"""Distributions, and what they are imported as."""

LOOK = """
import json, sys
from pydantic_ai_skills import PackageSkillsRegistry

none = PackageSkillsRegistry()
registry = PackageSkillsRegistry(packages={packages})
skills = registry.get_skills()
print(json.dumps({{
    'available': [(package.distribution, package.version, len(package.skills)) for package in none.available],
    'offered': len(none.get_skills()),
    'skills': [(skill.name, skill.source.distribution, skill.description, len(skill.content)) for skill in skills],
    'scripts': {{skill.name: [script.name for script in skill.scripts] for skill in skills}},
    'texts': {{skill.name: skill.content for skill in skills}},
    'problems': [found.code for found in registry.problems],
    'imported': sorted(sys.modules),
}}))
"""


@pytest.fixture(scope='module')
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which nothing but these packages is installed."""
    program = shutil.which('uv', path=os.pathsep.join((str(Path(sys.executable).parent), os.environ['PATH'])))
    assert program is not None
    uv = [program, '--quiet']
    environment = tmp_path_factory.mktemp('published') / 'environment'
    python = environment / 'bin/python'
    subprocess.run([*uv, 'venv', '--offline', '--python', sys.executable, str(environment)], check=True)
    install = ['pip', 'install', '--python', str(python), '--constraint', str(ROOT / 'constraints.txt')]
    command = [*uv, *install, *PACKAGES, 'pyyaml']
    if subprocess.run([*command, '--offline'], stderr=subprocess.DEVNULL).returncode:
        subprocess.run(command, check=True)
    return python


@pytest.fixture(scope='module')
def found(python: Path) -> dict[str, Any]:
    """What is found there, by a process that has just begun."""
    # From the source of this package: it is no part of the environment.
    environment = {**os.environ, 'PYTHONPATH': str(ROOT), 'PYTHONSAFEPATH': '1'}
    command = [str(python), '-c', LOOK.format(packages=[*PACKAGES])]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=python.parent)
    return json.loads(done.stdout)


def source_of(python: Path, name: str) -> str:
    (file,) = python.parent.parent.glob(f'lib/python*/site-packages/{name}')
    return file.read_text('utf-8')


def test_all_are_available_and_none_is_offered_unless_it_is_named(found: dict[str, Any]):
    pins = dict(re.findall(r'^([a-z-]+)==([\w.]+)', (ROOT / 'constraints.txt').read_text(), re.MULTILINE))
    available = {name: version for name, version, _ in found['available']}
    assert available.keys() >= PACKAGES.keys()
    assert available == {name: pins[name] for name in available}
    assert found['offered'] == 0


def test_all_are_found_with_their_own_descriptions_and_texts(found: dict[str, Any], python: Path):
    assert {distribution for _, distribution, _, _ in found['skills']} == PACKAGES.keys()
    names = {name: description for name, _, description, _ in found['skills']}
    assert {'fastapi', 'typer', 'building-pydantic-ai-agents', 'pyskills-skill'} <= names.keys()
    for name, package in (('fastapi', 'fastapi'), ('typer', 'typer'), ('building-pydantic-ai-agents', 'pydantic_ai')):
        _, frontmatter, text = source_of(python, f'{package}/.agents/skills/{name}/SKILL.md').split('---\n', 2)
        assert f'description: {names[name]}' in frontmatter.replace('description: >-\n', 'description: ').replace(
            '\n  ', ' '
        )
        assert found['texts'][name].split() == text.split()
    module = source_of(python, 'pyskills/skill.py')
    assert f'"""{names["pyskills-skill"]}\n' in module
    assert (
        'def skill_test_func(\n    x: int = 0,  # the input\n) -> str:  # the output'
        in found['texts']['pyskills-skill']
    )
    assert found['scripts']['pyskills-skill'] == ['skill_test_func', 'async_skill_test_func']
    assert found['problems'] == ['name-reserved']  # the one about migrating from another SDK


def test_none_of_them_is_imported(found: dict[str, Any]):
    # Pydantic AI is what this package is for, so it is there in any case.
    others = {*PACKAGES.values(), 'fastcore', 'starlette'} - {'pydantic_ai'}
    assert {name.partition('.')[0] for name in found['imported']} & others == set()
    assert 'griffe' in found['imported']
