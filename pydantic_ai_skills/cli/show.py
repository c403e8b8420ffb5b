"""`show`: show a skill, its source and its files."""

from __future__ import annotations

import os
from typing import Annotated, Any

from typer import Option

import pydantic_ai_skills as api

from .command import command
from .formats import skill_data
from .needs import needs_data, needs_summary
from .output import Output
from .skills import ChosenSkills, SkillArgument, find_project, find_skill
from .trust_facts import trust_data, trust_lines


@command
def show(
    out: Output,
    name: SkillArgument,
    chosen: ChosenSkills,
    raw: Annotated[bool, Option('--raw', help='Print nothing but the instructions, unchanged.')] = False,
) -> None:
    """It shows the description, source, size, needs, files, problems and instructions."""
    toolset = chosen.naming(name).look(out, require=False)
    skill = find_skill(toolset, name)
    content = skill.content
    if raw:
        out.block(content)
        return
    needs, known = api.skill_needs(skill), find_project().known_facts()
    details: dict[str, Any] = {
        **skill_data(skill),
        **_details(skill),
        'trust': trust_data(known, skill),
        'needs': needs_data(needs),
        'instructions': content,
    }
    if out.as_json:
        out.data(details)
        return
    _show_header(out, skill, details, needs_summary(needs), trust_lines(known, skill))
    _show_files(out, details)
    if details['problems']:
        out.heading('Problems')
        folder = f'{skill.path}{os.sep}'
        out.problems(problem for problem in toolset.problems if f'{problem.path}{os.sep}'.startswith(folder))
    out.heading('Instructions')
    out.markdown(content)


def _show_header(
    out: Output, skill: api.Skill[Any], details: dict[str, Any], needs: str, trust: dict[str, str]
) -> None:
    out.line((skill.name, 'bold'))
    out.line(' '.join(skill.description.split()))
    out.line()
    fields = {'from': details['from']}
    if (source := skill.source) is not None:
        trusted = 'yes' if source.trusted else 'no: its scripts run in a sandbox only, its functions not at all'
        fields |= {'folder': skill.path, 'commit': source.commit, 'content': source.content_hash, 'trusted': trusted}
    fields |= trust
    metadata = ', '.join(f'{key}={value}' for key, value in skill.metadata.items())
    size = f'{details["size"]:,} bytes, instructions of about {details["tokens"]:,} tokens'
    fields |= {'license': skill.license, 'compatibility': skill.compatibility, 'needs': needs, 'metadata': metadata}
    fields['size'] = size
    out.fields(fields)


def _show_files(out: Output, details: dict[str, Any]) -> None:
    files = [*details['resources'], *details['scripts']]
    if files:
        out.heading('Files')
    for file in files:
        kind = ('  script', 'green') if file in details['scripts'] else ''
        first_line = (file['description'] or '').partition('\n')[0]
        out.line(f'  {file["name"]}', kind, (f'  {first_line}' if first_line else '', 'dim'))


def _details(skill: api.Skill[Any]) -> dict[str, Any]:
    return {
        'license': skill.license,
        'compatibility': skill.compatibility,
        'metadata': skill.metadata,
        'resources': [{'name': item.name, 'description': item.description} for item in skill.resources],
        'scripts': [
            {'name': item.name, 'description': item.description or item.usage or None} for item in skill.scripts
        ],
    }
