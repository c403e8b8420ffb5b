"""What the page about evals shows at the terminal is what is seen by somebody who follows it, figures included."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Done
from tests.cli.test_readme import matches

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / 'docs/evals.md'
BLOCK = re.compile(
    r'^```(?:console\n(?P<steps>\$ .*?)|yaml\n(?P<header>description: .*?))^```$', re.MULTILINE | re.DOTALL
)
SKILL = 'skills/log-triage/SKILL.md'


class Reader:
    """Somebody who follows the page in an empty folder."""

    def __init__(self, here: Path, cli: Cli) -> None:
        self.here = here
        self.cli = cli
        self.done: list[Done] = []
        shutil.copytree(ROOT / 'examples/library', here / 'examples/library')

    def describe(self, header: str) -> None:
        """Put a description into the skill of the walk, in a copy of the library."""
        if not (self.here / SKILL).exists():
            shutil.rmtree(self.here / 'skills', ignore_errors=True)
            shutil.copytree(ROOT / 'examples/library', self.here / 'skills')
        text = (self.here / SKILL).read_text()
        (self.here / SKILL).write_text(re.sub(r'^description: .*\n', lambda _: header, text, flags=re.MULTILINE))

    def type_in(self, line: str) -> Done:
        """Run a command of the page."""
        program, *args = shlex.split(line)
        assert program == 'pydantic-ai-skills'
        done = self.cli(*args)
        self.done.append(done)
        return done


def steps_of(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with what is shown below it."""
    for step in re.split(r'^\$ ', block, flags=re.MULTILINE)[1:]:
        line, _, shown = step.partition('\n')
        yield line, shown


def clean(text: str) -> str:
    return '\n'.join(map(str.rstrip, text.strip().splitlines())) + '\n'


def is_seen(shown: str, done: Done) -> bool:
    """Whether a terminal shows this, where both streams arrive in some order."""
    said = done.err.splitlines(keepends=True)
    orders = (''.join([*said[:place], done.out, *said[place:]]) for place in range(len(said) + 1))
    return any(matches(shown, clean(order)) for order in orders)


def now(block: re.Match[str], reader: Reader) -> str:
    """A block as it would be now. What the page leaves out with `…` stays so."""
    if block['header']:
        reader.describe(block['header'])
        return block[0]
    texts: list[str] = []
    for line, shown in steps_of(block['steps']):
        done = reader.type_in(line)
        texts += [f'$ {line}\n', shown if is_seen(shown, done) else clean(done.err + done.out)]
    return f'```console\n{"".join(texts)}```'


@pytest.fixture
def reader(here: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.setenv('COLUMNS', '80')
    return Reader(here, cli)


def test_the_page_shows_what_a_reader_sees(reader: Reader, pytestconfig: pytest.Config):
    text = PAGE.read_text('utf-8')
    followed = BLOCK.sub(lambda block: now(block, reader), text)
    if pytestconfig.getoption('--update-examples'):
        PAGE.write_text(followed, 'utf-8')
        text = followed
    assert text == followed, 'Bring it up to date with: pytest tests/cli/test_evals_page.py --update-examples'
    assert [done.status for done in reader.done] == [0, 0, 0, 0, 1, 1, 1, 0, 0, 0]
    recorded, replayed = reader.done[-2:]
    assert replayed == recorded
    assert len(recorded.data['trigger']['results']) == 96
    assert len(recorded.data['outcome']['skills']) == 12
    lines = [line for block in BLOCK.finditer(text) for line in (block['steps'] or '').splitlines()]
    assert [line for line in lines if len(line) > 80 and not line.startswith('$')] == []


def test_the_table_of_the_walk_has_its_figures():
    text = PAGE.read_text('utf-8')
    made = re.findall(r'^log-triage +\d of \d +(\S+) +(\S+)$', text, re.MULTILINE)
    steps = made[-3:]  # of the walk, not of the whole library
    table = re.findall(r'^\| [a-z ]+ \| ([\d.]+) \| ([\d.]+) \|$', text, re.MULTILINE)
    assert table == [(recall, precision) for precision, recall in steps]
    assert len(set(table)) == 3
