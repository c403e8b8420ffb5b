"""The example library evaluates with the stand-in, and from a recording of it, wherever it is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import SkillsToolset
from pydantic_ai_skills.evals import EvalReport, SkillCase, evaluate, stand_in_model

ROOT = Path(__file__).parent.parent.parent
LIBRARY, PAGE = ROOT / 'examples/library', ROOT / 'docs/evals.md'


async def run(library: Path, **options: Any) -> EvalReport:
    model = None if 'replay' in options else stand_in_model()
    toolset = SkillsToolset[None](directories=[library])
    try:
        return await evaluate(toolset, model=model, repeat=1, **options)
    finally:
        await toolset.aclose()


async def test_a_replay_in_another_folder_gives_the_same_bytes(tmp_path: Path):
    for folder in ('here', 'somewhere/else, on another machine'):
        shutil.copytree(LIBRARY, tmp_path / folder / 'library')
    recorded = await run(tmp_path / 'here/library', record=tmp_path / 'run.jsonl')
    replayed = await run(tmp_path / 'somewhere/else, on another machine/library', replay=tmp_path / 'run.jsonl')
    assert recorded.to_json() == replayed.to_json()
    assert (recorded.errors, recorded.problems) == ((), ())


async def test_each_of_the_twelve_is_found_and_helps():
    report = await run(LIBRARY)
    trigger, outcome = report.trigger, report.outcome
    assert trigger is not None
    assert outcome is not None
    assert (len(trigger.skills), trigger.passed, trigger.precision, trigger.recall) == (12, 96, 1.0, 1.0)
    assert len(outcome.skills) == 12
    for skill in outcome.skills:
        rates = [summary.pass_rate and summary.pass_rate.mean for summary in skill.summaries]
        assert rates[0] == 1.0, skill.skill
        assert (rates[1] or 0) < 0.5, skill.skill


@pytest.mark.parametrize(
    ('query', 'wrong'),
    [
        ('How do I scale our web service to more servers?', 'recipe-scaler'),
        ('Write an exam with ten questions for my class.', 'flashcards'),
    ],
)
async def test_the_stand_in_is_fooled_by_shared_words_as_the_page_says(query: str, wrong: str):
    assert f'"{query}"' in ' '.join(PAGE.read_text('utf-8').split())
    cases = [SkillCase(prompt=query, skill=wrong, should_trigger=False)]
    report = await evaluate(SkillsToolset[None](directories=[LIBRARY]), cases, model=stand_in_model(), repeat=1)
    assert report.trigger is not None
    assert (report.trigger.passed, report.trigger.results[0].runs[0].loaded) == (0, (wrong,))
