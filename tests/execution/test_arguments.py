"""From what a model sends to an argument vector."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.arguments import (
    MAX_ARGUMENT_BYTES,
    MAX_ARGUMENTS,
    MAX_ARGV_BYTES,
    MAX_JSON_CHARS,
    MAX_STDIN_BYTES,
    ArgumentVector,
    build_arguments,
)


@pytest.mark.parametrize(
    ('args', 'argv'),
    [
        (None, []),
        ({}, []),
        ([], []),
        ('', []),
        ('  ', []),
        ('null', []),
        ({'query': 'x'}, ['--query', 'x']),
        ({'query': ''}, ['--query', '']),
        ({'query': 'a b; rm -rf / $(id)'}, ['--query', 'a b; rm -rf / $(id)']),
        ({'max-results': 5, 'max_age': 1.5}, ['--max-results', '5', '--max_age', '1.5']),
        ({'verbose': True, 'quiet': False, 'depth': None}, ['--verbose']),
        ({'tag': ['a', 'b'], 'none': []}, ['--tag', 'a', '--tag', 'b']),
        ({'v': [True, True, False, None]}, ['-v', '-v']),
        ({'n': 5}, ['-n', '5']),
        ({'n': -5}, ['-n-5']),
        ({'offset': '-x'}, ['--offset=-x']),
        ({'offset': -1}, ['--offset=-1']),
        ({'offset': '--help'}, ['--offset=--help']),
        ({'_': ['in.pdf', 'out.pdf'], 'verbose': True}, ['in.pdf', 'out.pdf', '--verbose']),
        ({'verbose': True, '_': ['in.pdf']}, ['--verbose', 'in.pdf']),
        ({'_': 'in.pdf'}, ['in.pdf']),
        ({'_': None}, []),
        ({'_': [1, 2.5, True, False, '-', '-3', '-0.5', '']}, ['1', '2.5', 'true', 'false', '-', '-3', '-0.5', '']),
        ({'_': ['-1e5', -1e-7, '-2.5E+3']}, ['-1e5', '-1e-07', '-2.5E+3']),
        ({'_': ['-1e5', '-1E-5', '-.5', -1e-7]}, ['-1e5', '-1E-5', '-.5', '-1e-07']),
        (['in.pdf', '--fast', '-x', 3, True], ['in.pdf', '--fast', '-x', '3', 'true']),
        ('{"_": ["a"], "n": 1}', ['a', '-n', '1']),
        ('["a", "--b"]', ['a', '--b']),
        ("{'_': ['a'], 'fast': True, 'none': None}", ['a', '--fast']),
        ('in.pdf "my out.pdf" --fast -n 3', ['in.pdf', 'my out.pdf', '--fast', '-n', '3']),
        ('query=x', ['query=x']),
        ('7', ['7']),
        ('"text"', ['text']),
        ('$HOME/*.pdf `id`', ['$HOME/*.pdf', '`id`']),
    ],
)
def test_arguments_become_a_vector(args: Any, argv: list[str]) -> None:
    assert build_arguments(args) == ArgumentVector(argv=tuple(argv))


@pytest.mark.parametrize('text', ['', 'two\nlines', 'x' * MAX_STDIN_BYTES])
def test_the_reserved_key_is_text_for_standard_input(text: str) -> None:
    assert build_arguments({'_stdin': text, 'a': 1}) == ArgumentVector(argv=('-a', '1'), stdin=text)
    assert build_arguments({'_stdin': None}) == ArgumentVector()


NESTED = '[' * 100_000 + ']' * 100_000


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        ('{"a": 1', 'a string that does not hold JSON'),
        (NESTED, 'a string that does not hold JSON'),
        ('[' + '9' * 5000 + ']', 'a string that does not hold JSON'),
        (' ' * MAX_JSON_CHARS + '{}', 'longer than 4,194,304 characters'),
        (7, 'must be an object such as {"query": "x"} or a list such as ["in.pdf"], not a number.'),
        ("in.pdf 'out", 'a line that cannot be split into words: no closing quotation. Send a list'),
        ('x' * 70_000, 'a line that cannot be split into words'),
        ('in.pdf | wc', "not to a shell, so '|' has no meaning in them"),
        ('in.pdf > out.txt', "not to a shell, so '>' has no meaning in them"),
        (b'{}', 'not a bytes'),
        ({'a': {'b': 1}}, "The value of 'a' is an object. A script takes text, numbers, true or false, or a list"),
        ({'a': [['b']]}, "The value of 'a' is a list"),
        ({'_': [{'b': 1}]}, "A value of '_' is an object"),
        ({'_': [None]}, "A value of '_' is null"),
        ([1, None], 'Item 2 is null'),
        ({'a': math.nan}, "The value of 'a' is a number a script cannot be given"),
        ('{"a": Infinity}', 'a number a script cannot be given'),
        ({'a': 10**5000}, 'a number a script cannot be given'),
        ({'a': object()}, "The value of 'a' is a object"),
        ({'': 'x'}, "'' cannot be the name of an argument"),
        ({'-': 'x'}, "'-' cannot be the name of an argument"),
        ({'a b': 'x'}, "'a b' cannot be the name of an argument"),
        ({'a=b': 'x'}, "'a=b' cannot be the name of an argument"),
        ({'a\n': 'x'}, 'cannot be the name of an argument'),
        ({'a\0': 'x'}, 'cannot be the name of an argument'),
        ({'é': 'x'}, 'cannot be the name of an argument'),
        ({'_private': 'x'}, "'_private' cannot be the name of an argument"),
        ({'n' * 101: 'x'}, 'nnn… cannot be the name of an argument'),
        ({3: 'x'}, '3 cannot be the name of an argument'),
        ({'a': 'x\0y'}, "The value of 'a' contains a NUL character"),
        ({'a': '\ud800'}, "The value of 'a' contains half of a surrogate pair"),
        (
            {'a': 'x' * 1_000_000},
            "The value of 'a' is 1,000,000 bytes long; an argument may have 100,000. Send long text",
        ),
        ({'a': ['x'] * 10_000}, 'There are 10,000 arguments; a script may have 1,000'),
        ({'_': ['x'] * 10_000}, 'There are 10,000 arguments'),
        (['x'] * 10_000, 'There are 10,000 arguments'),
        ({f'a{i}': 'x' for i in range(10_000)}, 'There are 1,002 arguments'),
        (['x' * MAX_ARGUMENT_BYTES] * 6, f'600,006 bytes long together; a script may have {MAX_ARGV_BYTES:,}'),
        ({'_': ['--help']}, "The positional argument '--help' begins with a dash"),
        ({'_': ['-1x']}, "The positional argument '-1x' begins with a dash"),
        ({'_': ['-1e']}, "The positional argument '-1e' begins with a dash"),
        ({'_': ['-rf']}, "The positional argument '-rf' begins with a dash"),
        ({'_stdin': ['a']}, "The value of '_stdin' must be text, not a list"),
        ({'_stdin': 5}, "The value of '_stdin' must be text, not a number."),
        (True, 'or a list such as ["in.pdf"], not true.'),
        ({'--query': 'x'}, "'--query' cannot be the name of an argument"),
        ({'---query': 'x'}, "'---query' cannot be the name of an argument"),
        ({'_stdin': 'x' * (MAX_STDIN_BYTES + 1)}, "The value of '_stdin' is longer than 1,048,576 bytes"),
        ({'_stdin': '\udfff'}, "'_stdin' contains half of a surrogate pair"),
    ],
)
def test_what_cannot_be_passed_safely_is_refused_with_the_way_out(args: Any, message: str) -> None:
    with pytest.raises(SkillScriptExecutionError) as caught:
        build_arguments(args)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(args=JSON | JSON.map(json.dumps) | st.text())
def test_any_json_gives_a_vector_that_a_process_can_take_or_our_own_error(args: Any) -> None:
    try:
        built = build_arguments(args)
    except SkillScriptExecutionError:
        return
    assert all('\0' not in item and item.encode() for item in built.argv if item)
    assert len(built.argv) <= MAX_ARGUMENTS
