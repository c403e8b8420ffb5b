"""What several commands have in common: their options, how they fail, and which skills they are about."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, ParamSpec, cast

import typer

from pydantic_ai_skills import (
    LocalSkillScriptExecutor,
    PackageSkillsRegistry,
    SandboxUnavailableError,
    Skill,
    SkillError,
    SkillNotFoundError,
    SkillProblem,
    SkillRegistry,
    SkillScriptExecutor,
    SkillScriptNotFoundError,
    SkillsProject,
    SkillsToolset,
    SkillValidationError,
)

from .output import Failure, Output, place

__all__ = (
    'DONE',
    'FAILED',
    'FOUND_SOMETHING',
    'MISUSE',
    'DirectoryOption',
    'JsonOption',
    'PackagesOption',
    'SkillArgument',
    'StandardOption',
    'command',
    'find_skill',
    'hint_for',
    'look_at_toolset',
    'open_toolset',
    'source_of',
)

DONE, FOUND_SOMETHING, MISUSE, FAILED = 0, 1, 2, 3
"""Exit statuses: done; the answer is bad news; it was asked wrongly; something outside failed."""

JsonOption = Annotated[bool, typer.Option('--json', help='Print JSON, for programs.')]


def complete_skill_names(incomplete: str) -> list[tuple[str, str]]:
    """The skills whose name begins like this, for the shell's completion."""
    try:
        skills = look_at_toolset().skills.values()
    except (SkillError, Failure, ImportError, OSError):
        return []
    return [(skill.name, skill.description) for skill in skills if skill.name.startswith(incomplete)]


DirectoryOption = Annotated[
    list[Path] | None,
    typer.Option(
        '--directory',
        '-d',
        metavar='DIR',
        help="Use the skills in this directory, and not the project's. Can be given several times.",
    ),
]
SkillArgument = Annotated[
    str, typer.Argument(metavar='NAME', help='The name of a skill.', autocompletion=complete_skill_names)
]

StandardOption = Annotated[
    bool,
    typer.Option('--standard', help='Use the standard places: .agents/skills and others, of the project and of you.'),
]
PackagesOption = Annotated[bool, typer.Option('--packages', help='Add the skills that installed packages bring.')]

P = ParamSpec('P')

_MISUSES = (SkillNotFoundError, SkillScriptNotFoundError, SkillValidationError)


def command(function: Callable[P, int | None]) -> Callable[P, None]:
    """Make a command of a function that returns its exit status. What goes wrong is told in a line."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        out = Output(as_json=kwargs.get('as_json') is True)
        told: str | None = None
        try:
            _check_texts(kwargs.values())
            status = function(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            status = DONE  # the reader has seen enough
        except Failure as failure:
            status, told = failure.status, str(failure)
        except _MISUSES as error:
            status, told = MISUSE, str(error)
        except (SkillError, ImportError) as error:
            status, told = FAILED, str(error)
        except OSError as error:
            what = error.strerror or str(error)
            status, told = FAILED, f'{error.filename}: {what}' if error.filename else what
            out.as_json &= _flush()
        except KeyboardInterrupt:
            status = 130
        if told is not None:
            _tell(out, told)
        _flush()
        raise typer.Exit(status or DONE)

    return run


def _tell(out: Output, message: str) -> None:
    try:
        out.fail(message)
    except OSError:  # standard output takes nothing more
        Output().fail(message)


def _check_texts(values: Iterable[object]) -> None:
    """Refuse arguments that are not UTF-8 and so cannot be written to a file nor sent to a model; paths can be."""
    for value in values:
        for text in cast('list[object]', value) if isinstance(value, list) else [value]:
            if isinstance(text, str):
                try:
                    text.encode()
                except UnicodeEncodeError:
                    raise Failure(f'{text!r} is not UTF-8 text.') from None


def _flush() -> bool:
    """Write what is left; where that cannot be, forget it. Python would complain about it at the very end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def open_toolset(
    directories: Iterable[Path] | None = None, *, standard: bool = False, packages: bool = False, **options: Any
) -> SkillsToolset[Any]:
    """The skills of the directories that were named, or of the project one is in; nothing is fetched.

    Args:
        directories: Directories to use in place of the project's sources.
        standard: Whether to use the standard places in place of them.
        packages: Whether to add the skills of all installed packages.
        **options: As for `SkillsProject.toolset`.

    Raises:
        Failure: A directory that was named is not there.
    """
    named = list(directories or ())
    if named and standard:
        raise Failure('Give either directories or --standard.')
    for directory in named:
        if not directory.is_dir():
            raise Failure(f'There is no directory {str(directory)!r}.')
    project = SkillsProject.find()
    registries: list[SkillRegistry] = []
    if packages:
        executor = options.get('script_executor') or _sandbox(project)
        registries.append(PackageSkillsRegistry(packages='all', script_executor=executor))
    return project.toolset(
        directories='standard' if standard else named or None, registries=registries, offline=True, **options
    )


def look_at_toolset(directories: Iterable[Path] | None = None, **options: Any) -> SkillsToolset[Any]:
    """Like `open_toolset`, for what only looks: nothing is run, so no sandbox has to be made."""
    return open_toolset(directories, script_executor=LocalSkillScriptExecutor(), **options)


def _sandbox(project: SkillsProject) -> SkillScriptExecutor | None:
    try:
        return project.executor(sandbox=True)
    except SandboxUnavailableError:
        return None  # the policy refuses scripts of strangers then


def find_skill(toolset: SkillsToolset[Any], name: str) -> Skill[Any]:
    """The skill of this name.

    Raises:
        Failure: There is none; why, if it was left out.
    """
    try:
        return toolset.get_skill(name)
    except SkillNotFoundError as error:
        about = [
            problem
            for problem in toolset.problems
            if f'/{name}/' in problem.path or repr(name) in problem.message or problem.code == 'source-failed'
        ]
        why = [f'{place(problem.path)}: {problem.message}' for problem in about]
        raise Failure(' '.join((str(error), *why, hint_for(about) or '')).strip()) from None


def source_of(skill: Skill[Any]) -> str:
    """Where a skill comes from, for people."""
    source = skill.source
    if source is None:
        return place(skill.path) if skill.path else 'Python'
    if source.distribution is not None:
        return f'{source.distribution} {source.version}'
    at = source.ref or (source.commit or '')[:12]
    return f'{source.url.partition("://")[2] or source.url}{f"@{at}" if at else ""}'


def hint_for(problems: Iterable[SkillProblem]) -> str | None:
    """What to run to be rid of some problems, if a command does that."""
    if any(problem.code == 'source-failed' for problem in problems):
        return 'To fetch what is not here yet, run: pydantic-ai-skills sync'
    return None
