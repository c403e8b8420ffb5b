"""Frontmatter as people, models and attackers write it."""

from __future__ import annotations

from hypothesis import strategies as st

KEYS = ['name', 'description', 'license', 'metadata', 'allowed-tools', 'x', 'key_2', 'on', 'A1']
WORDS = [
    'a',
    'skill',
    '123',
    '1.10',
    'yes',
    'null',
    '2024-01-01',
    'http://x.y/z?q#f',
    'a:b',
    'C#',
    '-x',
    "it's",
    'é 技能 🎉',
]
VALUES = [
    *WORDS,
    '',
    'two words',
    '"quoted: # text"',
    "'quoted: # text'",
    '"it\'s"',
    '\'say "hi"\'',
    '""',
    '  padded  ',
    '[a, b-c , 1.10]',
    '[a]',
    '[two words,x/y]',
]

# What YAML gives a meaning, in the places where it has one and in others.
INDICATORS = '-?:,[]{}#&*!|>%@`"\'\\~=<\t\n\r \0\x07\x1b\x7f\x85\xa0\u2028\u2029\ufeff\ufffe\ud800'
SEQUENCES = [
    ': ',
    ' #',
    '- ',
    '? ',
    '&a ',
    '*a',
    '!!str ',
    '!x ',
    '---',
    '...',
    '<<: ',
    '  ',
    '\n  ',
    '\n\n',
    '\r\n',
    '\\u',
]
MARKS = [*INDICATORS, *SEQUENCES]

SIMPLE = [
    '',
    *(f'{key}:' for key in KEYS),
    *(f'{key}: {value}' for key in KEYS for value in VALUES),
    *(f'{key}:\n{indent}- {value}\n{indent}- b' for key in KEYS for indent in ('', '  ') for value in VALUES[::2]),
    *(f'{key}:\n  {inner}: {value}\n  {key}1: b' for key in KEYS for inner in KEYS for value in VALUES[::3]),
]


def _key(line: str) -> str:
    return line.partition(':')[0]


def _insert(source: str, text: str, at: int) -> str:
    at %= len(source) + 1
    return source[:at] + text + source[at:]


_SIMPLE = st.lists(st.sampled_from(SIMPLE), max_size=5, unique_by=_key).map('\n'.join)
NEARLY_SIMPLE = st.one_of(_SIMPLE, st.builds(_insert, _SIMPLE, st.sampled_from(MARKS), st.integers(0, 200)))
"""Frontmatter that a person would call simple, and the same with one thing in it that may make it anything else."""

PIECES = [
    *SIMPLE[::10],
    *WORDS,
    *MARKS,
    *MARKS,
    *(
        f'\n{key}{separator}'
        for key in [*KEYS, '"q"', '<<', 'two words', '']
        for separator in (': ', ':', ' : ', ':\t')
    ),
    *['\n'] * 20,
    *('\n  ', '\n  - ', '\n\t', ': |\n  ', ': >-\n  ', '\n# '),
]

_PUZZLES = st.lists(st.sampled_from(PIECES), max_size=20).map(''.join)
WILD = st.one_of(NEARLY_SIMPLE, _PUZZLES, _PUZZLES.map('description: x\n{}'.format), st.text())
"""Anything somebody may write between two `---` lines."""
