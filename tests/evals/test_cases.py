"""Cases are read from every published shape without loss, and written in the first one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import Skill, SkillsDirectory
from pydantic_ai_skills.evals import (
    CaseSet,
    Check,
    ExitCode,
    FileWritten,
    FolderFile,
    Judged,
    OutputContains,
    OutputEquals,
    OutputMatches,
    Satisfies,
    ScriptRan,
    SkillCase,
    cases_in_json,
    cases_of,
    read_cases,
    write_cases,
)
from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillValidationError
from tests.folders import write, write_skill


def written(tmp_path: Path, content: Any, name: str = 'evals.json') -> Path:
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return write(tmp_path / 'pdf/evals', {name: text}) / name


def read(tmp_path: Path, content: Any, name: str = 'evals.json', skill: str | None = None) -> CaseSet:
    return read_cases(written(tmp_path, content, name), skill=skill)


def one(tmp_path: Path, item: Any) -> SkillCase:
    found = read(tmp_path, {'skill_name': 'pdf', 'evals': [item]})
    assert found.problems == ()
    (case,) = found.cases
    return case


# --- The dialects -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('key', ['assertions', 'expectations'])
def test_the_first_and_the_second_dialect_are_read(tmp_path: Path, key: str) -> None:
    item = {
        'id': 1,
        'prompt': 'Fill the form.',
        'expected_output': 'A filled form.',
        'files': ['evals/files/form.pdf', './sample.csv'],
        key: ['Every field is filled.', 'The script fill.py was used.'],
        'eval_name': 'forms',
    }
    found = read(tmp_path, {'skill_name': 'pdf', 'schema_version': 2, 'evals': [item]})
    assert found.extra == {'schema_version': 2}
    (case,) = found.cases
    folder = str(tmp_path / 'pdf')
    assert case == SkillCase(
        skill='pdf',
        id=1,
        prompt='Fill the form.',
        expected_output='A filled form.',
        checks=(Judged('Every field is filled.'), Judged('The script fill.py was used.')),
        files={
            'form.pdf': FolderFile(folder, 'evals/files/form.pdf'),
            'sample.csv': FolderFile(folder, 'sample.csv'),
        },
        extra={'eval_name': 'forms'},
    )
    assert case.source == str(tmp_path / 'pdf/evals/evals.json')
    assert (case.is_query, case.is_task) == (False, True)


THIRD = {
    'id': 'pdf-001',
    'question': 'Fill the form.',
    'expected_skill': 'pdf',
    'expected_script': 'scripts/fill.py',
    'ground_truth': 'A filled form.',
    'expected_behavior': ['Every field is filled.'],
    'must_not': ['It invents a name.'],
}


@pytest.mark.parametrize(
    'content', [[THIRD], {'skill': 'pdf', 'cases': [THIRD]}, {'skill_name': 'pdf', 'test_cases': [THIRD]}]
)
def test_the_third_dialect_is_read(tmp_path: Path, content: Any) -> None:
    (case,) = read(tmp_path, content).cases
    assert case == SkillCase(
        skill='pdf',
        id='pdf-001',
        prompt='Fill the form.',
        should_trigger=True,
        expected_output='A filled form.',
        checks=(
            Judged('Every field is filled.'),
            Judged('This did not happen: It invents a name.'),
            ScriptRan('scripts/fill.py'),
        ),
    )
    assert (case.is_query, case.is_task, case.target) == (True, True, 'pdf')


@pytest.mark.parametrize(
    ('skill', 'item', 'expected'),
    [
        (None, {'expected_skill': None}, (None, False, None)),
        ('pdf', {'expected_skill': None}, ('pdf', False, None)),
        ('pdf', {'expected_skill': 'docx'}, ('pdf', False, 'docx')),
        (None, {'expected_skill': 'docx'}, ('docx', True, None)),
        ('pdf', {'expected_skill': 'docx', 'should_trigger': False}, ('pdf', False, 'docx')),
        ('pdf', {'should_trigger': True}, ('pdf', True, None)),
        ('pdf', {'skill_should_trigger': False}, ('pdf', False, None)),
        ('pdf', {}, ('pdf', None, None)),
    ],
)
def test_which_skill_is_expected(
    tmp_path: Path, skill: str | None, item: dict[str, Any], expected: tuple[str | None, bool | None, str | None]
) -> None:
    (case,) = read(tmp_path, [{'query': 'Hello.', 'expected_script': None, **item}], skill=skill).cases
    assert (case.skill, case.should_trigger, case.expected_skill) == expected
    assert case.extra == {}


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('triggers.json', [{'query': 'Fill it.', 'should_trigger': True}, {'query': 'Hi.', 'should_trigger': False}]),
        (
            'evals.json',
            {'evals': [{'prompt': 'Fill it.', 'should_trigger': True}, {'prompt': 'Hi.', 'should_trigger': False}]},
        ),
        ('trigger-cases.json', {'skill_name': 'pdf', 'should_trigger': ['Fill it.'], 'should_not_trigger': ['Hi.']}),
        (
            'triggers.jsonl',
            '{"query": "Fill it.", "should_trigger": true}\n\n{"query": "Hi.", "should_trigger": false}\n',
        ),
        (
            'evals.json',
            b'\xef\xbb\xbf[{"query": "Fill it.", "should_trigger": true}, {"query": "Hi.", "should_trigger": false}]',
        ),
    ],
)
def test_trigger_sets_are_read(tmp_path: Path, name: str, content: Any) -> None:
    found = read(tmp_path, content, name, skill='pdf')
    assert found.problems == ()
    assert [(case.prompt, case.skill, case.should_trigger, case.is_task) for case in found.cases] == [
        ('Fill it.', 'pdf', True, False),
        ('Hi.', 'pdf', False, False),
    ]


@pytest.mark.parametrize(
    ('said', 'check'),
    [
        ('It is polite.', Judged('It is polite.')),
        ({'text': 'It is polite.'}, Judged('It is polite.', {'text': 'It is polite.'})),
        (
            {'name': 'Polite', 'description': 'It says please.'},
            Judged('Polite: It says please.', {'name': 'Polite', 'description': 'It says please.'}),
        ),
        ({'name': 'Polite'}, Judged('Polite', {'name': 'Polite'})),
        ({'type': 'vibes', 'text': 'Fine.'}, Judged('Fine.', {'type': 'vibes', 'text': 'Fine.'})),
        ({'type': 'judge', 'text': 'Fine.'}, Judged('Fine.')),
        ({'type': 'contains', 'value': 'x'}, OutputContains('x')),
        ({'type': 'contains', 'text': 'x', 'ignore_case': True, 'absent': True}, OutputContains('x', True, True)),
        ({'type': 'not_contains', 'value': 'x'}, OutputContains('x', absent=True)),
        ({'type': 'equals', 'expected': 'x'}, OutputEquals('x')),
        ({'type': 'Regex', 'pattern': 'x+'}, OutputMatches('x+')),
        ({'type': 'matches', 'pattern': 'x+', 'absent': True}, OutputMatches('x+', absent=True)),
        ({'type': 'not-regex', 'pattern': 'x+'}, OutputMatches('x+', absent=True)),
        ({'type': 'file_exists', 'path': 'a.txt'}, FileWritten('a.txt')),
        ({'type': 'file', 'path': 'a.txt', 'contains': 'x'}, FileWritten('a.txt', 'x')),
        ({'type': 'exit_code', 'code': 3}, ExitCode(3)),
        ({'type': 'exit-code', 'value': '0', 'of': 'a.py'}, ExitCode(0, 'a.py')),
        ({'type': 'script', 'script': 'a.py'}, ScriptRan('a.py')),
    ],
)
def test_a_check_can_be_words_or_an_object(tmp_path: Path, said: Any, check: Check) -> None:
    for key in ('assertions', 'checks'):
        assert one(tmp_path, {'prompt': 'Go.', key: [said]}).checks == (check,)
    case = SkillCase(skill='pdf', prompt='Go.', checks=(check,))
    write_cases(tmp_path / 'again.json', [case])
    assert read_cases(tmp_path / 'again.json').cases == (SkillCase(skill='pdf', prompt='Go.', checks=(check,), id=1),)


def test_a_single_text_is_taken_for_a_list(tmp_path: Path) -> None:
    assert one(tmp_path, {'query': 'Go.', 'expected_behavior': 'It goes.'}).checks == (Judged('It goes.'),)


def test_files_that_should_exist_are_checked(tmp_path: Path) -> None:
    assert one(tmp_path, {'prompt': 'Go.', 'files_exist': ['a.txt']}).checks == (FileWritten('a.txt'),)
    assert one(tmp_path, {'prompt': 'Go.', 'files_exist': 'a.txt'}).extra == {'files_exist': 'a.txt'}


def test_files_can_have_their_content_in_the_case(tmp_path: Path) -> None:
    assert one(tmp_path, {'prompt': 'Go.', 'files': {'a.txt': 'A'}}).files == {'a.txt': 'A'}
    item = {'prompt': 'Go.', 'files': [{'path': 'a.txt', 'content': 'A'}, {'name': 'b.txt'}]}
    assert one(tmp_path, item).files == {'a.txt': 'A', 'b.txt': FolderFile(str(tmp_path / 'pdf'), 'b.txt')}


def test_another_name_of_the_skill_is_kept(tmp_path: Path) -> None:
    found = read(tmp_path, {'skill_name': 'PDF', 'evals': [{'prompt': 'Go.'}]}, skill='pdf')
    assert (found.cases[0].skill, found.extra) == ('pdf', {'skill_name': 'PDF'})


# --- What is wrong ------------------------------------------------------------------------------------------------


BROKEN: list[tuple[Any, str]] = [
    ('{"evals": [', 'It is not JSON: Expecting value: line 1 column 12 (char 11).'),
    (b'\xff', "It is not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte."),
    (
        r'[{"query": "\ud800"}]',
        "It is not JSON: 'utf-8' codec can't encode character '\\ud800' in position 12: surrogates not allowed.",
    ),
    ('[' * 100_000, 'It is nested too deeply.'),
    ('{}', 'It holds no cases in a known shape.'),
    ('"text"', 'It holds no cases in a known shape.'),
    ({'evals': ['text']}, 'evals[0] is not an object.'),
    ([{'question': ' '}], "[0] has no 'prompt'."),
    ([{'query': 'Go.', 'should_trigger': 'yes'}], "[0] has a 'should_trigger' that is neither true nor false."),
    ([{'query': 'Go.', 'expected_skill': 7}], "[0] has an 'expected_skill' that is neither a name nor null."),
    ([{'query': 'Go.', 'id': []}], "[0] has an 'id' that is neither text nor a number."),
    ([{'query': 'Go.', 'checks': [7]}], "[0] has an entry in 'checks' that is neither text nor a known check."),
    ([{'query': 'Go.', 'checks': ['']}], "[0] has an entry in 'checks' that is neither text nor a known check."),
    ([{'query': 'Go.', 'checks': [{}]}], "[0] has an entry in 'checks' that is neither text nor a known check."),
    (
        [{'query': 'Go.', 'checks': [{'type': 'exit-code', 'value': 'x'}]}],
        "[0] has an entry in 'checks' that is neither text nor a known check.",
    ),
    ([{'query': 'Go.', 'files': [{}]}], "[0] has an entry in 'files' without a path."),
    ({'should_trigger': [7]}, "should_trigger[0] has no 'prompt'."),
    ([{'query': 'Go.'}] * 2001, 'It has 2,001 cases, of which only 2,000 are read.'),
    (' ' * (4 * 1024 * 1024 + 1), 'It cannot be read: it is larger than 4,194,304 bytes.'),
]


@pytest.mark.parametrize(('content', 'message'), BROKEN)
def test_a_broken_file_is_a_problem_that_says_where(tmp_path: Path, content: Any, message: str) -> None:
    found = read(tmp_path, content)
    (problem,) = found.problems
    assert (problem.code, problem.severity, problem.message) == ('evals-invalid', 'warning', message)
    assert problem.path == str(tmp_path / 'pdf/evals/evals.json')


def test_the_other_cases_of_a_file_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, [{'query': 'One.'}, {'id': 2}, {'query': 'Three.'}])
    assert [case.prompt for case in found.cases] == ['One.', 'Three.']
    assert len(found.problems) == 1


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    (problem,) = read_cases(tmp_path / 'evals.json').problems
    assert problem.message == 'It cannot be read: no such file or directory.'


def test_a_file_is_only_taken_from_the_folder_of_a_skill(tmp_path: Path) -> None:
    write(tmp_path, {'cases.json': json.dumps([{'query': 'Go.', 'files': ['in.txt']}]), 'secret.txt': 'secret'})
    (problem,) = read_cases(tmp_path / 'cases.json').problems
    assert problem.message == "[0] names the file 'in.txt', but its cases are not in the folder of a skill."
    case = one(tmp_path, {'prompt': 'Go.', 'files': ['../secret.txt']})
    (source,) = case.files.values()
    assert isinstance(source, FolderFile)
    with pytest.raises(SkillResourceLoadError, match='is not a path below this folder'):
        source.read()


# --- Folders ------------------------------------------------------------------------------------------------------


def test_all_files_in_the_evals_folder_of_a_skill_are_read(tmp_path: Path) -> None:
    cases = {
        'evals/evals.json': json.dumps({'evals': [{'prompt': 'One.'}]}),
        'evals/a-trigger.json': json.dumps([{'query': 'Two.', 'should_trigger': True}]),
        'evals/benchmark.json': '{"runs": []}',
        'evals/results.json': 'this is no JSON',
        'evals/empty.json': '[]',
        'evals/notes.md': 'Notes.',
        'evals/broken-trigger.json': '{}',
        'evals/files/evals.json': '[{"query": "Not this."}]',
    }
    folder = write_skill(tmp_path / 'pdf', files={**cases})
    (tmp_path / 'evals.json').write_text('[{"query": "From outside."}]')
    (folder / 'evals/linked-trigger.json').symlink_to(tmp_path / 'evals.json')
    write_skill(tmp_path / 'docx')
    (tmp_path / 'odd').mkdir()
    (tmp_path / 'odd/evals').write_text('no folder')
    skills = [*SkillsDirectory(tmp_path).get_skills().values(), Skill('python', 'In Python.', 'Go.')]
    for found in (cases_of(skills), read_cases(folder, skill='pdf')):
        assert [(case.prompt, case.skill) for case in found.cases] == [('One.', 'pdf'), ('Two.', 'pdf')]
        assert [(Path(problem.path).name, problem.message) for problem in found.problems] == [
            ('broken-trigger.json', 'It holds no cases in a known shape.'),
            ('linked-trigger.json', "'evals/linked-trigger.json' cannot be opened: it is a link."),
        ]
    assert read_cases(tmp_path / 'odd').cases == ()


# --- Writing ------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_again_without_loss(tmp_path: Path) -> None:
    item = {**THIRD, 'files': ['evals/files/form.pdf'], 'note': 'Mind the gap.', 'id': 7}
    first = read(
        tmp_path, {'skill': 'pdf', 'version': '1', 'cases': [item, {'question': 'Hi.', 'expected_skill': 'docx'}]}
    )
    write_cases(tmp_path / 'pdf/evals/evals.json', first)
    again = read_cases(tmp_path / 'pdf/evals/evals.json')
    assert again.extra == first.extra == {'version': '1'}
    second = SkillCase(skill='pdf', id=2, prompt='Hi.', should_trigger=False, expected_skill='docx')
    assert again.cases == (first.cases[0], second)


def test_the_first_dialect_is_written(tmp_path: Path) -> None:
    case = SkillCase(
        skill='pdf',
        prompt='Go.',
        expected_output='Gone.',
        checks=[Judged('It goes.'), OutputContains('x')],
        files={'a.txt': 'A', 'b.txt': b'B'},
    )
    assert cases_in_json(CaseSet(cases=[case])) == {
        'skill_name': 'pdf',
        'evals': [
            {
                'id': 1,
                'prompt': 'Go.',
                'expected_output': 'Gone.',
                'files': [{'path': 'a.txt', 'content': 'A'}, {'path': 'b.txt', 'content': 'B'}],
                'assertions': ['It goes.'],
                'checks': [{'type': 'contains', 'text': 'x'}],
            }
        ],
    }
    assert cases_in_json(CaseSet(cases=[SkillCase(prompt='Go.')])) == {'evals': [{'id': 1, 'prompt': 'Go.'}]}
    assert cases_in_json(CaseSet(), skill='pdf') == {'skill_name': 'pdf', 'evals': []}


@pytest.mark.parametrize(
    ('cases', 'message'),
    [
        (
            [SkillCase(skill='a', prompt='A.'), SkillCase(skill='b', prompt='B.')],
            "is for one skill, 'a', but a case is for 'b'",
        ),
        ([SkillCase(prompt='A.', checks=[Satisfies(bool, 'fine')])], "The check 'fine' is a function"),
        ([SkillCase(prompt='A.', files={'a.txt': Path('a.txt')})], "'a.txt' is not in the folder of the skill"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(tmp_path: Path, cases: list[SkillCase], message: str) -> None:
    with pytest.raises(SkillValidationError, match=message):
        write_cases(tmp_path / 'evals.json', cases)
    assert not (tmp_path / 'evals.json').exists()
