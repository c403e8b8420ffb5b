"""`validate`: check skills against every rule, and fix what can be fixed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

import pydantic_ai_skills as api

from .closest import did_you_mean
from .command import PROBLEMS_FOUND, SUCCESS, command
from .event_loop import run
from .formats import as_github, as_sarif, problems_data
from .output import Failure, Output, counted, place
from .skills import ChosenSkills, find_project, hint_to_trust

Format = Literal['text', 'json', 'github', 'sarif']


@command
def validate(
    out: Output,
    paths: Annotated[
        list[Path] | None,
        Argument(
            metavar='PATH',
            help="Directories of skills, skills by path or name, or files in skills; the project's by default.",
        ),
    ] = None,
    fix: Annotated[bool, Option('--fix', help='Fix what can be fixed without changing what a skill means.')] = False,
    lenient: Annotated[
        bool, Option('--lenient', help='Succeed if every skill loads, whatever warnings there are.')
    ] = False,
    needs: Annotated[
        bool, Option('--needs', help='Also report packages, programs and keys that are missing here.')
    ] = False,
    tools: Annotated[
        bool, Option('--tools', help='Also import each tools.py, to check that this works. It runs the code.')
    ] = False,
    output_format: Annotated[Format, Option('--format', help='How to print the result.')] = 'text',
    *,
    chosen: ChosenSkills,
) -> int:
    """It checks frontmatter, instructions and files, of your own skills and of fetched ones.

    The exit status is 0 without problems, 1 with problems, and 2 if there is nothing to check.
    """
    form: Format = 'json' if out.as_json else output_format
    out = Output(as_json=form != 'text')
    targets = _targets(out, paths, chosen)
    report, fixed = _check(out, targets, fix=fix, needs=needs)
    if tools:
        report = replace(report, problems=(*report.problems, *_import_tools(paths, targets)))
    # A hook names the files that have changed, whether they belong to skills or not.
    if not (report.skills or report.problems or all(path.is_file() for path in targets.own)):
        raise Failure(f'No skills found in {", ".join(map(str, targets.own))}.')
    _show(out, report, fixed, form, fix=fix)
    bad = any(problem.severity == 'error' or not lenient for problem in report.problems)
    return PROBLEMS_FOUND if bad else SUCCESS


@dataclass(kw_only=True)
class Targets:
    """What to check."""

    own: list[Path] = field(default_factory=list[Path])
    """Directories, skills and files of the user."""

    fetched: list[api.Skill[Any]] = field(default_factory=list['api.Skill[Any]'])
    """Skills of others. They are not fixed here: they would no longer be what the lock file pins."""

    problems: list[api.SkillProblem] = field(default_factory=list['api.SkillProblem'])
    """Problems with sources, and with the skills that they could not provide."""


def _targets(out: Output, paths: list[Path] | None, chosen: ChosenSkills) -> Targets:
    named = [*(paths or ()), *(chosen.directory or ())]
    targets = Targets()
    for path in named:
        if path.exists() or path.is_symlink():
            targets.own.append(path)
        else:
            _add(targets, [_skill_named(str(path))])
    if named:
        return targets
    toolset = chosen.look(out)
    targets.own = [] if chosen.standard else [path for path in find_project().directories if path.is_dir()]
    _add(targets, toolset.skills.values())
    targets.problems = [problem for problem in toolset.problems if _is_of_source(problem, targets.own)]
    if not (targets.own or targets.fetched or targets.problems):
        raise Failure('No skills found in this folder. Name a directory of skills, or a skill.')
    return targets


def _add(targets: Targets, skills: Iterable[api.Skill[Any]]) -> None:
    """Add skills, unless they are in a directory that is checked as a whole."""
    for skill in skills:
        if skill.source is not None:
            targets.fetched.append(skill)
        elif skill.path is not None and not _is_in(skill.path, targets.own):
            targets.own.append(Path(skill.path))


def _is_of_source(problem: api.SkillProblem, own: Iterable[Path]) -> bool:
    return problem.severity == 'error' and not _is_in(problem.path, own)


def _is_in(path: str, folders: Iterable[Path]) -> bool:
    return any(Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)) for folder in folders)


def _skill_named(name: str) -> api.Skill[Any]:
    skills = ChosenSkills().look().skills
    if name not in skills:
        raise Failure(f'{name} does not exist, and no skill has this name. {did_you_mean(name, skills)}'.rstrip())
    return skills[name]


def _check(
    out: Output, targets: Targets, *, fix: bool, needs: bool
) -> tuple[api.ValidationReport, list[api.SkillProblem]]:
    """Check the targets, and once more if problems were fixed."""
    with out.progress('Checking skills') as working:
        report = _check_own(targets.own, needs=needs, progress=working.on_step)
        fixed = api.fix_problems(report.problems) if fix else []
        if fixed:
            report = _check_own(targets.own, needs=needs, progress=working.on_step)
        others = [_check_fetched(skill, needs=needs) for skill in targets.fetched]
    problems = (each for other in (report, *others) for each in other.problems)
    skills = sum(other.skills for other in (report, *others))
    return api.ValidationReport(skills=skills, problems=(*problems, *targets.problems)), fixed


def _check_own(paths: Sequence[Path], **options: Any) -> api.ValidationReport:
    return api.validate_skills(*paths, **options) if paths else api.ValidationReport(skills=0, problems=())


def _check_fetched(skill: api.Skill[Any], *, needs: bool) -> api.ValidationReport:
    """Check a skill of others. Its problems name its source, whose files are in the cache."""
    assert skill.source is not None
    if skill.path is None or not os.path.isdir(skill.path):  # a function of a package, or inside an archive
        return api.ValidationReport(skills=1, problems=tuple(skill.files.problems))
    report = api.validate_skills(skill.path, needs=needs)
    return replace(report, problems=tuple(replace(each, source=skill.source.name) for each in report.problems))


def _import_tools(paths: list[Path] | None, targets: Targets) -> list[api.SkillProblem]:
    """The problems with importing each `tools.py`, in directories that are named or in a trusted project."""
    project = find_project()
    if not paths and not project.is_trusted:
        raise Failure(f'Code of this checkout is not imported. {hint_to_trust(project)}')
    folders = [path.parent if path.is_file() else path for path in targets.own]
    toolset = api.SkillsToolset[Any](directories=folders)
    run(toolset.load(tools=True))
    return [problem for problem in toolset.problems if problem.code == 'import-failed']


def _show(
    out: Output, report: api.ValidationReport, fixed: list[api.SkillProblem], chosen: Format, *, fix: bool
) -> None:
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


def _sentence(report: api.ValidationReport, *, fix: bool) -> str:
    skills = counted(report.skills, 'skill')
    if not report.problems:
        return f'{skills}, no problems.'
    left_out = len({problem.path for problem in report.problems if problem.severity == 'error'})
    sentence = f'{skills}, {counted(len(report.problems), "problem")}'
    if left_out:
        sentence += f', {counted(left_out, "file")} or folder{"s" if left_out > 1 else ""} left out'
    fixable = 0 if fix else len(api.fix_problems(report.problems, dry_run=True))
    return f'{sentence}.{f" {fixable} can be fixed with --fix." if fixable else ""}'
