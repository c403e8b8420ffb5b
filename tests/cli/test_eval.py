"""`eval` at the terminal: what it tries, what it shows, and how it ends."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic_ai import models
from pydantic_ai.models.test import TestModel

from pydantic_ai_skills import EvalScore, UserTrust, read_facts
from pydantic_ai_skills.evals import EvalReport
from tests.cli.conftest import Cli
from tests.folders import write, write_skill
from tests.registries.repositories import Repository

FILL = "import sys\nopen('filled.txt', 'w').write('filled')\nprint('filled', sys.argv[1])\n"


def write_cases(folder: Path, queries: Sequence[Any] = (), tasks: Sequence[Any] = ()) -> None:
    """Write the cases of a skill: queries as text and whether they should load it, tasks as in `evals.json`."""
    listed = [{'query': query, 'should_trigger': should} for query, should in queries]
    evals = {'skill_name': folder.name, 'evals': list(tasks)}
    write(folder / 'evals', {'triggers.json': json.dumps(listed), 'evals.json': json.dumps(evals)})


@pytest.fixture
def skills(here: Path) -> Path:
    """Two skills: one that is found and helps, one without cases."""
    folder = write_skill(here / 'skills/forms', 'Fills in PDF forms.', 'Run `fill.py FILE`.', files={'fill.py': FILL})
    write_cases(
        folder,
        [('Fill in the PDF forms', True), ('What is the weather?', False)],
        [
            {
                'id': 1,
                'prompt': 'Fill in the PDF form a.pdf.',
                'checks': [{'type': 'contains', 'text': 'filled a.pdf'}, {'type': 'file', 'path': 'filled.txt'}],
            }
        ],
    )
    write_skill(here / 'skills/weather', 'Tells tomorrow forecasts.')
    return here / 'skills'


def test_without_a_model_the_stand_in_shows_the_queries(cli: Cli, skills: Path):
    done = cli('eval')
    assert done.status == 0
    assert [line.rstrip() for line in done.out.splitlines()] == snapshot(
        [
            '',
            'Is the right skill loaded?',
            'by the offline stand-in, which compares words: no model made these figures',
            'skill    queries passed  precision  recall',
            'forms            2 of 2       1.00    1.00',
            'weather               –          –       –',
            '2 of 2 queries passed, precision 1.00, recall 1.00.',
        ]
    )
    assert done.err == snapshot(
        """\
