"""Reading YAML from strangers."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given

from pydantic_ai_skills.parsing.findings import MAX_NESTING, Finding, RefusedYaml, UnreadableYaml, Value
from pydantic_ai_skills.parsing.yaml_reader import LOADER, read_yaml

from .strategies import WILD

both_loaders = pytest.mark.parametrize('loader', [LOADER, yaml.BaseLoader], ids=['libyaml', 'python'])


@both_loaders
@pytest.mark.parametrize(
    ('source', 'value'),
    [
        ('', ''),
        ('# nothing', ''),
        ('a: b', {'a': 'b'}),
        (
            'on: yes\nnull: ~\nversion: 1.10\nn: 0x1F\ndate: 2024-01-01',
            {'on': 'yes', 'null': '~', 'version': '1.10', 'n': '0x1F', 'date': '2024-01-01'},
        ),
        ('a:\n  - 1\n  - [x, {y: z}]\n  -\nb: {}', {'a': ['1', ['x', {'y': 'z'}], ''], 'b': {}}),
        ('a: |\n  one\n  two\nb: >-\n  one\n  two', {'a': 'one\ntwo\n', 'b': 'one two'}),
        ('a: "\\u00e9\\n"', {'a': 'é\n'}),
        ('a: &x b', {'a': 'b'}),
        ('a: ! b', {'a': 'b'}),
        ('<<: {a: b}\nc: d', {'<<': {'a': 'b'}, 'c': 'd'}),
        ('a: b\n...', {'a': 'b'}),
        ('=: x', {'=': 'x'}),
    ],
)
def test_text_stays_text(source: str, value: Value, loader: Any):
    assert read_yaml(source, loader=loader) == (value, [])


@both_loaders
@pytest.mark.parametrize(
    ('source', 'value', 'finding'),
    [
        (
            'a: 1\nb: 2\na: 3\na: 4',
            {'a': '4', 'b': '2'},
            Finding(
                'yaml-duplicate-key',
                "The key 'a' occurs more than once; the last value counts. Remove the others.",
                3,
            ),
        ),
        (
            'a: b\nc: !!float x',
            {'a': 'b', 'c': 'x'},
            Finding('yaml-tag', "The YAML tag '!!float' is ignored: text stays text. Remove it.", 2),
        ),
        (
            'a: !custom [x]\nb: !!int 1',
            {'a': ['x'], 'b': '1'},
            Finding('yaml-tag', "The YAML tag '!custom' is ignored: text stays text. Remove it.", 1),
        ),
        (
            'a: !!python/object/apply:os.system {b: c}',
            {'a': {'b': 'c'}},
            Finding(
                'yaml-tag', "The YAML tag '!!python/object/apply:os.system' is ignored: text stays text. Remove it.", 1
            ),
        ),
    ],
)
def test_what_yaml_lets_pass_and_a_person_should_know_is_found(
    source: str, value: Value, finding: Finding, loader: Any
):
    assert read_yaml(source, loader=loader) == (value, [finding])


@both_loaders
@pytest.mark.parametrize(
    ('source', 'line'),
    [
        ('a: b: c', 1),
        ('x: y\na: [}\n', 2),
        ('x: y\n\ta: b', 2),
        ('a: *nobody', 1),
        ('x: y\n[a]: b', 2),
        ('? {a: b}\n: c', 1),
        ('a: b\n--- c', 2),
        ('a: !h!x y', 1),
        ('x: y\na: \x07', 2),
        ('%YAML 9.9', 1),
        ('a: \ud800', 1),
    ],
)
def test_what_is_not_yaml_is_unreadable_from_a_line_on(source: str, line: int, loader: Any):
    with pytest.raises(UnreadableYaml) as error:
        read_yaml(source, loader=loader)
    assert error.value.line == line


@both_loaders
@pytest.mark.parametrize('escape', ['\\UFFFFFFFF', '\\ud800', '\\x', '\\d'])
def test_an_escape_that_is_no_character_is_unreadable(escape: str, loader: Any):
    with pytest.raises(UnreadableYaml):
        read_yaml(f'a: "{escape}"', loader=loader)


@both_loaders
def test_an_alias_is_refused(loader: Any):
    with pytest.raises(RefusedYaml) as error:
        read_yaml('a: &x b\nc: *x', loader=loader)
    assert error.value.finding == Finding(
        'yaml-alias', "The YAML alias '*x' is not followed. Write out what it stands for.", 2
    )


@both_loaders
@pytest.mark.parametrize(('opening', 'closing'), [('[', ']'), ('{a: ', '}'), ('[{a: ', '}]'), ('- ', '')])
def test_nesting_is_read_to_the_limit_and_refused_beyond(opening: str, closing: str, loader: Any):
    levels = MAX_NESTING // (2 if '[{' in opening else 1)
    value, findings = read_yaml(opening * levels + 'x' + closing * levels, loader=loader)
    assert str(value).count('[') + str(value).count('{') == MAX_NESTING
    assert findings == []
    with pytest.raises(RefusedYaml) as error:
        read_yaml(opening * (levels + 1) + 'x' + closing * (levels + 1), loader=loader)
    assert error.value.finding == Finding(
        'frontmatter-too-deep', 'The frontmatter is nested more than 32 levels deep.', 1
    )


@both_loaders
def test_a_tower_of_keys_is_nested_too_deep_before_it_is_unreadable(loader: Any):
    for tower in ('{' * 1000, '? ' * 1000):
        with pytest.raises(RefusedYaml, match='nested more than 32 levels deep'):
            read_yaml(tower, loader=loader)


@given(WILD)
@example('a: !!float x\na: y\n<<: {b: c}')
def test_what_is_read_is_what_the_base_loader_of_pyyaml_reads(source: str):
    try:
        value, _ = read_yaml(source)
    except (RefusedYaml, UnreadableYaml):
        return
    loaded = yaml.load(source, Loader=LOADER)
    assert value == ('' if loaded is None else loaded)


@given(WILD)
def test_a_value_is_made_of_text_only(source: str):
    try:
        value, _ = read_yaml(source)
    except (RefusedYaml, UnreadableYaml):
        return
    assert is_text(value)


def is_text(value: Value) -> bool:
    if isinstance(value, dict):
        return all(map(is_text, [*value, *value.values()]))
    return all(map(is_text, value)) if isinstance(value, list) else type(value) is str
