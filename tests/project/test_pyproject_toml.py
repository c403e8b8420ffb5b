"""Editing `pyproject.toml` changes what it should and leaves every other byte."""

from __future__ import annotations

import tomllib

import pytest

from pydantic_ai_skills import SkillValidationError
from pydantic_ai_skills.project.pyproject_toml import add_source, change_source, read_table, remove_source

PROJECT = """\
# My project.
[project]
name   =  'x'   # with odd blanks

[tool.pydantic-ai-skills]   # skills
directories = [
    'skills',  # ours
]

[tool.other]
text = '''
[[tool.pydantic-ai-skills.git]]
not = a table
'''
"""


@pytest.mark.parametrize('text', ['', '\n', PROJECT, PROJECT.rstrip(), PROJECT.replace('\n', '\r\n')])
def test_a_source_is_added_and_removed_without_a_trace(text: str):
    fields = {'url': 'https://example.com/"a"\x7f', 'ref': 'v1', 'trusted': True, 'allow': ['file', 'http']}
    added = add_source(text, fields)
    assert added.startswith(text.rstrip())
    assert tomllib.loads(added)['tool']['pydantic-ai-skills']['git'] == [fields]
    assert ('\r\n' in added) == ('\r\n' in text)
    twice = add_source(added, {'url': 'b'})
    assert remove_source(remove_source(twice, 0), 0).rstrip() == text.rstrip()
    assert remove_source(twice, 1).rstrip() == added.rstrip()


def test_comments_before_the_next_table_stay():
    text = '[[tool.pydantic-ai-skills.git]]\nurl = "a"\n\n# About the others.\n[tool.other]\nx = 1\n'
    assert remove_source(text, 0) == '\n# About the others.\n[tool.other]\nx = 1\n'


@pytest.mark.parametrize(
    ('before', 'after'),
    [
        ('url = "a"\n', 'url = "b"\nref = "v1"\n'),
        ('url = "a"', 'url = "b"\nref = "v1"\n'),
        ('url = "a" # why\r\nref = "v1"\r\n', 'url = "b" # why\r\nref = "v1"\r\n'),
        ("url   = 'a' # lost\n# kept\nref = 'v1'  # kept\n", 'url = "b"\n# kept\nref = \'v1\'  # kept\n'),
        ('path = "x"\nurl = "a"\n\n# Others.\n[tool.x]\n', 'url = "b"\nref = "v1"\n\n# Others.\n[tool.x]\n'),
        ('url = "a"\nskills = [\n  "x",\n]\n', 'url = "b"\nref = "v1"\n'),
        ('url = "a"\n"ref" = "v0"\n', 'url = "b"\nref = "v1"\n'),
    ],
)
def test_a_source_that_changes_keeps_its_place(before: str, after: str):
    newline = '\r\n' if '\r' in before else '\n'
    first = f'[[tool.pydantic-ai-skills.git]]{newline}url = "a"{newline}'
    heading = f'[[tool.pydantic-ai-skills.git]]  # second{newline}'
    text = f'{first}{heading}{before}'
    assert change_source(text, 1, {'url': 'b', 'ref': 'v1'}) == f'{first}{heading}{after}'


@pytest.mark.parametrize(
    'text', ['tool.pydantic-ai-skills.git = [{url = "a"}]\n', '[tool]\npydantic-ai-skills = {git = [{url = "a"}]}\n']
)
def test_what_cannot_be_changed_is_told(text: str):
    with pytest.raises(SkillValidationError, match='Write this source by hand') as raised:
        change_source(text, 0, {'url': 'b'})
    assert str(raised.value).endswith('[[tool.pydantic-ai-skills.git]]\nurl = "b"\n')


@pytest.mark.parametrize(
    'text',
    [
        'tool.pydantic-ai-skills.git = [{url = "a"}]\n',
        '[tool]\npydantic-ai-skills = {git = [{url = "a"}]}\n',
        '[[tool.pydantic-ai-skills.git]]\nurl = "a"\npath = """\n[\n"""\n',
    ],
)
def test_what_cannot_be_edited_is_left_to_the_person(text: str):
    with pytest.raises(SkillValidationError, match=r"Remove the source 'a' from it by hand"):
        remove_source(text, 0)


@pytest.mark.parametrize(
    'text', ['tool.pydantic-ai-skills.git = [{url = "a"}]\n', 'tool = {}\n', '[tool.pydantic-ai-skills]\ngit = 1\n']
)
def test_what_cannot_be_added_is_told(text: str):
    with pytest.raises(SkillValidationError, match='Add this to it by hand') as raised:
        add_source(text, {'url': 'b'})
    assert str(raised.value).endswith('[[tool.pydantic-ai-skills.git]]\nurl = "b"\n')


@pytest.mark.parametrize(
    ('text', 'table'),
    [
        ('', None),
        ('[tool.other]\n', None),
        ('[tool.pydantic-ai-skills]\n', {}),
        ('[tool."pydantic-ai-skills"]\nx = 1\n', {'x': 1}),
    ],
)
def test_the_table_is_read(text: str, table: dict[str, object] | None):
    assert read_table(text) == table


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('[tool', 'p.toml is not valid TOML'),
        ('tool = 1', '`tool` is not a table'),
        ('tool.pydantic-ai-skills = 1', '`tool.pydantic-ai-skills` is not a table'),
    ],
)
def test_what_is_no_table_is_told(text: str, message: str):
    with pytest.raises(SkillValidationError, match=message):
        read_table(text, label='p.toml')
