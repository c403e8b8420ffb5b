"""What scripts declare, read from their text."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from pydantic_ai_skills.execution.declared import declaration_of, read_declaration
from pydantic_ai_skills.execution.declared import parameters as parameters_module
from pydantic_ai_skills.types.script_usage import render_usage
from tests.execution.conftest import MakeScript


def declared(source: str, name: str = 'a.py') -> tuple[str, bool]:
    """The usage line made of what was read, and whether the reading is complete."""
    found = read_declaration(name, textwrap.dedent(source).lstrip('\n').encode())
    return found.usage_line(name), found.complete


@pytest.mark.parametrize(
    ('source', 'usage', 'complete'),
    [
        (
            """
            p = argparse.ArgumentParser()
            group = p.add_argument_group('files')
            group.add_argument('x')
            one = p.add_mutually_exclusive_group(required=True)
            one.add_argument('--a', required=True)
            one.add_argument('--b', nargs='*')
            p.set_defaults(x=1)
            args = vars(p.parse_args() if True else None)
            """,
            'usage: a.py [--a A] [--b B ...] x',
            True,
        ),
        (
            """
            class Tool:
                def parser(self):
                    self.p = argparse.ArgumentParser(description='x')
                    self.p.add_argument('--deep')
                    if self.more:
                        self.p.add_argument('--more', required=True)
                    return self.p
                def run(self):
                    return self.parser().parse_args()
            """,
            'usage: a.py [--deep DEEP] [--more MORE]',
            True,
        ),
        (
            """
            base = argparse.ArgumentParser(add_help=False)
            base.add_argument('--shared', action=MyAction)
            p = argparse.ArgumentParser(parents=[base])
            for name in ['--one', '--two']:
                p.add_argument(name, nargs=COUNT)
            for name in NAMES:
                p.add_argument(name, choices=range(3))
            NAMES = ('--three',)
            while False:
                p.parse_args()
            """,
            'usage: a.py [--shared SHARED] [--one ONE ...] [--two TWO ...] [--three THREE]',
            True,
        ),
        ('p = argparse.ArgumentParser(parents=[base()])', 'usage: a.py', False),
        ("p = argparse.ArgumentParser(prefix_chars='+')", 'usage: a.py', False),
        ('p = argparse.ArgumentParser()\nadd_more(p)', 'usage: a.py', False),
        ('p = argparse.ArgumentParser()\nfor x in unknown():\n    p.add_argument(x)', 'usage: a.py', False),
        ('p = argparse.ArgumentParser()\ns = p.add_subparsers()\ns.add_parser(x)', 'usage: a.py', False),
        ("p = argparse.ArgumentParser()\ns = p.add_subparsers()\ns.add_parser('go', help='Goes.')\np.parse_args()", 'usage: a.py {go} ...', True),
        (
            "p = argparse.ArgumentParser()\np.add_argument('a')\nq = argparse.ArgumentParser()\nq.add_argument('b')",
            'usage: a.py [a] [b]',
            False,
        ),
        ('def f(p):\n    return f(p)\np = argparse.ArgumentParser()\nf(p)\np.parse_args()', 'usage: a.py', True),
        ('p = argparse.ArgumentParser()\n' + 'a+b+c+d\n' * 5_000 + "p.add_argument('a')", 'usage: a.py', False),
        ('x = ' + 'f(' * 90 + ')' * 90, 'usage: a.py', False),
        # click
        ('@click.command()\n@click.argument(name)\ndef f(): ...', 'usage: a.py', False),
        ("@click.command()\n@shared\n@click.option('--x')\ndef f(): ...", 'usage: a.py [--x X]', False),
        ("@click.command(context_settings={})\n@click.option('--x', default=1)\ndef f(): ...", 'usage: a.py [--x X]', False),
        ("@click.command\n@click.argument('x', default='1')\ndef f(): ...", 'usage: a.py [x]', True),
        ('@click.group(invoke_without_command=True)\ndef f(): ...\n@f.command\ndef go(): ...\nprint(1)\nf.other(go)', 'usage: a.py {go} ...', True),
        (
            "@click.command()\n@click.option('--a')\ndef one(): ...\n@click.command()\n@click.option('--b')\ndef two(): ...\ntwo()",
            'usage: a.py [--b B]',
            True,
        ),
        ("@click.group()\ndef a(): ...\n@click.command()\ndef b(): ...\na.add_command(b, 'bee')\nb.add_command(a)", 'usage: a.py', False),
        # typer
        ("app = typer.Typer()\n@app.callback()\ndef main(ctx: typer.Context, v: bool = False): ...\n@app.command(name='x')\ndef f(): ...", 'usage: a.py [--v] {x} ...', True),
        ("app = typer.Typer()\n@app.command()\ndef f(a: int | None = typer.Option(...), *rest, k: str = 'x'): ...", 'usage: a.py --a A [--k K]', False),
        ("app = typer.Typer()\n@app.other()\n@app.command\ndef f(a: None | Literal['x'], b): ...", 'usage: a.py x b', True),
        ('app = typer.Typer()\nother.add_typer(app)', 'usage: a.py', False),
        ('typer.run(unknown)', 'usage: a.py', False),
        ("class E(Enum):\n    def f(self): ...\n    a = 'x'\napp = typer.Typer()\n@app.command()\ndef f(a: E, b: list[str]): ...", 'usage: a.py x b ...', True),
        # usage lines
        ('"""Usage: a.py <in> [--n N] [--fast] [more...]"""', 'usage: a.py [--n N] [--fast] in [more ...]', True),
        ('"""Usage: a.py --mode fast|slow <in>..."""', 'usage: a.py', False),
        ('"""Usage: a.py --out FILE --dpi=N IN"""', 'usage: a.py [--out OUT] [--dpi DPI] IN', True),
        ('"""Usage: a.py [--mode fast|slow] IN..."""', 'usage: a.py [--mode fast|slow] IN ...', True),
        ('"""Usage: tool IN"""', 'usage: a.py IN', True),
        ('"""Usage: python IN"""', 'usage: a.py', False),
        ('"""Usage:\n  a.py <in>\n  a.py <in> <out>  Writes there\n"""', 'usage: a.py in [out]', False),
        ('"""Usage:\n  a.py <in>\n  a.py <dir> <out>\n"""', 'usage: a.py', False),
        ('"""Usage: a.py <in> <in>"""', 'usage: a.py', False),
        ('"""Usage: a.py <in> & more!"""', 'usage: a.py', False),
        ('"""Usage: a.py <--->"""', 'usage: a.py', False),
        ('"""Usage: a.py <in>"""\nif "--fast" in x: ...', 'usage: a.py in', False),
    ],
)  # fmt: skip
def test_declarations_are_read_without_running_anything(source: str, usage: str, complete: bool) -> None:
    assert declared(source) == (usage, complete)


def test_a_text_that_is_nested_deeply_declares_nothing() -> None:
    assert declared('x = a' + '.b' * 1_500) == ('usage: a.py', False)


def test_a_printed_usage_text_is_shown_where_more_may_be_possible() -> None:
    source = "import sys\nprint(f'Usage: {sys.argv[0]} <in>')\nif '--fast' in sys.argv: ..."
    assert declared(source) == ('Usage: a.py <in>', False)


def test_usage_of_other_languages_is_read_too() -> None:
    assert declared('#!/bin/sh\n# Usage: ./a.sh <name> [--open]\n', 'a.sh') == ('usage: a.sh [--open] name', False)
    assert declared('echo "Usage: $0 <name>"\n', 'a.sh') == ('usage: a.sh name', False)


def test_commands_and_lists_are_shown() -> None:
    source = """
    p = argparse.ArgumentParser()
    p.add_argument('--tag', action='append')
    s = p.add_subparsers()
    add = s.add_parser('add', description='Add one.\\nAnd more.')
    add.add_argument('name')
    s.add_parser('clear')
    """
    found = read_declaration('a.py', textwrap.dedent(source).encode())
    assert render_usage(found) == 'Arguments:\n  --tag (many)\n  add name: Add one.\n  clear'
    assert found.usage_line('a.py', 'add') == 'usage: a.py [--tag TAG] add name'


def test_a_reading_is_remembered_until_the_text_changes(
    make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = make_script('a.py', '"""One."""')
    monkeypatch.setattr(parameters_module, 'MAX_REMEMBERED', 1)
    first = declaration_of(script)
    assert declaration_of(script) is first
    assert script.path is not None
    Path(script.path).write_text('"""Two."""')
    assert declaration_of(script).about == 'Two.'
    assert declaration_of(script, b'"""Three."""').about == 'Three.'
