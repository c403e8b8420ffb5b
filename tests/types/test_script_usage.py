"""How a script is used, without running it."""

from __future__ import annotations

import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from pydantic_ai_skills.types.script_usage import MAX_SOURCE_BYTES, MAX_USAGE_CHARS, describe_usage


def usage(name: str, source: str) -> str | None:
    return describe_usage(name, textwrap.dedent(source).lstrip('\n').encode())


def test_argparse_arguments_are_listed_with_their_help() -> None:
    source = r'''
    #!/usr/bin/env python3
    """Fill the fields of a PDF form."""
    import argparse, re
    PATTERN = re.compile('\d+\.\w')
    parser = argparse.ArgumentParser(description='not shown, there is a docstring')
    parser.add_argument('source', help='the form')
    parser.add_argument('-o', '--output', required=True, help='where to\n    write')
    parser.add_argument('--mode', choices=['fast', 'exact'], default='fast')
    parser.add_argument('--dry-run', action='store_true', help=f'only {PATTERN}')
    parser.add_argument(*names)
    print('\\d \x41 \101 é')
    '''
    assert usage('fill.py', source) == snapshot("""\
Fill the fields of a PDF form.
Arguments:
  source: the form
  -o, --output (required): where to write
  --mode (fast|exact)
  --dry-run (flag): only …\
""")


def test_the_description_stands_in_for_a_docstring() -> None:
    source = "from argparse import ArgumentParser\nArgumentParser()\np = ArgumentParser(description='Count words.')"
    assert usage('a.py', source) == 'Count words.'


def test_click_options_are_listed() -> None:
    source = """
    @click.command()
    @click.option('--count', default=1, help='How often.')
    @click.argument('name')
    def hello(count, name): ...
    """
    assert usage('a.py', source) == snapshot("""\
Arguments:
  --count: How often.
  name\
""")


@pytest.mark.parametrize(
    'line',
    [
        "print('Usage: a.py <in> <out>')",
        "print(f'Usage: {sys.argv[0]} <in> <out>')",
        'sys.exit("Usage: a.py <in> <out>\\n")',
    ],
)
def test_a_usage_message_is_found(line: str) -> None:
    source = f'import sys\nx = 3\nif len(sys.argv) < 3:\n    {line}\n'
    assert usage('a.py', source) == 'Usage: a.py <in> <out>'
    assert usage('a.py', f'"""Converts.\n\nUsage: a.py IN OUT"""\n{source}') == 'Converts.\n\nUsage: a.py IN OUT'


@pytest.mark.parametrize(
    ('name', 'source', 'expected'),
    [
        (
            'a.sh',
            '#!/bin/bash\n# Deploys the app.\n#\n# Usage: deploy.sh ENV\nset -e\n# not this\n',
            'Deploys the app.\n\nUsage: deploy.sh ENV',
        ),
        ('a.sh', '# Counts.\r\necho\r\n', 'Counts.'),
        ('a.sh', '\n\n## Counts.', 'Counts.'),
        ('a.js', '/**\n * Renders a page.\n * @param url\n */\nconst x = 1', 'Renders a page.\n@param url'),
        ('a.ts', '// Renders.\n// Twice.\nx', 'Renders.\nTwice.'),
        ('a.ps1', '<#\nLists users.\n#>\nGet-User', 'Lists users.'),
        ('tool', '#!/usr/bin/env python3\n"""Does it."""\n', 'Does it.'),
        ('a.sh', 'echo hi\n# late', None),
        ('a.sh', '#!/bin/sh', None),
        ('a.sh', '', None),
        ('a.sh', '#\n#\n', None),
        ('a.py', 'x = 1', None),
        ('a.py', 'this is not python', None),
        ('a.py', '(' * 50_000, None),
        ('a.py', 'x = (lambda: 0)()\nfoo[0]("a")\noption(1)\nadd_argument()', None),
    ],
)
def test_scripts_of_other_kinds(name: str, source: str, expected: str | None) -> None:
    assert describe_usage(name, source.encode()) == expected


def test_long_texts_are_cut() -> None:
    docstring = usage('a.py', f'"""{"word " * 1000}"""')
    assert docstring is not None
    assert docstring.endswith('…')
    source = '"""' + 'x' * 700 + '"""\n' + '\n'.join(f"add_argument('--{i}', help='{'h' * 300}')" for i in range(50))
    long = usage('a.py', source)
    assert long is not None
    assert len(long) == MAX_USAGE_CHARS
    assert usage('a.py', '"""Doc."""\n' + '#' * MAX_SOURCE_BYTES) is None


@pytest.mark.parametrize(
    'source',
    [
        '-' * 60_000 + '1',
        'not ' * 15_000,
        'a' + '.b' * 30_000,
        '1+' * 30_000 + '1',
        'f"{' * 20_000,
        '"""' * 20_001,
        '\\' * 60_000,
        '@a\n' * 20_000 + 'def f(): 0',
        '# ' * 30_000,
        '/*' * 30_000,
        '/*\n' * 20_000,
    ],
    ids=range(11),
)
@pytest.mark.parametrize('name', ['a.py', 'a.sh'])
def test_a_hostile_script_takes_little_time(name: str, source: str) -> None:
    started = time.monotonic()
    describe_usage(name, source.encode())
    assert time.monotonic() - started < 10


@given(name=st.sampled_from(['a.py', 'a.sh', 'a.js', 'x']), source=st.binary() | st.text().map(str.encode))
def test_any_bytes_give_text_or_nothing(name: str, source: bytes) -> None:
    text = describe_usage(name, source)
    assert text is None or 0 < len(text) <= MAX_USAGE_CHARS
