"""Finding skills, noticing changes, serving runs, and importing the package."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage, RunUsage

from pydantic_ai_skills import SkillsDirectory, SkillsToolset

from .figure import ROUNDS, Figure, best_of, longest_stall
from .skills import scan_and_parse, stat_all, write_skills

STALL_ROUNDS = 3
STALL_RUNS = 10
IMPORTS = """
import time
start = time.perf_counter(); import pydantic_ai
between = time.perf_counter(); from pydantic_ai_skills import SkillsToolset
print(between - start, time.perf_counter() - between)
"""


async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    # With its usage given, so that the model does not count the words of each request, which no real one does here.
    return ModelResponse(parts=[TextPart('Hello')], usage=RequestUsage(input_tokens=1, output_tokens=1))


def discovery(root: Path) -> Figure:
    ours, bare = best_of(lambda: SkillsDirectory(root).get_skills(), lambda: scan_and_parse(root))
    return Figure(
        what='cold discovery of 1,000 skills',
        measured=ours,
        unit='ms',
        baseline=bare,
        baseline_is='scan, read each file, parse its frontmatter',
        judged_by='ratio',
        limit=1.5,
    )


def memory(root: Path) -> Figure:
    directory = SkillsDirectory(root)
    gc.collect()
    tracemalloc.start()
    skills = directory.get_skills()
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Figure(what='memory for each skill', measured=used / len(skills) / 1024, unit='KB', limit=4)


def reload(root: Path) -> Figure:
    toolset = SkillsToolset[object](directories=[root])
    assert len(toolset.skills) == 1000
    ours, bare = best_of(toolset.reload, lambda: stat_all(root), rounds=2 * ROUNDS)
    return Figure(
        what='reload of 1,000 unchanged skills',
        measured=ours,
        unit='ms',
        baseline=bare,
        baseline_is='stat each folder and SKILL.md',
        judged_by='ratio',
        limit=2,
    )


async def instructions(root: Path) -> Figure:
    toolset = SkillsToolset[object](directories=[root])
    ctx = RunContext[object](deps=None, model=TestModel(), usage=RunUsage())
    await toolset.get_instructions(ctx)
    calls = 2_000
    start = time.perf_counter()
    for _ in range(calls):
        await toolset.get_instructions(ctx)
    taken = (time.perf_counter() - start) / calls
    return Figure(what='get_instructions at 1,000 skills', measured=taken * 1e6, unit='µs', limit=50)


async def stall(root: Path) -> Figure:
    """The longest time for which the loop did nothing else, in the best of a few rounds of runs."""

    def agent(*, auto_reload: bool) -> Agent[Any, str]:
        toolset = SkillsToolset[Any](directories=[root], auto_reload=auto_reload)
        return Agent(FunctionModel(answer), toolsets=[toolset])

    async def worst_of_round(which: Agent[Any, str]) -> float:
        gc.collect()
        return max([await longest_stall(lambda: which.run('Hello')) for _ in range(STALL_RUNS)])

    agents = agent(auto_reload=True), agent(auto_reload=False)
    for which in agents:  # the first run also discovers and renders
        await which.run('Hello')
    rounds = [[await worst_of_round(which) for which in agents] for _ in range(STALL_ROUNDS)]
    measured, without = (min(column) for column in zip(*rounds, strict=True))
    return Figure(
        what='longest stall of the event loop, auto_reload',
        measured=measured,
        unit='ms',
        baseline=without,
        baseline_is=f'without auto_reload; each the maximum of {STALL_RUNS} runs, best of {STALL_ROUNDS} rounds',
        limit=10,
    )


async def concurrency(root: Path) -> Figure:
    async def run_all(agent: Agent[Any, str]) -> float:
        gc.collect()
        start = time.perf_counter()
        await asyncio.gather(*(agent.run('Hello') for _ in range(50)))
        return (time.perf_counter() - start) * 1000

    bare = Agent[Any, str](FunctionModel(answer))
    skilled = Agent[Any, str](FunctionModel(answer), toolsets=[SkillsToolset[Any](directories=[root])])
    times = [(await run_all(skilled), await run_all(bare)) for _ in range(3 * ROUNDS)]
    ours, without = (min(taken) for taken in zip(*times, strict=True))
    return Figure(
        what='50 concurrent runs at 100 skills',
        measured=ours,
        unit='ms',
        baseline=without,
        baseline_is='the same runs without skills',
        judged_by='ratio',
        limit=1.3,
    )


def imports() -> Figure:
    # As it is for users: with bytecode that an earlier import has written.
    env = {name: value for name, value in os.environ.items() if name != 'PYTHONDONTWRITEBYTECODE'}

    def once() -> list[float]:
        done = subprocess.run([sys.executable, '-c', IMPORTS], env=env, check=True, capture_output=True, text=True)
        return [float(word) * 1000 for word in done.stdout.split()]

    theirs, ours = (min(times) for times in zip(*[once() for _ in range(2 * ROUNDS)], strict=True))
    return Figure(
        what='from pydantic_ai_skills import SkillsToolset',
        measured=ours,
        unit='ms',
        baseline=theirs,
        baseline_is='import pydantic_ai, which it comes on top of',
        judged_by='share',
        limit=5,
    )


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        thousand, hundred = Path(folder) / 'thousand', Path(folder) / 'hundred'
        write_skills(thousand, 1000)
        write_skills(hundred, 100)
        yield discovery(thousand)
        yield memory(thousand)
        yield reload(thousand)
        yield asyncio.run(instructions(thousand))
        yield asyncio.run(stall(thousand))
        yield asyncio.run(concurrency(hundred))
    yield imports()
