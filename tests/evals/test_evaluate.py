"""What `evaluate` takes, what it refuses, and what it leaves as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.test import TestModel

import pydantic_ai_skills
from pydantic_ai_skills import Skill, SkillLoaded, SkillProvenance, SkillsToolset
from pydantic_ai_skills.evals import CaseSet, EvalProgress, OutputContains, SkillCase, evaluate
from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.execution import work_dir
from tests.evals.scripted import choosing
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

QUERY = SkillCase(skill='pdf', prompt='What does it say?', should_trigger=True)
PDF = Skill('pdf', 'Reads PDF files.', 'Use pdftotext.')


async def test_cases_are_those_in_the_folders_of_the_skills_by_default(tmp_path: Path) -> None:
    queries = [{'query': 'Read it.', 'should_trigger': True}]
    write_skill(tmp_path / 'pdf', files={'evals/triggers.json': json.dumps(queries), 'evals/evals.json': '{}'})
    report = await evaluate(SkillsToolset[Any](directories=tmp_path), model=choosing({'Read it.': [['pdf']]}))
    assert report.trigger is not None
    assert [(result.case_id, result.rate) for result in report.trigger.results] == [('pdf/1', 1.0)]
    assert report.problems == ('pdf/evals/evals.json: It holds no cases in a known shape.',)


async def test_without_cases_the_report_is_empty() -> None:
    report = await evaluate(SkillsToolset[Any](skills=[PDF]), CaseSet(), model=TestModel())
    assert (report.trigger, report.outcome, report.errors) == (None, None, ())
    assert report.score('pdf').pass_rate is None


async def test_cases_of_the_same_id_are_told_apart() -> None:
    cases = [SkillCase(skill='pdf', id=id, prompt='Go.', should_trigger=False) for id in (1, 1, '1#2', '')]
    report = await evaluate(SkillsToolset[Any](skills=[PDF]), cases, model=choosing({}), repeat=1)
    assert report.trigger is not None
    assert [result.case_id for result in report.trigger.results] == ['pdf/1', 'pdf/1#2', 'pdf/1#2#2', 'pdf/4']


async def test_cases_for_a_skill_that_is_not_there_are_told() -> None:
    case = SkillCase(skill='docx', prompt='Read it.', should_trigger=True)
    report = await evaluate(SkillsToolset[Any](skills=[PDF]), [case], model=choosing({}), repeat=1)
    assert report.problems == ("There are cases for the skill 'docx', which the agent does not have.",)
    assert report.trigger is not None
    assert report.trigger.results[0].passed is False


async def test_progress_is_told_after_each_run() -> None:
    told: list[EvalProgress] = []
    broken = SkillCase(skill='pdf', prompt='Go.', files={'a': Path('missing')}, checks=[OutputContains('x')])
    await evaluate(
        SkillsToolset[Any](skills=[PDF]),
        [QUERY, broken],
        model=choosing({}),
        repeat=2,
        max_concurrency=1,
        on_progress=told.append,
    )
    assert [(each.done, each.total, each.case_id, each.configuration, each.error is None) for each in told] == [
        (1, 6, 'pdf/1', 'trigger', True),
        (2, 6, 'pdf/1', 'trigger', True),
        (3, 6, 'pdf/2', 'with_skill', False),
        (4, 6, 'pdf/2', 'with_skill', False),
        (5, 6, 'pdf/2', 'without_skill', False),
        (6, 6, 'pdf/2', 'without_skill', False),
    ]


async def test_the_hash_of_a_fetched_skill_is_in_its_score() -> None:
    skill = Skill(
        'pdf', 'Reads.', 'Read.', source=SkillProvenance(kind='git', url='https://x', content_hash='sha256:1')
    )
    report = await evaluate(SkillsToolset[Any](skills=[skill]), [QUERY], model=choosing({}), repeat=1)
    assert report.hashes == {'pdf': 'sha256:1'}
    assert report.score('pdf').content_hash == 'sha256:1'


async def test_the_toolset_is_left_as_it_was(tmp_path: Path) -> None:
    heard: list[str] = []
    toolset = SkillsToolset[Any](skills=[PDF], work_dir=tmp_path)

    @toolset.on(SkillLoaded)
    def hear(ctx: Any, event: SkillLoaded) -> None:
        heard.append(event.skill_name)

    model = choosing({QUERY.prompt: [['pdf']]})
    work_dirs, handlers = toolset.work_dirs, list(toolset.actions.recorder.handlers.functions)
    await evaluate(toolset, [QUERY], model=model, repeat=1)
    assert heard == ['pdf']
    assert toolset.work_dirs is toolset.actions.work_dirs is work_dirs
    assert toolset.actions.recorder.handlers.functions == handlers


async def test_loads_of_other_runs_are_not_counted() -> None:
    toolset = SkillsToolset[Any](skills=[PDF])
    inner = Agent(choosing({'inner': [['pdf']]}), toolsets=[toolset])
    outer = Agent(TestModel(call_tools=['ask']), toolsets=[SkillsToolset[Any](skills=[PDF], id='outer')])

    @outer.tool_plain
    async def ask() -> str:
        return (await inner.run('inner')).output

    shared = Agent(TestModel(call_tools=['ask']), toolsets=[toolset, *outer.toolsets[:1]])
    report = await evaluate(shared, [QUERY], repeat=1)
    assert report.trigger is not None
    assert report.trigger.results[0].runs[0].loaded == ()


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'repeat': 0}, '`repeat` is at least 1, not 0'),
        ({'max_concurrency': 0}, '`max_concurrency` is at least 1, not 0'),
        ({'threshold': 0}, '`threshold` is a share, more than 0 and at most 1, not 0'),
        ({'threshold': 1.5}, '`threshold` is a share, more than 0 and at most 1, not 1.5'),
        ({'record': 'a', 'replay': 'b'}, 'recorded or replayed, not both'),
        ({}, 'There is no model to try'),
    ],
)
async def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        await evaluate(SkillsToolset[Any](skills=[PDF]), [QUERY], **options)


async def test_an_agent_without_skills_is_refused() -> None:
    with pytest.raises(UserError, match='The agent has no skills'):
        await evaluate(Agent(TestModel()), [QUERY])


async def test_a_run_without_a_work_folder_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Path:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(work_dir, 'make_private_folder', refuse)
    with pytest.raises(SkillError, match="The run 'pdf/1 trigger' could not begin: .*no space left on device"):
        await evaluate(SkillsToolset[Any](skills=[PDF]), [QUERY], model=choosing({}), repeat=1)


def test_without_pydantic_evals_the_command_to_install_it_is_told() -> None:
    code = (
        'import asyncio, sys; sys.modules["pydantic_evals"] = None\n'
        'from pydantic_ai.models.test import TestModel\n'
        'from pydantic_ai_skills import SkillCase, SkillsToolset, Skill, evaluate\n'
        'asyncio.run(evaluate(SkillsToolset(skills=[Skill("a", "A.", "a")]), [SkillCase(prompt="Hi.")], model=TestModel()))'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=False)
    assert "ImportError: Evaluations need pydantic-evals: pip install 'pydantic-ai-skills[evals]'." in done.stderr


def test_the_package_does_not_import_evaluations_before_they_are_used() -> None:
    code = (
        'import sys, pydantic_ai_skills\n'
        'assert not any("evals" in name for name in sys.modules)\n'
        'pydantic_ai_skills.SkillCase\n'
        'assert "pydantic_evals" not in sys.modules'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
    assert pydantic_ai_skills.evaluate is evaluate
