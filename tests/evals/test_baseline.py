"""Skills are compared with another version: from git, another toolset, a mapping or a function."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError

from pydantic_ai_skills import Skill, SkillsCapability, SkillsToolset
from pydantic_ai_skills.evals import Baseline, EvalReport, OutputContains, SkillCase, evaluate
from pydantic_ai_skills.evals import baseline as baselines
from pydantic_ai_skills.exceptions import SkillError
from tests.evals.scripted import calling, choosing
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

OLD, NEW = Skill('answer', 'Knows it.', 'The answer is 41.'), Skill('answer', 'Knows it.', 'The answer is 42.')
CASE = SkillCase(skill='answer', prompt='What is it?', checks=[OutputContains('42')])
MODEL = choosing({CASE.prompt: [['answer']]})


def rates(report: EvalReport) -> dict[str, float | None]:
    assert report.outcome is not None
    return {result.configuration: result.pass_rate for result in report.outcome.results}


def old(skill: Skill[Any]) -> Skill[Any]:
    return OLD


def nothing(skill: Skill[Any]) -> None:
    return None


VERSIONS: dict[str, Baseline] = {
    'toolset': SkillsToolset[Any](skills=[OLD]),
    'mapping': {'answer': OLD},
    'function': old,
}


@pytest.mark.parametrize('baseline', VERSIONS.values(), ids=VERSIONS)
async def test_a_skill_is_compared_with_another_version(baseline: Baseline) -> None:
    toolset = SkillsToolset[Any](skills=[NEW])
    report = await evaluate(toolset, [CASE], model=MODEL, baseline=baseline)
    assert rates(report) == {'with_skill': 1.0, 'without_skill': 0.0, 'baseline': 0.0}
    assert report.outcome is not None
    delta = report.outcome.skills[0].delta('baseline')
    assert delta is not None
    assert delta.verdict == 'helps'
    assert report.baseline == 'another version'
    assert toolset.skills['answer'] is NEW


async def test_a_skill_of_a_combined_capability_is_compared_and_put_back(tmp_path: Path) -> None:
    write_skill(tmp_path / 'answer', 'Knows it.', 'The answer is 42.')
    others = Skill('other', 'Other.', 'Other.')
    agent = Agent(capabilities=[SkillsCapability[Any](directories=tmp_path), SkillsCapability[Any](skills=[others])])
    report = await evaluate(agent, [CASE], model=MODEL, baseline={'answer': OLD})
    assert rates(report)['baseline'] == 0.0
    assert rates(await evaluate(agent, [CASE], model=MODEL)) == {'with_skill': 1.0, 'without_skill': 0.0}


@pytest.mark.parametrize('baseline', [None, 'none'])
async def test_nothing_is_compared_if_nothing_is_given(baseline: str | None) -> None:
    report = await evaluate(SkillsToolset[Any](skills=[NEW]), [CASE], model=MODEL, baseline=baseline)
    assert rates(report) == {'with_skill': 1.0, 'without_skill': 0.0}
    assert (report.baseline, report.problems) == (None, ())


NO_VERSIONS: dict[str, Baseline] = {'toolset': SkillsToolset[Any](skills=[]), 'mapping': {}, 'function': nothing}


@pytest.mark.parametrize('baseline', NO_VERSIONS.values(), ids=NO_VERSIONS)
async def test_a_skill_without_another_version_is_told(baseline: Any) -> None:
    report = await evaluate(SkillsToolset[Any](skills=[NEW]), [CASE], model=MODEL, baseline=baseline)
    assert 'baseline' not in rates(report)
    assert report.problems == ("The skill 'answer' has no other version to compare with.",)


async def test_the_lock_file_belongs_to_a_project() -> None:
    with pytest.raises(UserError, match=r'baseline=SkillsProject\(\.\.\.\)\.toolset\(\)'):
        await evaluate(SkillsToolset[Any](skills=[NEW]), [CASE], model=MODEL, baseline='locked')


# --- git ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose skill says 41 at the tag `v1`, and 42 now."""
    root = tmp_path / 'repository'
    root.mkdir()
    git(root, 'init', '--quiet')
    write_answer(root / 'skills', 41)
    git(root, 'add', '.')
    git(root, 'commit', '--quiet', '-m', 'One')
    git(root, 'tag', 'v1')
    write_answer(root / 'skills', 42)
    write_skill(root / 'skills/newer', 'Is new.', 'New.')
    return root


