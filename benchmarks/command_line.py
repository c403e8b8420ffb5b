"""Starting the command line, which people do many times a day."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from .figure import ROUNDS, Figure
from .skills import write_skills

BARE = """
import typer
app = typer.Typer(rich_markup_mode=None)
@app.command()
def one() -> None: 'One thing.'
@app.command()
def two() -> None: 'Another thing.'
app()
"""
SKILLS = 50


def cpu_times(folder: Path, *commands: Sequence[str]) -> list[float]:
    """The least processor time of each command, in milliseconds, taken in turns; others that run do not count in it."""
    env = {name: value for name, value in os.environ.items() if name != 'PYTHONDONTWRITEBYTECODE'}
    env['HOME'] = str(folder)
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(ROUNDS):
        for taken, command in zip(times, commands, strict=True):
            before = getrusage(RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *command], cwd=folder, env=env, check=True, capture_output=True)
            after = getrusage(RUSAGE_CHILDREN)
            taken.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return [min(taken) for taken in times]


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_skills(folder / 'skills', SKILLS)
        ours = '-m', 'pydantic_ai_skills'
        bare, asked = cpu_times(folder, ('-c', BARE, '--help'), (*ours, '--help'))
        imported, listed = cpu_times(folder, ('-c', 'import pydantic_ai'), (*ours, 'list'))
    yield Figure(
        what='pydantic-ai-skills --help',
        measured=asked,
        unit='ms',
        baseline=bare,
        baseline_is='--help of a bare typer program; processor time',
        judged_by='ratio',
        limit=1.5,
    )
    yield Figure(
        what=f'pydantic-ai-skills list of {SKILLS} skills',
        measured=listed,
        unit='ms',
        baseline=imported,
        baseline_is='import pydantic_ai; processor time',
        judged_by='ratio',
        limit=1.3,
    )
