"""The page of the benchmarks is written by `make bench`: only what is between its marks changes."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from benchmarks.figure import Figure
from benchmarks.report import write_figures, write_peers

DOCS = Path(__file__).parent.parent.parent / 'docs'


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the page, in a folder like the repository's."""
    (tmp_path / 'docs/images').mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(DOCS / 'benchmarks.md', tmp_path / 'docs/benchmarks.md'))


def test_figures_with_a_limit_are_shown_as_ratios_below_the_picture(page: Path) -> None:
    figure = partial(Figure, unit='ms', judged_by='ratio', baseline=10, baseline_is='a bare loop')
    write_figures(
        [
            figure(what='cold start with 100 skills', measured=5, limit=0.7),
            figure(what='reload of 100 skills', measured=30, limit=2),
            figure(what='cold start with 7 skills', measured=1),
        ]
    )
    before, _, rest = page.read_text('utf-8').partition('<!-- figures: made by a command -->\n')
    written, _, after = rest.partition('<!-- end of figures -->\n')
    assert '| cold start with 100 skills | 0.50 × | 0.7 × | a bare loop |' in written
    assert '| reload of 100 skills | **3.00 ×**, missed | 2 × | a bare loop |' in written
    assert 'with 7 skills' not in written
    assert written.index('benchmark-sizes.svg') < written.index('| what |') < written.index('Made by `make bench`')
    assert before.endswith('## Figures\n\n')
    assert after.startswith('\n## Measure again\n')
    assert 'cold start with 7 skills' in (page.parent / 'images/benchmark-sizes.svg').read_text('utf-8')


def test_other_libraries_are_shown_beside_this_one(page: Path) -> None:
    write_peers([('ours 1', 10.0, 2.0), ('theirs 2', 40.0, 1.0)], 5.0, 1_000)
    written = page.read_text('utf-8').partition('<!-- peers: made by a command -->\n')[2]
    assert '| theirs 2 | 40.0 ms | 4.0 | 1.00 ms | 0.5 |' in written
    assert '\n## How it is fast\n' in written
