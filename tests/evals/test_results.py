"""Results are written as other programs for skills read them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from pydantic_ai_skills import Skill, SkillsToolset
from pydantic_ai_skills.evals import EvalReport, Judged, OutputContains, SkillCase, evaluate, write_results
from tests.evals.scripted import choosing

pytestmark = pytest.mark.anyio

ONE = SkillCase(skill='one', id=7, prompt='One.', checks=[OutputContains('42'), Judged('It is short.')])
NAMED = SkillCase(skill='one', id='a/b c', prompt='Named.')
OTHER = SkillCase(prompt='Other.', checks=[OutputContains('42')])
TOOLSET = SkillsToolset[Any](skills=[Skill('one', 'Knows it.', 'It is 42.')])


async def report_of(*cases: SkillCase, **options: Any) -> EvalReport:
    model = choosing({'One.': [['one']]})
    return await evaluate(TOOLSET, cases, model=model, repeat=2, **options)


async def written_to(folder: Path, report: EvalReport, **options: Any) -> list[Path]:
    return await anyio.to_thread.run_sync(partial(write_results, report, folder, **options))


def read(path: Path) -> Any:
    return json.loads(path.read_text('utf-8'))


async def test_each_run_has_a_grading_and_a_timing(tmp_path: Path) -> None:
    report = await report_of(ONE)
    assert report.outcome is not None
    written = await written_to(tmp_path / 'results', report)
    names = [str(path.relative_to(tmp_path / 'results')) for path in written]
    assert names == [
        'eval-7/with_skill/run-1/grading.json',
        'eval-7/with_skill/run-1/timing.json',
        'eval-7/with_skill/run-2/grading.json',
        'eval-7/with_skill/run-2/timing.json',
        'eval-7/without_skill/run-1/grading.json',
        'eval-7/without_skill/run-1/timing.json',
        'eval-7/without_skill/run-2/grading.json',
        'eval-7/without_skill/run-2/timing.json',
        'benchmark.json',
    ]
    run = report.outcome.results[0].runs[0]
    assert read(written[0]) == {
        # What nobody could check neither passed nor failed.
        'expectations': [{'text': "The answer contains '42'.", 'passed': True, 'evidence': run.output}],
        'summary': {'passed': 1, 'failed': 0, 'total': 1, 'pass_rate': 1.0},
        'execution_metrics': {
            'total_tool_calls': 1,
            'total_steps': 2,
            'errors_encountered': 0,
            'output_chars': len(run.output),
        },
        'timing': {'total_duration_seconds': run.used.seconds},
    }
    assert read(written[1]) == {
        'total_tokens': run.used.tokens,
        'duration_ms': round(run.used.seconds * 1000),
        'total_duration_seconds': run.used.seconds,
    }


async def test_the_benchmark_has_all_runs_and_their_summary(tmp_path: Path) -> None:
    report = await report_of(ONE)
    *_, benchmark = await written_to(tmp_path, report, timestamp='2026-01-15T10:30:00Z')
    said = read(benchmark)
    assert said['metadata'] == {
        'skill_name': 'one',
        'executor_model': 'function:choosing',
        'analyzer_model': None,
        'timestamp': '2026-01-15T10:30:00Z',
        'evals_run': [7],
        'runs_per_configuration': 2,
    }
    assert [
        (run['eval_id'], run['configuration'], run['run_number'], run['result']['pass_rate']) for run in said['runs']
    ] == [
        (7, 'with_skill', 1, 1.0),
        (7, 'with_skill', 2, 1.0),
        (7, 'without_skill', 1, 0.0),
        (7, 'without_skill', 2, 0.0),
    ]
    assert said['runs'][0]['expectations'][0]['passed'] is True
    summary = said['run_summary']
    assert summary['with_skill']['pass_rate'] == {'mean': 1.0, 'stddev': 0.0, 'min': 1.0, 'max': 1.0}
    assert summary['without_skill']['pass_rate'] == {'mean': 0.0, 'stddev': 0.0, 'min': 0.0, 'max': 0.0}
    assert set(summary['with_skill']) == {'pass_rate', 'time_seconds', 'tokens'}
    assert summary['delta']['pass_rate'] == '+1.00'
    assert said['notes'] == [
        'with_skill: 2 checks were not made, because no model judged them.',
        'without_skill: 2 checks were not made, because no model judged them.',
    ]


async def test_several_skills_have_a_folder_each(tmp_path: Path) -> None:
    report = await report_of(NAMED, OTHER, without_skill=False)
    names = {str(path.relative_to(tmp_path)) for path in await written_to(tmp_path, report)}
    assert {
        'one/eval-a-b-c/with_skill/run-1/grading.json',
        'one/benchmark.json',
        'library/eval-1/with_skill/run-1/grading.json',
        'library/benchmark.json',
    } < names
    said = read(tmp_path / 'one/benchmark.json')
    # Nothing was checked, and nothing compared.
    assert said['run_summary']['with_skill']['pass_rate']['mean'] == 0.0
    assert said['run_summary']['delta'] == {}
    assert 'timestamp' not in said['metadata']


async def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    ids = ('../../x', '..-..-x', 'x' * 300)
    cases = [*(SkillCase(skill='../y', id=id, prompt='Go.') for id in ids), OTHER]
    inside = tmp_path / 'deep/results'
    written = await written_to(inside, await report_of(*cases, without_skill=False))
    assert all(path.is_relative_to(inside) and '..' not in path.parts for path in written)
    folders = {path.relative_to(inside).parts[:2] for path in written if path.name == 'timing.json'}
    assert folders == {
        ('---y', 'eval-------x'),
        ('---y', 'eval-------x-2'),
        ('---y', f'eval-{"x" * 95}'),
        ('library', 'eval-1'),
    }


async def test_a_failed_run_is_an_error_with_a_note(tmp_path: Path) -> None:
    missing = SkillCase(skill='one', prompt='Read it.', files={'a.txt': tmp_path / 'missing.txt'})
    *_, benchmark = await written_to(tmp_path / 'results', await report_of(missing))
    run = read(benchmark)['runs'][0]
    assert run['result']['errors'] == 1
    assert 'FileNotFoundError' in run['notes'][0]
    assert read(benchmark)['run_summary']['delta']['pass_rate'] == '+0.00'


async def test_nothing_is_compared_where_nothing_was_checked(tmp_path: Path) -> None:
    *_, benchmark = await written_to(tmp_path, await report_of(NAMED))
    assert read(benchmark)['run_summary']['delta']['pass_rate'] == '+0.00'


async def test_without_tasks_nothing_is_written(tmp_path: Path) -> None:
    report = await report_of(SkillCase(skill='one', prompt='One.', should_trigger=True))
    assert await written_to(tmp_path / 'results', report) == []
    assert not (tmp_path / 'results').exists()
