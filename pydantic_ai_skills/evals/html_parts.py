"""Parts of the HTML page: elements, bars, tables. All text is escaped, and its hidden characters are written out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias
from xml.etree.ElementTree import Element

from pydantic_ai_skills.toolset.results import escaped

from .trigger_report import NONE, ConfusionMatrix

Child: TypeAlias = Element | str
"""What an element contains: other elements, and texts."""

_MARKS = {True: ('✓', 'good', 'passed'), False: ('✗', 'bad', 'failed'), None: ('–', 'dim', 'not checked')}


def element(tag: str, *children: Child, **attributes: str) -> Element:
    """An element with its children and attributes: `class_` means `class`, and `aria_label` means `aria-label`."""
    made = Element(tag, {name.rstrip('_').replace('_', '-'): escaped(value) for name, value in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or '') + escaped(child)
        else:
            made.text = (made.text or '') + escaped(child)
    return made


def mark(passed: bool | None) -> Element:
    """A sign for how something went."""
    sign, style, meaning = _MARKS[passed]
    return element('span', sign, class_=f'mark {style}', title=meaning)


def number(value: float | None, places: int = 2) -> str:
    """A number as people read it; a dash for none."""
    return '–' if value is None else f'{value:,.{places}f}'


def folded(title: Sequence[Child], *children: Child) -> Element:
    """Something that opens when its title is clicked."""
    return element('details', element('summary', *title), *children)


def table(headings: Iterable[str], rows: Iterable[Iterable[Child]]) -> Element:
    """A table that scrolls sideways where it is too wide."""
    head = element('tr', *(element('th', heading, scope='col') for heading in headings))
    body = (element('tr', *(element('td', cell) for cell in row)) for row in rows)
    return element('div', element('table', element('thead', head), element('tbody', *body)), class_='scroll')


def bar(value: float, most: float, label: str, style: str, *, spread: float = 0) -> Element:
    """A bar that is full at `most`, a line for the spread around its end, and a label after it."""
    share, reach = (value / most, spread / most) if most else (0.0, 0.0)
    low, high = (f'{100 * min(max(end, 0), 1):.1f}%' for end in (share - reach, share + reach))
    parts = [element('rect', width=f'{100 * min(share, 1):.1f}%', height='100%', class_=style)]
    if spread:
        parts.append(element('line', x1=low, x2=high, y1='50%', y2='50%', class_='spread'))
    chart = element('svg', *parts, role='img', aria_label=f'{style}: {label}')
    return element('div', chart, element('span', label), class_='bar')


def matrix_table(matrix: ConfusionMatrix) -> Element:
    """The confusion matrix: what was right is green, what was loaded in place of it red, and no load at all amber."""
    head = element('tr', element('th', 'should load'), *(element('th', name, scope='col') for name in matrix.loaded))
    rows = (
        element('tr', element('th', expected, scope='row'), *_cells(expected, matrix.loaded, counts))
        for expected, counts in zip(matrix.expected, matrix.counts, strict=True)
    )
    grid = element('table', element('thead', head), element('tbody', *rows), class_='matrix')
    return element('div', grid, class_='scroll')


def _cells(expected: str, loaded: Sequence[str], counts: Sequence[int]) -> Iterable[Element]:
    """A row of the matrix. The more of the row's runs are in a cell, the stronger its colour."""
    total = max(sum(counts), 1)
    for name, count in zip(loaded, counts, strict=True):
        style = '' if not count else 'right' if name == expected else 'missed' if name == NONE else 'wrong'
        shade = f'--share: {count / total:.2f}'
        yield element('td', str(count) if count else '', class_=style, style=shade, title=f'{expected} → {name}')
