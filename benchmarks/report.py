"""The figures as they are written into the documentation: tables and plots, with the date and the versions."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from collections.abc import Sequence
from datetime import date
from html import escape
from importlib.metadata import version
from math import log10
from pathlib import Path

from .figure import Figure

__all__ = ('write_figures', 'write_peers')

PAGE = Path('docs/benchmarks.md')
PLOT = Path('docs/images/benchmark-peers.svg')
SIZES_PLOT = Path('docs/images/benchmark-sizes.svg')

_BAR, _STEP, _LEFT, _WIDTH = 14, 26, 300, 410
_STYLE = 'font-family="system-ui, sans-serif" font-size="12" fill="#888"'


def write_figures(figures: Sequence[Figure]) -> None:
    """Write the figures of `make bench` that have a limit, and a plot. All others are printed at the terminal only."""
    head = ['what', 'figure', 'limit', 'compared with']
    rows = [head, ['---', '---:', '---:', '---'], *(_row(figure) for figure in figures if figure.limit is not None)]
    table = '\n'.join(f'| {" | ".join(row)} |' for row in rows)
    times = [figure for figure in figures if re.match(r'(cold|warm) start|reload of', figure.what)]
    bars = [(figure.what, figure.measured) for figure in times]
    SIZES_PLOT.write_text(_plot(bars, 'ms'), 'utf-8')
    image = _image('Time to start and to reload, by the number of skills', SIZES_PLOT)
    _replace('figures', f'{image}\n\n{table}\n\n{_made_with("make bench")}\n')


def _row(figure: Figure) -> list[str]:
    """What was measured, as a ratio where there is a baseline; its limit; and what it is compared with."""
    what, _, _, judged, limit, kept, against = figure.shown
    return [what, judged.strip() if kept == 'ok' else f'**{judged.strip()}**, missed', limit.strip(), against]


def _image(text: str, plot: Path) -> str:
    """A picture that can be scrolled where the page is narrow."""
    return f'<div class="picture" markdown>\n![{text}](images/{plot.name})\n</div>'


def write_peers(results: Sequence[tuple[str, float, float]], floor: float, count: int) -> None:
    """Write the figures of `make bench-peers`: of each library its name, and milliseconds to start and for a run."""
    (_, cold, run), *_ = results
    rows = [
        ('library', 'finds the skills in', '× this one', 'each run costs', '× this one'),
        ('---', '---:', '---:', '---:', '---:'),
        *(
            (name, f'{one:,.1f} ms', f'{one / cold:,.1f}', f'{again:,.2f} ms', f'{again / run:,.1f}')
            for name, one, again in results
        ),
        ('bare loop with `CBaseLoader`', f'{floor:,.1f} ms', f'{floor / cold:,.1f}', '', ''),
    ]
    table = '\n'.join(f'| {" | ".join(row)} |' for row in rows)
    bars = sorted(((name, one) for name, one, _ in results), key=lambda bar: bar[1])
    PLOT.write_text(_plot(bars, 'ms'), 'utf-8')
    image = _image(f'Time to find {count:,} skills, by library', PLOT)
    _replace('peers', f'{image}\n\n{table}\n\n{_made_with("make bench-peers")} {count:,} skills.\n')


def _made_with(command: str) -> str:
    versions = ', '.join(f'{name} {version(name)}' for name in ('pydantic-ai-skills', 'pydantic-ai-slim', 'pyyaml'))
    return (
        f'Made by `{command}` on {date.today()}: {versions}, Python {platform.python_version()}, SQLite '
        f'{sqlite3.sqlite_version}, {platform.system()} on {os.cpu_count()} cores.'
    )


def _replace(part: str, text: str) -> None:
    """Put text between the marks of a part of the page."""
    page = PAGE.read_text('utf-8')
    begin, end = f'<!-- {part}: made by a command -->\n', f'<!-- end of {part} -->\n'
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f'{before}{begin}\n{text}\n{end}{after}', 'utf-8')


def _plot(bars: Sequence[tuple[str, float]], unit: str) -> str:
    """Bars on a logarithmic scale, in colours that can be read on light and on dark."""
    longest = max(value for _, value in bars)
    shortest = min(value for _, value in bars) / 2
    height = _STEP * len(bars) + 10
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 110} {height}" {_STYLE}>']
    for row, (name, value) in enumerate(bars):
        top = row * _STEP + 8
        width = _WIDTH * log10(value / shortest) / log10(longest / shortest)
        colour = '#e92063' if 'this' in name or name.startswith('pydantic-ai-skills 0') else '#6a7fa8'
        lines += [
            f'<text x="{_LEFT - 8}" y="{top + 11}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{_LEFT}" y="{top}" width="{width:.0f}" height="{_BAR}" rx="2" fill="{colour}"/>',
            f'<text x="{_LEFT + width + 6:.0f}" y="{top + 11}">{value:,.1f} {unit}</text>',
        ]
    return '\n'.join((*lines, '</svg>')) + '\n'
