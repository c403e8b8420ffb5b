"""The skills of one user: made, switched off and on, and removed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import (
    SkillNotFoundError,
    SkillsDirectory,
    SkillsToolset,
    SkillValidationError,
    create_user_skill,
    disable_user_skill,
    enable_user_skill,
    list_user_skills,
    remove_user_skill,
    user_skills_folder,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, which does not exist."""
    monkeypatch.setenv('PYDANTIC_AI_SKILLS_USER_DIR', str(tmp_path / 'user/skills'))
    return tmp_path / 'user/skills'


@pytest.mark.parametrize(
    ('platform', 'environment', 'expected'),
    [
        ('linux', {}, '/home/ada/.local/share/pydantic-ai-skills/skills'),
        ('linux', {'XDG_DATA_HOME': '/data'}, '/data/pydantic-ai-skills/skills'),
        ('linux', {'XDG_DATA_HOME': 'relative'}, '/home/ada/.local/share/pydantic-ai-skills/skills'),
        ('darwin', {'XDG_DATA_HOME': '/data'}, '/home/ada/Library/Application Support/pydantic-ai-skills/skills'),
        ('win32', {}, '/home/ada/AppData/Roaming/pydantic-ai-skills/skills'),
        ('win32', {'APPDATA': '/roaming'}, '/roaming/pydantic-ai-skills/skills'),
        ('linux', {'PYDANTIC_AI_SKILLS_USER_DIR': '~/mine'}, '/home/ada/mine'),
    ],
)
def test_the_folder_is_where_the_platform_has_data(
    monkeypatch: pytest.MonkeyPatch, platform: str, environment: dict[str, str], expected: str
):
    for name in ('PYDANTIC_AI_SKILLS_USER_DIR', 'XDG_DATA_HOME', 'APPDATA'):
        monkeypatch.delenv(name, raising=False)
    for name, value in {'HOME': '/home/ada', **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, 'platform', platform)
    assert user_skills_folder() == Path(expected)


def test_the_folder_of_another_user_does_not_depend_on_this_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, 'platform', 'linux')
    monkeypatch.setenv('XDG_DATA_HOME', '/data')
    assert user_skills_folder('/home/bob') == Path('/home/bob/.local/share/pydantic-ai-skills/skills')


def test_a_user_without_a_home_names_a_folder(monkeypatch: pytest.MonkeyPatch):
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv('PYDANTIC_AI_SKILLS_USER_DIR')
    monkeypatch.setattr(Path, 'home', no_home)
    with pytest.raises(SkillValidationError, match='PYDANTIC_AI_SKILLS_USER_DIR'):
        user_skills_folder()


def test_a_skill_that_was_made_is_found_with_all_its_files(folder: Path):
    path = create_user_skill(
        'greeting',
        'Greets: "people" — and\nothers. 🎉 #1',
        '# Greeting\n\nSay hello.\n',
        license='MIT',
        compatibility='needs nothing',
        metadata={'version': '1.10', 'tags': ['a', 'b']},
        files={'references/words.md': 'Hello', 'assets/dot.png': b'\x89PNG'},
    )
    assert path == folder / 'greeting'
    (skill,) = SkillsDirectory(folder).get_skills().values()
    assert (skill.name, skill.description) == ('greeting', 'Greets: "people" — and\nothers. 🎉 #1')
    assert (skill.content, skill.license, skill.compatibility) == ('# Greeting\n\nSay hello.', 'MIT', 'needs nothing')
    assert skill.metadata == {'version': '1.10', 'tags': ['a', 'b']}
    assert [resource.name for resource in skill.resources] == ['assets/dot.png', 'references/words.md']
    assert SkillsDirectory(folder).problems == []
    assert os.listdir(folder) == ['greeting']


@pytest.mark.parametrize(
    ('given', 'reason'),
    [
        ({'name': 'My Skill'}, 'is not a skill name'),
        ({'name': '../up'}, 'is not a skill name'),
        ({'description': ''}, 'description'),
        ({'description': 'x' * 1025}, '1024'),
        ({'description': ' x '}, 'blanks'),
        ({'compatibility': 'x' * 501}, '500'),
        ({'files': {'../up.md': ''}}, "not a path in the skill's folder"),
        ({'files': {'/up.md': ''}}, "not a path in the skill's folder"),
        ({'files': {'a\\b.md': ''}}, "not a path in the skill's folder"),
        ({'files': {'': ''}}, "not a path in the skill's folder"),
        ({'files': {'SKILL.md': ''}}, 'not among the files'),
        ({'files': {'./SKILL.md': ''}}, 'not among the files'),
        ({'files': {'skill.md': ''}}, 'not among the files'),
        ({'files': {'a': '', 'a/b': ''}}, 'exists|directory'),
    ],
)
def test_what_would_break_a_rule_is_refused_and_leaves_nothing(folder: Path, given: dict[str, Any], reason: str):
    arguments: dict[str, Any] = {'name': 'greeting', 'description': 'Greets.', 'content': 'Hello', **given}
    with pytest.raises((SkillValidationError, OSError), match=reason):
        create_user_skill(**arguments)
    assert not folder.exists() or os.listdir(folder) == []


