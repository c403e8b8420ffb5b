"""Runs another scanner, within limits, and reads the SARIF that it prints."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.execution.launch import Command
from pydantic_ai_skills.execution.process import Process

from .sarif import MAX_SARIF_BYTES, SarifRun, parse_sarif

DEFAULT_TIMEOUT = 300.0
"""Seconds that a scanner may take for one skill."""

FOLDER = '{}'
"""Stands for the folder in a command; without it, the folder comes last."""


def run_scanner(command: str, folder: str | Path, *, timeout: float = DEFAULT_TIMEOUT) -> list[SarifRun]:
    """Run a scanner on a folder. No shell is involved; the scanner has the rights and the environment of this process.

    Its exit code is ignored: scanners also return 1 if they have found something.

    Args:
        command: The command, such as `'skill-scanner scan {} --format sarif'`; `{}` stands for the folder.
        folder: The folder to scan.
        timeout: Seconds it may take.

    Raises:
        SkillValidationError: The command cannot be read.
        SkillScriptExecutionError: It cannot be started, takes too long, prints too much, or prints no SARIF.
    """
    argv = command_line(command, folder)
    result = Process(
        Command(
            label=argv[0],
            argv=argv,
            cwd=Path.cwd(),
            env=dict(os.environ),
            stdin=None,
            timeout=timeout,
            max_output=2 * MAX_SARIF_BYTES,
        ),
        cancelled=lambda: False,
    ).run()
    if result.timed_out or result.truncated:
        why = f'did not end within {timeout:g} s' if result.timed_out else 'printed too much'
        raise SkillScriptExecutionError(f'{argv[0]} {why}, so nothing of it counts.')
    try:
        runs = parse_sarif(result.stdout.encode(), root=Path(folder), label='What it printed')
    except SkillValidationError as error:
        said = result.stderr.strip().splitlines()[-1:]
        raise SkillScriptExecutionError(
            ' '.join((f'{argv[0]} ended with exit code {result.exit_code}. {error}', *said))
        ) from None
    return [_inside(run, os.path.realpath(folder)) for run in runs]


def _inside(run: SarifRun, folder: str) -> SarifRun:
    """The run; a result about no file in the folder is made one about the folder, as nothing else was scanned."""
    paths = (each.path if f'{each.path}'.startswith(f'{folder}{os.sep}') else folder for each in run.results)
    return replace(run, results=tuple(replace(each, path=path) for each, path in zip(run.results, paths, strict=True)))


def command_line(command: str, folder: str | Path) -> tuple[str, ...]:
    """The words of a command, with the folder in place of `{}` or at the end.

    Raises:
        SkillValidationError: There are none, or a quote is not closed.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SkillValidationError(f'The command {command!r} cannot be read: {error}.') from None
    if not words:
        raise SkillValidationError('The command of a scanner is empty.')
    path = os.path.abspath(folder)
    named = [word.replace(FOLDER, path) for word in words]
    return tuple(named if named != words else (*words, path))
