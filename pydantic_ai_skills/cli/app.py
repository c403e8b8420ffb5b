"""The table of commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer
from typer import Option

from .add import add
from .chat import chat
from .doctor import doctor
from .eval import evaluate_skills
from .explain import explain
from .import_lock import import_lock
from .list import list_skills
from .lock import lock
from .new import new
from .outdated import outdated
from .prompt import prompt
from .remove import remove
from .run import run
from .scan import scan
from .search import search
from .serve import serve
from .show import show
from .sync import sync
from .trust import trust
from .validate import validate

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog='Exit status: 0 success · 1 problems found · 2 usage error · 3 operation failed.',
    context_settings={'help_option_names': ['-h', '--help']},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f'pydantic-ai-skills {version("pydantic-ai-skills")}')
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool, Option('--version', callback=_print_version, is_eager=True, help='Print the version and exit.')
    ] = False,
) -> None:
    """Agent Skills at the terminal: list, check, run, fetch and try them."""


COMMANDS = {
    'list': list_skills,
    'show': show,
    'search': search,
    'validate': validate,
    'scan': scan,
    'prompt': prompt,
    'explain': explain,
    'run': run,
    'new': new,
    'add': add,
    'import': import_lock,
    'sync': sync,
    'lock': lock,
    'outdated': outdated,
    'remove': remove,
    'serve': serve,
    'trust': trust,
    'chat': chat,
    'eval': evaluate_skills,
    'doctor': doctor,
}

for name, function in COMMANDS.items():
    app.command(name)(function)
