"""Writes the results of tasks in the published form: `benchmark.json`, `grading.json` and `timing.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai_skills.filesystem.atomic import replace_file

from .outcome_report import OutcomeDelta, OutcomeResult, OutcomeRun, OutcomeSummary, SkillOutcomes
from .plan import LIBRARY
from .report import EvalReport
from .spread import Spread

MAX_NAME_CHARS = 100
"""How long the name of a folder may be."""


def write_results(report: EvalReport, folder: str | Path, *, timestamp: str | None = None) -> list[Path]:
    """Write the results of tasks as other programs read them.

    Each run has a folder, such as `eval-1/with_skill/run-1`, with its `grading.json` and `timing.json`;
    `benchmark.json` is beside the folders of the tasks. If several skills have tasks, each skill has a folder that
    holds all of this. Runs with the version that a skill is compared with have the configuration `baseline`.

    Args:
        report: The report.
        folder: Where to write them. It is made if it is missing.
        timestamp: When the evaluation took place, such as `2026-01-15T10:30:00Z`, for `benchmark.json`.

    Returns:
        The files that were written: none if there were no tasks.

    Raises:
        OSError: They cannot be written.
    """
    skills = report.outcome.skills if report.outcome is not None else ()
    written: list[Path] = []
    for outcomes in skills:
        place = Path(folder) if len(skills) == 1 else Path(folder) / _file_name(outcomes.skill or LIBRARY)
        assert report.outcome is not None
        results = [result for result in report.outcome.results if result.skill == outcomes.skill]
        names = _unlike(f'eval-{_eval_id(result)}' for result in results)
        for result in results:
            for run in result.runs:
                at = place / names[f'eval-{_eval_id(result)}'] / result.configuration / f'run-{run.number}'
                written += _write(at, {'grading.json': _grading(run), 'timing.json': _timing(run)})
        written += _write(place, {'benchmark.json': _benchmark(report, outcomes, results, timestamp)})
    return written


def _write(folder: Path, files: dict[str, Any]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        replace_file(folder / name, f'{json.dumps(value, ensure_ascii=False, indent=2)}\n'.encode())
    return [folder / name for name in files]


def _eval_id(result: OutcomeResult) -> int | str:
    """The id of a task within its skill: a number where it is one."""
    name = result.case_id.removeprefix(f'{result.skill or LIBRARY}/')
    return int(name) if re.fullmatch('[0-9]{1,9}', name) else name


def _file_name(text: str) -> str:
    """A name for a folder that cannot lead elsewhere: the names of skills and cases may be untrusted."""
    return re.sub(r'[^\w-]', '-', text)[:MAX_NAME_CHARS]


def _unlike(texts: Iterable[str]) -> dict[str, str]:
    """A unique folder name for each text."""
    names: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        name = _file_name(text)
        names[text] = name if name not in names.values() else f'{name}-{len(names) + 1}'
    return names


# --- One run ------------------------------------------------------------------------------------------------------


def _grading(run: OutcomeRun) -> dict[str, Any]:
    return {
        'expectations': _expectations(run),
        'summary': _counts(run),
        'execution_metrics': {
            'total_tool_calls': run.used.tool_calls,
            'total_steps': run.used.requests,
            'errors_encountered': int(run.error is not None),
            'output_chars': len(run.output),
        },
        'timing': {'total_duration_seconds': run.used.seconds},
    }


def _expectations(run: OutcomeRun) -> list[dict[str, Any]]:
    """The checks that could be made. The others are left out, because they neither passed nor failed."""
    made = (check for check in run.checks if check.passed is not None)
    return [{'text': check.text, 'passed': check.passed, 'evidence': check.evidence} for check in made]


def _counts(run: OutcomeRun) -> dict[str, Any]:
    made = [check.passed for check in run.checks if check.passed is not None]
    passed = sum(made)
    return {
        'passed': passed,
        'failed': len(made) - passed,
        'total': len(made),
        'pass_rate': 0.0 if run.pass_rate is None else round(run.pass_rate, 4),
    }


def _timing(run: OutcomeRun) -> dict[str, Any]:
    return {
        'total_tokens': run.used.tokens,
        'duration_ms': round(run.used.seconds * 1000),
        'total_duration_seconds': run.used.seconds,
    }


# --- All runs of a skill ------------------------------------------------------------------------------------------


def _benchmark(
    report: EvalReport, outcomes: SkillOutcomes, results: Sequence[OutcomeResult], timestamp: str | None
) -> dict[str, Any]:
    return {
        'metadata': {
            'skill_name': outcomes.skill,
            'executor_model': report.model,
            'analyzer_model': report.judge,
            **({} if timestamp is None else {'timestamp': timestamp}),
            'evals_run': list(dict.fromkeys(_eval_id(result) for result in results)),
            'runs_per_configuration': report.repeat,
        },
        'runs': [_run(result, run) for result in results for run in result.runs],
        'run_summary': {
            **{summary.configuration: _summary(summary) for summary in outcomes.summaries},
            'delta': _delta(outcomes.deltas[0]) if outcomes.deltas else {},
        },
        'notes': _notes(outcomes),
    }


def _run(result: OutcomeResult, run: OutcomeRun) -> dict[str, Any]:
    counts = _counts(run)
    return {
        'eval_id': _eval_id(result),
        'eval_name': result.case_id,
        'configuration': result.configuration,
        'run_number': run.number,
        'result': {
            **counts,
            'time_seconds': run.used.seconds,
            'tokens': run.used.tokens,
            'tool_calls': run.used.tool_calls,
            'errors': int(run.error is not None),
        },
        'expectations': _expectations(run),
        'notes': [] if run.error is None else [run.error],
    }


def _summary(summary: OutcomeSummary) -> dict[str, Any]:
    return {
        'pass_rate': _spread(summary.pass_rate),
        'time_seconds': _spread(summary.seconds),
        'tokens': _spread(summary.tokens),
    }


def _spread(spread: Spread | None) -> dict[str, float]:
    values = (0.0, 0.0, 0.0, 0.0) if spread is None else (spread.mean, spread.stddev, spread.min, spread.max)
    return {name: round(value, 4) for name, value in zip(('mean', 'stddev', 'min', 'max'), values, strict=True)}


def _delta(delta: OutcomeDelta) -> dict[str, str]:
    return {
        'pass_rate': f'{delta.pass_rate.mean if delta.pass_rate else 0:+.2f}',
        'time_seconds': f'{delta.seconds.mean:+.1f}',
        'tokens': f'{delta.tokens.mean:+.0f}',
    }


def _notes(outcomes: SkillOutcomes) -> list[str]:
    """What the figures do not show by themselves."""
    return [
        f'{summary.configuration}: {summary.unchecked} checks were not made, because no model judged them.'
        for summary in outcomes.summaries
        if summary.unchecked
    ]