@pytest.mark.parametrize('name', ['site-packages', 'dist-packages'])
def test_nothing_is_written_where_packages_are_installed(tmp_path: Path, name: str):
    (tmp_path / 'link').symlink_to(tmp_path / name)
    for folder in (tmp_path / name / 'acme/skills', tmp_path / 'link'):
        with pytest.raises(SkillValidationError, match='where packages are installed'):
            create_user_skill('greeting', 'Greets.', 'Hello', folder=folder)
    assert os.listdir(tmp_path) == ['link']


def test_a_skill_is_switched_off_and_on_and_stays_on_disk(folder: Path):
    create_user_skill('greeting', 'Greets.', 'Hello')
    create_user_skill('parting', 'Parts.', 'Goodbye')
    toolset = SkillsToolset(directories=[folder])
    for _ in range(2):
        disable_user_skill('greeting')
        toolset.reload()
        assert list(toolset.skills) == ['parting']
        assert list_user_skills() == {'greeting': False, 'parting': True}
        assert [path.read_text() for path in folder.rglob('greeting/SKILL.md')]
    for _ in range(2):
        enable_user_skill('greeting')
        toolset.reload()
        assert list(toolset.skills) == ['greeting', 'parting']
        assert list_user_skills() == {'greeting': True, 'parting': True}
    assert toolset.problems == []


@pytest.mark.parametrize('is_enabled', [True, False])
def test_a_skill_is_removed_wherever_it_is(folder: Path, is_enabled: bool):
    create_user_skill('greeting', 'Greets.', 'Hello', files={'a/b/c.md': 'x'})
    if not is_enabled:
        disable_user_skill('greeting')
    remove_user_skill('greeting')
    assert list_user_skills() == {}
    assert [path for path in folder.rglob('*') if path.name != '.disabled'] == []


def test_removing_a_link_leaves_what_it_leads_to(folder: Path, tmp_path: Path):
    elsewhere = create_user_skill('greeting', 'Greets.', 'Hello', folder=tmp_path / 'elsewhere')
    folder.mkdir(parents=True)
    (folder / 'greeting').symlink_to(elsewhere)
    remove_user_skill('greeting')
    assert (os.listdir(folder), (elsewhere / 'SKILL.md').is_file()) == ([], True)


@pytest.mark.parametrize('is_relative', [True, False])
def test_a_link_that_is_switched_off_and_on_leads_where_it_led(folder: Path, tmp_path: Path, is_relative: bool):
    elsewhere = create_user_skill('greeting', 'Greets.', 'Hello', folder=tmp_path / 'elsewhere')
    folder.mkdir(parents=True)
    (folder / 'greeting').symlink_to(os.path.relpath(elsewhere, folder) if is_relative else elsewhere)
    disable_user_skill('greeting')
    assert (list_user_skills(), os.listdir(folder)) == ({'greeting': False}, ['.disabled'])
    enable_user_skill('greeting')
    assert (list_user_skills(), os.listdir(folder / '.disabled')) == ({'greeting': True}, [])
    assert (folder / 'greeting').resolve() == elsewhere.resolve()


@pytest.mark.parametrize('change', [disable_user_skill, enable_user_skill, remove_user_skill])
@pytest.mark.parametrize('name', ['greting', '..', '.disabled', ''])
def test_a_name_that_no_skill_has_is_an_error(change: Any, name: str):
    create_user_skill('greeting', 'Greets.', 'Hello')
    with pytest.raises(SkillNotFoundError, match=r"The skills are: 'greeting'\."):
        change(name)
    assert list_user_skills() == {'greeting': True}


@pytest.mark.parametrize('is_enabled', [True, False])
def test_nothing_is_put_in_the_place_of_another_skill(folder: Path, is_enabled: bool):
    create_user_skill('greeting', 'Greets.', 'Hello')
    if not is_enabled:
        disable_user_skill('greeting')
    with pytest.raises(SkillValidationError, match='already'):
        create_user_skill('greeting', 'Greets too.', 'Hi')
    assert list_user_skills() == {'greeting': is_enabled}
    (text,) = [path.read_text() for path in folder.rglob('SKILL.md')]
    assert 'Hello' in text


def test_of_two_with_one_name_neither_is_lost(folder: Path):
    create_user_skill('greeting', 'Greets.', 'Hello')
    create_user_skill('greeting', 'Greets.', 'Off', folder=folder / '.disabled')
    with pytest.raises(SkillValidationError, match='already'):
        disable_user_skill('greeting')
    assert len(list(folder.rglob('SKILL.md'))) == 2


def test_a_user_without_skills_has_none(folder: Path):
    assert list_user_skills() == {}
    (folder / 'notes').mkdir(parents=True)
    (folder / 'file.md').write_text('no skill')
    assert list_user_skills() == {}


def test_a_disk_that_fails_leaves_nothing_half_done(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: Any) -> Any:
        raise OSError('disk full')

    create_user_skill('other', 'Is there.', 'x')
    monkeypatch.setattr(Path, 'rename', fail)
    with pytest.raises(OSError, match='disk full'):
        create_user_skill('greeting', 'Greets.', 'Hello')
    with pytest.raises(OSError, match='disk full'):
        remove_user_skill('other')
    assert os.listdir(folder) == ['other']
    assert list_user_skills() == {'other': True}
