from __future__ import annotations

import pytest

from pydantic_ai_skills.parsing.toml_reader import MAX_KEY_PARTS, load_toml

LONG = '.'.join('a' * (MAX_KEY_PARTS + 2))


@pytest.mark.parametrize(
    'text',
    [
        f'{LONG} = 1',
        f'[{LONG}]',
        f'[[ {LONG} ]]',
        LONG.replace('a', '"a b"') + ' = 1',
        LONG.replace('a', '"\\"a"') + ' = 1',
        LONG.replace('a', "'a'") + ' = 1',
        LONG.replace('.', ' \t. ') + ' = 1',
        f'x = {{{LONG} = 1}}',
        f'x = {{a = """ " """, {LONG} = 1, b = """ " """}}',
        f"x = '''\n\"\n'''\n{LONG} = 1",
        f'x = "#" # "\n{LONG} = 1',
    ],
)
def test_a_key_of_many_parts_is_refused(text: str):
    with pytest.raises(ValueError, match='a key has more than 16 parts'):
        load_toml(text)


@pytest.mark.parametrize(
    'value',
    [f'"{LONG}"', f"'{LONG}'", f'"""{LONG}\n"""', f"'''\n{LONG}'''", f'[{", ".join(["0.1"] * 100)}]', f'1 # {LONG}'],
)
def test_dots_elsewhere_are_fine(value: str):
    assert set(load_toml(f'a.b.c.x = {value}')) == {'a'}


@pytest.mark.parametrize('text', ['x', 'x = "', "x = '''", 'x = """', f'x = {"1" * 5000}'])
def test_what_is_not_toml_is_a_value_error(text: str):
    with pytest.raises(ValueError, match='.'):
        load_toml(text)