def git(root: Path, *arguments: str) -> None:
    name = ['-c', 'user.name=A', '-c', 'user.email=a@example.org', '-c', 'commit.gpgsign=false']
    subprocess.run(['git', *name, *arguments], cwd=root, check=True)


def write_answer(folder: Path, answer: int) -> None:
    write_skill(
        folder / 'answer', 'Knows it.', 'Run answer.py.', {'scripts/answer.py': f'print("The answer is {answer}.")\n'}
    )


RUNNING = calling(
    ('load_skill', {'skill_name': 'answer'}),
    ('run_skill_script', {'skill_name': 'answer', 'script_name': 'answer.py'}),
    answer=lambda told: told[-1].model_response_str() if told else '',
)


@pytest.mark.parametrize('ref', ['v1', 'HEAD'])
async def test_a_skill_is_compared_with_itself_at_a_git_ref(
    repository: Path, ref: str, private_dirs: Callable[[], Sequence[Path]]
) -> None:
    toolset = SkillsToolset[Any](directories=repository / 'skills')
    file = repository / 'recording.jsonl'
    report = await evaluate(toolset, [CASE], model=RUNNING, baseline=ref, record=file)
    assert rates(report) == {'with_skill': 1.0, 'without_skill': 0.0, 'baseline': 0.0}
    assert report.baseline == ref
    assert private_dirs() == []
    assert (await evaluate(toolset, [CASE], baseline=ref, replay=file)).to_json() == report.to_json()


async def test_a_skill_at_the_root_of_its_repository_is_compared(tmp_path: Path) -> None:
    write_answer(tmp_path, 41)
    git(tmp_path / 'answer', 'init', '--quiet')
    git(tmp_path / 'answer', 'add', '.')
    git(tmp_path / 'answer', 'commit', '--quiet', '-m', 'One')
    write_answer(tmp_path, 42)
    toolset = SkillsToolset[Any](directories=tmp_path)
    assert rates(await evaluate(toolset, [CASE], model=RUNNING, baseline='HEAD', repeat=1))['baseline'] == 0.0


async def test_a_skill_that_is_newer_than_the_ref_or_not_in_a_file_is_told(repository: Path) -> None:
    toolset = SkillsToolset[Any](directories=repository / 'skills', skills=[Skill('python', 'In Python.', 'Go.')])
    cases = [SkillCase(skill=name, prompt='Go.') for name in ('newer', 'python')]
    report = await evaluate(toolset, cases, model=choosing({}), baseline='v1', repeat=1)
    assert report.problems == (
        "The skill 'newer' has no other version to compare with.",
        "The skill 'python' has no other version to compare with.",
    )


@pytest.mark.parametrize('ref', ['missing', '--output=x', '-h'])
async def test_a_ref_that_is_not_there_is_an_error(repository: Path, ref: str) -> None:
    toolset = SkillsToolset[Any](directories=repository / 'skills')
    with pytest.raises(SkillError, match='git has no other version of'):
        await evaluate(toolset, [CASE], model=MODEL, baseline=ref)


async def test_a_skill_that_is_too_large_at_a_ref_is_an_error(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, 'MAX_VERSION_BYTES', 100)
    toolset = SkillsToolset[Any](directories=repository / 'skills')
    with pytest.raises(SkillError, match="'answer' at 'v1' is larger than 100 bytes"):
        await evaluate(toolset, [CASE], model=MODEL, baseline='v1')


async def test_git_that_is_missing_is_an_error(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, 'git_program', lambda: str(repository / 'no-git'))
    toolset = SkillsToolset[Any](directories=repository / 'skills')
    with pytest.raises(SkillError, match='git could not be run'):
        await evaluate(toolset, [CASE], model=MODEL, baseline='v1')
