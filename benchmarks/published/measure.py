"""Measures one collection: what loads, what starts as it does at a terminal, and what is left behind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_ai_skills import BubblewrapSkillScriptExecutor, LocalSkillScriptExecutor, Skill, SkillsToolset

from .collection import Program, PublishedSkill, content_hash, copy_of, skills_in
from .starts import DRIVER, Start, first_good, start_by_tool, start_plainly

ATTEMPTS: tuple[list[str], ...] = (['--help'], [])
"""The arguments to try. Without a sandbox only the first are: a program that gets none may begin its work."""

Starts = dict[tuple[str, Program], tuple[Start, Start]]
"""What became of each program of each skill: plainly, and by the tool."""

Executor = BubblewrapSkillScriptExecutor | LocalSkillScriptExecutor


@dataclass
class Measured:
    """The programs of a collection, started by one executor in both ways."""

    where: str
    """`'sandbox'` or `'local'`."""

    starts: Starts = field(default_factory=dict[tuple[str, Program], tuple[Start, Start]])

    left: list[str] = field(default_factory=list[str])
    """Files that the tool's runs changed, added or removed in the folders of the skills."""

    def counts(self, interpreter: str) -> tuple[int, int, int]:
        """How many programs there are for an interpreter, how many start plainly and how many by the tool."""
        pairs = [pair for (_, program), pair in self.starts.items() if program.interpreter == interpreter]
        return len(pairs), sum(plain.is_good for plain, _ in pairs), sum(tool.is_good for _, tool in pairs)

    def missing(self) -> Iterator[str]:
        """The programs that start plainly and not by the tool, with the reason."""
        for (skill, program), (plain, tool) in self.starts.items():
            if plain.is_good and not tool.is_good:
                yield f'{skill}: {program.name}: {tool.reason}'

    def lacking(self) -> dict[str, list[str]]:
        """What the programs lack that start in neither way, the most frequent first."""
        lacking: dict[str, list[str]] = {}
        for (_, program), (plain, tool) in self.starts.items():
            if not plain.is_good and not tool.is_good:
                lacking.setdefault(plain.reason, []).append(program.name)
        return dict(sorted(lacking.items(), key=lambda each: -len(each[1])))


@dataclass
class Report:
    """What was found in a collection."""

    skills: int = 0
    loaded: int = 0
    problems: Counter[str] = field(default_factory=Counter[str])
    """How often each problem code occurs."""

    offered: int = 0
    """How many scripts the toolset offers."""

    measured: list[Measured] = field(default_factory=list[Measured])


def measure(collection: Path, scratch: Path, executors: Mapping[str, Executor], *, jobs: int) -> Report:
    """Measure a collection in copies below `scratch`, which the executors must be able to read."""
    driver = scratch / 'driver' / 'driver.py'
    driver.parent.mkdir()
    driver.write_text(DRIVER, 'utf-8')
    report = Report()
    for where, executor in executors.items():
        by_tool, plainly = (
            copy_of(collection, scratch / where / way / collection.resolve().name) for way in ('tool', 'plain')
        )
        skills = [Trial.of(skill, executor, trusted=where == 'local') for skill in skills_in(by_tool)]
        if not report.measured:
            _count(report, skills)
        before = content_hash(by_tool)
        folders = [plainly / trial.skill.folder.relative_to(by_tool) for trial in skills]
        starts = asyncio.run(_start_all(skills, folders, driver, jobs))
        names = [folder.relative_to(plainly).as_posix() for folder in folders]
        measured = Measured(where)
        for name, of_skill in zip(names, starts, strict=True):
            measured.starts |= {(name, program): pair for program, pair in of_skill.items()}
        after = content_hash(by_tool)
        measured.left = sorted(path for path in before | after if before.get(path) != after.get(path))
        report.measured.append(measured)
    return report


@dataclass(frozen=True)
class Trial:
    """A skill whose programs are started in both ways."""

    skill: PublishedSkill
    executor: Executor
    toolset: SkillsToolset[Any]
    loaded: Skill[Any] | None
    """The skill as the toolset has it, if it loads."""

    @classmethod
    def of(cls, skill: PublishedSkill, executor: Executor, *, trusted: bool) -> Trial:
        """Load a skill."""
        toolset = skill.toolset(executor, trusted=trusted)
        return cls(skill, executor, toolset, next(iter(toolset.skills.values()), None))

    async def start(self, folder: Path, driver: Path) -> dict[Program, tuple[Start, Start]]:
        """Start all programs, one after the other: in another copy of the skill's folder, and by the tool."""
        starts: dict[Program, tuple[Start, Start]] = {}
        for program in self.skill.programs:
            attempts = ATTEMPTS if self.executor.sandboxed else ATTEMPTS[:1]
            plain = await first_good(partial(start_plainly, self.executor, driver, folder, program), attempts)
            tool = Start(None, 'The skill does not load.')
            if self.loaded is not None:
                tool = await first_good(partial(start_by_tool, self.toolset, self.loaded.name, program), attempts)
            starts[program] = plain, tool
        return starts


async def _start_all(
    trials: Sequence[Trial], folders: Sequence[Path], driver: Path, jobs: int
) -> list[dict[Program, tuple[Start, Start]]]:
    limiter = asyncio.Semaphore(jobs)

    async def start(trial: Trial, folder: Path) -> dict[Program, tuple[Start, Start]]:
        async with limiter:
            return await trial.start(folder, driver)

    return await asyncio.gather(*map(start, trials, folders))


def _count(report: Report, skills: Iterable[Trial]) -> None:
    for trial in skills:
        report.skills += 1
        report.loaded += trial.loaded is not None
        report.offered += len(trial.loaded.scripts) if trial.loaded else 0
        report.problems.update(problem.code for problem in trial.toolset.problems)
