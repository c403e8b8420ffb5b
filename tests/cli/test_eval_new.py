"""`eval new` writes a first set of cases beside a skill, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pydantic_ai_skills.evals import ExitCode, FileWritten, OutputContains, OutputMatches, read_cases
from tests.cli.conftest import Cli
from tests.folders import write, write_skill
from tests.registries.repositories import Repository

QUERY = '[{"query": "Hi", "should_trigger": true}]'


@pytest.fixture
def skills(here: Path) -> Path:
    write_skill(here / 'skills/pdf', 'Fills in PDF forms of all kinds.')
    write_skill(here / 'skills/docx', 'Fills in Word forms of all kinds.')
    write_skill(here / 'skills/weather', 'Tells the weather.')
    return here / 'skills'


def test_it_writes_tasks_and_queries_to_edit(cli: Cli, skills: Path):
    done = cli('eval', 'new', 'pdf')
    assert done.status == 0
    assert done.out.splitlines() == [
        'Wrote skills/pdf/evals/evals.json',
        'Wrote skills/pdf/evals/triggers.json',
        'Put your own queries and tasks in place of the hints, and run:',
        'pydantic-ai-skills eval pdf',
    ]
    read = read_cases(skills / 'pdf', skill='pdf')
    task, *queries = read.cases
    assert list(read.problems) == []
    assert [type(check) for check in task.checks] == [OutputContains, OutputMatches, FileWritten, ExitCode]
    assert [case.should_trigger for case in queries] == [True] * 4 + [False] * (len(queries) - 4)
    assert 'docx' in [case.expected_skill for case in queries]


def test_the_next_command_names_the_directory(cli: Cli, skills: Path):
    assert cli('eval', 'new', 'pdf', '-d', 'skills').out.endswith('pydantic-ai-skills eval pdf -d skills\n')


def test_it_tells_programs_what_it_wrote(cli: Cli, skills: Path):
    assert cli('eval', 'new', 'pdf', '--json').data == {
        'name': 'pdf',
        'path': str(skills / 'pdf'),
        'files': ['evals/evals.json', 'evals/triggers.json'],
    }


def test_what_is_there_stays_as_it_is(cli: Cli, skills: Path):
    write(skills / 'pdf/evals', {'triggers.json': QUERY})
    assert cli('eval', 'new', 'pdf', '--json').data['files'] == ['evals/evals.json']
    assert (skills / 'pdf/evals/triggers.json').read_text() == QUERY
    before = (skills / 'pdf/evals/evals.json').read_bytes()
    done = cli('eval', 'new', 'pdf')
    assert (done.status, done.err) == (2, 'error: skills/pdf/evals already has evals.json and triggers.json.\n')
    assert (skills / 'pdf/evals/evals.json').read_bytes() == before


@pytest.mark.parametrize('link', ['evals', 'evals/evals.json'])
def test_no_link_is_followed(cli: Cli, skills: Path, tmp_path: Path, link: str):
    elsewhere = tmp_path / 'elsewhere'
    elsewhere.mkdir()
    (skills / 'pdf' / link).parent.mkdir(exist_ok=True)
    (skills / 'pdf' / link).symlink_to(elsewhere if link == 'evals' else elsewhere / 'evals.json')
    assert cli('eval', 'new', 'pdf').status in (2, 3)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ('args', 'told'),
    [
        ([], 'Name the skill to write cases for: pydantic-ai-skills eval new NAME'),
        (['pdf', 'docx'], 'Name the skill to write cases for: pydantic-ai-skills eval new NAME'),
        (['nobody'], "There is no skill 'nobody'."),
    ],
)
def test_it_takes_the_name_of_one_skill(cli: Cli, skills: Path, args: list[str], told: str):
    done = cli('eval', 'new', *args)
    assert done.status == 2
    assert told in done.err


def test_a_skill_of_others_is_not_written_to(cli: Cli, repository: Repository):
    cli('add', repository.path)
    done = cli('eval', 'new', 'pdf')
    assert (done.status, done.err) == (
        2,
        "error: 'pdf' was fetched or written in Python, so its folder cannot be written to.\n",
    )


def test_text_of_other_skills_is_data(cli: Cli, here: Path):
    write_skill(here / 'skills/a', 'Fills in "forms" and \\n \u202eforms.')
    write_skill(here / 'skills/b', 'Fills in forms.')
    assert cli('eval', 'new', 'b').status == 0
    (query,) = [
        each for each in json.loads((here / 'skills/b/evals/triggers.json').read_text()) if 'expected_skill' in each
    ]
    assert '"forms" and \\n' in query['query']
