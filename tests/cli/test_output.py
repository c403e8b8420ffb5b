"""What reaches a terminal: nothing of a stranger's text does anything there."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydantic_ai_skills import FetchProgress, SkillProblem
from pydantic_ai_skills.cli.output import Output, one_line, place, safe

FORBIDDEN = set(map(chr, (*range(9), *range(11, 32), *range(127, 160), 0x200B, 0x202E, 0x2066, 0xFEFF)))


class Terminal(io.StringIO):
    """Standard output as a terminal."""

    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch, columns: str = '80') -> Terminal:
    terminal = Terminal()
    monkeypatch.setattr(sys, 'stdout', terminal)
    monkeypatch.setattr(sys, 'stderr', terminal)
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('COLUMNS', columns)
    for name in ('NO_COLOR', 'FORCE_COLOR'):
        monkeypatch.delenv(name, raising=False)
    return terminal


@given(st.text())
def test_safe_text_has_nothing_that_acts(text: str):
    assert not FORBIDDEN & set(safe(text))
    assert '\n' not in one_line(text)


@pytest.mark.parametrize(
    ('text', 'shown'),
    [
        ('plain, größe, 日本 🎉\n\tx', 'plain, größe, 日本 🎉\n\tx'),
        ('a\r\nb', 'a\nb'),
        ('\x1b[31m\x07\x9b', '\\x1b[31m\\x07\\x9b'),
        ('\u202e\u200b\u2028', '\\u202e\\u200b\\u2028'),
        ('\U000e0041\ud800', '\\U000e0041\\ud800'),
    ],
)
def test_what_would_act_is_shown(text: str, shown: str):
    assert safe(text) == shown


def test_entities_in_markdown_bring_nothing_back(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch)
    Output().markdown('# Head\n\n&#27;[31m &#x202e;x [text](https://example.com "t") \x1b[2J\n\n```\ncode\n```')
    written = terminal.getvalue()
    assert '\u202e' not in written
    assert '\x1b[2J' not in written
    assert '\x1b]8' not in written  # a link shows where it goes
    assert 'https://example.com' in written


def test_markup_is_text(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch)
    Output().line('[bold]x[/bold] :smile:')
    assert '[bold]x[/bold] :smile:' in terminal.getvalue()


def test_colour_is_for_terminals(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch)
    Output().line(('x', 'red'))
    assert '\x1b[31mx' in terminal.getvalue()
    monkeypatch.setattr(sys, 'stdout', file := io.StringIO())
    Output().line(('x', 'red'))
    assert file.getvalue() == 'x\n'


def test_notes_have_colour_too(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch)
    Output().note(('x', 'red'), ' y')
    assert terminal.getvalue() == '\x1b[31mx\x1b[0m y\n'


def test_lines_have_one_line_each_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch, '20')
    monkeypatch.setenv('NO_COLOR', '1')
    Output().lines([('a', 'Größe 日本語 and more'), ('日本', 'x\ny')])
    assert terminal.getvalue() == '\x1b[1ma     \x1b[0mGröße 日本語 …\n\x1b[1m日本  \x1b[0mx y\n'


def test_colour_can_be_refused(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch)
    monkeypatch.setenv('NO_COLOR', '1')
    Output().line(('x', 'red'))
    assert terminal.getvalue() == 'x\n'


def test_json_does_nothing_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch)
    Output(as_json=True).data({'x': 'größe \x1b \x9b \u202e \ud800'})
    assert terminal.getvalue() == '{\n  "x": "größe \\u001b \\u009b \\u202e \\ud800"\n}\n'


@pytest.mark.parametrize('encoding', ['utf-8', 'cp1252', 'latin-1', 'ascii'])
def test_json_is_json_whatever_the_encoding_of_the_output(monkeypatch: pytest.MonkeyPatch, encoding: str):
    written = io.BytesIO()
    monkeypatch.setattr(sys, 'stdout', io.TextIOWrapper(written, encoding, 'backslashreplace'))
    Output(as_json=True).data({'x': 'größe → 🎉'})
    assert json.loads(written.getvalue()) == {'x': 'größe → 🎉'}


@pytest.mark.parametrize(('columns', 'lines'), [('80', 3), ('30', 4)])
def test_a_table_becomes_blocks_where_it_is_narrow(monkeypatch: pytest.MonkeyPatch, columns: str, lines: int):
    terminal = open_terminal(monkeypatch, columns)
    Output().table(('name', 'text', '>n'), [('a', 'x' * 200, '1'), ('b', '', '')], wide='text')
    written = terminal.getvalue().splitlines()
    assert len(written) == lines
    assert any('…' in line for line in written) == (columns == '80')


def test_lines_are_not_cut_for_programs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, 'stdout', file := io.StringIO())
    monkeypatch.delenv('COLUMNS', raising=False)
    Output().table(('name', 'text'), [('a', 'x' * 500)], wide='text')
    assert 'x' * 500 in file.getvalue()


@pytest.mark.parametrize('terminal', [io.StringIO, Terminal])
def test_no_columns_at_all_are_an_unknown_width(monkeypatch: pytest.MonkeyPatch, terminal: type[io.StringIO]):
    open_terminal(monkeypatch, '0')
    monkeypatch.setattr(sys, 'stdout', file := terminal())
    Output().line('what there is to say')
    assert 'what there is to say' in file.getvalue()


def test_codes_of_problems_are_links_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch)
    problem = SkillProblem(path='x', code='name-mismatch', severity='error', message='\x1b[2J', fix='Rename it.')
    Output().problems([problem])
    written = terminal.getvalue()
    assert f';{problem.url}\x1b\\[name-mismatch]' in written
    assert '\x1b[2J' not in written
    assert 'fix: Rename it.' in written


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch)
    with Output().progress('Working') as working:
        assert working.on_fetch is not None
        assert working.on_step is not None
        working.on_step(1, 2)
        working.on_fetch(FetchProgress(stage='Receiving objects', done=1, total=2))
    assert 'Working: Receiving objects' in terminal.getvalue()


def test_progress_is_not_for_programs(monkeypatch: pytest.MonkeyPatch):
    terminal = open_terminal(monkeypatch)
    with Output(as_json=True).progress('Working') as working:
        assert (working.on_fetch, working.on_step) == (None, None)
    assert terminal.getvalue() == ''


def test_a_place_is_shown_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert place(str(tmp_path / 'a')) == 'a'
    assert place('/') == '/'
    assert place('GitSkillsRegistry(...)') == 'GitSkillsRegistry(...)'
    assert os.getcwd() == str(tmp_path)
