"""`list`: list skills, and say why one is missing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import pydantic_ai_skills as api

from .command import command
from .formats import problems_data, skill_data
from .output import Output, counted, place
from .skills import ChosenSkills, find_project, hint_for
from .trust_facts import trust_data

ABOUT_NAMES = 'duplicate-name', 'shadowed', 'renamed'
"""Warnings that explain why a skill is not in the list under its name."""


@command
def list_skills(
    out: Output,
    paths: Annotated[
        list[Path] | None, Argument(metavar='DIR', help="Directories of skills; the project's by default.")
    ] = None,
    long: Annotated[
        bool, Option('--long', '-l', help='Also show the source, size, tokens and problems of each skill.')
    ] = False,
    *,
    chosen: ChosenSkills,
) -> None:
    """Each skill has one line. Skills that cannot be loaded follow, with the reason."""
    chosen = replace(chosen, directory=[*(paths or ()), *(chosen.directory or ())])
    # The executor is never called; the one that runs scripts takes a moment to import.
    toolset = chosen.look(out, executor=api.CallableSkillScriptExecutor(print))
    skills = list(toolset.skills.values())
    # Looking at every installed package takes a moment, which a short list does without.
    looks_around = not chosen.packages and (long or out.as_json or not skills)
    more = list(api.PackageSkillsRegistry().available) if looks_around else []
    if out.as_json:
        _print_data(out, toolset, more)
        return
    if not skills:
        out.line(f'No skills found in {_looked_in(chosen)}. Create one with: pydantic-ai-skills new NAME')
    elif long:
        _show_table(out, _data(skills))
    else:
        _show_lines(out, skills)
    if more:
        _show_more(out, more)
    _show_problems(out, toolset.problems, long=long)


def _print_data(out: Output, toolset: api.SkillsToolset[Any], more: list[api.SkillPackage]) -> None:
    skills = _data(toolset.skills.values())
    packages = [asdict(package) for package in more]
    out.data({'skills': skills, 'problems': problems_data(toolset.problems), 'packages': packages})


def _data(skills: Iterable[api.Skill[Any]]) -> list[dict[str, Any]]:
    known = find_project().known_facts()
    return [{**skill_data(skill), 'trust': trust_data(known, skill)} for skill in skills]


def _show_lines(out: Output, skills: Sequence[api.Skill[Any]]) -> None:
    out.lines((skill.name, skill.description) for skill in skills)
    out.line((f'{counted(len(skills), "skill")}. Show one with: pydantic-ai-skills show NAME', 'dim'))


def _show_table(out: Output, skills: list[dict[str, Any]]) -> None:
    columns = ['name', 'description', 'source', '>bytes', '>tokens', '>problems']
    rows = [
        [skill['name'], skill['description'], skill['from'], f'{skill["size"]:,}', f'{skill["tokens"]:,}', problems]
        for skill in skills
        for problems in [str(len(skill['problems']) or '')]
    ]
    has = [_has(skill['trust']) for skill in skills]
    if any(has):
        columns.append('has been')
        rows = [[*row, words] for row, words in zip(rows, has, strict=True)]
    out.table(columns, rows, wide='description')
    total = sum(skill['tokens'] for skill in skills)
    out.line((f'{counted(len(skills), "skill")} with instructions of about {total:,} tokens.', 'dim'))


def _has(trust: dict[str, Any]) -> str:
    """What has been done with the current content of a skill, such as `scanned`."""
    known = {**trust, 'signed': trust['signed_by']}
    return ', '.join(word for word in ('locked', 'signed', 'scanned', 'evaluated') if known[word])


def _show_more(out: Output, packages: list[api.SkillPackage]) -> None:
    names = ', '.join(package.distribution for package in packages)
    out.line((f'Installed packages have skills too: {names}. See them with --packages.', 'dim'))


def _show_problems(out: Output, problems: list[api.SkillProblem], *, long: bool) -> None:
    """Show why skills are missing or have another name. Other warnings are only counted, if not `long`."""
    shown = [problem for problem in problems if long or problem.severity == 'error' or problem.code in ABOUT_NAMES]
    if shown:
        out.heading('Problems')
        out.problems(shown)
    if warnings := len(problems) - len(shown):
        out.line((f'{counted(warnings, "warning")}. See them with --long.', 'dim'))
    if hint := hint_for(problems):
        out.line(hint)


def _looked_in(chosen: ChosenSkills) -> str:
    if chosen.standard:
        return 'the standard folders'
    project = find_project()
    folders = chosen.directory or project.directories or [project.root]
    if folders == [Path.cwd()]:
        return 'this folder'
    return ', '.join(f'{place(str(folder.absolute()))}{os.sep}' for folder in folders)
