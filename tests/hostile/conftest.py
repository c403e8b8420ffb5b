"""The hostile scoreboard: a test records the figure it measured, and `--scoreboard` prints all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
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
