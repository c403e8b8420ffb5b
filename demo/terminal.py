"""Prints the scenes of the demo: 80 columns, with colour on a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
from itertools import zip_longest

WIDTH = 80
LABEL = 8
LEFT = 44
BOLD, DIM, GREEN, MAGENTA, CYAN = '1', '2', '32', '35', '36'


def painted(text: str, *codes: str) -> str:
    """Colour on a terminal, or where FORCE_COLOR asks for it; plain text elsewhere."""
    wanted = os.environ.get('FORCE_COLOR') or (sys.stdout.isatty() and not os.environ.get('NO_COLOR'))
    return f'\x1b[{";".join(codes)}m{text}\x1b[0m' if wanted and codes else text


def heading(title: str) -> None:
    """Begin a scene."""
    print('\n' + painted(f'── {title} '.ljust(WIDTH, '─'), BOLD, CYAN))


def say(label: str, text: str, *codes: str, most: int = 3) -> None:
    """Print a text beside who says it, in at most so many lines."""
    lines = wrapped(text, WIDTH - LABEL)
    if len(lines) > most:
        lines[most - 1 :] = [f'… and {len(lines) - most + 1} lines more']
    for title, line in zip_longest([label], lines, fillvalue=''):
        print((painted(title.ljust(LABEL), BOLD, *codes) + line).rstrip())


def report(text: str) -> None:
    """Print a text in lines that fit, all but the first indented."""
    print(textwrap.fill(text, WIDTH, subsequent_indent='    '))


def side_by_side(left: tuple[str, str], right: tuple[str, str]) -> None:
    """Print two titled texts in two columns."""
    columns = [
        [painted(title.ljust(width), BOLD), *(line.ljust(width) for line in wrapped(text, width))]
        for (title, text), width in ((left, LEFT), (right, WIDTH - LEFT - 3))
    ]
    for one, other in zip_longest(*columns):
        print(f'{one or " " * LEFT} │ {other or ""}'.rstrip())


def bar(label: str, tokens: int, most: int) -> None:
    """Print a number of tokens as a bar, as long as its share of the most."""
    length = max(1, round(30 * tokens / most))
    print(f'{label.ljust(42)}{painted("█" * length, MAGENTA)} {tokens:,}')


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text, none of them longer than the width."""
    lines = text.strip().splitlines()
    return [piece for line in lines for piece in textwrap.wrap(line, width, break_on_hyphens=False) or ['']]
