"""`list`: list skills, and say why one is missing."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from pydantic_ai_skills import PackageSkillsRegistry, SkillPackage, SkillProblem

from .command import command
from .formats import problems_data, skill_data
from .output import Output, counted, place
from .skills import ChosenSkills, find_project, hint_for
from .trust_facts import trust_data


@command
def list_skills(
    out: Output,
    paths: Annotated[
        list[Path] | None, Argument(metavar='DIR', help="Directories of skills; the project's by default.")
    ] = None,
    *,
    chosen: ChosenSkills,
) -> None:
    """List skills, and say why one is missing."""
    chosen = replace(chosen, directory=[*(paths or ()), *(chosen.directory or ())])
    with out.progress('Looking for skills'):
        toolset = chosen.look(out)
        known = find_project().known_facts()
        skills = [{**skill_data(skill), 'trust': trust_data(known, skill)} for skill in toolset.skills.values()]
        more = [] if chosen.packages else list(PackageSkillsRegistry().available)
    if out.as_json:
        packages = [asdict(package) for package in more]
        out.data({'skills': skills, 'problems': problems_data(toolset.problems), 'packages': packages})
        return
    if skills:
        _show_table(out, skills)
    else:
        out.line(f'No skills found in {_looked_in(chosen)}. Create one with: pydantic-ai-skills new NAME')
    if more:
        _show_more(out, more)
    _show_problems(out, toolset.problems)


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
    """What a skill has been, with the content that it has now."""
    known = {**trust, 'signed': trust['signed_by']}
    return ', '.join(word for word in ('locked', 'signed', 'scanned', 'evaluated') if known[word])


def _show_more(out: Output, packages: list[SkillPackage]) -> None:
    names = ', '.join(package.distribution for package in packages)
    out.line((f'Installed packages have skills too: {names}. See them with --packages.', 'dim'))


def _show_problems(out: Output, problems: list[SkillProblem]) -> None:
    if problems:
        out.heading('Problems')
        out.problems(problems)
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
