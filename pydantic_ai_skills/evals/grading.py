"""Checks a run: text, expressions, files, scripts and functions here, statements in plain words by a judging model."""

from __future__ import annotations

import inspect
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import anyio.to_thread
from pydantic_ai.models import Model

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.execution.work_files import list_work_files, read_work_file

from .checks import (
    Check,
    ExitCode,
    FileWritten,
    Judged,
    OutputContains,
    OutputEquals,
    OutputMatches,
    Satisfies,
    ScriptRan,
)
from .outcome_report import CheckResult
from .recording import told
from .regular_expressions import ExpressionError, search
from .runs import CaseRun

MAX_EVIDENCE_CHARS = 500
"""How much of what was found is reported."""

MAX_JUDGED_CHARS = 20_000
"""How much of an answer or a file the judging model reads."""

MAX_JUDGED_FILES = 20
"""How many files the judging model reads the content of."""

Finding = tuple[bool | None, str]
"""Whether a check is true, and what was found; `None` if nobody could tell."""


async def grade(run: CaseRun, judge: Model | None) -> list[CheckResult]:
    """Check a run, one check after the other. A run that failed fails them all."""
    results: list[CheckResult] = []
    for check in run.case.all_checks:
        passed, found = await _find(check, run, judge)
        evidence: str = run.folders.hide(found)
        text = evidence if len(evidence) <= MAX_EVIDENCE_CHARS else f'{evidence[:MAX_EVIDENCE_CHARS]}…'
        results.append(CheckResult(text=str(check), kind=check.kind, passed=passed, evidence=text))
    return results


async def _find(check: Check, run: CaseRun, judge: Model | None) -> Finding:
    if run.error is not None:
        return False, f'The run failed: {run.error}'
    if isinstance(check, Judged):
        return await _ask(check, run, judge)
    if isinstance(check, OutputMatches):
        return await _match(check, run)
    if isinstance(check, Satisfies):
        return await _call(check, run)
    if isinstance(check, FileWritten):
        return await anyio.to_thread.run_sync(_look_for, check, run)
    return _look_at(check, run)


def _look_at(check: OutputContains | OutputEquals | ExitCode | ScriptRan, run: CaseRun) -> Finding:
    """The finding for a check that needs nothing but the values of the run."""
    if isinstance(check, OutputContains):
        text, output = (check.text.casefold(), run.output.casefold()) if check.ignore_case else (check.text, run.output)
        return (text in output) is not check.absent, run.output
    if isinstance(check, OutputEquals):
        return run.output.strip() == check.text.strip(), run.output
    ran = [event.script_name for event in run.scripts]
    if isinstance(check, ScriptRan):
        return any(
            _is_same_script(check.script, name) for name in ran
        ), f'Scripts that ran: {", ".join(ran) or "none"}.'
    ended = [each for each in run.scripts if check.script is None or _is_same_script(check.script, each.script_name)]
    if not ended:
        return False, 'No script ran.' if check.script is None else f'The script {check.script!r} did not run.'
    last = ended[-1]
    return last.result.exit_code == check.code, f'{last.script_name} ended with {last.result.exit_code}.'


def _is_same_script(name: str, other: str) -> bool:
    return name == other or name.endswith(f'/{other}') or other.endswith(f'/{name}')


async def _match(check: OutputMatches, run: CaseRun) -> Finding:
    try:
        found = await search(check.pattern, run.output)
    except ExpressionError as error:
        return False, str(error)
    return (found is not None) is not check.absent, 'It does not match.' if found is None else f'It matches {found!r}.'


def _look_for(check: FileWritten, run: CaseRun) -> Finding:
    names = [file.name for file in list_work_files(run.work_dir)]
    matching = [name for name in names if fnmatchcase(name, check.path)]
    if not matching:
        return False, f'Files in the work folder: {", ".join(names) or "none"}.'
    if check.contains is None:
        return True, f'There is {matching[0]}.'
    holding = [name for name in matching if check.contains in _text_of(run, name)]
    return bool(holding), f'There is {(holding or matching)[0]}.'


def _text_of(run: CaseRun, name: str) -> str:
    try:
        return read_work_file(run.work_dir, name).decode('utf-8', 'replace')
    except SkillError:  # it is too large, or gone
        return ''


async def _call(check: Satisfies, run: CaseRun) -> Finding:
    try:
        is_async = inspect.iscoroutinefunction(check.function)
        said: Any = check.function(run) if is_async else await anyio.to_thread.run_sync(check.function, run)
        said = await said if inspect.isawaitable(said) else said
    except AssertionError as failure:
        return False, str(failure) or 'An assertion failed.'
    except Exception as error:  # noqa: BLE001 - the border to the developer's code
        return False, f'{type(error).__name__}: {error}'
    return (False, said) if isinstance(said, str) else (said is None or bool(said), '')


# --- The judge ----------------------------------------------------------------------------------------------------


async def _ask(check: Judged, run: CaseRun, judge: Model | None) -> Finding:
    if judge is None:
        return None, 'Not checked: there is no judging model.'
    from pydantic_evals.evaluators.llm_as_a_judge import judge_input_output  # only there with the extra

    shown = await anyio.to_thread.run_sync(partial(_shown, run))
    try:
        grading = await judge_input_output(run.case.prompt, shown, check.text, judge)
    except Exception as error:  # noqa: BLE001 - a judge that fails is no reason to lose the run
        return None, f'Not checked: {told(error)}'
    return grading.pass_, grading.reason


def _shown(run: CaseRun) -> dict[str, Any]:
    """What the judging model is shown of a run."""
    names = [file.name for file in list_work_files(run.work_dir)]
    return {
        'answer': run.output[:MAX_JUDGED_CHARS],
        'skills_loaded': list(run.loaded),
        'scripts_run': [{'script': each.script_name, 'exit_code': each.result.exit_code} for each in run.scripts],
        'files': {name: _text_of(run, name)[:MAX_JUDGED_CHARS] for name in names[:MAX_JUDGED_FILES]},
        'other_files': names[MAX_JUDGED_FILES:],
    }