No model is set, so a simple offline stand-in chooses skills by their words.
It shows the queries. To try a model, and the tasks, add --model MODEL.
"""
    )


def test_with_a_model_tasks_run_with_the_skill_and_without_it(cli: Cli, skills: Path):
    done = cli('eval', '--model', 'stand-in')
    assert (done.status, done.err) == (0, '')
    assert [line.rstrip() for line in done.out.partition('Does the skill help?')[2].splitlines()] == snapshot(
        [
            '',
            'by the offline stand-in, which compares words: no model made these figures',
            'skill  tasks  with  without  delta  tokens  verdict',
            'forms      1  1.00     0.00  +1.00    +208  unclear',
            '1 of 1 task passed with the skill.',
        ]
    )


@pytest.mark.parametrize(('only', 'parts'), [('trigger', (True, False)), ('outcome', (False, True))])
def test_one_part_can_be_tried_alone(cli: Cli, skills: Path, only: str, parts: tuple[bool, bool]):
    data = cli('eval', '--model', 'stand-in', '--only', only, '--json').data
    assert (data['trigger'] is not None, data['outcome'] is not None) == parts


class TestFailures:
    def test_a_query_that_loads_the_wrong_skill_is_shown(self, cli: Cli, here: Path, skills: Path):
        write_cases(
            skills / 'weather', [('Fill in PDF forms', True), ('Tells tomorrow forecasts', False), ('Hi', True)]
        )
        done = cli('eval')
        assert done.status == 1
        assert [line.rstrip() for line in done.out.splitlines()[4:]] == snapshot(
            [
                'forms            2 of 2       0.50    1.00',
                'weather          0 of 3       0.00    0.00',
                '2 of 5 queries passed, precision 0.33, recall 0.33.',
                '✗ should load weather, loaded forms (0 of 1 run right)',
                '  Fill in PDF forms',
                '✗ should not load weather, loaded weather (0 of 1 run right)',
                '  Tells tomorrow forecasts',
                '✗ should load weather, loaded nothing (0 of 1 run right)',
                '  Hi',
                '',
                'Loaded in place of another',
                'should load  loaded   runs',
                'none         weather     1',
                'weather      forms       1',
            ]
        )

    def test_a_task_is_shown_with_what_was_found(self, cli: Cli, here: Path, skills: Path):
        tasks = [
            {'id': 'a', 'prompt': 'Fill in PDF forms like b.pdf', 'checks': [{'type': 'file', 'path': 'other.txt'}]},
            {'id': 'b', 'prompt': 'Tell me', 'assertions': ['It is told.']},
        ]
        write_cases(skills / 'forms', tasks=tasks)
        done = cli('eval', '--model', 'stand-in', '--only', 'outcome')
        assert done.status == 1
        assert [line.rstrip() for line in done.out.splitlines()[3:]] == snapshot(
            [
                'skill  tasks  with  without  delta  tokens  verdict',
                'forms      2  0.00     0.00  +0.00    +103  unclear',
                '1 of 2 tasks passed with the skill.',
                '✗ forms/a: Fill in PDF forms like b.pdf',
                "  There is a file 'other.txt'.  Files in the work folder: filled.txt.",
            ]
        )
        assert done.err == snapshot('2 checks in words were not made: they need a judging model, --judge MODEL.\n')

    def test_what_nobody_judged_has_no_rate(self, cli: Cli, skills: Path):
        write_cases(skills / 'forms', tasks=[{'id': 1, 'prompt': 'Fill in forms', 'expected_output': 'It is done.'}])
        done = cli('eval', '--model', 'stand-in', '--only', 'outcome')
        assert done.status == 0
        assert re.search(r'^forms +1 +– +– +– +\S+ +unclear', done.out, re.MULTILINE)

    def test_of_very_many_some_are_shown(self, cli: Cli, skills: Path):
        write_cases(skills / 'weather', [(f'Unheard {number}', True) for number in range(25)])
        assert '… 5 more; --json and --html have all of them' in cli('eval').out

    def test_a_broken_file_of_cases_is_told(self, cli: Cli, skills: Path):
        write(skills / 'weather/evals', {'evals.json': '{'})
        done = cli('eval')
        assert done.status == 1
        assert 'weather/evals/evals.json' in done.err

    def test_a_model_that_fails_is_told(self, cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch):
        def infer(model: models.Model | str) -> models.Model:
            return model if isinstance(model, models.Model) else TestModel(call_tools=['nothing'])

        monkeypatch.setattr('pydantic_ai_skills.cli.conversation.infer_model', infer)
        done = cli('eval', '--model', 'some:model', '--repeat', '1')
        assert done.status == 1
        assert 'problem: forms/' in done.err


class TestWhichSkills:
    def test_a_name_tries_one_skill_among_all(self, cli: Cli, skills: Path):
        write_cases(skills / 'weather', [('Fill in PDF forms', True)])
        data = cli('eval', 'weather', '--json').data
        assert [result['skill'] for result in data['trigger']['results']] == ['weather']
        assert data['trigger']['results'][0]['runs'][0]['loaded'] == ['forms']

    @pytest.mark.parametrize('path', ['skills', './skills', 'skills/forms'])
    def test_a_path_is_a_directory_of_skills_or_one(self, cli: Cli, skills: Path, path: str):
        assert cli('eval', path, '--json').data['trigger']['passed'] == 2

    def test_a_name_and_a_path_can_be_combined(self, cli: Cli, here: Path, skills: Path):
        skills.rename(here / 'elsewhere')
        assert cli('eval', 'forms', 'elsewhere', '--json').data['trigger']['passed'] == 2

    @pytest.mark.parametrize(
        ('args', 'told'),
        [
            (['nobody'], "There is no skill 'nobody'."),
            (['./nowhere'], "There is no directory 'nowhere'."),
            (['weather'], 'No cases found. To write a first set, run: pydantic-ai-skills eval new weather'),
        ],
    )
    def test_without_anything_to_try_it_says_what_to_do(self, cli: Cli, skills: Path, args: list[str], told: str):
        done = cli('eval', *args)
        assert done.status == 2
        assert told in done.err

    def test_without_skills_there_are_no_cases(self, cli: Cli, here: Path):
        assert cli('eval').err == 'error: No cases found. To write a first set, run: pydantic-ai-skills eval new NAME\n'


class TestTrust:
    def test_queries_run_nothing_so_they_need_no_trust(self, cli: Cli, skills: Path, untrusted: Path):
        done = cli('eval')
        assert done.status == 0
        assert '2 of 2 queries passed' in done.out
        assert 'not trusted: ' in done.err

    def test_tasks_need_it(self, cli: Cli, skills: Path, untrusted: Path):
        done = cli('eval', '--model', 'stand-in')
        assert done.status == 2
        assert 'is not trusted' in done.err

    @pytest.mark.parametrize(('yes', 'passed'), [([], 0.0), (['--yes'], 1.0)])
    def test_a_policy_that_asks_is_answered_beforehand(
        self, cli: Cli, here: Path, skills: Path, yes: list[str], passed: float
    ):
        write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\npolicy = "ask"\n'})
        done = cli('eval', '--model', 'stand-in', '--only', 'outcome', '--json', *yes)
        assert done.data['outcome']['results'][0]['pass_rate'] == passed
        assert ('without --yes, none runs' in done.err) is not bool(yes)


class TestFiles:
    def test_a_recording_gives_the_same_report(self, cli: Cli, skills: Path):
        recorded = cli('eval', '--model', 'stand-in', '--record', 'run.jsonl', '--json')
        replayed = cli('eval', '--model', 'stand-in', '--replay', 'run.jsonl', '--json')
        assert recorded.status == 0
        assert replayed == recorded
        assert EvalReport.from_json(replayed.out).model.endswith('stand-in')

    def test_a_recording_needs_no_model(self, cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch):
        recorded = cli('eval', '--record', 'run.jsonl')
        replayed = cli('eval', '--replay', 'run.jsonl')
        assert replayed.out == recorded.out
        assert replayed.err == ''

    @pytest.mark.parametrize(
        ('args', 'status', 'told'),
        [
            (['--replay', 'missing.jsonl'], 3, 'missing.jsonl'),
            (['--replay', 'a.jsonl', '--record', 'b.jsonl'], 2, 'record'),
        ],
    )
    def test_one_that_cannot_be_used_is_told(self, cli: Cli, skills: Path, args: list[str], status: int, told: str):
        done = cli('eval', *args)
        assert done.status == status
        assert told in done.err

    @pytest.mark.parametrize(('option', 'path'), [('--record', 'no/run.jsonl'), ('--html', 'skills')])
    def test_a_place_that_cannot_be_written_is_told_before_anything_runs(
        self, cli: Cli, skills: Path, option: str, path: str
    ):
        done = cli('eval', '--model', 'nobody:nothing', option, path)
        assert (done.status, done.err) == (
            2,
            f'error: {path} cannot be written: name a file in a folder that exists.\n',
        )

    def test_the_page_and_the_published_files_are_written(self, cli: Cli, here: Path, skills: Path):
        done = cli('eval', '--model', 'stand-in', '--html', 'report.html', '--output', 'results')
        assert done.err.splitlines() == ['wrote results', 'wrote report.html']
        assert 'It is not a model, and its figures say nothing about one.' in (here / 'report.html').read_text()
        names = {path.name for path in (here / 'results').rglob('*.json')}
        assert names >= {'benchmark.json', 'grading.json', 'timing.json'}


def use_model(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
    """Let every name of a model stand for one that answers the same text to everything."""

    def infer(model: models.Model | str) -> models.Model:
        return model if isinstance(model, models.Model) else TestModel(call_tools=[], model_name='real', **settings)

    monkeypatch.setattr('pydantic_ai_skills.cli.conversation.infer_model', infer)


class TestScores:
    @pytest.fixture
    def fetched(self, cli: Cli, here: Path, repository: Repository) -> Path:
        """A lock file that pins a skill with one query and two tasks, of which one cannot be checked."""
        tasks = [{'id': 1, 'prompt': 'Fill it in.', 'checks': [{'type': 'contains', 'text': 'filled'}]}]
        write_cases(repository.path / 'skills/pdf', [('What is the weather?', False)], tasks)
        repository.skill('plain', 'Does things.')
        repository.commit('second')
        write(here, {'pyproject.toml': '[tool.pydantic-ai-skills]\nrequire = ["evaluated"]\n'})
        cli('add', repository.path)
        return here / 'skills.lock'

    def test_those_of_fetched_skills_earn_them_what_is_required(
        self, cli: Cli, fetched: Path, monkeypatch: pytest.MonkeyPatch
    ):
        assert 'Run: pydantic-ai-skills eval pdf --model MODEL.' in cli('list').out
        use_model(monkeypatch, custom_output_text='filled')
        done = cli('eval', 'pdf', '--model', 'some:model')
        assert done.err.splitlines()[-1] == 'recorded in skills.lock: pdf'
        (facts,) = read_facts(fetched).values()
        assert (facts.name, facts.score) == ('pdf', EvalScore(pass_rate=1.0, cases=2, model='test:real', delta=0.0))
        assert [skill['name'] for skill in cli('list', '--json').data['skills']] == ['pdf']

    def test_without_tasks_nothing_is_compared(self, cli: Cli, fetched: Path, monkeypatch: pytest.MonkeyPatch):
        use_model(monkeypatch, custom_output_text='filled')
        cli('eval', 'pdf', '--model', 'some:model', '--only', 'trigger')
        (facts,) = read_facts(fetched).values()
        assert facts.score == EvalScore(pass_rate=1.0, cases=1, model='test:real')

    def test_those_of_the_stand_in_and_of_ones_own_skills_are_not_recorded(
        self, cli: Cli, here: Path, fetched: Path, skills: Path, monkeypatch: pytest.MonkeyPatch
    ):
        cli('eval', 'pdf', '--model', 'stand-in')
        use_model(monkeypatch)
        assert 'recorded' not in cli('eval', 'skills', '--model', 'some:model').err
        assert read_facts(fetched) == {}

    def test_those_of_a_copy_that_was_edited_are_not_recorded(
        self, cli: Cli, fetched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        use_model(monkeypatch)
        (file,) = (tmp_path / 'cache').rglob('pdf/references/forms.md')
        file.write_text('edited')
        cli('eval', 'pdf', '--model', 'some:model')
        assert read_facts(fetched) == {}


class TestModels:
    def test_each_case_of_a_real_model_runs_three_times(self, cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch):
        use_model(monkeypatch, custom_output_text='filled a.pdf')
        done = cli('eval', '--model', 'some:model')
        assert 'real, 3 runs each' in done.out
        assert 'stand-in' not in done.out
        assert done.status == 1

    def test_a_judge_decides_what_is_in_words(self, cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch):
        def infer(model: models.Model | str) -> models.Model:
            return model if isinstance(model, models.Model) else TestModel()

        monkeypatch.setattr('pydantic_ai_skills.cli.conversation.infer_model', infer)
        write_cases(skills / 'forms', tasks=[{'id': 1, 'prompt': 'Fill in it', 'assertions': ['It is polite.']}])
        data = cli('eval', '--model', 'stand-in', '--judge', 'some:judge', '--json').data
        assert data['judge'].endswith('test')
        assert data['outcome']['results'][0]['runs'][0]['checks'][0]['passed'] is not None

    @pytest.mark.parametrize('option', ['--model', '--judge'])
    def test_one_that_cannot_be_had_is_a_mistake(self, cli: Cli, skills: Path, option: str):
        done = cli('eval', option, 'nobody:nothing')
        assert (done.status, done.out) == (2, '')
        assert 'Unknown model' in done.err

    def test_without_the_extra_it_says_what_to_install(self, cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delitem(sys.modules, 'pydantic_ai_skills.evals.experiment', raising=False)
        monkeypatch.setitem(sys.modules, 'pydantic_evals', None)
        done = cli('eval')
        assert done.status == 3
        assert "pip install 'pydantic-ai-skills[evals]'" in done.err


class TestBaselines:
    def test_a_git_ref(self, cli: Cli, tmp_path: Path):
        repository = Repository.create(tmp_path / 'checkout')
        repository.skill('forms', 'Fills in PDF forms.', files={'fill.py': 'print("nothing")\n'})
        repository.commit('first')
        UserTrust().trust(repository.path)
        folder = repository.path / 'skills/forms'
        write_skill(folder, 'Fills in PDF forms.', 'Run `fill.py FILE`.', files={'fill.py': FILL})
        write_cases(
            folder,
            tasks=[{'id': 1, 'prompt': 'Fill in PDF form a.pdf', 'checks': [{'type': 'file', 'path': 'filled.txt'}]}],
        )
        done = cli('eval', folder, '--model', 'stand-in', '--baseline', 'HEAD')
        assert done.status == 0
        assert [line.rstrip() for line in done.out.splitlines()[3:5]] == snapshot(
            [
                'skill  tasks  with  without  baseline  delta  tokens  verdict',
                'forms      1  1.00     0.00      0.00  +1.00    +131  unclear',
            ]
        )

    def test_the_lock_file(self, cli: Cli, here: Path, repository: Repository):
        cli('add', repository.path)
        folder = write_skill(
            here / 'mine/pdf',
            'Fills in forms. Use for PDF files.',
            'Run `scripts/fill.py FILE`.',
            files={'scripts/fill.py': FILL},
        )
        write_cases(
            folder,
            tasks=[{'id': 1, 'prompt': 'Fill in PDF form a.pdf', 'checks': [{'type': 'file', 'path': 'filled.txt'}]}],
        )
        data = cli('eval', 'mine', '--model', 'stand-in', '--baseline', 'locked', '--json').data
        assert data['baseline'] == 'locked'
        assert {result['configuration']: result['pass_rate'] for result in data['outcome']['results']} == {
            'with_skill': 1.0,
            'without_skill': 0.0,
            'baseline': 0.0,
        }

    def test_a_project_without_sources_pins_nothing(self, cli: Cli, skills: Path):
        done = cli('eval', '--model', 'stand-in', '--baseline', 'locked')
        assert (done.status, done.err) == (
            2,
            'error: This project has no sources, so its lock file pins nothing to compare with.\n',
        )


def test_progress_is_shown_to_people(cli: Cli, skills: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('FORCE_COLOR', '1')
    done = cli('eval')
    assert 'Evaluating' in done.err


def test_queries_are_data(cli: Cli, here: Path):
    folder = write_skill(here / 'skills/forms', 'Fills in PDF forms.')
    write_cases(folder, [('Bell \x07 \x1b[31m\u202eevil', True), ('long ' * 1000, True)])
    done = cli('eval')
    assert '\\x07 \\x1b[31m\\u202eevil' in done.out
    assert max(map(len, done.out.splitlines())) <= 202
