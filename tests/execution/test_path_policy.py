"""Where paths in arguments may lead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills.exceptions import SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.execution.gate import decide
from pydantic_ai_skills.execution.path_policy import PathPolicy
from pydantic_ai_skills.types import Skill, SkillScript

SCRIPT = SkillScript('scripts/x.py', uri='/skill/scripts/x.py', skill_name='pdf')
SKILL = Skill('pdf', 'Works with PDFs.', 'Do it.')


def copy(source: str, target: Path, extra: list[Path] | None = None) -> str:
    return 'copied'


COPY = SkillScript('copy', function=copy)


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ('data', 'out', 'private'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'file').touch()
    (tmp_path / 'data' / 'link').symlink_to(tmp_path / 'private' / 'file')
    (tmp_path / 'data' / 'folder-link').symlink_to(tmp_path / 'private')
    return tmp_path


@pytest.mark.parametrize(
    'args',
    [
        {'source': 'data/file', 'target': 'out/new'},
        {'target': 'out/deep/er', 'source': 'data'},
        '{"source": "data/../data/file", "target": "out/x"}',
        {'source': 'data/file', 'target': 'out/x', 'extra': ['data/file', 'data/none']},
        {'source': 'data/file', 'target': 'out/x', 'extra': None},
    ],
)
async def test_paths_inside_their_folders_are_allowed(
    folders: Path, monkeypatch: pytest.MonkeyPatch, args: Any
) -> None:
    monkeypatch.chdir(folders)
    policy = PathPolicy(read={'source': ['data'], 'extra': [folders / 'data']}, write={'target': ['out', 'tmp']})
    assert await decide(policy, None, SKILL, COPY, args) == 'allow'
    asking = PathPolicy(read={'source': ['data']}, inside='ask')
    assert await decide(asking, None, SKILL, COPY, args) == 'ask'


@pytest.mark.parametrize(
    ('args', 'parameter'),
    [
        ({'source': '/etc/passwd', 'target': 'out/x'}, 'source'),
        ({'source': 'data/../private/file', 'target': 'out/x'}, 'source'),
        ({'source': 'data/link', 'target': 'out/x'}, 'source'),
        ({'source': 'data/folder-link/file', 'target': 'out/x'}, 'source'),
        ({'source': 'data-not/file', 'target': 'out/x'}, 'source'),
        ({'source': 'file:///etc/passwd', 'target': 'out/x'}, 'source'),
        ({'source': 'data/x\0y', 'target': 'out/x'}, 'source'),
        ({'source': '', 'target': 'out/x'}, 'source'),
        ({'source': 'data/\ud800', 'target': 'out/x'}, 'source'),
        ({'source': '~/file', 'target': 'out/x'}, 'source'),
        ({'source': 'data/file', 'target': 'data/x'}, 'target'),
        ({'source': 'data/file', 'target': 'out/../private/x'}, 'target'),
        ({'source': 'data/file', 'target': 'out/x', 'extra': ['data/file', 'private/file']}, 'extra'),
        ('{"target": "/tmp/x", "source": "data/file"}', 'target'),
    ],
)
async def test_paths_that_lead_outside_are_refused(
    folders: Path, monkeypatch: pytest.MonkeyPatch, args: Any, parameter: str
) -> None:
    monkeypatch.chdir(folders)
    policy = PathPolicy(read={'source': ['data'], 'extra': ['data']}, write={'target': ['out']})
    with pytest.raises(SkillScriptExecutionError, match=f"The path in '{parameter}', .* is not one that may be"):
        await decide(policy, None, SKILL, COPY, args)


async def test_a_tilde_stays_inside_whether_it_is_a_name_or_the_home_folder(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('HOME', str(folders / 'private'))
    monkeypatch.chdir(folders / 'data')
    args = {'source': '~/file', 'target': 'out/x'}
    with pytest.raises(SkillScriptExecutionError, match="The path in 'source', '~/file'"):
        await decide(PathPolicy(read={'source': ['.']}), None, SKILL, COPY, args)
    with pytest.raises(SkillScriptExecutionError, match="The path in 'source', '~/file'"):
        await decide(PathPolicy(read={'source': ['~']}), None, SKILL, COPY, args)
    assert await decide(PathPolicy(read={'source': ['.', '~']}), None, SKILL, COPY, args) == 'allow'


def open_any(where: Any) -> str:
    return 'opened'


@pytest.mark.parametrize('value', [3, b'data/file', {'path': 'data/file'}, [['private/file']], True])
async def test_what_is_not_a_path_does_not_pass_as_one(
    folders: Path, monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    monkeypatch.chdir(folders)
    policy = PathPolicy(read={'where': ['data']})
    with pytest.raises(SkillScriptExecutionError, match="The path in 'where'"):
        await decide(policy, None, SKILL, SkillScript('open', function=open_any), {'where': value})
    assert (
        await decide(policy, None, SKILL, SkillScript('open', function=open_any), {'where': os.fspath('data')})
        == 'allow'
    )


async def test_scripts_without_the_named_parameters_are_decided_otherwise() -> None:
    policy = PathPolicy(read={'source': ['data']}, otherwise='deny')
    assert await decide(policy, None, SKILL, SCRIPT, {'source': '/etc/passwd'}) == 'deny'
    assert await decide(policy, None, SKILL, SkillScript('open', function=open_any), {'where': 'x'}) == 'deny'


@pytest.mark.parametrize('args', [{'source': 1}, 'not json', {}, None, ''])
async def test_arguments_that_do_not_fit_are_left_to_the_call(args: Any) -> None:
    policy = PathPolicy(read={'source': ['data']}, otherwise='deny')
    assert await decide(policy, None, SKILL, COPY, args) == 'allow'


def save(target: str = 'elsewhere/file') -> str:
    return 'saved'


@pytest.mark.parametrize('args', [None, {}, '', ' ', 'null', '{}'])
async def test_no_arguments_are_checked_in_whatever_way_they_are_written(args: Any) -> None:
    plain, saving = SkillScript('plain', function=lambda: 'ran'), SkillScript('save', function=save)
    assert (await plain.run(None, args), await saving.run(None, args)) == ('ran', 'saved')
    policy = PathPolicy(write={'target': ['out']}, otherwise='deny')
    assert await decide(policy, None, SKILL, plain, args) == 'deny'
    with pytest.raises(SkillScriptExecutionError, match="The path in 'target'"):
        await decide(policy, None, SKILL, saving, args)


def test_folders_are_given_as_a_list() -> None:
    with pytest.raises(SkillValidationError, match="Give the folders of 'source' as a list"):
        PathPolicy(read={'source': 'data'})
