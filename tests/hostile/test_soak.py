"""Skills that are read while they are written: HOSTILE case 34.

`HOSTILE_SOAK_SECONDS=60` for the full time; `make hostile` sets it.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import multiprocessing
import os
import random
import re
import shutil
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import SkillsToolset
from tests.folders import write

from .conftest import Scoreboard, Stopwatch, before_other_processes

SPAWN = multiprocessing.get_context('spawn')
SECONDS = float(os.environ.get('HOSTILE_SOAK_SECONDS', '5'))
SKILLS = [f'skill-{number}' for number in range(12)]
VERSION = re.compile(r'version (\d+)')


def files_of(name: str, version: int) -> dict[str, str]:
    """A skill that says its version in every part, and is long enough to be written in more than one step."""
    filler = 'Read this line with care.\n' * random.Random(version).randint(10, 900)
    return {
        'SKILL.md': f'---\nname: {name}\ndescription: In version {version}.\n---\nversion {version}\n{filler}version {version}\n',
        'references/notes.md': f'version {version}\n{filler}version {version}\n',
    }  # fmt: skip


def replace(folder: Path, version: int) -> None:
    """Write a skill as one should: each file beside its place, then moved there."""
    for file, text in files_of(folder.name, version).items():
        new = write(folder, {f'.{version}.new': text}) / f'.{version}.new'
        new.replace(folder / file)


def rewrite(folder: Path, version: int) -> None:
    """Write a skill as many do: each file emptied and then written, the first one in steps."""
    files = files_of(folder.name, version)
    with (folder / 'SKILL.md').open('w') as opened:
        for start in range(0, len(files['SKILL.md']), 8_192):
            opened.write(files['SKILL.md'][start : start + 8_192])
            opened.flush()
    (folder / 'references/notes.md').write_text(files['references/notes.md'])


def write_again_and_again(root: Path, seed: int, stop: Event, writes: Synchronized[int]) -> None:
    """Replace and rewrite skills, and let another come and go. A process of its own, as an editor or a download is."""
    rng, versions = random.Random(seed), itertools.count((seed + 1) * 1_000_000)
    mine = SKILLS[seed::2]  # two writers of one file would tear it by themselves
    before_other_processes()
    while not stop.wait(rng.uniform(0, 0.02)):
        rng.choice((replace, rewrite))(root / rng.choice(mine), next(versions))
        guest = root / f'guest-{seed}'
        if guest.exists():
            shutil.rmtree(guest)
        else:
            write(guest, files_of(guest.name, next(versions)))
        with writes:
            writes.value += 1


@dataclass
class Soak:
    """Readers of a directory while others write into it, and what they saw."""

    root: Path
    versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    errors: list[str] = field(default_factory=list[str])
    torn: list[str] = field(default_factory=list[str])
    written: Synchronized[int] = field(default_factory=lambda: SPAWN.Value('l', 0))
    runs: int = 0

    @property
    def writes(self) -> int:
        return self.written.value

    @contextmanager
    def writers(self) -> Generator[None]:
        stop = SPAWN.Event()
        writers = [
            SPAWN.Process(target=write_again_and_again, args=(self.root, seed, stop, self.written)) for seed in (0, 1)
        ]
        for writer in writers:
            writer.start()
        try:
            yield
        finally:
            stop.set()
            for writer in writers:
                writer.join()
            self.errors.extend(f'writer: exit code {writer.exitcode}' for writer in writers if writer.exitcode)

    def check(self, what: str, text: str, parts: int) -> None:
        """A text of one version has it in all its parts."""
        versions = VERSION.findall(text)
        if len(versions) != parts or len(set(versions)) != 1:
            self.torn.append(f'{what}: {versions}')

    async def read_for(self, seconds: float, agent: Agent[None, str]) -> None:
        """Four readers for some time, and on a busy machine until there were enough writes and runs."""
        until, writes, runs = time.monotonic() + seconds, self.writes + seconds * 10, self.runs + seconds * 4

        async def read() -> None:
            while (now := time.monotonic()) < until or (
                now < until + 120 and (self.writes <= writes or self.runs <= runs)
            ):
                await self.run(agent)

        await asyncio.gather(*(read() for _ in range(4)))

    async def run(self, agent: Agent[None, str]) -> None:
        try:
            result = await agent.run('Go')
        except Exception as error:  # noqa: BLE001 - what is counted
            self.errors.append(f'run: {error!r}')
            return
        self.runs += 1
        for message in result.all_messages():
            for part in message.parts:
                if isinstance(part, ToolReturnPart):
                    if part.outcome != 'success':
                        self.errors.append(f'{part.tool_name}: {part.content}')
                    else:
                        self.check(part.tool_name, str(part.content), 2)


def make_agent(toolset: SkillsToolset[None], soak: Soak) -> Agent[None, str]:
    """An agent whose model loads a skill, reads its notes and is done."""
    rng = random.Random(34)

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        for name in SKILLS:
            if f'<skill name="{name}">' not in (info.instructions or ''):
                soak.torn.append(f'instructions without {name}')
        calls = sum(isinstance(message, ModelResponse) for message in messages)
        if calls == 2:
            return ModelResponse(parts=[TextPart('done')])
        if calls == 0:
            return ModelResponse(parts=[ToolCallPart('load_skill', {'skill_name': rng.choice(SKILLS)})])
        args: dict[str, Any] = {'skill_name': rng.choice(SKILLS), 'resource_name': 'references/notes.md'}
        return ModelResponse(parts=[ToolCallPart('read_skill_resource', args)])

    return Agent(FunctionModel(respond), deps_type=type(None), toolsets=[toolset])


def memory() -> float:
    """The memory of this process in MB."""
    gc.collect()
    return int(Path('/proc/self/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6


def descriptors() -> int:
    return len(os.listdir('/proc/self/fd'))


async def converge(soak: Soak, toolset: SkillsToolset[None], agent: Agent[None, str]) -> float:
    """How long until every skill is shown in the version that was written last."""
    last = {name: next(soak.versions) for name in SKILLS}
    for number, (name, version) in enumerate(last.items()):
        (rewrite, replace)[number % 2](soak.root / name, version)
    start = time.monotonic()
    while True:
        await soak.run(agent)
        shown = {name: VERSION.findall(toolset.skills[name].description) for name in SKILLS}
        took = time.monotonic() - start
        if shown == {name: [str(version)] for name, version in last.items()} or took > 10:
            return took


@pytest.mark.alone
@pytest.mark.skipif(not os.path.exists('/proc/self/fd'), reason='counts descriptors and memory through /proc')
async def test_34_a_soak_of_writers_and_readers_ends_as_it_began(tmp_path: Path, scoreboard: Scoreboard) -> None:
    soak = Soak(tmp_path)
    for name in SKILLS:
        write(tmp_path / name, files_of(name, next(soak.versions)))
    toolset = SkillsToolset[None](directories=[tmp_path], auto_reload=True, catalog_budget=None)
    agent = make_agent(toolset, soak)
    await soak.run(agent)
    descriptors_before = descriptors()
    # Caches fill in the first part; what is compared comes after. A leak grows in every part, luck in some.
    more = inf
    with soak.writers():
        await soak.read_for(SECONDS / 4, agent)
        for seconds in (SECONDS * 3 / 4, SECONDS / 2, SECONDS / 2):
            if more > 5:
                memory_before = memory()
                await soak.read_for(seconds, agent)
                more = min(more, memory() - memory_before)
    watch = Stopwatch(limit=1)
    for _ in watch:
        watch.best = min(watch.best, await converge(soak, toolset, agent))
    new_descriptors = descriptors() - descriptors_before
    what = f'{SECONDS:.0f} s, {soak.writes:,} writes, {soak.runs:,} runs'
    scoreboard.record(34, f'{what}: exceptions, torn', f'{len(soak.errors)}, {len(soak.torn)}', '0, 0')
    scoreboard.record(34, 'descriptors, memory more', f'{new_descriptors}, {more:.1f} MB', '0, 5 MB')
    scoreboard.record(34, 'converges in', f'{watch.best * 1000:.0f} ms', '1 s')
    assert soak.errors == []
    assert soak.torn == []
    assert soak.writes > SECONDS * 10
    assert soak.runs > SECONDS * 4
    assert new_descriptors <= 0
    assert more <= 5
    assert watch.best <= 1
