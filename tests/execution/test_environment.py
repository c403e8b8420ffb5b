"""What scripts see of the environment, and what of it reaches the model."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.environment import ScriptEnvironment
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.process import mask

from .conftest import MakeScript

SHOW = 'import os, sys; print(*(f"{n}={os.environ.get(n)}" for n in sys.argv[1:]))'


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('WEATHER_API_KEY', 'sk-weather-123')
    monkeypatch.setenv('REGION', 'north')
    monkeypatch.delenv('NOT_SET', raising=False)


async def test_only_what_is_named_is_passed_on(make_script: MakeScript) -> None:
    script = make_script('a.py', SHOW)
    names = ['WEATHER_API_KEY', 'REGION', 'NOT_SET', 'MODE']
    assert (await LocalSkillScriptExecutor().run(script, names)).stdout == (
        'WEATHER_API_KEY=None REGION=None NOT_SET=None MODE=None\n'
    )
    executor = LocalSkillScriptExecutor(env={'MODE': 'fast'}, pass_env=['REGION', 'NOT_SET'])
    assert (await executor.run(script, names)).stdout == 'WEATHER_API_KEY=None REGION=north NOT_SET=None MODE=fast\n'


async def test_a_variable_for_one_skill_is_not_seen_by_another(make_script: MakeScript) -> None:
    script = make_script('a.py', 'import os; print(len(os.environ.get("WEATHER_API_KEY", "")))')
    executor = LocalSkillScriptExecutor(skill_env={'weather': ['WEATHER_API_KEY']})
    script.skill_name = 'weather'
    assert (await executor.run(script)).stdout == '14\n'
    script.skill_name = 'other'
    assert (await executor.run(script)).stdout == '0\n'
    script.skill_name = None
    assert (await executor.run(script)).stdout == '0\n'


@dataclass(kw_only=True)
class Deps:
    token: str


async def test_values_can_come_from_the_dependencies_of_the_run(make_script: MakeScript) -> None:
    def from_deps(ctx: Any) -> dict[str, str]:
        return {'USER_ID': ctx.deps.token}

    script = make_script('a.py', SHOW)
    script.skill_name = 'weather'
    ctx = SimpleNamespace(deps=Deps(token='alice'))
    for executor in (
        LocalSkillScriptExecutor(env=from_deps),
        LocalSkillScriptExecutor(skill_env={'weather': from_deps}),
    ):
        result = await executor.run(script, ['USER_ID'], ctx)
        assert result.stdout == 'USER_ID=alice\n'


async def test_a_later_source_wins_over_an_earlier_one(make_script: MakeScript) -> None:
    script = make_script('a.py', SHOW)
    script.skill_name = 'weather'
    executor = LocalSkillScriptExecutor(pass_env=['REGION'], env={'REGION': 'south'})
    assert (await executor.run(script, ['REGION'])).stdout == 'REGION=south\n'
    executor = LocalSkillScriptExecutor(env={'REGION': 'south'}, skill_env={'weather': {'REGION': 'east'}})
    assert (await executor.run(script, ['REGION'])).stdout == 'REGION=east\n'


async def test_secrets_that_a_script_prints_are_masked(make_script: MakeScript) -> None:
    script = make_script('a.py', SHOW + '; print(os.environ["WEATHER_API_KEY"], file=sys.stderr)')
    executor = LocalSkillScriptExecutor(
        pass_env=['WEATHER_API_KEY', 'REGION'], env={'PIN': SecretStr('hidden-value'), 'DB_PASSWORD': 'short'}
    )
    result = await executor.run(script, ['WEATHER_API_KEY', 'REGION', 'PIN', 'DB_PASSWORD'])
    # A name that does not look like a secret's, and a value too short to be found without harm, stay.
    assert result.stdout == 'WEATHER_API_KEY=[secret] REGION=north PIN=[secret] DB_PASSWORD=short\n'
    assert result.stderr == '[secret]\n'


@pytest.mark.parametrize(
    'form',
    [
        'top/secret+value',
        'top%2Fsecret%2Bvalue',
        'top/secret%2Bvalue',
        base64.b64encode(b'top/secret+value').decode(),
        base64.b64encode(b'top/secret+value').decode().rstrip('='),
        base64.urlsafe_b64encode(b'top/secret+value').decode(),
        base64.b64encode(b'top/secret+value\n').decode(),
        base64.b64encode(b'top/secret+value, and more').decode(),
    ],
)
def test_a_secret_is_known_in_the_forms_it_is_sent_in(form: str) -> None:
    _, secrets = ScriptEnvironment(env={'API_TOKEN': 'top/secret+value'}).build(None, None)
    # Where text follows, what is left of base 64 holds no more than two characters of the secret.
    assert mask(form, secrets).startswith('[secret]')


def test_a_secret_with_quotes_is_known_inside_json() -> None:
    _, secrets = ScriptEnvironment(env={'API_TOKEN': 'a"b\\c-öl'}).build(None, None)
    for ascii_only in (True, False):  # as Python writes it, and as most others do
        text = json.dumps({'token': 'a"b\\c-öl'}, ensure_ascii=ascii_only)
        assert mask(text, secrets) == '{"token": "[secret]"}'


def test_a_secret_is_known_without_the_line_break_of_the_file_it_was_in() -> None:
    _, secrets = ScriptEnvironment(env={'API_TOKEN': 'top"secret+value\n'}).build(None, None)
    bare = 'top"secret+value'
    for form in (json.dumps(bare)[1:-1], quote(bare), base64.b64encode(bare.encode()).decode()):
        assert mask(form, secrets) == '[secret]'


async def test_a_secret_that_is_not_utf_8_is_masked(make_script: MakeScript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('API_TOKEN', os.fsdecode(b'abc\xff\xfedef'))
    script = make_script('a.py', 'import os; os.write(1, os.environb[b"API_TOKEN"])')
    assert (await LocalSkillScriptExecutor(pass_env=['API_TOKEN']).run(script)).stdout == '[secret]'


def test_each_line_of_a_long_secret_is_one() -> None:
    _, secrets = ScriptEnvironment(env={'SSH_KEY': 'BEGIN KEY\nabcdefgh\nEND\n'}).build(None, None)
    assert {'BEGIN KEY', 'abcdefgh'} <= secrets
    assert 'END' not in secrets


@pytest.mark.parametrize(
    'values', [{'A=B': 'x'}, {'': 'x'}, {'A-B': 'x'}, {'Logging:Level': 'x'}, {'A': 'x\0y'}, {'A_TOKEN': 'x\ud800y'}]
)
async def test_variables_that_no_process_can_have_are_refused(make_script: MakeScript, values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match='environment variable'):
        LocalSkillScriptExecutor(env=values)
    executor = LocalSkillScriptExecutor(env=lambda _: values)
    with pytest.raises(SkillScriptExecutionError, match='environment variable'):
        await executor.run(make_script('a.py', ''))


@pytest.mark.parametrize('value', [None, 3, True])
async def test_a_value_that_is_no_text_is_named(make_script: MakeScript, value: Any) -> None:
    message = f"'MODE' is {type(value).__name__}, not text"
    with pytest.raises(ValueError, match=message):
        LocalSkillScriptExecutor(env={'MODE': value})
    with pytest.raises(ValueError, match=message):
        LocalSkillScriptExecutor(skill_env={'weather': {'MODE': value}})
    with pytest.raises(SkillScriptExecutionError, match=message):
        await LocalSkillScriptExecutor(env=lambda _: {'MODE': value}).run(make_script('a.py', ''))


@pytest.mark.parametrize(('made', 'kind'), [(None, 'NoneType'), ('MODE', 'str'), (5, 'int')])
async def test_a_function_that_makes_no_variables_is_told(make_script: MakeScript, made: Any, kind: str) -> None:
    with pytest.raises(SkillScriptExecutionError, match=f'returned {kind}, not variables with their values'):
        await LocalSkillScriptExecutor(env=lambda _: made).run(make_script('a.py', ''))


async def test_a_script_knows_the_folder_of_its_skill(make_script: MakeScript) -> None:
    script = make_script('scripts/a.py', SHOW)
    result = await LocalSkillScriptExecutor().run(script, ['SKILL_DIR', 'CLAUDE_SKILL_DIR'])
    assert result.stdout == f'SKILL_DIR={script.skill_dir} CLAUDE_SKILL_DIR={script.skill_dir}\n'
