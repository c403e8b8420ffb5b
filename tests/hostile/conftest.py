"""The hostile scoreboard: a test records the figure it measured, and `--scoreboard` prints all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import NamedTuple

import pytest


class Row(NamedTuple):
    """One figure of one case."""

    case: int
    """The number of the case in the list of hostile cases."""

    what: str
    measured: str
    limit: str


@dataclass(kw_only=True)
class Scoreboard:
    """The figures recorded in this session."""

    rows: list[Row] = field(default_factory=list[Row])

    def record(self, case: int, what: str, measured: str, limit: str) -> None:
        """Add a figure, such as `record(1, 'merge-key bomb', '3 ms', '50 ms')`. Assert the limit in the test itself."""
        self.rows.append(Row(case, what, measured, limit))

    def lines(self) -> list[str]:
        """The figures as a table, by case and then in the order they were recorded."""
        rows = [('case', 'what', 'measured', 'limit')]
        rows += [(str(row.case), *row[1:]) for row in sorted(self.rows, key=lambda row: row.case)]
        case, what, measured, _ = (max(len(row[column]) for row in rows) for column in range(4))
        return [f'{row[0]:>{case}}  {row[1]:<{what}}  {row[2]:>{measured}}  {row[3]}' for row in rows]


TRIES = 10


@dataclass
class Stopwatch:
    """Times the same work until one try is quick enough: other processes only ever add to the time it takes.

    watch = Stopwatch(limit=0.05)
    for _ in watch:
        with watch:
            work()
    assert watch.best <= watch.limit
    """

    limit: float
    """Seconds. The loop ends with the first try within the limit, or after `TRIES`."""

    best: float = inf
    """Seconds of the quickest try so far."""

    clock: Callable[[], float] = time.perf_counter
    """`time.process_time` for work that only computes: it stands still while another process has the processor."""

    _started: float = 0.0

    def __iter__(self) -> Iterator[int]:
        for number in range(TRIES):
            yield number
            if self.best <= self.limit:
                return

    def __enter__(self) -> None:
        self._started = self.clock()

    def __exit__(self, *_: object) -> None:
        self.best = min(self.best, self.clock() - self._started)

    def __str__(self) -> str:
        return f'{self.best * 1000:.1f} ms' if self.best < 0.1 else f'{self.best:.2f} s'


CPU_TIME = """
import ctypes, os, resource

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans of a run become children of this process

def cpu_time(whose=(resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)):
    try:
        while True:  # the kernel adds the time of a child when it is reaped
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, whose))
"""
"""Source of `cpu_time()`, for a process of its own: seconds that it and all it started have computed. These stand still
while another process has the processor."""


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a condition, but not for ever: the assertion after it says what was missing."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def before_other_processes() -> None:
    """Let this process run before others where its user may ask for it, so that it is not stopped half-way."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)


def processes_with(text: str) -> list[int]:
    """Processes that have this text in their command line. One that was killed has none from the moment it ended."""
    found: list[int] = []
    for entry in os.listdir('/proc'):
        try:
            if entry.isdigit() and text.encode() in Path(f'/proc/{entry}/cmdline').read_bytes():
                found.append(int(entry))
        except OSError:
            continue
    return found


SCOREBOARD = pytest.StashKey[Scoreboard]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption('--scoreboard', action='store_true', help='print the figures of the hostile cases')


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SCOREBOARD] = Scoreboard()


@pytest.fixture
def scoreboard(pytestconfig: pytest.Config) -> Scoreboard:
    """Where a hostile case records what it measured."""
    return pytestconfig.stash[SCOREBOARD]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption('--scoreboard', default=False):
        terminalreporter.section('hostile scoreboard')
        for line in config.stash[SCOREBOARD].lines():
            terminalreporter.write_line(line)
