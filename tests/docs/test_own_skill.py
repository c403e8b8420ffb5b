"""The skill about this package, which is installed with it."""

from __future__ import annotations

import zipfile
from importlib.metadata import version
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

import pydantic_ai_skills
from pydantic_ai_skills import SkillsToolset

ROOT = Path(__file__).parent.parent.parent
NAME = 'pydantic-ai-skills'
FOLDER = Path(pydantic_ai_skills.__file__).parent / '.agents/skills'


def test_it_breaks_no_rule_and_every_file_is_named_where_it_is_needed():
    toolset = SkillsToolset(directories=[FOLDER])
    skill = toolset.get_skill(NAME)
    assert [resource.name for resource in skill.resources if resource.name not in skill.content] == []
    assert list(toolset.skills) == [NAME]
    assert toolset.problems == []


def test_it_is_in_the_wheel(tmp_path: Path):
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=['standard'])
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob('*') if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / 'installed')
    assert wheel.endswith(f'pydantic_ai_skills-{version(NAME)}-py3-none-any.whl')
    installed = SkillsToolset(directories=[tmp_path / 'installed/pydantic_ai_skills/.agents/skills'])
    names = {resource.name for resource in installed.get_skill(NAME).resources}
    assert {f'{NAME}/{name}' for name in names} | {f'{NAME}/SKILL.md'} == files
    assert installed.problems == []
