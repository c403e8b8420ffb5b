"""Where paths in arguments may lead."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict, Field

from pydantic_ai_skills.exceptions import SkillScriptExecutionError, SkillValidationError
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
    assert await policy(None, SKILL, COPY, args) == 'allow'
    asking = PathPolicy(read={'source': ['data']}, inside='ask')
    assert await asking(None, SKILL, COPY, args) == 'ask'


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
        await policy(None, SKILL, COPY, args)


async def test_a_tilde_stays_inside_whether_it_is_a_name_or_the_home_folder(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('HOME', str(folders / 'private'))
    monkeypatch.chdir(folders / 'data')
    args = {'source': '~/file', 'target': 'out/x'}
    with pytest.raises(SkillScriptExecutionError, match="The path in 'source', '~/file'"):
        await PathPolicy(read={'source': ['.']})(None, SKILL, COPY, args)
    with pytest.raises(SkillScriptExecutionError, match="The path in 'source', '~/file'"):
        await PathPolicy(read={'source': ['~']})(None, SKILL, COPY, args)
    assert await PathPolicy(read={'source': ['.', '~']})(None, SKILL, COPY, args) == 'allow'


def open_any(where: Any) -> str:
    return 'opened'


@pytest.mark.parametrize('value', [3, b'data/file', {'path': 'data/file'}, [['private/file']], True])
async def test_what_is_not_a_path_does_not_pass_as_one(
    folders: Path, monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    monkeypatch.chdir(folders)
    policy = PathPolicy(read={'where': ['data']})
    with pytest.raises(SkillScriptExecutionError, match="The path in 'where'"):
        await policy(None, SKILL, SkillScript('open', function=open_any), {'where': value})
    assert await policy(None, SKILL, SkillScript('open', function=open_any), {'where': os.fspath('data')}) == 'allow'


async def test_scripts_without_the_named_parameters_are_decided_otherwise() -> None:
    policy = PathPolicy(read={'source': ['data']}, otherwise='deny')
    assert await policy(None, SKILL, SCRIPT, {'source': '/etc/passwd'}) == 'deny'
    assert await policy(None, SKILL, SkillScript('open', function=open_any), {'where': 'x'}) == 'deny'


@pytest.mark.parametrize('args', [{'source': 1}, 'not json', {}, None, ''])
async def test_arguments_that_do_not_fit_are_left_to_the_call(args: Any) -> None:
    policy = PathPolicy(read={'source': ['data']}, otherwise='deny')
    assert await policy(None, SKILL, COPY, args) == 'allow'


def save(target: str = 'elsewhere/file') -> str:
    return 'saved'


@pytest.mark.parametrize('args', [None, {}, '', ' ', 'null', '{}'])
async def test_no_arguments_are_checked_in_whatever_way_they_are_written(args: Any) -> None:
    plain, saving = SkillScript('plain', function=lambda: 'ran'), SkillScript('save', function=save)
    assert (await plain.run(None, args), await saving.run(None, args)) == ('ran', 'saved')
    policy = PathPolicy(write={'target': ['out']}, otherwise='deny')
    assert await policy(None, SKILL, plain, args) == 'deny'
    with pytest.raises(SkillScriptExecutionError, match="The path in 'target'"):
        await policy(None, SKILL, saving, args)


def test_folders_are_given_as_a_list() -> None:
    with pytest.raises(SkillValidationError, match="Give the folders of 'source' as a list"):
        PathPolicy(read={'source': 'data'})


# --- Parameters in other values -----------------------------------------------------------------------------------


class Place(BaseModel):
    model_config = ConfigDict(extra='allow')

    target: str = Field('out/x', alias='to')


class Slotted:
    __slots__ = 'target'

    def __init__(self, target: str) -> None:
        self.target = target


class Pair(NamedTuple):
    why: str
    target: str


def go(
    place: Place,
    pair: Pair | None = None,
    options: dict[str, Any] | None = None,
    when: datetime | None = None,
    slotted: Any = None,
) -> None: ...


GO = SkillScript('go', function=go)
DEEP: Any = json.loads('[' * 40 + ']' * 40)


@pytest.mark.parametrize(
    ('args', 'decision'),
    [
        ({'place': {}}, 'allow'),
        ({'place': {'to': 'out/y'}, 'when': '2030-01-01'}, 'allow'),
        ({'place': {'to': 'private/y'}}, None),
        ({'place': {'source': 'private/y'}}, None),
        ({'place': {}, 'pair': ['x', 'private/y']}, None),
        ({'place': {}, 'pair': ['x', 'out/y']}, 'allow'),
        ({'place': {}, 'options': {'a': [{'source': 'private/y'}]}}, None),
        ({'place': {}, 'options': {'a': DEEP}}, None),
        ({'place': {}, 'slotted': Slotted('private/y')}, None),
    ],
)
async def test_named_values_are_found_in_models_and_other_values(
    folders: Path, monkeypatch: pytest.MonkeyPatch, args: Any, decision: str | None
) -> None:
    monkeypatch.chdir(folders)
    policy = PathPolicy(read={'source': ['data']}, write={'target': ['out']})
    if decision is not None:
        assert await policy(None, SKILL, GO, args) == decision
    else:
        with pytest.raises(SkillScriptExecutionError, match='is not one that may be|nested too deeply'):
            await policy(None, SKILL, GO, args)


@pytest.mark.parametrize('functions', [[COPY], [copy], [copy, save], [GO, save]])
def test_a_rule_for_given_functions_names_one_of_their_parameters(functions: Any) -> None:
    PathPolicy(write={'target': ['out']}, functions=functions)
    closed = [function for function in functions if function is not GO]
    with pytest.raises(SkillValidationError, match="The rule for 'traget' names no parameter of the functions"):
        PathPolicy(write={'traget': ['out']}, functions=closed)


def test_a_function_that_takes_any_name_fits_every_rule() -> None:
    PathPolicy(write={'anything': ['out']}, functions=[GO])
    PathPolicy(write={'anything': ['out']}, functions=[open_any])
