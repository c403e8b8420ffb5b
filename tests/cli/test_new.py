from __future__ import annotations

from pathlib import Path

import pytest

from pydantic_ai_skills import validate_skills
from tests.cli.conftest import Cli
from tests.folders import write, write_skill


def test_it_breaks_no_rule(cli: Cli, here: Path):
    done = cli('new', 'pdf-forms')
    assert (done.status, done.err) == (0, '')
    assert done.out.splitlines()[0] == 'Created skills/pdf-forms: SKILL.md, references/guide.md'
    assert validate_skills(here / 'skills').ok
    assert cli('validate').status == 0
    assert sorted(path.name for path in (here / 'skills').iterdir()) == ['pdf-forms']


def test_its_script_runs(cli: Cli, here: Path):
    cli('new', 'hello', '--script')
    assert cli('run', 'hello', 'hello', '--', 'Ada').out == 'Hello, Ada!\n'


@pytest.mark.parametrize(
    'text',
    [
        'Plain words',
        "Sam's, one; (two). - Use",
        '- x',
        "'x",
        'a :',
        'With: colons, "quotes" # and more',
        "It's\nlong {a} [b]",
    ],
)
def test_a_description_is_kept_whatever_is_in_it(cli: Cli, here: Path, text: str):
    cli('new', 'x', '--description', text)
    assert cli('list', '--json').data['skills'][0]['description'] == ' '.join(text.split())


def test_a_description_that_needs_no_quotes_is_one_line(cli: Cli, here: Path):
    cli('new', 'x')
    lines = (here / 'skills/x/SKILL.md').read_text('utf-8').splitlines()
    assert lines[2] == 'description: Describe what x does. Use when somebody asks for it.'


def test_an_empty_description_is_not_made_up(cli: Cli, here: Path):
    done = cli('new', 'pdf-forms', '--description', '')
    assert (done.status, done.err.startswith('error: There is no description.')) == (2, True)
    assert not (here / 'skills').exists()


def test_a_description_that_breaks_a_rule_leaves_nothing(cli: Cli, here: Path):
    done = cli('new', 'x', '--description', 'x' * 1025)
    assert done.status == 2
    assert 'at most 1024 are allowed' in done.err
    assert not (here / 'skills').exists()


def test_it_goes_where_the_others_are(cli: Cli, here: Path):
    write_skill(here / '.agents/skills/a')
    assert cli('new', 'b', '--json').data['path'] == str(here / '.agents/skills/b')
    assert cli('new', 'c', '-d', 'elsewhere', '--json').data['path'] == 'elsewhere/c'


@pytest.mark.parametrize('where', ['acme', 'src/acme'])
def test_it_can_go_into_a_package(cli: Cli, here: Path, where: str):
    write(here / where, {'__init__.py': '', 'tools/__init__.py': ''})
    assert 'Check that your wheel contains it' in cli('new', 'a', '--package', 'acme').out
    assert (here / where / '.agents/skills/a/SKILL.md').is_file()
    assert cli('new', 'b', '--package', 'acme.tools').status == 0
    assert (here / where / 'tools/.agents/skills/b/SKILL.md').is_file()


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        (['Pdf Forms'], "'Pdf Forms' is not a valid skill name. Use 'pdf-forms'."),
        (['__'], 'no letter or digit'),
        (['../x'], "'../x' is not a valid skill name. Use 'x'."),
        (['there'], 'skills/there already exists.'),
        (['x', '--package', 'nobody'], "There is no Python package 'nobody' in '.'."),
        (['x', '--package', 'typer'], 'It is installed, but not part of this project.'),
        (['x', '--package', '..'], "There is no Python package '..'"),
        (['x', '--package', 'a', '-d', 'b'], 'Give either --package or --directory.'),
    ],
)
def test_mistakes_are_told_and_nothing_is_made(cli: Cli, here: Path, args: list[str], message: str):
    write(here / 'skills/there', {'x': ''})
    done = cli('new', *args)
    assert (done.status, done.out) == (2, '')
    assert message in done.err
    assert [path.name for path in here.rglob('SKILL.md')] == []


def test_a_place_that_cannot_be_written_is_told(cli: Cli, here: Path):
    write(here, {'file': ''})
    done = cli('new', 'x', '-d', 'file')
    assert done.status == 3
    assert 'error: file/.' in done.err
    assert 'Not a directory' in done.err
