"""Files as values: what is parsed, and what stays text because parsing it would cost too much."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from pydantic_ai_skills import SkillResource


async def load(name: str, text: str) -> Any:
    return await SkillResource(name, content=text).load(None)


@pytest.mark.parametrize(
    ('name', 'text', 'value'),
    [
        ('a.json', '{"a": [1, 2.5, null]}', {'a': [1, 2.5, None]}),
        ('a.JSON', '"text"', 'text'),
        ('a.yaml', 'a: [1, x, 2024-01-02]\nb: "1.10"', {'a': [1, 'x', datetime.date(2024, 1, 2)], 'b': '1.10'}),
        ('deep/a.yml', '- on\n- {b: ~}', [True, {'b': None}]),
        ('a.yaml', '', None),
        ('a.yaml', 'a: &anchor b', {'a': 'b'}),
        ('a.yaml', 'a: 2024 was ' + 'long ' * 50, {'a': ('2024 was ' + 'long ' * 50).strip()}),
    ],
)
async def test_json_and_yaml_files_are_values(name: str, text: str, value: Any) -> None:
    assert await load(name, text) == value


@pytest.mark.parametrize('name', ['a.md', 'a.txt', 'json', 'a.json.md', 'a.toml'])
async def test_other_files_stay_text(name: str) -> None:
    assert await load(name, '{"a": 1}') == '{"a": 1}'


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('a.json', '{'),
        ('a.json', '[' * 1_000 + ']' * 1_000),
        ('a.json', '9' * 5_000),
        ('a.yaml', 'a: b: c'),
        ('a.yaml', 'a: *nothing'),
        ('a.yaml', 'a: \0'),
        ('a.yaml', 'a: \ud800'),
        ('a.yaml', 'a: 2024-99-99'),
        ('a.yaml', 'a: 0b_'),
        ('a.yaml', 'a: 2024-01-01T00:00:00+99:00'),
        ('a.yaml', f'a: {":".join(["59"] * 50)}.0'),
        ('a.yaml', '[a]: {}: b'),
        ('a.yaml', '? [a]\n: b'),
        ('a.yaml', 'a\n---\nb'),
        ('a.yaml', '!!python/object/apply:os.system [echo]'),
        ('a.yaml', '!!timestamp x'),
        ('a.yaml', '!!bool x'),
        ('a.yaml', 'a: !!float'),
        ('a.yaml', '!custom {a: b}'),
        ('a.yaml', '! text'),
    ],
)
async def test_what_does_not_parse_stays_text(name: str, text: str) -> None:
    assert await load(name, text) == text


@pytest.mark.parametrize(
    ('name', 'largest', 'too_large'),
    [
        pytest.param('a.json', json.dumps('x' * (256 * 1024 - 2)), json.dumps('x' * (256 * 1024 - 1)), id='JSON'),
        pytest.param('a.yaml', 'x' * 64 * 1024, 'x' * (64 * 1024 + 1), id='YAML'),
        pytest.param('a.yaml', '- a\n' * 1_494, '- a\n' * 1_495, id='events'),
        pytest.param('a.yaml', '[' * 64 + ']' * 64, '[' * 65 + ']' * 65, id='depth'),
        pytest.param('a.yaml', '9' * 100, '9' * 101, id='number'),
        pytest.param('a.yaml', 'a: [b]', 'a: &a [b]\nc: *a', id='alias'),
    ],
)
async def test_what_is_too_much_stays_text(name: str, largest: str, too_large: str) -> None:
    value = await load(name, largest)
    assert value != largest or value == 'x' * 64 * 1024
    assert await load(name, too_large) == too_large


async def test_what_a_function_returns_is_not_parsed() -> None:
    resource = SkillResource('a.json', function=lambda: '{"a": 1}')
    assert await resource.load(None) == '{"a": 1}'
