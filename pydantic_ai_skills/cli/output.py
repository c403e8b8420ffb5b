"""Writes to the terminal.

Skills may contain untrusted text. All text passes through `safe`, which escapes every character that could move the
cursor, change colours or hide text; none of it is read as markup.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from pydantic_ai_skills import FetchProgress, SkillProblem

MIN_WIDTH = 24
"""A table whose shortened column would be narrower than this is written as blocks."""

MAX_NAME_WIDTH = 32
"""Names that are longer than this are not aligned."""

GAP = 2
"""Blanks between the columns of a table."""

PLAIN_WIDTH = 10_000
"""The width where there is no terminal: other programs must not find lines cut in two."""

_PLAIN = re.compile(r'[^\n\t\x20-\x7e\xa0-\u024f]')
_JSON_ESCAPED = re.compile(r'[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]')
_SEVERITY_STYLES = {'error': 'bold red', 'warning': 'yellow'}


class Failure(Exception):
    """A usage error, for the person at the terminal."""


def safe(text: str) -> str:
    """Escape control and format characters."""
    return _PLAIN.sub(_shown, text.replace('\r\n', '\n'))


def _shown(match: re.Match[str]) -> str:
    character = match[0]
    if unicodedata.category(character)[0] != 'C' and unicodedata.category(character) not in ('Zl', 'Zp'):
        return character
    code = ord(character)
    return f'\\x{code:02x}' if code < 0x100 else f'\\u{code:04x}' if code < 0x10000 else f'\\U{code:08x}'


def one_line(text: str) -> str:
    """Safe text on one line."""
    return ' '.join(safe(text).split())


def counted(number: int, what: str) -> str:
    """How many there are of something: `1 skill`, `2 skills`."""
    return f'{number:,} {what}{"" if number == 1 else "s"}'


def place(path: str) -> str:
    """A path as shown: relative to the current folder if that is shorter."""
    if not os.path.isabs(path):
        return path
    near = os.path.relpath(path)
    return near if len(near) < len(path) else path


class Output:
    """Writes text for people or JSON for programs. Most of rich is imported on first use: that takes a moment."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        """Standard output."""
        return _console(sys.stdout)

    @cached_property
    def errors(self) -> Console:
        """Standard error."""
        return _console(sys.stderr)

    # --- For programs ---------------------------------------------------------------------------------------------

    def data(self, value: object, *, indent: int | None = 2) -> None:
        """Write JSON, with everything escaped that could affect a terminal."""
        # Readers expect JSON to be UTF-8. Where the output has another encoding, ASCII is right in both.
        is_utf8 = codecs.lookup(sys.stdout.encoding or 'utf-8').name == 'utf-8'
        text = json.dumps(value, indent=indent, ensure_ascii=not is_utf8, default=str)
        sys.stdout.write(_JSON_ESCAPED.sub(lambda match: f'\\u{ord(match[0]):04x}', text) + '\n')
        sys.stdout.flush()

    # --- For people -----------------------------------------------------------------------------------------------

    def line(self, *parts: str | tuple[str, str]) -> None:
        """Write a line of texts, some with a style. The terminal wraps it."""
        if _is_plain(sys.stdout):
            _write(sys.stdout, parts)
        else:
            self.console.print(_text(parts), soft_wrap=True)

    def note(self, *parts: str | tuple[str, str]) -> None:
        """Write a line to standard error."""
        if _is_plain(sys.stderr):
            _write(sys.stderr, parts)
        else:
            self.errors.print(_text(parts), soft_wrap=True)

    def heading(self, text: str) -> None:
        """Write a heading, with a blank line before it."""
        self.line()
        self.line((text, 'bold'))

    def block(self, text: str, style: str = '') -> None:
        """Write a text of several lines unchanged."""
        self.line((text, style))

    def paragraph(self, *texts: str) -> None:
        """Write texts on lines of their own, indented, and wrapped at the words where there is a terminal."""
        for text in filter(None, texts):
            for line in _text([one_line(text)]).wrap(self.console, max(self.console.width - 2, MIN_WIDTH)):
                self.line(f'  {line.plain.rstrip()}')

    def fields(self, values: Mapping[str, str | None]) -> None:
        """Write names and values, one below the other, without the empty ones."""
        given = {name: value for name, value in values.items() if value}
        width = max(map(len, given))
        for name, value in given.items():
            self.line((f'{name:<{width}}  ', 'dim'), one_line(value))

    def lines(self, rows: Iterable[tuple[str, str]]) -> None:
        """Write names with texts, one line for each, cut to the width of the terminal."""
        cleaned = [(one_line(name), one_line(text)) for name, text in rows]
        width = min(max(cell_len(name) for name, _ in cleaned), MAX_NAME_WIDTH)
        for name, text in cleaned:
            padded = f'{name}{" " * (width - cell_len(name))}{" " * GAP}'
            self._cut_line((padded, 'bold'), text)

    def _cut_line(self, *parts: str | tuple[str, str]) -> None:
        if _is_plain(sys.stdout) and not os.environ.get('COLUMNS'):
            _write(sys.stdout, parts)
            return
        line = _text(parts)
        line.truncate(self.console.width, overflow='ellipsis')
        self.console.print(line, soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Iterable[str]], *, wide: str = '') -> None:
        """Write a table, or blocks where the terminal is too narrow for one.

        Args:
            columns: The headings. A column whose heading begins with `>` is aligned to the right.
            rows: The cells.
            wide: The column to shorten where the terminal is too narrow.
        """
        names = [column.removeprefix('>') for column in columns]
        cleaned = [[one_line(cell) for cell in row] for row in rows]
        widths = {name: max(map(cell_len, column)) for name, *column in zip(names, *[names], *cleaned, strict=True)}
        room = self.console.width - sum(width + GAP for name, width in widths.items() if name != wide)
        if room < (min(widths[wide], MIN_WIDTH) if wide else 0):
            self._blocks(names, cleaned)
            return
        self._grid(columns, cleaned, {wide: max(room, MIN_WIDTH)})

    def _grid(self, columns: Sequence[str], rows: list[list[str]], max_widths: Mapping[str, int]) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style='dim', padding=(0, GAP, 0, 0))
        for column in columns:
            name, justify = column.removeprefix('>'), 'right' if column.startswith('>') else 'left'
            table.add_column(name, justify=justify, no_wrap=True, overflow='ellipsis', max_width=max_widths.get(name))
        for row in rows:
            table.add_row(*map(Text, row))
        self.console.print(table)

    def _blocks(self, names: list[str], rows: list[list[str]]) -> None:
        for first, *rest in rows:
            self.line((first, 'bold'))
            for name, cell in zip(names[1:], rest, strict=True):
                if cell:
                    self.line((f'  {name}: ', 'dim'), cell)

    def markdown(self, text: str) -> None:
        """Write Markdown, rendered if there is a terminal."""
        if _is_plain(sys.stdout):
            self.block(text)
            return
        from rich.markdown import Markdown  # takes long to import, as do some others here
        from rich.segment import Segment, Segments

        # Links are shown, not hidden behind their text. Entities can bring back escaped characters, so the result is
        # escaped once more.
        segments = self.console.render(Markdown(safe(text), hyperlinks=False))
        clean = [Segment(safe(each.text), each.style) for each in segments if not each.control]
        self.console.print(Segments(clean), end='')

    def problems(self, problems: Iterable[SkillProblem]) -> None:
        """Write problems with their place, code, message and fix."""
        for problem in problems:
            where = one_line(place(problem.path) if problem.line is None else f'{place(problem.path)}:{problem.line}')
            where = f'{one_line(problem.source)}: {where}' if problem.source else where
            message, fix = one_line(problem.message), f'  fix: {problem.fix}'
            if _is_plain(sys.stdout):
                # Without rich: laying out a thousand lines takes longer than finding the problems.
                sys.stdout.write(f'{where}: {problem.severity} [{problem.code}] {message}\n{fix}\n')
                continue
            self.line(
                (where, 'bold'),
                ': ',
                (problem.severity, _SEVERITY_STYLES[problem.severity]),
                ' ',
                (f'[{problem.code}]', f'link {problem.url}'),
                f' {message}',
            )
            self.line((fix, 'dim'))

    def fail(self, message: str) -> None:
        """Write what went wrong."""
        if self.as_json:
            self.data({'error': message}, indent=None)
        else:
            self.note(('error: ', 'bold red'), message)

    # --- Long work ------------------------------------------------------------------------------------------------

    @contextmanager
    def progress(self, what: str) -> Generator[Working]:
        """Show progress on standard error, if that is a terminal."""
        if self.as_json or _is_plain(sys.stderr):
            yield Working(None, what)
            return
        from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

        columns = (SpinnerColumn(), TextColumn('{task.description}', markup=False), BarColumn(), TaskProgressColumn())
        with Progress(*columns, console=self.errors, transient=True) as progress:
            yield Working(progress, what)


class Working:
    """Reports the progress of long work, if it is shown."""

    def __init__(self, progress: Progress | None, what: str) -> None:
        self._what = what
        self._update = None if progress is None else partial(progress.update, progress.add_task(what, total=None))

    @property
    def on_step(self) -> Callable[[int, int | None], None] | None:
        """Takes how much is done and the total; `None` if progress is not shown."""
        update = self._update
        return update and (lambda done, total: update(completed=done, total=total))

    @property
    def on_fetch(self) -> Callable[[FetchProgress], None] | None:
        """Takes the progress of a fetch; `None` if progress is not shown."""
        update = self._update
        return update and (
            lambda now: update(completed=now.done, total=now.total, description=f'{self._what}: {now.stage}')
        )


def _is_plain(stream: TextIO) -> bool:
    """Whether text is written without colours, because it is not for a terminal."""
    return not (stream.isatty() or os.environ.get('FORCE_COLOR'))


def _write(stream: TextIO, parts: Iterable[str | tuple[str, str]]) -> None:
    """Write a line without styles."""
    texts = (part if isinstance(part, str) else part[0] for part in parts)
    stream.write(f'{"".join(map(safe, texts))}\n')
    stream.flush()


def _text(parts: Iterable[str | tuple[str, str]]) -> Text:
    from rich.text import Text

    return Text.assemble(*(safe(part) if isinstance(part, str) else (safe(part[0]), part[1]) for part in parts))


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    class SafeConsole(Console):
        def on_broken_pipe(self) -> None:
            """Let the command handle it: rich would end the process with status 1."""
            raise  # the error that is being handled

    console = SafeConsole(file=stream, highlight=False, markup=False, emoji=False)
    # Some environments set COLUMNS=0 for an unknown width: nothing would be written at all.
    if console.width < 1 or not (console.is_terminal or os.environ.get('COLUMNS')):
        console.width = PLAIN_WIDTH
    return console
