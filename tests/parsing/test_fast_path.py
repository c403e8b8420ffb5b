"""The short way to read simple frontmatter."""

from __future__ import annotations

import pytest
from hypothesis import event, example, given, settings

from pydantic_ai_skills.parsing.fast_path import read_simple
from pydantic_ai_skills.parsing.findings import Value
from pydantic_ai_skills.parsing.yaml_reader import read_yaml

from .strategies import NEARLY_SIMPLE, WILD


@settings(max_examples=2000)
@given(NEARLY_SIMPLE | WILD)
@example('a: b\n\n')
@example('a:\n\n  b: c')
@example('a: b\n  c: d')
@example('a:\nb:\n  c:\n  d: e')
@example('a:  b  \nc: "d"  ')
@example('a: "b" c')
@example('a: b:')
@example('a: b #c')
@example('a: b#c: d')
def test_where_it_answers_the_yaml_reader_gives_the_same_without_a_finding(source: str):
    fields = read_simple(source)
    event('gave up' if fields is None else 'answered')
    if fields is not None:
        value, findings = read_yaml(source)
        # A frontmatter of nothing but blank lines is an empty text to the YAML reader.
        assert (value or {}) == fields
        assert findings == []


@pytest.mark.parametrize(
    ('source', 'fields'),
    [
        ('', {}),
        ('\n\n', {}),
        (
            'name: x\ndescription: Does it. See https://x.y/#z, or C#.\n',
            {'name': 'x', 'description': 'Does it. See https://x.y/#z, or C#.'},
        ),
        ('version: 1.10\non: yes\ndate: 2024-01-01', {'version': '1.10', 'on': 'yes', 'date': '2024-01-01'}),
        ('a: "b: c # d"\nb: \'say "hi"\'', {'a': 'b: c # d', 'b': 'say "hi"'}),
        ('a: ""\nb:\nc: \nd:  \n', {'a': '', 'b': '', 'c': '', 'd': ''}),
        (
            'metadata:\n  author: me\n\n  version: "1"\nlicense: MIT',
            {'metadata': {'author': 'me', 'version': '1'}, 'license': 'MIT'},
        ),
        ('a: [b, c d,1.10]\nb:\n  c: [d]', {'a': ['b', 'c d', '1.10'], 'b': {'c': ['d']}}),
        ('a:\n- b\n- "c: d"\nb: c', {'a': ['b', 'c: d'], 'b': 'c'}),
        ('a:\n\n  - b\n  - c d\nb:\n  - e', {'a': ['b', 'c d'], 'b': ['e']}),
        ('description: 技能 é 🎉', {'description': '技能 é 🎉'}),
    ],
)
def test_it_answers_for_simple_lines(source: str, fields: dict[str, Value]):
    assert read_simple(source) == fields


@pytest.mark.parametrize(
    'source',
    [
        'a: b: c',
        'a: b:',
        'a: b # c',
        'a: |\n  b',
        'a: []',
        'a: [b, [c]]',
        'a: [b, "c"]',
        'a: [b: c]',
        'a: [b,]',
        'a: [b',
        'a: [b] c',
        '- b',
        'a: b\n- c',
        'a:\n- b\n  - c',
        'a:\n  - b\n  c: d',
        'a:\n  - b: c',
        'a:\n  - b\n  c',
        'a:\n  - - b',
        'a:\n  -',
        'a:\n  - ',
        'a:\n-b: c',
        'a:\n  b: c\n  - d',
        'a: {b: c}',
        'a: *b',
        'a: &b c',
        'a: !b c',
        'a: @b',
        'a: - b',
        'a: "b\\n"',
        'a: "b',
        'a: "',
        "a: 'it''s'",
        'a: "b" c',
        'a: b\n  c',
        'a:\n  b: c\n   d: e',
        'a:\n  b:\n    c: d',
        'a: b\na: c',
        'a:\n  b: c\n  b: d',
        'a',
        'a b: c',
        '"a": b',
        '1: b',
        '? a',
        '# a: b',
        'a:\tb',
        'a: b\x07',
        'a: b\x85',
        'a: b\ufeff',
        '   ',
        'x' * 101 + ': y',
    ],
)
def test_it_gives_up_on_anything_else(source: str):
    assert read_simple(source) is None
