"""Arguments as models write them, matched to what scripts declare.

Each script prints what it parsed, so that a row fails if the argument vector is not what the script understands.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

import pytest

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.arguments import build_arguments
from pydantic_ai_skills.execution.declared import read_declaration

FORM = """
import argparse, json

def yes(text):
    return text.lower() == 'true'

FORMATS = {'png': 1, 'jpg': 2}
parser = argparse.ArgumentParser(description='Fill a form.')
parser.add_argument('form')
parser.add_argument('output', nargs='?', default='out.pdf')
parser.add_argument('--n', type=int, default=1)
parser.add_argument('-q', action='store_true')
parser.add_argument('-d', '--dry-run', action='store_true')
parser.add_argument('--no-cache', dest='cache', action='store_false')
parser.add_argument('--color', action=argparse.BooleanOptionalAction)
parser.add_argument('--pages', nargs='+')
parser.add_argument('--size', nargs=2)
parser.add_argument('--tag', action='append')
parser.add_argument('-v', '--verbose', action='count', default=0)
parser.add_argument('--format', choices=sorted(FORMATS), default='png')
parser.add_argument('--check', nargs='?', const='all')
parser.add_argument('--data')
parser.add_argument('--merge', type=yes, default=True)
print(json.dumps({k: v for k, v in vars(parser.parse_args()).items() if v != parser.get_default(k)}))
"""

COMMANDS = """
import argparse, json

def common(parser):
    parser.add_argument('--level', required=True)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--debug', action='store_true')
    commands = parser.add_subparsers(dest='task', required=True)
    add = commands.add_parser('add', aliases=['a'])
    add.add_argument('name')
    remove = commands.add_parser('remove')
    for each in (add, remove):
        each.add_argument('--force', action='store_true')
    common(remove)
    print(json.dumps(vars(parser.parse_args())))

if __name__ == '__main__':
    main()
"""

SERVER = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument('--server', action='append', required=True)
parser.add_argument('command', nargs=argparse.REMAINDER)
print(json.dumps(vars(parser.parse_args())))
"""

MANY = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument('sources', nargs='+')
parser.add_argument('target')
print(json.dumps(vars(parser.parse_args())))
"""

PAIR = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('first', nargs='?')
parser.add_argument('second', nargs='?', choices=list(unknown))
parser.parse_args()
"""

INNER = """
import argparse
parser = argparse.ArgumentParser()
add = parser.add_subparsers().add_parser('add')
add.add_argument('--command')
parser.parse_args()
"""

OPEN = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument('source')
args, rest = parser.parse_known_args()
print(json.dumps([vars(args), rest]))
"""

CLICK = """
import click, json

@click.command()
@click.argument('source')
@click.argument('rest', nargs=-1)
@click.option('--shout/--no-shout', default=None)
@click.option('-n', '--count', type=int)
@click.option('--tag', multiple=True)
@click.option('--mode', type=click.Choice(['fast', 'exact'], case_sensitive=False))
@click.option('--at', nargs=2)
@click.option('--force', is_flag=True)
def main(**values):
    print(json.dumps({k: v for k, v in values.items() if v}))

if __name__ == '__main__':
    main()
"""

GROUP = """
import click, json

@click.group()
@click.option('--debug', is_flag=True)
def cli(debug): ...

@cli.command('add-item')
@click.argument('name')
def add(name):
    print(json.dumps(['add', name]))

@click.command()
@click.option('--all', 'everything', is_flag=True)
def clear_all(everything):
    print(json.dumps(['clear', everything]))

cli.add_command(clear_all)

if __name__ == '__main__':
    cli()
"""

TYPER = """
import json
from enum import Enum
from typing import Annotated, Literal, Optional
import typer

class Mode(str, Enum):
    fast = 'fast'
    exact = 'exact'

def main(
    source: str,
    target: Annotated[Optional[str], typer.Argument()] = None,
    mode: Mode = Mode.fast,
    size: Literal['s', 'l'] = 's',
    max_count: int = typer.Option(1, '--max', '-m'),
    tags: Annotated[list[str], typer.Option('--tag')] = [],
    shout: bool = False,
    quiet: Annotated[bool, typer.Option('--quiet')] = False,
):
    print(json.dumps([source, target, mode.value, size, max_count, list(tags), shout, quiet]))

if __name__ == '__main__':
    typer.run(main)
"""

APP = """
import json
import typer

app = typer.Typer()
users = typer.Typer()
app.add_typer(users, name='users')

@app.command()
def hello(name: str, loud: bool = False):
    print(json.dumps(['hello', name, loud]))

@users.command('create')
def make(name: str):
    print(json.dumps(['create', name]))

@users.command()
def drop_all(): ...

if __name__ == '__main__':
    app()
