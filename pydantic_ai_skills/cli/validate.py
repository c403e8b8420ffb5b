"""`validate`: check skills by every rule, and fix what can be fixed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pydantic_ai_skills import SkillProblem, SkillsProject, ValidationReport, fix_problems, validate_skills

from .formats import as_github, as_sarif
from .listing import problem_data
from .options import DONE, FOUND_SOMETHING, JsonOption, command
from .output import Failure, Output, counted, place

__all__ = ('validate',)

Format = Literal['text', 'json', 'github', 'sarif']


@command
def validate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar='PATH', help="Directories of skills, skills, or files in skills; the project's if none."
        ),
    ] = None,
    fix: Annotated[
        bool, typer.Option('--fix', help='Fix what can be fixed without changing what a skill means.')
    ] = False,
    lenient: Annotated[
        bool, typer.Option('--lenient', help='Succeed if every skill would load, whatever else is wrong.')
    ] = False,
    output_format: Annotated[Format, typer.Option('--format', help='How to print the result.')] = 'text',
    as_json: JsonOption = False,
) -> int:
    """Check skills by every rule.

    The exit status is 0 if nothing is wrong, 1 if something is, 2 if there is nothing to check.
    """
    chosen: Format = 'json' if as_json else output_format
    out = Output(as_json=chosen != 'text')
    targets = _targets(paths)
    report = _check(out, targets)
    fixed: list[SkillProblem] = []
    if fix:
        fixed = fix_problems(report.problems)
        report = _check(out, targets) if fixed else report
    # A hook names the files that have changed, whether they belong to skills or not.
    if not report.skills and not report.problems and not all(path.is_file() for path in targets):
        raise Failure(f'There are no skills in {", ".join(map(str, targets))}.')
    _show(out, report, fixed, chosen, fix=fix)
    bad = any(problem.severity == 'error' or not lenient for problem in report.problems)
    return FOUND_SOMETHING if bad else DONE


def _targets(paths: list[Path] | None) -> list[Path]:
    targets = paths or SkillsProject.find().directories
    if not targets:
        raise Failure('There is nothing to check here. Name a directory of skills, or a skill.')
    for path in targets:
        if not path.exists() and not path.is_symlink():
            raise Failure(f'There is no {str(path)!r}.')
    return targets


def _check(out: Output, targets: list[Path]) -> ValidationReport:
    with out.progress('Checking skills') as working:
        return validate_skills(*targets, progress=working.on_step)


def _show(out: Output, report: ValidationReport, fixed: list[SkillProblem], chosen: Format, *, fix: bool) -> None:
    if chosen == 'json':
        out.data(
            {
                'skills': report.skills,
                'problems': [problem_data(problem) for problem in report.problems],
                'fixed': [problem_data(problem) for problem in fixed],
            }
        )
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
        return f'{skills}, nothing wrong.'
    left_out = len({problem.path for problem in report.problems if problem.severity == 'error'})
    sentence = f'{skills}, {counted(len(report.problems), "problem")}'
    if left_out:
        sentence += f', {counted(left_out, "file")} or folder{"s" if left_out > 1 else ""} left out'
    fixable = 0 if fix else len(fix_problems(report.problems, dry_run=True))
    return f'{sentence}.{f" {fixable} can be fixed with --fix." if fixable else ""}'
