"""The checks of a task: each true and untrue, in words and by a judge, and hostile ones that end in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import Skill, SkillsToolset
from pydantic_ai_skills.evals import (
    CaseRun,
    Check,
    CheckResult,
    ExitCode,
    FileWritten,
    Judged,
    OutcomeRun,
    OutputContains,
    OutputEquals,
    OutputMatches,
    Satisfies,
    ScriptRan,
    SkillCase,
    evaluate,
)
from pydantic_ai_skills.evals.regular_expressions import ExpressionError, search
from pydantic_ai_skills.execution.work_files import MAX_READ_BYTES
from tests.evals.scripted import calling, judging
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

WRITE = "import sys\nopen('out/report.txt', 'w').write('total: 7') if sys.argv[1:] != ['fail'] else sys.exit(3)\n"


def saying(text: str) -> FunctionModel:
    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(text)])

    return FunctionModel(respond)


async def run_of(model: FunctionModel, *checks: Check, toolset: Any = None, **case: Any) -> OutcomeRun:
    """The run with the skill of one task with these checks."""
    skills = toolset or SkillsToolset[Any](skills=[Skill('writer', 'Writes.', 'Write.')])
    judge = case.pop('judge', None)
    task = SkillCase(skill='writer', prompt='Go.', checks=checks, **case)
    report = await evaluate(skills, [task], model=model, judge=judge, repeat=1, without_skill=False)
    assert report.outcome is not None
    (result,) = report.outcome.results
    return result.runs[0]


async def check(model: FunctionModel, *checks: Check, **case: Any) -> CheckResult:
    (result,) = (await run_of(model, *checks, **case)).checks
    return result


def raise_it(run: CaseRun) -> None:
    raise KeyError('nothing')


def assert_it(run: CaseRun) -> None:
    assert run.output == 'something else', 'It says something else.'


def assert_bare(run: CaseRun) -> None:
    raise AssertionError


async def later(run: CaseRun) -> bool:
    return run.output == 'The total is 7.'


def much_later(run: CaseRun) -> Any:
    return later(run)


@pytest.mark.parametrize(
    ('check_', 'passed', 'text', 'evidence'),
    [
        (OutputContains('total is 7'), True, "The answer contains 'total is 7'.", 'The total is 7.'),
        (OutputContains('TOTAL'), False, "The answer contains 'TOTAL'.", 'The total is 7.'),
        (OutputContains('TOTAL', ignore_case=True), True, "The answer contains 'TOTAL'.", 'The total is 7.'),
        (OutputContains('8', absent=True), True, "The answer does not contain '8'.", 'The total is 7.'),
        (OutputContains('7', absent=True), False, "The answer does not contain '7'.", 'The total is 7.'),
        (OutputEquals(' The total is 7. '), True, "The answer is ' The total is 7. '.", 'The total is 7.'),
        (OutputEquals('7'), False, "The answer is '7'.", 'The total is 7.'),
        (OutputMatches(r'is \d'), True, r'The answer matches /is \d/.', "It matches 'is 7'."),
        (OutputMatches(r'\d\d'), False, r'The answer matches /\d\d/.', 'It does not match.'),
        (OutputMatches(r'\d\d', absent=True), True, r'The answer does not match /\d\d/.', 'It does not match.'),
        (OutputMatches('7', absent=True), False, 'The answer does not match /7/.', "It matches '7'."),
        (
            OutputMatches('('),
            False,
            'The answer matches /(/.',
            'The expression is invalid: missing ), unterminated subpattern at position 0.',
        ),
        (FileWritten('report.txt'), False, "There is a file 'report.txt'.", 'Files in the work folder: none.'),
        (ExitCode(), False, 'The last script ended with 0.', 'No script ran.'),
        (ExitCode(3, 'a.py'), False, "The script 'a.py' ended with 3.", "The script 'a.py' did not run."),
        (ScriptRan('a.py'), False, "The script 'a.py' ran.", 'Scripts that ran: none.'),
        (Satisfies(lambda run: True, 'is fine'), True, 'is fine', ''),
        (Satisfies(lambda run: False), False, '<lambda>', ''),
        (Satisfies(lambda run: None), True, '<lambda>', ''),
        (Satisfies(lambda run: f'{run.output} What?'), False, '<lambda>', 'The total is 7. What?'),
        (Satisfies(raise_it), False, 'raise_it', "KeyError: 'nothing'"),
        (Satisfies(assert_it), False, 'assert_it', 'It says something else.'),
        (Satisfies(assert_bare), False, 'assert_bare', 'An assertion failed.'),
        (Satisfies(later), True, 'later', ''),
        (Satisfies(much_later), True, 'much_later', ''),
    ],
)
async def test_a_check_tells_whether_it_is_true_and_what_was_found(
    check_: Check, passed: bool, text: str, evidence: str
) -> None:
    result = await check(saying('The total is 7.'), check_)
    assert (result.passed, result.text, result.kind) == (passed, text, check_.kind)
    assert result.evidence.startswith(evidence)
    assert bool(result.evidence) is bool(evidence)


async def test_long_evidence_is_cut() -> None:
    result = await check(saying('x' * 10_000), OutputContains('y'))
    assert result.evidence == f'{"x" * 500}…'


# --- Files and scripts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('args', 'check_', 'passed', 'evidence'),
    [
        ([], FileWritten('out/report.txt'), True, 'There is out/report.txt.'),
        ([], FileWritten('out/*.txt', contains='total: 7'), True, 'There is out/report.txt.'),
        ([], FileWritten('*.txt', contains='total: 8'), False, 'There is out/in.txt.'),
        ([], FileWritten('*.pdf'), False, 'Files in the work folder: out/in.txt, out/report.txt.'),
        ([], ExitCode(), True, 'scripts/write.py ended with 0.'),
        (['fail'], ExitCode(), False, 'scripts/write.py ended with 3.'),
        (['fail'], ExitCode(3, script='write.py'), True, 'scripts/write.py ended with 3.'),
        ([], ScriptRan('write.py'), True, 'Scripts that ran: scripts/write.py.'),
        ([], ScriptRan('skills/writer/scripts/write.py'), True, 'Scripts that ran: scripts/write.py.'),
        ([], ScriptRan('rite.py'), False, 'Scripts that ran: scripts/write.py.'),
    ],
)
async def test_files_and_scripts_of_a_run_are_checked(
    tmp_path: Path, args: list[str], check_: Check, passed: bool, evidence: str
) -> None:
    write_skill(tmp_path / 'writer', files={'scripts/write.py': WRITE})
    model = calling(
        ('load_skill', {'skill_name': 'writer'}),
        ('run_skill_script', {'skill_name': 'writer', 'script_name': 'scripts/write.py', 'args': args}),
    )
    # A folder of the developer's is not written to.
    theirs = tmp_path / 'theirs'
    toolset = SkillsToolset[Any](directories=tmp_path, work_dir=theirs)
    result = await check(model, check_, toolset=toolset, files={'out/in.txt': 'input'})
    assert (result.passed, result.evidence) == (passed, evidence)
    assert not theirs.exists()


async def test_a_file_that_is_too_large_contains_nothing(tmp_path: Path) -> None:
    big = tmp_path / 'big.txt'
    with big.open('wb') as file:
        file.truncate(MAX_READ_BYTES + 1)
    result = await check(saying('ok'), FileWritten('big.txt', contains='\0'), files={'big.txt': big})
    assert result.passed is False


async def test_the_work_folder_is_gone_when_a_run_is_checked(tmp_path: Path) -> None:
    seen: list[tuple[Path, bytes]] = []

    def look(run: CaseRun) -> None:
        seen.append((run.work_dir, (run.work_dir / 'deep/in.bin').read_bytes()))
        assert (run.planned.kind, run.number, run.label) == ('with_skill', 1, 'writer/1 with_skill 1')
        assert run.used.requests == 1
        assert len(run.messages) == 2

    assert (await check(saying('ok'), Satisfies(look), files={'deep/in.bin': b'\0\1'})).passed
    ((folder, data),) = seen
    assert data == b'\0\1'
    assert not folder.exists()


# --- The judge ----------------------------------------------------------------------------------------------------


async def test_statements_and_the_expected_output_are_judged(tmp_path: Path) -> None:
    log: list[str] = []
    judge = judging({'<Rubric>\nIt is polite': True, 'as expected: Seven': False}, log=log)
    run = await run_of(
        saying('It is 7, please.'),
        Judged('It is polite.'),
        judge=judge,
        expected_output='Seven.',
        files={'a.txt': 'AAA'},
    )
    assert [(each.text, each.passed, each.kind) for each in run.checks] == [
        ('It is polite.', True, 'judge'),
        ('The result is as expected: Seven.', False, 'judge'),
    ]
    assert run.checks[0].evidence == 'because of <Rubric>\nIt is polite'
    assert run.pass_rate == 0.5
    assert 'It is 7, please.' in log[0]
    assert 'AAA' in log[0]


async def test_without_a_judge_statements_are_not_checked_and_never_passed() -> None:
    run = await run_of(saying('7'), Judged('It is polite.'), OutputContains('7'))
    judged, contained = run.checks
    assert (judged.passed, judged.evidence) == (None, 'Not checked: there is no judging model.')
    assert (contained.passed, run.pass_rate) == (True, 1.0)
    assert (await run_of(saying('7'), Judged('It is polite.'))).pass_rate is None


async def test_a_judge_that_fails_has_checked_nothing() -> None:
    result = await check(saying('7'), Judged('BROKEN'), judge=judging({'BROKEN': True}))
    assert (result.passed, result.evidence) == (None, 'Not checked: RuntimeError: the judge is ill')


# --- Hostile expressions ------------------------------------------------------------------------------------------


async def test_an_expression_that_would_take_for_ever_is_stopped() -> None:
    with pytest.raises(ExpressionError, match=r'stopped after 0\.5 seconds'):
        await search(r'(a+)+$', 'a' * 64 + 'b', seconds=0.5)


async def test_an_expression_that_ends_the_process_is_invalid() -> None:
    huge = '(?:' * 100_000 + ')' * 100_000
    with pytest.raises(ExpressionError, match='invalid'):
        await search(huge, 'a')


async def test_an_answer_that_is_no_text_is_checked_as_json() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    toolset = SkillsToolset[Any](skills=[Skill('writer', 'Writes.', 'Write.')])
    agent = Agent(TestModel(call_tools=[]), output_type=dict[str, int], toolsets=[toolset])
    case = SkillCase(skill='writer', prompt='Go.', checks=[OutputMatches(r'^\{.*\}$')])
    report = await evaluate(agent, [case], repeat=1)
    assert report.outcome is not None
    assert report.outcome.results[0].pass_rate == 1.0
