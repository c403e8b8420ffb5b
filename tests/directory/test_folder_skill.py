"""A skill's folder: its instructions and files, read when they are needed."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from pydantic_ai_skills import Skill, SkillScript, SkillsDirectory, SkillsToolset
from pydantic_ai_skills.directory.scan import HEAD_BYTES
from pydantic_ai_skills.directory.settings import ScanLimits
from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillValidationError
from pydantic_ai_skills.execution import CallableSkillScriptExecutor
from tests.folders import call_tool, settle, skill_md, write, write_skill


def only_skill(root: Path, limits: ScanLimits | None = None, **options: Any) -> Skill[Any]:
    """The skill in a directory that has one."""
    directory = SkillsDirectory(root, **options)
    directory.limits = limits or directory.limits
    (skill,) = directory.get_skills().values()
    return skill


def names(skill: Skill[Any]) -> tuple[list[str], list[str]]:
    """The names of its resources and of its scripts."""
    return [item.name for item in skill.resources], [item.name for item in skill.scripts]


def problems(skill: Skill[Any]) -> dict[str, str]:
    """The problems found while listing: file to code."""
    return {os.path.relpath(problem.path, skill.path): problem.code for problem in skill.files.problems}


# --- Instructions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('placeholder', ['${SKILL_DIR}', '${CLAUDE_SKILL_DIR}', '{baseDir}'])
def test_placeholders_in_instructions_are_the_skills_folder(tmp_path: Path, placeholder: str) -> None:
    folder = write_skill(tmp_path / 's', body=f'Run {placeholder}/a.py, then {placeholder}/b.py.')
    assert only_skill(tmp_path).content == f'Run {folder}/a.py, then {folder}/b.py.'


@pytest.mark.parametrize('text', ['$SKILL_DIR', '${OTHER}', '{base}', '{{baseDir', '$ARGUMENTS', '!`ls`'])
def test_other_text_in_instructions_stays_as_it_is(tmp_path: Path, text: str) -> None:
    write_skill(tmp_path / 's', body=text)
    assert only_skill(tmp_path).content == text


def test_a_folder_named_like_a_placeholder_is_filled_in_once(tmp_path: Path) -> None:
    folder = write(tmp_path / '{baseDir}', {'SKILL.md': skill_md('s', body='In {baseDir}.')})
    assert only_skill(tmp_path).content == f'In {folder}.'


def test_only_the_beginning_is_read_at_discovery(tmp_path: Path) -> None:
    write(tmp_path / 's', {'SKILL.md': skill_md('s', body='x' * HEAD_BYTES).encode() + b'\xff'})
    skill = only_skill(tmp_path)
    with pytest.raises(SkillValidationError, match='is not UTF-8'):
        _ = skill.content


async def test_cases_for_evaluations_are_not_for_the_model(tmp_path: Path) -> None:
    files = {'evals/evals.json': '[]', 'evals/check.py': 'print(1)', 'evals.md': ''}
    write_skill(tmp_path / 'a', files=files)
    toolset = SkillsToolset[Any](directories=[tmp_path])
    loaded, text = await call_tool(toolset, 'load_skill', skill_name='a')
    assert (loaded, 'evals.md' in text, 'evals.json' in text, 'check.py' in text) == (True, True, False, False)
    read, why = await call_tool(toolset, 'read_skill_resource', skill_name='a', resource_name='evals/evals.json')
    assert (read, why) == (
        False,
        "There is no resource 'evals/evals.json' in skill 'a'. The resources are: 'evals.md'.",
    )


def test_files_are_listed_on_first_use(tmp_path: Path) -> None:
    write_skill(tmp_path / 's')
    skill = only_skill(tmp_path)
    assert not skill.is_listed
    write(tmp_path / 's', {'a.md': 'a'})
    assert names(skill) == (['a.md'], [])
    assert skill.is_listed


def test_reading_instructions_changes_no_other_field_and_an_edit_shows_at_the_next_look(tmp_path: Path) -> None:
    def fields(skill: Skill[Any]) -> tuple[Any, ...]:
        return skill.name, skill.description, skill.license, skill.compatibility, skill.metadata

    write_skill(tmp_path / 's', 'Old.', 'Old body.')
    directory = SkillsDirectory(tmp_path)
    skill = directory.get_skills()['s']
    edited = '---\nname: s\ndescription: New.\nlicense: MIT\ncompatibility: git\nversion: "2"\n---\nNew body.'
    write(tmp_path / 's', {'SKILL.md': edited})
    assert skill.content == 'New body.'
    assert fields(skill) == ('s', 'Old.', None, None, {})
    skill = directory.get_skills()['s']
    assert fields(skill) == ('s', 'New.', 'MIT', 'git', {'version': '2'})
    assert skill.content == 'New body.'


def test_instructions_are_read_once(tmp_path: Path) -> None:
    write_skill(tmp_path / 's', body='Old body.')
    skill = only_skill(tmp_path)
    assert skill.content == 'Old body.'
    write_skill(tmp_path / 's', 'New.', 'New body.')
    assert (skill.content, skill.description) == ('Old body.', 'Does things.')


def test_a_file_that_lost_its_frontmatter_since_is_all_instructions(tmp_path: Path) -> None:
    write_skill(tmp_path / 's', 'Old.')
    skill = only_skill(tmp_path)
    write(tmp_path / 's', {'SKILL.md': 'Only text.'})
    assert (skill.description, skill.content) == ('Old.', 'Only text.')


def test_what_was_read_first_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(tmp_path / 's', 'Old.', 'Old body.')
    skill = only_skill(tmp_path)
    settle()
    really_close = os.close
    depth = 0

    def close(descriptor: int) -> None:
        nonlocal depth
        really_close(descriptor)
        depth += 1
        if depth == 1:  # another thread reads while this one does
            assert skill.content == 'Old body.'
            write_skill(tmp_path / 's', 'New.', 'New body.')

    monkeypatch.setattr(os, 'close', close)
    assert (skill.content, skill.description) == ('Old body.', 'Old.')


# --- Resources and scripts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('files', 'resources', 'scripts'),
    [
        ({'SKILL.md': skill_md('s'), 'FORMS.md': 'x', 'references/api.md': 'x'}, ['FORMS.md', 'references/api.md'], []),
        ({'run.py': '', 'scripts/a.sh': '', 'scripts/x/y/b.JS': ''}, [], ['run.py', 'scripts/a.sh', 'scripts/x/y/b.JS']),
        ({'lib/util.py': '', 'assets/a.js': ''}, ['assets/a.js', 'lib/util.py'], []),
        ({'scripts/README.md': '', 'scripts/data.json': '{}'}, ['scripts/README.md', 'scripts/data.json'], []),
        ({'scripts/tool': '#!/bin/sh\n', 'tool': '#!/bin/sh\n', 'bin/tool': '#!/bin/sh\n'}, [], ['bin/tool', 'scripts/tool', 'tool']),
        ({'a.png': b'\0', 'a.PDF': b'\0', 'a.exe': b'MZ\0', 'a.zip': b'PK\0'}, ['a.PDF', 'a.png'], []),
        ({'assets/SKILL.md': 'A template.'}, ['assets/SKILL.md'], []),
        ({'credentials/a.md': 'About them.', 'vendor.md': ''}, ['credentials/a.md', 'vendor.md'], []),
    ],
    ids=['documents', 'by suffix', 'elsewhere', 'beside scripts', 'by shebang', 'binary', 'template', 'like private'],
)  # fmt: skip
def test_a_file_is_a_script_or_a_resource(
    tmp_path: Path, files: dict[str, str | bytes], resources: list[str], scripts: list[str]
) -> None:
    write_skill(tmp_path / 's', files=files)
    skill = only_skill(tmp_path)
    assert names(skill) == (resources, scripts)
    assert problems(skill) == {}


def test_an_executable_file_beside_skill_md_is_a_script(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / 's', files={'tool': b'\x7fELF\0', 'assets/tool': 'text', 'scripts/tool': ''})
    for name in ('tool', 'assets/tool', 'scripts/tool'):
        (folder / name).chmod(0o755)
    assert names(only_skill(tmp_path)) == (['assets/tool'], ['scripts/tool', 'tool'])


@pytest.mark.parametrize(
    'name',
    [
        '.env',
        '.git/config',
        '.hidden/a.md',
        'id_rsa',
        'ID_ED25519',
        'certs/server.pem',
        'server.key',
        'store.JKS',
        'credentials',
        'service-account.json',
        '__pycache__/a.pyc',
        'scripts/__pycache__/a.py',
        'node_modules/left-pad/index.js',
        'venv/bin/python',
        'vendor/lib.js',
        'Third_Party/lib.md',
        'skill.md',
    ],
)
def test_private_and_foreign_files_are_not_offered(tmp_path: Path, name: str) -> None:
    write_skill(tmp_path / 's', files={name: 'text', 'a.md': 'text'})
    skill = only_skill(tmp_path)
    assert names(skill) == (['a.md'], [])
    assert problems(skill) == {}


def run_nothing(script: SkillScript, args: object) -> str:
    return f'{script.name} {args}'


def test_scripts_know_their_skill_and_what_runs_them(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / 's', files={'scripts/a.py': ''})
    executor = CallableSkillScriptExecutor(run_nothing)
    (script,) = only_skill(tmp_path, script_executor=executor).scripts
    assert (script.skill_name, script.skill_dir, script.path) == ('s', folder, folder / 'scripts/a.py')
    assert script.executor is executor


async def test_a_resource_is_read_from_its_file_each_time(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / 's', files={'a.yaml': 'a: 1.10'})
    (resource,) = await to_thread.run_sync(lambda: only_skill(tmp_path).resources)
    assert await resource.read(None) == 'a: 1.10'
    assert await resource.load(None) == {'a': 1.1}
    write(folder, {'a.yaml': 'a: 2'})
    assert await resource.read(None) == 'a: 2'
    (folder / 'a.yaml').unlink()
    with pytest.raises(SkillResourceLoadError, match=r"'a\.yaml' does not exist"):
        await resource.read(None)


# --- What is left out ---------------------------------------------------------------------------------------------


async def test_what_is_left_out_is_told_and_the_rest_is_offered(tmp_path: Path) -> None:
    directory = SkillsDirectory(tmp_path)
    directory.limits = ScanLimits(resource_bytes=100)
    folder = write_skill(
        tmp_path / 's',
        files={'a.md': 'text', 'large.md': 'x' * 101, 'exact.md': 'x' * 100, 'hid\u202eden.md': '', 'two  spaces': ''},
    )
    write(tmp_path, {'outside/secret.txt': 'secret'})
    (folder / 'link.md').symlink_to('a.md')
    (folder / 'linked').symlink_to('../outside')
    (folder / 'dangling').symlink_to('nothing')
    os.mkfifo(folder / 'fifo')
    write(folder, {os.fsdecode(b'not-utf8-\xff.md'): 'text'})
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(folder / 'socket'))
        toolset = SkillsToolset[None](directories=[directory])
        await toolset.load()
        skill = toolset.get_skill('s')
        assert names(skill) == (['a.md', 'exact.md'], [])
    assert problems(skill) == {
        'dangling': 'file-link',
        'fifo': 'file-special',
        'hid\u202eden.md': 'file-unreadable',
        'large.md': 'file-too-large',
        'link.md': 'file-link',
        'linked': 'file-link',
        os.fsdecode(b'not-utf8-\xff.md'): 'file-unreadable',
        'socket': 'file-unreadable',
        'two  spaces': 'file-unreadable',
    }
    assert set(skill.files.problems) <= set(toolset.problems)
    assert await call_tool(toolset, 'read_skill_resource', skill_name='s', resource_name='link.md') == (
        False,
        "There is no resource 'link.md' in skill 's'. The resources are: 'a.md', 'exact.md'.",
    )


def test_a_folder_that_cannot_be_opened_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(tmp_path / 's', files={'a.md': '', 'locked/b.md': ''})
    skill = only_skill(tmp_path)
    really_open = os.open

    def open_unlocked(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == 'locked':
            raise PermissionError(13, 'Permission denied')
        return really_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, 'open', open_unlocked)
    assert names(skill) == (['a.md'], [])
    assert problems(skill) == {'locked': 'file-unreadable'}


def test_folders_are_looked_into_down_to_a_limit(tmp_path: Path) -> None:
    deepest = '/'.join(['d'] * ScanLimits().folder_depth)
    write_skill(tmp_path / 's', files={f'{deepest}/a.md': '', f'{deepest}/d/b.md': ''})
    skill = only_skill(tmp_path)
    assert names(skill) == ([f'{deepest}/a.md'], [])
    assert problems(skill) == {f'{deepest}/d': 'folder-too-deep'}


@pytest.mark.parametrize('beyond', ['files', 'folders', 'entries'])
def test_only_so_much_of_a_skill_is_looked_at(tmp_path: Path, beyond: str) -> None:
    usual = ScanLimits()
    assert (usual.files, usual.folders, usual.entries) == (1_000, 500, 5_000)
    write_skill(tmp_path / 's', files={f'{letter}/{letter}.md': '' for letter in 'abcdefg'})
    skill = only_skill(tmp_path, usual._replace(**{beyond: 4}))
    expected = {
        'files': ['a/a.md', 'b/b.md', 'c/c.md', 'd/d.md'],
        'folders': ['a/a.md', 'b/b.md', 'c/c.md'],
        'entries': [],
    }
    assert names(skill) == (expected[beyond], [])
    assert problems(skill) == {'.': 'too-many-files'}


def test_a_folder_within_its_limits_is_not_reported(tmp_path: Path) -> None:
    write_skill(tmp_path / 's', files={'a.md': '', 'b.md': '', 'c.md': ''})
    skill = only_skill(tmp_path, ScanLimits(files=3))
    assert names(skill) == (['a.md', 'b.md', 'c.md'], [])
    assert problems(skill) == {}


def test_a_skill_of_a_folder_has_all_that_a_skill_has(tmp_path: Path) -> None:
    write_skill(tmp_path / 's')
    (skill,) = SkillsDirectory(tmp_path).get_skills().values()
    written = Skill[None]('s', 'Does things.', '')
    assert [name for name in Skill.__slots__ if hasattr(written, name) != hasattr(skill, name)] == []
