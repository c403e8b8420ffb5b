"""The hostile scoreboard: a test records the figure it measured, and `--scoreboard` prints all of them.

`--update-security` also writes how many trials there were, and how many held, into docs/security.md.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.registries.repositories import GitServer, Registries, Repository


class Row(NamedTuple):
    """One figure of one case."""

    case: int
    """The number of the case in the list of hostile cases."""

    what: str
    measured: str
    limit: str
    test: str
    """The test that recorded it."""


@dataclass(kw_only=True)
class Scoreboard:
    """The figures recorded in this session."""

    rows: list[Row] = field(default_factory=list[Row])

    def record(self, case: int, what: str, measured: str, limit: str) -> None:
        """Add a figure, such as `record(1, 'merge-key bomb', '3 ms', '50 ms')`. Assert the limit in the test itself."""
        test = os.environ.get('PYTEST_CURRENT_TEST', '').rpartition(' ')[0]
        self.rows.append(Row(case, what, measured, limit, test))

    def lines(self) -> list[str]:
        """The figures as a table, by case and then in the order they were recorded."""
        rows = [('case', 'what', 'measured', 'limit')]
        rows += [(str(row.case), *row[1:4]) for row in sorted(self.rows, key=lambda row: row.case)]
        case, what, measured, _ = (max(len(row[column]) for row in rows) for column in range(4))
        return [f'{row[0]:>{case}}  {row[1]:<{what}}  {row[2]:>{measured}}  {row[3]}' for row in rows]

    def sections(self, held: Sequence[str], broken: Sequence[str]) -> str:
        """How many tests of each section held, as a table in Markdown."""
        recorded = {row.test: row.case for row in self.rows}
        lines = ['| cases | about | tried | held |', '|---|---|---:|---:|']
        for first, last, about in SECTIONS:
            good, bad = (sum(first <= case_of(test, recorded) <= last for test in tests) for tests in (held, broken))
            lines.append(f'| {first} to {last} | {about} | {good + bad:,} | {good:,} |')
        return '\n'.join(lines).replace('34 to 34', '34')


def case_of(test: str, recorded: Mapping[str, int]) -> int:
    """The case that a test is about: by its name, or else by what it recorded; 0 if neither says."""
    named = re.search(r'test_(\d+)_', test)
    return int(named[1]) if named else recorded.get(test, 0)


SECTIONS = (
    (1, 8, 'parsing and the prompt'),
    (9, 14, 'files'),
    (15, 26, 'scripts and the sandbox'),
    (27, 33, 'git and other sources'),
    (34, 34, 'writers and readers at once'),
    (35, 43, 'whose code runs'),
    (44, 47, 'locks and approvals'),
    (48, 53, 'limits'),
    (54, 57, 'text and time'),
)
"""The first and the last case of each section, and what it is about."""

SECURITY = Path(__file__).parents[2] / 'docs/security.md'
MARKS = '<!-- hostile -->\n', '<!-- /hostile -->\n'
"""What the table in the documentation stands between."""

TRIES = 10
SECONDS = 5
"""How often at least, and for how long at least, work is tried that is too slow."""


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
    """Seconds. The loop ends with the first try within the limit, or after `TRIES` and `SECONDS`."""

    best: float = inf
    """Seconds of the quickest try so far."""

    clock: Callable[[], float] = time.perf_counter
    """`time.process_time` for work that only computes: it stands still while another process has the processor."""

    _started: float = 0.0

    def __iter__(self) -> Iterator[int]:
        until = time.monotonic() + SECONDS
        for number in count():
            if self.best <= self.limit or (number >= TRIES and time.monotonic() > until):
                return
            yield number

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
    parser.addoption('--update-security', action='store_true', help='write how many held into docs/security.md')


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SCOREBOARD] = Scoreboard()


@pytest.fixture
def server(repository: Repository) -> Iterator[GitServer]:
    """A server for the `repository` of the test file, at `/acme`."""
    server = GitServer(repository.path.parent)
    yield server
    server.stop()


@pytest.fixture
def registry(server: GitServer, tmp_path: Path) -> Registries:
    """Makes registries of the repository, over HTTP, with the cache of the test."""
    return Registries(server, tmp_path / 'cache')


@pytest.fixture
def scoreboard(pytestconfig: pytest.Config) -> Scoreboard:
    """Where a hostile case records what it measured."""
    return pytestconfig.stash[SCOREBOARD]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption('--scoreboard', default=False):
        terminalreporter.section('hostile scoreboard')
        for line in config.stash[SCOREBOARD].lines():
            terminalreporter.write_line(line)
        held, broken = (
            [report.nodeid for report in terminalreporter.stats.get(kind, ()) if report.when == 'call']
            for kind in ('passed', 'failed')
        )
        table = config.stash[SCOREBOARD].sections(held, broken)
        terminalreporter.write_line(f'\n{table}')
        if config.getoption('--update-security'):
            before, _, rest = SECURITY.read_text('utf-8').partition(MARKS[0])
            after = rest.partition(MARKS[1])[2]
            SECURITY.write_text(f'{before}{MARKS[0]}\n{table}\n\n{MARKS[1]}{after}', 'utf-8')