"""

USAGE = '''
"""Convert a page.

Usage: python convert.py <input.pdf> <output dir> [page]
"""
import json, sys
print(json.dumps(sys.argv[1:]))
'''

SCRIPTS = {
    name.lower(): source
    for name, source in list(globals().items())
    if name.isupper() and isinstance(source, str) and name != 'SCRIPTS'
}


def run(script: str, argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """What the script prints when it is called with these arguments."""
    monkeypatch.setattr(sys, 'argv', [f'{script}.py', *argv])
    with suppress(SystemExit):
        exec(compile(SCRIPTS[script], f'{script}.py', 'exec'), {'__name__': '__main__'})
    return json.loads(capsys.readouterr().out)


MATCHED: list[tuple[str, Any, Any]] = [
    # A positional parameter by its name, in any order, and without one.
    ('form', {'form': 'a.pdf'}, {'form': 'a.pdf'}),
    ('form', {'output': 'b.pdf', 'form': 'a.pdf'}, {'form': 'a.pdf', 'output': 'b.pdf'}),
    ('form', {'_': ['a.pdf', 'b.pdf']}, {'form': 'a.pdf', 'output': 'b.pdf'}),
    ('form', {'_': 'a.pdf', 'output': 'b.pdf'}, {'form': 'a.pdf', 'output': 'b.pdf'}),
    ('form', {'_': 'b.pdf', 'form': 'a.pdf'}, {'form': 'a.pdf', 'output': 'b.pdf'}),
    # One letter: `--n` and `-q` as declared. Letter case, dashes, hyphens and underscores.
    ('form', {'form': 'a', 'n': 5, 'q': True}, {'form': 'a', 'n': 5, 'q': True}),
    ('form', {'form': 'a', 'n': -5}, {'form': 'a', 'n': -5}),
    ('form', {'form': 'a', 'dry_run': True}, {'form': 'a', 'dry_run': True}),
    ('form', {'form': 'a', 'dry-run': True}, {'form': 'a', 'dry_run': True}),
    ('form', {'form': 'a', '--dry-run': True}, {'form': 'a', 'dry_run': True}),
    ('form', {'form': 'a', 'dryRun': True}, {'form': 'a', 'dry_run': True}),
    ('form', {'form': 'a', 'd': True}, {'form': 'a', 'dry_run': True}),
    ('form', {'Form': 'a'}, {'form': 'a'}),
    ('form', {'form': 'a', 'unknown': None}, {'form': 'a'}),
    # Switches, on and off, as truth or as text.
    ('form', {'form': 'a', 'dry_run': False, 'q': None}, {'form': 'a'}),
    ('form', {'form': 'a', 'dry_run': 'true', 'q': 'false'}, {'form': 'a', 'dry_run': True}),
    ('form', {'form': 'a', 'cache': False}, {'form': 'a', 'cache': False}),
    ('form', {'form': 'a', 'cache': True}, {'form': 'a'}),
    ('form', {'form': 'a', 'no_cache': True}, {'form': 'a', 'cache': False}),
    ('form', {'form': 'a', 'color': False}, {'form': 'a', 'color': False}),
    ('form', {'form': 'a', 'no-color': True}, {'form': 'a', 'color': False}),
    ('form', {'form': 'a', 'color': 1}, {'form': 'a', 'color': True}),
    ('form', {'form': 'a', 'verbose': 3}, {'form': 'a', 'verbose': 3}),
    ('form', {'form': 'a', 'v': [True, True]}, {'form': 'a', 'verbose': 2}),
    ('form', {'form': 'a', 'verbose': True}, {'form': 'a', 'verbose': 1}),
    ('form', {'form': 'a', 'merge': False}, {'form': 'a', 'merge': False}),
    ('form', {'form': 'a', 'data': False}, {'form': 'a'}),
    ('form', {'form': 'a', 'check': True}, {'form': 'a', 'check': 'all'}),
    # Lists: after one flag, or with a flag each.
    ('form', {'form': 'a', 'pages': ['1', '2']}, {'form': 'a', 'pages': ['1', '2']}),
    ('form', {'pages': [1, 2], 'form': 'a'}, {'form': 'a', 'pages': ['1', '2']}),
    ('form', {'form': 'a', 'size': [3, 4]}, {'form': 'a', 'size': ['3', '4']}),
    ('form', {'form': 'a', 'tag': ['x', 'y']}, {'form': 'a', 'tag': ['x', 'y']}),
    ('form', {'form': 'a', 'tag': '-x'}, {'form': 'a', 'tag': ['-x']}),
    ('form', {'form': 'a', 'data': {'k': [1]}}, {'form': 'a', 'data': '{"k": [1]}'}),
    ('form', {'form': 'a', 'format': 'jpg'}, {'form': 'a', 'format': 'jpg'}),
    # Text and lists.
    ('form', '{"form": "a", "n": 2}', {'form': 'a', 'n': 2}),
    ('form', "{'form': 'a', 'q': True}", {'form': 'a', 'q': True}),
    ('form', 'a.pdf "b c.pdf" --n 2', {'form': 'a.pdf', 'output': 'b c.pdf', 'n': 2}),
    ('form', 'python scripts/form.py a.pdf', {'form': 'a.pdf'}),
    ('form', 'form.py a.pdf', {'form': 'a.pdf'}),
    ('form', ['a.pdf', '--n', 2], {'form': 'a.pdf', 'n': 2}),
    # Sub-commands: under their key, as the first word, or as a key of their own.
    ('commands', {'task': 'add', 'name': 'x'}, {'debug': False, 'task': 'add', 'name': 'x', 'force': False}),
    ('commands', {'command': 'a', 'name': 'x'}, {'debug': False, 'task': 'a', 'name': 'x', 'force': False}),
    ('commands', {'_': ['add', 'x'], 'debug': True}, {'debug': True, 'task': 'add', 'name': 'x', 'force': False}),
    ('commands', {'remove': {'level': 2, 'force': True}}, {'debug': False, 'task': 'remove', 'force': True, 'level': '2'}),
    # What takes the rest, and what shares positional arguments.
    ('server', {'server': 'npm run dev', 'command': ['python', 'x.py', '--fast']}, {'server': ['npm run dev'], 'command': ['python', 'x.py', '--fast']}),
    ('many', {'_': ['a', 'b', 'c']}, {'sources': ['a', 'b'], 'target': 'c'}),
    ('many', {'target': 'c', 'sources': ['a', 'b']}, {'sources': ['a', 'b'], 'target': 'c'}),
    ('many', {'target': 'c', '_': ['a', 'b']}, {'sources': ['a', 'b'], 'target': 'c'}),
    # A reading that is not complete leaves the rest as it is sent.
    ('open', {'source': 'a', 'extra': 'b', 'x': True}, [{'source': 'a'}, ['--extra', 'b', '-x']]),
    ('open', {'_': ['a', 'b']}, [{'source': 'a'}, ['b']]),
    # click and typer.
    ('click', {'source': 'a', 'rest': ['b', 'c'], 'n': 2}, {'source': 'a', 'rest': ['b', 'c'], 'count': 2}),
    ('click', {'source': 'a', 'count': -2, 'force': True}, {'source': 'a', 'count': -2, 'force': True}),
    ('click', {'_': ['a'], 'shout': True, 'tag': ['x', 'y']}, {'source': 'a', 'shout': True, 'tag': ['x', 'y']}),
    ('click', {'_': ['a'], 'shout': False, 'mode': 'FAST'}, {'source': 'a', 'mode': 'fast'}),
    ('click', {'source': 'a', 'at': [1, 2]}, {'source': 'a', 'at': ['1', '2']}),
    ('group', {'command': 'add-item', 'name': 'x'}, ['add', 'x']),
    ('group', {'clear-all': {'everything': True}, 'debug': True}, ['clear', True]),
    ('group', {'_': ['clear-all'], 'all': True}, ['clear', True]),
    ('typer', {'source': 'a'}, ['a', None, 'fast', 's', 1, [], False, False]),
    ('typer', {'source': 'a', 'target': 'b', 'mode': 'exact', 'size': 'l'}, ['a', 'b', 'exact', 'l', 1, [], False, False]),
    ('typer', {'_': 'a', 'max': 3, 'tags': ['x', 'y'], 'shout': True}, ['a', None, 'fast', 's', 3, ['x', 'y'], True, False]),
    ('typer', {'_': 'a', 'm': 3, 'tag': 'x', 'shout': False, 'quiet': True}, ['a', None, 'fast', 's', 3, ['x'], False, True]),
    ('app', {'command': 'hello', 'name': 'Ann', 'loud': True}, ['hello', 'Ann', True]),
    ('app', {'_': ['users', 'create', 'Ann']}, ['create', 'Ann']),
    ('app', {'users': {'create': {'name': 'Ann'}}}, ['create', 'Ann']),
    # A usage line.
    ('usage', {'input.pdf': 'a', 'output_dir': 'b'}, ['a', 'b']),
    ('usage', {'page': 3, 'output_dir': 'b', 'input_pdf': 'a'}, ['a', 'b', '3']),
    ('usage', {'_': ['a', 'b']}, ['a', 'b']),
]  # fmt: skip


@pytest.mark.filterwarnings('ignore::DeprecationWarning')  # of what typer imports from click
@pytest.mark.parametrize(('script', 'args', 'expected'), MATCHED)
def test_each_form_of_arguments_reaches_the_script_as_meant(
    script: str, args: Any, expected: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = read_declaration(f'scripts/{script}.py', SCRIPTS[script].encode())
    built = build_arguments(args, declared, name=f'scripts/{script}.py')
    assert run(script, built.argv, monkeypatch, capsys) == expected


MISFITS: list[tuple[str, Any, str]] = [
    ('form', None, 'It also needs form.'),
    ('form', {'form': None, 'n': 2}, 'It also needs form.'),
    ('form', {'form': 'a', 'pagse': 'x'}, "It has no parameter 'pagse'. Did you mean 'pages'?"),
    ('form', {'form': 'a', 'zzz': 'x'}, "It has no parameter 'zzz'. A list is passed on"),
    ('form', {'form': 'a', 'format': 'gif'}, "'gif' is not a choice of --format. The choices are: 'jpg', 'png'."),
    ('form', {'form': 'a', 'size': [1]}, '--size takes 2 values, not 1.'),
    ('form', {'form': 'a', 'pages': []}, '--pages takes at least 1 value, not 0.'),
    ('form', {'form': 'a', 'check': ['x', 'y']}, '--check takes 0 to 1 value, not 2.'),
    ('form', {'form': ['a', 'b']}, 'form takes 1 value, not 2.'),
    ('form', {'form': 'a', 'data': [['x']]}, "The value of 'data' is a list of lists."),
    ('form', {'form': 'a', 'q': 'maybe'}, '-q is a switch: send true or false.'),
    ('form', {'form': 'a', 'q': 0.5}, '-q is a switch: send true or false.'),
    ('form', {'form': 'a', 'no_color': 'maybe'}, '--color, --no-color is a switch: send true or false.'),
    ('form', {'form': 'a', 'pages': ['1', '--n']}, "'--n', a value of --pages, would be read as a flag."),
    ('form', {'form': '-rf'}, "The positional argument '-rf' begins with a dash"),
    ('form', {'_': ['a', 'b', 'c']}, "'c' is one positional argument too many."),
    ('form', {'output': 'b'}, 'It also needs form.'),
    ('pair', {'second': 'b'}, "'second' comes after 'first', so send that as well."),
    ('form', {'form': 'a', 'd': True, 'dry_run': True}, "'dry_run' is given twice."),
    ('form', {'form': 'a', 'data': None, 'tag': [{}] * 2000}, 'There are 2,000 arguments'),
    ('commands', None, 'It needs a command: one of add, a, remove, as the first value of "_".'),
    ('commands', {'task': 'move'}, "There is no command 'move'. The commands are: add, a, remove."),
    ('commands', {'_': ['remove'], 'force': True}, 'It also needs --level.'),
    ('commands', {'_': ['add', 'x'], 'level': 1}, "It has no parameter 'level'."),
    ('click', {'force': True}, 'It also needs source.'),
    ('click', {'source': 'a', 'mode': 'slow'}, "'slow' is not a choice of --mode."),
    ('typer', {'source': 'a', 'size': 'm'}, "'m' is not a choice of --size. The choices are: 's', 'l'."),
    ('app', {'command': 'bye'}, "There is no command 'bye'. The commands are: hello, users."),
    ('app', {'_': ['users', 'create']}, 'It also needs name.'),
    ('usage', {'input_pdf': 'a'}, 'It also needs output_dir.'),
    ('usage', {'input_pdf': 'a', 'output_dir': 'b', 'dpi': 3}, "It has no parameter 'dpi'."),
]  # fmt: skip


@pytest.mark.parametrize(('script', 'args', 'message'), MISFITS)
def test_a_misfit_is_told_with_the_usage(script: str, args: Any, message: str) -> None:
    declared = read_declaration(f'{script}.py', SCRIPTS[script].encode())
    with pytest.raises(SkillScriptExecutionError) as caught:
        build_arguments(args, declared, name=f'{script}.py')
    told = str(caught.value)
    assert message in told
    assert 'begins with a dash' in told or 'There are' in told or f'\nusage: {script}.py' in told


@pytest.mark.parametrize(
    ('script', 'args', 'argv'),
    [
        ('form', {'help': True}, ['--help']),
        ('commands', {'h': True}, ['--help']),
        ('commands', {'_': ['add'], '--help': True}, ['add', '--help']),
        ('inner', {'_': ['add'], 'command': 'x'}, ['add', '--command', 'x']),
        ('inner', {}, []),
    ],
)
def test_help_needs_no_other_argument_and_commands_keep_their_own(script: str, args: Any, argv: list[str]) -> None:
    declared = read_declaration(f'{script}.py', SCRIPTS[script].encode())
    assert list(build_arguments(args, declared, name=f'{script}.py').argv) == argv
