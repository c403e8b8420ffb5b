"""The commands and their names."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from .chat import chat
from .doctor import doctor
from .listing import list_skills, search, show
from .new import new
from .prompt import prompt
from .remote import add, lock, outdated, remove, sync
from .run import run
from .validate import validate

__all__ = ('app',)

EPILOG = 'Exit status: 0 done · 1 bad news (problems, a failed script, nothing found) · 2 asked wrongly · 3 failed.'

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EPILOG,
    context_settings={'help_option_names': ['-h', '--help']},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f'pydantic-ai-skills {version("pydantic-ai-skills")}')
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool, typer.Option('--version', callback=_print_version, is_eager=True, help='Print the version and exit.')
    ] = False,
) -> None:
    """Agent Skills at the terminal: see them, check them, run their scripts, fetch them, talk to them."""


COMMANDS = {
    'list': list_skills,
    'show': show,
    'search': search,
    'validate': validate,
    'prompt': prompt,
    'run': run,
    'new': new,
    'add': add,
    'sync': sync,
    'lock': lock,
    'outdated': outdated,
    'remove': remove,
    'chat': chat,
    'doctor': doctor,
}

for name, function in COMMANDS.items():
    app.command(name)(function)
