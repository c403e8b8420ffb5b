"""A figure the package is held to, and the table that shows it."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ('HEADING', 'ROUNDS', 'Figure', 'best_of', 'longest_stall')

ROUNDS = 9
"""How often most things are measured. The shortest time counts: it is the one other processes disturbed least."""

_COLUMNS = '{:<50} {:>14} {:>14} {:>12} {:>12}  {:<5} {}'
HEADING = _COLUMNS.format('', 'measured', 'baseline', 'judged', 'limit', '', 'baseline is').rstrip()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Something measured, and what it may be."""

    what: str
    """What was measured."""

    measured: float
    """How much it was."""

    unit: str
    """What of."""

    judged_by: Literal['measured', 'ratio', 'share', 'difference'] = 'measured'
    """Whether the limit is for the figure itself, or for how it compares to the baseline."""

    limit: float | None = None
    """How much may be what is judged; `None` where it is just told."""

    at_least: bool = False
    """Whether the limit is the least it may be, not the most."""

    baseline: float | None = None
    """What was measured to compare with, in the same run and unit."""

    baseline_is: str = ''
    """What that is."""

    @property
    def judged(self) -> float:
        """What is compared with the limit."""
        baseline = self.baseline or 0
        by = {
            'measured': lambda: self.measured,
            'ratio': lambda: self.measured / baseline,
            'share': lambda: 100 * self.measured / baseline,
            'difference': lambda: self.measured - baseline,
        }
        return by[self.judged_by]()

    @property
    def shown(self) -> tuple[str, ...]:
        """What was measured, against what, what follows, the limit and how it was kept."""
        unit = {'ratio': '×', 'share': '%'}.get(self.judged_by, self.unit)
        kept = '' if self.limit is None else 'MISS' if self.is_over else 'ok'
        return (
            self.what,
            f'{self.measured:,.2f} {self.unit}',
            '' if self.baseline is None else f'{self.baseline:,.2f} {self.unit}',
            f'{self.judged:,.2f} {unit}',
            '' if self.limit is None else f'{"≥ " if self.at_least else ""}{self.limit:g} {unit}',
            kept,
            self.baseline_is,
        )

    @property
    def is_over(self) -> bool:
        """Whether it is not what it may be."""
        if self.limit is None:
            return False
        return self.judged < self.limit if self.at_least else self.judged > self.limit

    def __str__(self) -> str:
        return _COLUMNS.format(*self.shown).rstrip()


def best_of(*works: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """The shortest time of each of some works, in milliseconds, taken in turns so that all see the same machine."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for taken, work in zip(times, works, strict=True):
            gc.collect()
            start = time.perf_counter()
            work()
            taken.append((time.perf_counter() - start) * 1000)
    return [min(taken) for taken in times]


async def longest_stall(work: Callable[[], Awaitable[object]]) -> float:
    """The longest time, in milliseconds, for which the loop did nothing else while something was done."""
    task = asyncio.ensure_future(work())
    longest, last = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await task
    return longest * 1000
