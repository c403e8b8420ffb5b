"""Libraries of different sizes: starting, reloading, searching, the prompt, the memory and the event loop."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel

from pydantic_ai_skills import SkillsDirectory, SkillsToolset
from pydantic_ai_skills.toolset.options import DEFAULTS

from .core import answer
from .figure import ROUNDS, Figure, best_of, longest_stall
from .library import requests
from .library import skills as library
from .skills import scan_and_parse, stat_all, write_skills

SIZES = (100, 1_000, 10_000, 50_000)
JUDGED = 10_000
"""The size for which there are limits."""

QUERIES = 200

MEMORY = """
import gc, os, sys
from pydantic_ai_skills import SkillsToolset
toolset = SkillsToolset(directories=['/nonexistent'])
toolset.search('warm up'); toolset.skills
def resident():
    gc.collect()
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE')
before = resident()
toolset = SkillsToolset(directories=[sys.argv[1]])
toolset.skills
found = resident()
toolset.search('task 1')
print(found - before, resident() - before)
"""


def rounds(count: int) -> int:
    return ROUNDS if count <= JUDGED else 3


def limit(count: int, most: float) -> float | None:
    return most if count == JUDGED else None


def starts(root: Path, count: int, index: Path) -> Iterator[Figure]:
    SkillsDirectory(root, disk_index=index).get_skills()
    cold, bare, warm = best_of(
        lambda: SkillsDirectory(root).get_skills(),
        lambda: scan_and_parse(root),
        lambda: SkillsDirectory(root, disk_index=index).get_skills(),
        rounds=rounds(count),
    )
    yield Figure(
        what=f'cold start with {count:,} skills',
        measured=cold,
        unit='ms',
        baseline=bare,
        baseline_is='scan, read each file, CBaseLoader of its frontmatter',
        judged_by='ratio',
        limit=limit(count, 0.7),
    )
    yield Figure(
        what=f'warm start with {count:,} skills, index on disk',
        measured=warm,
        unit='ms',
        baseline=cold,
        baseline_is='the cold start',
        judged_by='ratio',
        limit=limit(count, 0.25),
    )


def reloads(root: Path, count: int) -> Iterator[Figure]:
    toolset = SkillsToolset[Any](directories=[root])
    assert len(toolset.skills) == count
    ours, bare = best_of(toolset.reload, lambda: stat_all(root), rounds=rounds(count))
    stats = 'stat each folder and SKILL.md'
    yield Figure(
        what=f'reload of {count:,} unchanged skills',
        measured=ours,
        unit='ms',
        baseline=bare,
        baseline_is=stats,
        judged_by='ratio',
        limit=limit(count, 1.5),
    )
    file = sorted(root.iterdir())[count // 2] / 'SKILL.md'
    text = file.read_text('utf-8')
    taken: list[float] = []
    for number in range(3):
        file.write_text(text.replace('step by step', f'change {number}'), 'utf-8')
        time.sleep(0.1)
        start = time.perf_counter()
        toolset.reload()
        taken.append((time.perf_counter() - start) * 1000)
        assert f'change {number}' in toolset.skills[file.parent.name].description
    file.write_text(text, 'utf-8')
    yield Figure(
        what=f'reload of {count:,} skills, one changed',
        measured=min(taken),
        unit='ms',
        baseline=bare,
        baseline_is=stats,
        judged_by='ratio',
    )
    watched = SkillsToolset[Any](directories=[root], auto_reload='watch')
    assert len(watched.skills) == count
    (events,) = best_of(watched.reload, rounds=rounds(count))
    yield Figure(
        what=f'reload of {count:,} unchanged skills, watched',
        measured=events,
        unit='ms',
        baseline=bare,
        baseline_is=stats,
        judged_by='ratio',
    )


def searches(root: Path, count: int) -> Iterator[Figure]:
    toolset = SkillsToolset[Any](directories=[root])
    names = list(toolset.skills)
    start = time.perf_counter()
    toolset.search('anything')
    yield Figure(what=f'first search in {count:,} skills', measured=(time.perf_counter() - start) * 1000, unit='ms')
    rng = random.Random(1)
    taken: list[float] = []
    for number in range(QUERIES):
        task = rng.randrange(count)
        query = (f'task {task}', f'stpe by step tasks {task}', names[task], f'list of long tasks like {task}')[
            number % 4
        ]
        start = time.perf_counter()
        found = toolset.search(query)
        taken.append((time.perf_counter() - start) * 1000)
        assert found
    yield Figure(
        what=f'search in {count:,} skills, median of {QUERIES}',
        measured=statistics.median(taken),
        unit='ms',
        limit=limit(count, 5),
    )


def memory(root: Path, count: int) -> Iterator[Figure]:
    done = subprocess.run([sys.executable, '-c', MEMORY, root], check=True, capture_output=True, text=True)
    without, with_index = (int(word) / count / 1024 for word in done.stdout.split())
    yield Figure(
        what=f'memory for each of {count:,} skills, with search',
        measured=with_index,
        unit='KB',
        baseline=without,
        baseline_is='before the first search; both of the whole process',
        limit=limit(count, 4),
    )


def prompt(root: Path, count: int) -> Iterator[Figure]:
    agent = Agent(FunctionModel(answer), toolsets=[SkillsToolset[Any](directories=[root])])
    messages = asyncio.run(agent.run('Hello')).all_messages()
    text = getattr(messages[0], 'instructions', None) or ''
    whole = sum(len(skill.name) + len(skill.description) for skill in SkillsDirectory(root).find().skills)
    yield Figure(
        what=f'instructions with {count:,} skills',
        measured=len(text),
        unit='chars',
        baseline=whole,
        baseline_is='all names and descriptions',
        limit=limit(count, DEFAULTS.get('catalog_budget') or 0),
    )


async def stalls(root: Path, count: int) -> list[Figure]:
    """Each in the best of a few rounds: the worst is that of another process, or of a collection of garbage."""

    def toolset(*, auto_reload: bool = False) -> SkillsToolset[Any]:
        return SkillsToolset[Any](directories=[root], auto_reload=auto_reload)

    def run(given: SkillsToolset[Any]) -> Callable[[], Awaitable[object]]:
        agent = Agent[Any, str](FunctionModel(answer), toolsets=[given])
        return lambda: agent.run('Hello')

    def search(given: SkillsToolset[Any]) -> Callable[[], Awaitable[object]]:
        return lambda: asyncio.to_thread(given.search, 'long list of tasks')

    ready = toolset(auto_reload=True)
    await run(ready)()
    works: dict[str, Callable[[], Callable[[], Awaitable[object]]]] = {
        'a first run': lambda: run(toolset()),
        'a run with auto_reload': lambda: run(ready),
        'a first search': lambda: search(toolset()),
        'a search': lambda: search(ready),
    }
    figures: list[Figure] = []
    for name, make in works.items():
        measured: list[float] = []
        for _ in range(3):
            work = make()
            gc.collect()
            measured.append(await longest_stall(work))
        what = f'longest stall of the event loop, {count:,}: {name}'
        figures.append(Figure(what=what, measured=min(measured), unit='ms', limit=limit(count, 10)))
    return figures


def quality() -> Iterator[Figure]:
    toolset = SkillsToolset[Any](skills=library())
    asked = requests()
    found = [([skill.name for skill in toolset.search(query, 20)], meant) for query, meant in asked]
    recall = sum(meant in names[:5] for names, meant in found) / len(found)
    ranks = [1 / (names.index(meant) + 1) if meant in names else 0 for names, meant in found]
    what = f'of {len(asked)} requests to {len(toolset.skills)} skills'
    yield Figure(what=f'recall@5 {what}', measured=recall, unit='', limit=0.9, at_least=True)
    yield Figure(what=f'mean reciprocal rank {what}', measured=sum(ranks) / len(ranks), unit='')
    exact = sum(toolset.search(name)[0].name == name for name in toolset.skills) / len(toolset.skills)
    yield Figure(what='share of names that are first for themselves', measured=exact, unit='', limit=1, at_least=True)


def figures(sizes: tuple[int, ...] = SIZES) -> Iterator[Figure]:
    yield from quality()
    for count in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(os.path.realpath(folder)) / 'skills'
            write_skills(root, count)
            time.sleep(0.2)
            yield from starts(root, count, root.parent / 'index.sqlite')
            yield from reloads(root, count)
            yield from searches(root, count)
            yield from memory(root, count)
            yield from prompt(root, count)
            yield from asyncio.run(stalls(root, count))
