"""The table of commands.

A command is imported when it is called or asked about, so that `--help`, `--version` and completion are quick.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

COMMANDS = {
    'list': ('list:list_skills', 'List skills, and say why one is missing.'),
    'show': ('show:show', 'Show a skill, its source and its files.'),
    'search': ('search:search', 'Search skills by words.'),
    'validate': ('validate:validate', 'Check skills against every rule.'),
    'scan': ('scan:scan', 'Look for hidden text, secrets and risky commands in skills.'),
    'eval': ('eval:evaluate_skills', 'Measure whether skills are loaded when needed, and help.'),
    'explain': ('explain:explain', 'Explain why skills would be chosen for a prompt, or not.'),
    'prompt': ('prompt:prompt', 'Show exactly what the model is sent, and what it costs.'),
    'run': ('run:run', 'Run a script as an agent would.'),
    'chat': ('chat:chat', 'Talk to an agent that has the skills.'),
    'new': ('new:new', 'Create a skill from a template.'),
    'add': ('add:add', 'Add skills from a repository, website, archive or other source.'),
    'import': ('import_lock:import_lock', 'Add what another installer has installed.'),
    'sync': ('sync:sync', 'Install exactly what the lock file pins.'),
    'lock': ('lock:lock', 'Pin what the sources contain now.'),
    'outdated': ('outdated:outdated', 'Show sources that have changed since they were locked.'),
    'remove': ('remove:remove', 'Remove skills that were added.'),
    'trust': ('trust:trust', 'Allow a checkout to run its skills and fetch its sources.'),
    'serve': ('serve:serve', 'Offer skills to other programs, as an MCP server.'),
    'doctor': ('doctor:doctor', 'Report what is installed, what is missing and how to get it.'),
}
"""Each command with its module, its function and the first line of its help; the function's docstring is the rest."""

EXIT_STATUS = 'Exit status: 0 success · 1 problems found · 2 usage error · 3 operation failed.'


class LazyGroup(TyperGroup):
    """A group that imports a command when it is called. Its own commands only have names and help."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name. An unknown name fails with the closest ones."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load(str(name)), rest


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EXIT_STATUS,
    context_settings={'help_option_names': ['-h', '--help']},
)


def load(name: str) -> Any:
    """Import a command, and return it as typer calls it."""
    module, _, function_name = COMMANDS[name][0].partition(':')
    function = getattr(import_module(f'.{module}', __package__), function_name)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.command(name, help=f'{COMMANDS[name][1]}\n\n{inspect.getdoc(function)}')(function)
    return typer.main.get_command(alone)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f'pydantic-ai-skills {version("pydantic-ai-skills")}')
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool, Option('--version', callback=_print_version, is_eager=True, help='Print the version and exit.')
    ] = False,
) -> None:
    """Agent Skills at the terminal: list, check, run, fetch and try them."""


def _not_imported() -> None: ...


for command_name, (_, summary) in COMMANDS.items():
    app.command(command_name, help=summary)(_not_imported)
