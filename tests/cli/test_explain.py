"""`pydantic-ai-skills explain`: why a skill would be chosen, or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.cli.conftest import Cli
from tests.folders import write, write_skill


@pytest.fixture
def skills(here: Path) -> Path:
    write_skill(here / 'skills/pdf-forms', 'Fill in PDF forms. Use for tax and insurance papers.')
    write_skill(here / 'skills/form-filler', 'Fill in forms as PDF, for insurance papers or tax. Offline.')
    write_skill(here / 'skills/haiku', 'Write short poems.', files={'scripts/x.py': ''})
    write(here, {'skills/broken/SKILL.md': '---\nname: broken\n---\nNo description.\n'})
    return here / 'skills'


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setenv('COLUMNS', '80')


def test_a_prompt(cli: Cli, skills: Path):
    done = cli('explain', 'Fill in this tax form for my taxi')
    assert done.status == 0
    assert done.out == snapshot("""\
The model sees 3 of 3 skills with a description, in 356 of 10,000 characters.

What fits the prompt, by words
rank  skill        the model sees  found by             \n\
   1  form-filler  in full         fill, tax, form, taxi
   2  pdf-forms    in full         fill, tax, form, taxi

Not seen in full
broken  invalid
  It is left out [description-missing]: There is no description. Say what the
  skill does and when to use it.

Hard to tell apart
form-filler and pdf-forms  80% the same
  shared: fill, forms, insurance, papers, pdf, tax
  only form-filler: offline
  only pdf-forms: nothing
""")
    assert max(map(len, done.out.splitlines())) <= 80


def test_one_skill(cli: Cli, skills: Path):
    done = cli('explain', 'Fill in this tax form', '--skill', 'pdf-forms')
    assert (done.status, done.out) == snapshot(
        (
            0,
            """\
pdf-forms  in full
  The model sees its name and whole description.
  Its description is hard to tell from that of 'form-filler'.
  fix: Say in each description when to use the one and not the other.
source    skills/pdf-forms
rank      2 by words
found by  fill in description; tax in description; form in name, description
shown     Fill in PDF forms. Use for tax and insurance papers.
form-filler and pdf-forms  80% the same
  shared: fill, forms, insurance, papers, pdf, tax
  only form-filler: offline
  only pdf-forms: nothing
""",
        )
    )


def test_a_skill_that_is_left_out(cli: Cli, skills: Path):
    done = cli('explain', 'Fill in this tax form', '--skill', 'broken')
    assert (done.status, done.out) == snapshot(
        (
            1,
            """\
broken  invalid
  It is left out [description-missing]: There is no description. Say what the
  skill does and when to use it.
  fix: Add `description:` and say what the skill does and when to use it.
source  skills/broken/SKILL.md
""",
        )
    )


@pytest.mark.parametrize('name', ['haiku', 'HAIKU'])
def test_a_skill_that_does_not_fit(cli: Cli, skills: Path, name: str):
    done = cli('explain', 'Fill in this tax form', '--skill', name)
    assert done.status == 1
    assert 'not found by the words of the prompt' in done.out


def test_what_is_cut_is_shown(cli: Cli, here: Path, skills: Path):
    write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\ncatalog-budget = 900\npolicy = "deny"\n'})
    write_skill(skills / 'pdf-forms', f'Fill in forms. {"Details of them. " * 40}')
    done = cli('explain', 'Fill in this tax form')
    assert done.out.splitlines()[:3] == snapshot(
        [
            'The model sees 3 of 3 skills with a description, in 700 of 900 characters.',
            "Scripts may not run: the project's policy is 'deny'.",
            '',
        ]
    )
    done = cli('explain', 'Fill in this tax form', '--skill', 'pdf-forms')
    assert done.out.splitlines()[0] == 'pdf-forms  shortened'
    assert 'fix: Begin the description with what matters' in done.out
    assert '\ncut     ' in done.out


def test_too_many_to_show_are_counted(cli: Cli, here: Path):
    write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\ncatalog-budget = 600\n'})
    for number in range(30):
        write_skill(here / f'skills/job-{number}', f'Does number {number} of many jobs for the people here.')
    done = cli('explain', 'Nothing')
    assert done.status == 1
    assert done.out.splitlines()[1:4] == snapshot(
        ['It can search for others.', '', 'No skill has a word of the prompt.']
    )
    assert done.out.splitlines()[-1] == '… and 10 more; see all with --json.'


def test_nothing_is_cut_and_nothing_overlaps(cli: Cli, here: Path):
    write_skill(here / 'skills/haiku', 'Write short poems.')
    done = cli('explain', 'A poem')
    assert done.out.splitlines()[-1].split() == ['1', 'haiku', 'in', 'full', 'poem']


def test_json(cli: Cli, skills: Path):
    data = cli('explain', 'Fill in this tax form', '--json').data
    assert [(skill['name'], skill['state'], skill['rank']) for skill in data['skills']] == [
        ('form-filler', 'listed', 1),
        ('pdf-forms', 'listed', 2),
        ('broken', 'invalid', None),
        ('haiku', 'listed', None),
    ]
    assert data['words'][0] == {'word': 'fill', 'means': ['fill', 'filler'], 'skills': 2}
    assert [overlap['names'] for overlap in data['overlaps']] == [['form-filler', 'pdf-forms']]
    assert (data['prompt'], data['budget'], data['offers_search'], data['problems']) == (
        'Fill in this tax form',
        10_000,
        False,
        [],
    )
    # Nothing is said about scripts, which would not run here in any case.
    assert [reason['code'] for skill in data['skills'] for reason in skill['reasons']] == [
        'listed',
        'overlaps',
        'listed',
        'overlaps',
        'invalid',
        'listed',
    ]
    one = cli('explain', 'Fill in this tax form', '--skill', 'haiku', '--json')
    assert ([skill['name'] for skill in one.data['skills']], one.status) == (['haiku'], 1)


def test_overlaps(cli: Cli, skills: Path):
    done = cli('explain', '--overlaps')
    assert (done.status, done.out) == snapshot(
        (
            1,
            """\
1 overlap among 3 skills.
form-filler and pdf-forms  80% the same
  shared: fill, forms, insurance, papers, pdf, tax
  only form-filler: offline
  only pdf-forms: nothing
""",
        )
    )
    data = cli('explain', '--overlaps', '--json').data
    assert (data['skills'], data['overlaps'][0]['names']) == (3, ['form-filler', 'pdf-forms'])


def test_without_overlaps(cli: Cli, here: Path):
    write_skill(here / 'skills/haiku', 'Write short poems.')
    done = cli('explain', '--overlaps')
    assert (done.status, done.out) == (0, 'No descriptions overlap among 1 skill.\n')


@pytest.mark.parametrize(
    'args',
    [(), ('prompt', '--overlaps'), ('--overlaps', '--skill', 'haiku'), (' ',), ('prompt', '--skill', 'nobody')],
)
def test_what_cannot_be_asked(cli: Cli, skills: Path, args: tuple[str, ...]):
    done = cli('explain', *args)
    assert (done.status, done.out, done.err.startswith('error: ')) == (2, '', True)
