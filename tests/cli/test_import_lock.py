"""`import`: what the npm installer has installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.registries.repositories import Repository


def write_lock(here: Path, skills: Any, *, version: int = 1) -> None:
    (here / 'skills-lock.json').write_text(json.dumps({'version': version, 'skills': skills}))


def test_its_sources_are_added_with_the_skills_it_installed(cli: Cli, here: Path, repository: Repository):
    repository.skill('xlsx')
    repository.commit()
    entry = {'source': '../theirs', 'sourceType': 'local', 'skillPath': 'x/SKILL.md', 'computedHash': 'x'}
    write_lock(here, {'pdf': entry, 'xlsx': entry})
    done = cli('import')
    assert (done.status, done.err) == (0, '')
    assert done.out == 'added pdf, xlsx  ../theirs\nWritten to pyproject.toml and skills.lock.\n'
    assert 'skills = ["pdf", "xlsx"]' in (here / 'pyproject.toml').read_text()
    assert repository.head in (here / 'skills.lock').read_text()
    assert cli('import', '--json').data == {'added': {'../theirs': ['pdf', 'xlsx']}, 'failures': []}


def test_what_cannot_be_taken_over_is_told_and_the_rest_is_added(cli: Cli, here: Path, repository: Repository):
    write_lock(
        here,
        {
            'pdf': {'source': '../theirs', 'sourceType': 'local', 'ref': 'main'},
            'gone': {'source': '../gone', 'sourceType': 'local'},
            'odd': {'source': 'x', 'sourceType': 'node_modules'},
            'empty': {},
            'unknown': {'source': 'nowhere', 'sourceType': 'github'},
        },
    )
    done = cli('import')
    assert done.status == 3
    assert 'added pdf  ../theirs@main\n' in done.out
    for told in (
        "The skill 'odd' is from a source of the type 'node_modules'; known are github, git,",
        "The entry of the skill 'empty' does not say where the skill is from.",
        "The skill 'unknown' is not taken over. 'nowhere' is not an address of skills.",
    ):
        assert f'not added {told}' in done.out
    assert done.out.count('not added') == 4


@pytest.mark.parametrize(
    ('text', 'told'),
    [
        (None, "'skills-lock.json' cannot be read: No such file or directory."),
        ('[]', "'skills-lock.json' cannot be read: it is not a skills-lock.json."),
        ('{"version": 2, "skills": {}}', "'skills-lock.json' has the version 2; this package knows 1."),
    ],
)
def test_a_file_that_is_none_is_told(cli: Cli, here: Path, text: str | None, told: str):
    if text is not None:
        (here / 'skills-lock.json').write_text(text)
    done = cli('import')
    assert (done.status, done.err) == (2, f'error: {told}\n')
    assert not (here / 'pyproject.toml').exists()


def test_nothing_installed_adds_nothing(cli: Cli, here: Path):
    write_lock(here, {})
    assert (cli('import').status, cli('import').out) == (0, '')
