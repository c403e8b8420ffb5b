"""What running a script costs beyond the script."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median

from pydantic_ai_skills import BubblewrapSkillScriptExecutor, LocalSkillScriptExecutor, SandboxUnavailableError
from pydantic_ai_skills.types import SkillScript

from .figure import Figure

RUNS = 100
BASELINE = f'the same script by subprocess.run, median of {RUNS}'


async def medians(*works: Callable[[], Awaitable[object]]) -> list[float]:
    """The median time of each of some works, in milliseconds, taken in turns so that all see the same machine."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(RUNS):
        for taken, work in zip(times, works, strict=True):
            start = time.perf_counter()
            await work()
            taken.append((time.perf_counter() - start) * 1000)
    return [median(taken) for taken in times]


def sandbox() -> BubblewrapSkillScriptExecutor | None:
    try:
        return BubblewrapSkillScriptExecutor()
    except SandboxUnavailableError as error:
        print(f'no sandbox: {error}', file=sys.stderr)
        return None


async def measure(folder: Path, sandboxed: BubblewrapSkillScriptExecutor | None) -> Iterator[Figure]:
    path = folder / 'hello.py'
    path.write_text("print('hello')\n", 'utf-8')
    script = SkillScript('hello.py', uri=str(path), skill_name='hello', skill_dir=folder)
    local = LocalSkillScriptExecutor()

    async def bare() -> None:
        subprocess.run([sys.executable, path], check=True, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: ASYNC221 - nothing else waits

    works: list[Callable[[], Awaitable[object]]] = [bare, lambda: local.run(script)]
    if sandboxed is not None:
        works.append(lambda: sandboxed.run(script))
    for work in works:
        await work()
    alone, ours, *inside = await medians(*works)
    figures = [
        Figure(
            what='script by the local executor',
            measured=ours,
            unit='ms',
            baseline=alone,
            baseline_is=BASELINE,
            judged_by='ratio',
            limit=1.2,
        )
    ]
    figures += [
        Figure(
            what='script in the sandbox',
            measured=taken,
            unit='ms',
            baseline=alone,
            baseline_is=BASELINE,
            judged_by='difference',
            limit=20,
        )
        for taken in inside
    ]
    return iter(figures)


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(measure(Path(folder).resolve(), sandbox()))
