"""`list`, `show` and `search`: which skills there are, and what is in them."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from pydantic_ai_skills import (
    PackageSkillsRegistry,
    Skill,
    SkillError,
    SkillProblem,
    SkillsProject,
    SkillsToolset,
    estimate_tokens,
)

from .options import (
    DONE,
    FOUND_SOMETHING,
    DirectoryOption,
    JsonOption,
    PackagesOption,
    SkillArgument,
    StandardOption,
    command,
    find_skill,
    hint_for,
    look_at_toolset,
    source_of,
)
from .output import Failure, Output, counted, place

__all__ = ('list_skills', 'problem_data', 'search', 'show')


@command
def list_skills(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar='DIR', help="Directories of skills; the project's if none.")
    ] = None,
    directory: DirectoryOption = None,
    standard: StandardOption = False,
    packages: PackagesOption = False,
    as_json: JsonOption = False,
) -> int:
    """List skills, and why one is missing."""
    out = Output(as_json=as_json)
    with out.progress('Looking for skills'):
        directories = [*(paths or ()), *(directory or ())]
        toolset = look_at_toolset(directories, standard=standard, packages=packages)
        skills = [_summary(skill) for skill in toolset.skills.values()]
        problems = toolset.problems
        more = [package for package in PackageSkillsRegistry().available if not packages]
    if as_json:
        out.data(
            {
                'skills': skills,
                'problems': [problem_data(problem) for problem in problems],
                'packages': [asdict(package) for package in more],
            }
        )
        return DONE
    if not skills:
        where = _looked_in(directories, standard=standard)
        out.line(f'There are no skills in {where}. Make one with: pydantic-ai-skills new NAME')
    else:
        rows = (
            (
                skill['name'],
                skill['description'],
                skill['from'],
                f'{skill["size"]:,}',
                f'{skill["tokens"]:,}',
                str(len(skill['problems']) or ''),
            )
            for skill in skills
        )
        out.table(('name', 'description', 'source', '>bytes', '>tokens', '>problems'), rows, wide='description')
        total = sum(skill['tokens'] for skill in skills)
        out.line((f'{counted(len(skills), "skill")} with instructions of about {total:,} tokens.', 'dim'))
    if more:
        names = ', '.join(package.distribution for package in more)
        out.line((f'Installed packages bring skills, too: {names}. See them with --packages.', 'dim'))
    _show_problems(out, problems)
    return DONE


@command
def show(
    name: SkillArgument,
    directory: DirectoryOption = None,
    standard: StandardOption = False,
    packages: PackagesOption = False,
    raw: Annotated[bool, typer.Option('--raw', help='Print the instructions as they stand, and nothing else.')] = False,
    as_json: JsonOption = False,
) -> int:
    """Show a skill with its source and its files."""
    out = Output(as_json=as_json)
    toolset = look_at_toolset(directory, standard=standard, packages=packages)
    skill = find_skill(toolset, name)
    content = skill.content
    if raw:
        out.block(content)
        return DONE
    details: dict[str, Any] = {**_summary(skill), **_details(skill), 'instructions': content}
    if as_json:
        out.data(details)
        return DONE
    _show_header(out, skill, details)
    if skill.resources or skill.scripts:
        out.heading('Files')
        for item in (*details['resources'], *details['scripts']):
            kind = ('  script', 'green') if item in details['scripts'] else ''
            first_line = (item['description'] or '').partition('\n')[0]
            out.line(f'  {item["name"]}', kind, (f'  {first_line}' if first_line else '', 'dim'))
    if details['problems']:
        out.heading('Problems')
        out.problems(_problems_of(toolset, skill))
    out.heading('Instructions')
    out.markdown(content)
    return DONE


def _show_header(out: Output, skill: Skill[Any], details: dict[str, Any]) -> None:
    out.line((skill.name, 'bold'))
    out.line(' '.join(skill.description.split()))
    out.line()
    source = skill.source
    out.fields(
        (
            ('from', source_of(skill)),
            ('folder', (skill.path or '') if source else ''),
            ('commit', (source.commit or '') if source else ''),
            ('content', (source.content_hash or '') if source else ''),
            ('trusted', '' if source is None else 'yes' if source.trusted else 'no: its scripts run in a sandbox only'),
            ('license', skill.license or ''),
            ('compatibility', skill.compatibility or ''),
            ('metadata', ', '.join(f'{key}={value}' for key, value in skill.metadata.items())),
            ('size', f'{details["size"]:,} bytes, instructions of about {details["tokens"]:,} tokens'),
        )
    )


@command
def search(
    query: Annotated[str, typer.Argument(metavar='QUERY', help='Words to look for.')],
    limit: Annotated[int, typer.Option('--limit', '-n', min=1, help='How many skills to show at most.')] = 10,
    directory: DirectoryOption = None,
    standard: StandardOption = False,
    packages: PackagesOption = False,
    as_json: JsonOption = False,
) -> int:
    """Find skills by their words, the best first."""
    out = Output(as_json=as_json)
    if not query.strip():
        raise Failure('Say what to look for.')
    found = look_at_toolset(directory, standard=standard, packages=packages).search(query, limit)
    if as_json:
        out.data({'query': query, 'skills': [_summary(skill) for skill in found]})
    elif found:
        rows = ((skill.name, skill.description, source_of(skill)) for skill in found)
        out.table(('name', 'description', 'source'), rows, wide='description')
    else:
        out.line(f'No skill fits {query!r}.')
    return DONE if found else FOUND_SOMETHING


# --- Skills as data -----------------------------------------------------------------------------------------------


def problem_data(problem: SkillProblem) -> dict[str, Any]:
    """A problem as JSON."""
    return {**asdict(problem), 'url': problem.url}


def _summary(skill: Skill[Any]) -> dict[str, Any]:
    files = [item.uri for item in (*skill.resources, *skill.scripts) if item.uri and os.path.isfile(item.uri)]
    problems = list(skill.files.problems)
    try:
        content = skill.content
    except SkillError:
        content = ''
    return {
        'name': skill.name,
        'description': skill.description,
        'from': source_of(skill),
        'path': skill.path,
        'size': sum(map(os.path.getsize, files)) + len(content.encode()),
        'tokens': estimate_tokens(content),
        'files': len(skill.resources) + len(skill.scripts),
        'problems': [problem_data(problem) for problem in problems],
        'source': asdict(skill.source) if skill.source else None,
    }


def _details(skill: Skill[Any]) -> dict[str, Any]:
    return {
        'license': skill.license,
        'compatibility': skill.compatibility,
        'metadata': skill.metadata,
        'resources': [{'name': item.name, 'description': item.description} for item in skill.resources],
        'scripts': [
            {'name': item.name, 'description': item.description or item.usage or None} for item in skill.scripts
        ],
    }


def _looked_in(directories: list[Path], *, standard: bool) -> str:
    if standard:
        return 'the standard places'
    project = SkillsProject.find()
    places = directories or project.directories or [project.root]
    return ', '.join(f'{place(str(folder.absolute()))}{os.sep}' for folder in places)


def _problems_of(toolset: SkillsToolset[Any], skill: Skill[Any]) -> list[SkillProblem]:
    folder = f'{skill.path}{os.sep}'
    return [problem for problem in toolset.problems if f'{problem.path}{os.sep}'.startswith(folder)]


def _show_problems(out: Output, problems: list[SkillProblem]) -> None:
    if problems:
        out.heading('Problems')
        out.problems(problems)
        hint = hint_for(problems)
        if hint:
            out.line(hint)
