from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

import pydantic_ai_skills
from pydantic_ai_skills import exceptions


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
    env = {name: value for name, value in os.environ.items() if not name.startswith('COVERAGE')}  # it uses SQLite
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == 'set()\n'
