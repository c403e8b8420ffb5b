"""Frontmatter that is not YAML."""

from __future__ import annotations

import pytest
from hypothesis import given

from pydantic_ai_skills.parsing.findings import RefusedYaml, Value
from pydantic_ai_skills.parsing.yaml_repair import MAX_REPAIRED_KEYS, Repaired, repair

from .strategies import WILD


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        ('Use when: always', 'Use when: always'),
        ('Use for:', 'Use for:'),
        ('It\'s for: "all" # of it', 'It\'s for: "all" # of it'),
        ('- not: a list', '- not: a list'),
        ('@user does it', '@user does it'),
        ('`cmd` runs it', '`cmd` runs it'),
        ('%d percent', '%d percent'),
        ('*bold* text', '*bold* text'),
        ('*star: text', '*star: text'),
        ('&', '&'),
        ('[WIP] it', '[WIP] it'),
        ('{{ template }}', '{{ template }}'),
        ('!h!x y', '!h!x y'),
        ('"Say "hi" now"', 'Say "hi" now'),
        ('"hi" and "bye"', '"hi" and "bye"'),
        ("'it's here'", "it's here"),
        ('"\\d+ and \\w"', '\\d+ and \\w'),
        ('"unclosed', '"unclosed'),
        ('"', '"'),
        ('a\x07b', 'a\x07b'),
    ],
)
def test_a_value_that_is_not_yaml_is_plain_text(value: str, text: str):
    source = f'name: x\ndescription: {value}\ntags: [a, b]\n'
    assert repair(source) == Repaired({'name': 'x', 'description': text, 'tags': ['a', 'b']}, ['description'])


@pytest.mark.parametrize(
    ('lines', 'text'),
    [
        ('Use when: a\n  and: b', 'Use when: a and: b'),
        ('Use when: a\n\n  and: b\n', 'Use when: a and: b'),
        ('one\ntwo without indent', 'one two without indent'),
        ('one: 1\n# a comment\n  two', 'one: 1 two'),
        ('see\nhttps://x.y', 'see https://x.y'),
        ('|\n  a: 1\n b: 2', 'a: 1\nb: 2'),
        ('|- # note\n   a\n b', 'a\nb'),
        ('>\n  a: 1\n b: 2', 'a: 1 b: 2'),
        ('\n  - a\n - b: c: d', '- a\n- b: c: d'),
        ('- a\n  - b', '- a - b'),
    ],
)
def test_the_lines_of_a_value_are_joined_unless_they_seem_to_matter(lines: str, text: str):
    repaired = repair(f'name: x\ndescription: {lines}\nlicense: MIT\n')
    assert repaired is not None
    assert repaired.fields['description'] == text
    assert repaired.fields['license'] == 'MIT'
    assert repaired.as_text == ['description']


@pytest.mark.parametrize(
    ('source', 'fields'),
    [
        # Tabs for spaces.
        ('metadata:\n\ta: b\n\tc:\n\t\td: e\n', {'metadata': {'a': 'b', 'c': {'d': 'e'}}}),
        ('description: >-\n\tone\n\ttwo\n', {'description': 'one two'}),
        # Colons below the first level.
        ('metadata:\n  a: b: c\n  d:\n    - e: f: g\n', {'metadata': {'a': 'b: c', 'd': [{'e': 'f: g'}]}}),
        # Keys that do not stand where they should.
        (' name: x\ndescription: y\n', {'name': 'x', 'description': 'y'}),
        ('"name": x\nb: [}\n', {'name': 'x', 'b': '[}'}),
        ('# note\nname: x\nb: [}\n', {'name': 'x', 'b': '[}'}),
        # A quoted text that spans lines is one value while the rest can be quoted.
        ('a: "b\nc: d"\ne: f: g\n', {'a': 'b c: d', 'e': 'f: g'}),
        # The last of two counts.
        ('a: 1\na: 2\nb: [}\n', {'a': '2', 'b': '[}'}),
    ],
)
def test_as_much_as_possible_is_read_as_it_was_meant(source: str, fields: dict[str, Value]):
    repaired = repair(source)
    assert repaired is not None
    assert repaired.fields == fields


def test_keys_without_a_blank_after_the_colon_are_keys():
    assert repair('name:x\ndescription:y z\n') == Repaired({'name': 'x', 'description': 'y z'}, ['name', 'description'])


def test_a_frontmatter_that_is_indented_as_a_whole_has_keys():
    assert repair('  name: x\n  b: c: d\n') == Repaired({'name': 'x', 'b': 'c: d'}, ['b'])


def test_only_the_first_keys_are_read_as_yaml():
    lines = [f'k{i}: [' for i in range(2)] + [f'k{i}: [x]' for i in range(2, MAX_REPAIRED_KEYS + 2)]
    repaired = repair('\n'.join(lines))
    assert repaired is not None
    assert len(repaired.fields) == MAX_REPAIRED_KEYS + 2
    assert repaired.fields[f'k{MAX_REPAIRED_KEYS - 1}'] == ['x']
    assert repaired.fields[f'k{MAX_REPAIRED_KEYS}'] == '[x]'


@pytest.mark.parametrize('source', ['words', '- a\n- b: c: d', '{"name": "x"', 'https://x.y: z'])
def test_text_without_keys_cannot_be_repaired(source: str):
    assert repair(source) is None


def test_an_item_of_a_list_that_is_repaired_is_told_by_the_key_above_it():
    repaired = repair('name: a\ntags:\n# of mine\n- use: for: this\n- and: for: that\n')
    assert repaired == Repaired(
        {'name': 'a', 'tags': [{'use': 'for: this'}, {'and': 'for: that'}]},
        ['tags'],
    )


def test_a_part_that_is_refused_is_not_repaired():
    with pytest.raises(RefusedYaml):
        repair('a: [}\nb: ' + '[' * 100)


@given(WILD)
def test_whatever_is_repaired_has_text_for_keys(source: str):
    try:
        repaired = repair(source)
    except RefusedYaml:
        return
    if repaired is not None:
        assert repaired.fields
        assert set(repaired.as_text) <= set(repaired.fields)
