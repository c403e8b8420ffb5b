"""`validate`: check skills against every rule, and fix what can be fixed."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from pydantic_ai_skills import SkillProblem, SkillsToolset, ValidationReport, fix_problems, validate_skills

from .command import PROBLEMS_FOUND, SUCCESS, command
from .formats import as_github, as_sarif, problems_data
from .output import Failure, Output, counted, place
from .skills import find_project, hint_to_trust, note_trust

Format = Literal['text', 'json', 'github', 'sarif']


@command
def validate(
    out: Output,
    paths: Annotated[
        list[Path] | None,
        Argument(metavar='PATH', help="Directories of skills, skills, or files in skills; the project's by default."),
    ] = None,
    fix: Annotated[bool, Option('--fix', help='Fix what can be fixed without changing what a skill means.')] = False,
    lenient: Annotated[
        bool, Option('--lenient', help='Succeed if every skill loads, whatever warnings there are.')
    ] = False,
    needs: Annotated[
        bool, Option('--needs', help='Also report packages, programs and keys that are missing here.')
    ] = False,
    tools: Annotated[
        bool, Option('--tools', help='Also import each tools.py, to see that it can be. This runs its code.')
    ] = False,
    output_format: Annotated[Format, Option('--format', help='How to print the result.')] = 'text',
) -> int:
    """Check skills against every rule.

    The exit status is 0 without problems, 1 with problems, and 2 if there is nothing to check.
    """
    chosen: Format = 'json' if out.as_json else output_format
    out = Output(as_json=chosen != 'text')
    targets = _targets(out, paths)
    report, fixed = _check(out, targets, fix=fix, needs=needs)
    if tools:
        report = replace(report, problems=(*report.problems, *_import_tools(paths, targets)))
    # A hook names the files that have changed, whether they belong to skills or not.
    if not (report.skills or report.problems or all(path.is_file() for path in targets)):
        raise Failure(f'No skills found in {", ".join(map(str, targets))}.')
    _show(out, report, fixed, chosen, fix=fix)
    bad = any(problem.severity == 'error' or not lenient for problem in report.problems)
    return PROBLEMS_FOUND if bad else SUCCESS


def _targets(out: Output, paths: list[Path] | None) -> list[Path]:
    targets = paths or _directories(out)
    if not targets:
        raise Failure('No skills found in this folder. Name a directory of skills, or a skill.')
    for path in targets:
        if not path.exists() and not path.is_symlink():
            raise Failure(f'{path} does not exist.')
    return targets


def _directories(out: Output) -> list[Path]:
    project = find_project()
    note_trust(out, project)
    return project.directories


def _check(out: Output, targets: list[Path], *, fix: bool, needs: bool) -> tuple[ValidationReport, list[SkillProblem]]:
    """Check the targets, and once more if problems were fixed."""
    with out.progress('Checking skills') as working:
        report = validate_skills(*targets, needs=needs, progress=working.on_step)
        fixed = fix_problems(report.problems) if fix else []
        if fixed:
            report = validate_skills(*targets, needs=needs, progress=working.on_step)
        return report, fixed


def _import_tools(paths: list[Path] | None, targets: list[Path]) -> list[SkillProblem]:
    """The problems with importing each `tools.py`, in directories that are named or in a trusted project."""
    project = find_project()
    if not paths and not project.is_trusted:
        raise Failure(f'Code of this checkout is not imported. {hint_to_trust(project)}')
    folders = [path.parent if path.is_file() else path for path in targets]
    toolset = SkillsToolset[Any](directories=folders)
    asyncio.run(toolset.load(tools=True))
    return [problem for problem in toolset.problems if problem.code == 'import-failed']


def _show(out: Output, report: ValidationReport, fixed: list[SkillProblem], chosen: Format, *, fix: bool) -> None:
    if chosen == 'json':
        out.data({'skills': report.skills, 'problems': problems_data(report.problems), 'fixed': problems_data(fixed)})
    elif chosen == 'sarif':
        out.data(as_sarif(report.problems))
    elif chosen == 'github':
        sys.stdout.writelines(f'{as_github(problem)}\n' for problem in report.problems)
    else:
        out.problems(report.problems)
        for problem in fixed:
            out.line(('fixed: ', 'green'), f'{place(problem.path)} [{problem.code}]')
        out.line((_sentence(report, fix=fix), 'bold'))
        if report.problems:
            out.line(('What each code means: ', 'dim'), report.problems[0].url.partition('#')[0])


def _sentence(report: ValidationReport, *, fix: bool) -> str:
    skills = counted(report.skills, 'skill')
    if not report.problems:
        return f'{skills}, no problems.'
    left_out = len({problem.path for problem in report.problems if problem.severity == 'error'})
    sentence = f'{skills}, {counted(len(report.problems), "problem")}'
    if left_out:
        sentence += f', {counted(left_out, "file")} or folder{"s" if left_out > 1 else ""} left out'
    fixable = 0 if fix else len(fix_problems(report.problems, dry_run=True))
    return f'{sentence}.{f" {fixable} can be fixed with --fix." if fixable else ""}'
