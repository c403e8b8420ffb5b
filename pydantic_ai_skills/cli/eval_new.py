"""`eval new`: write a first set of cases for a skill, to edit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic_ai_skills as api

from .output import Failure, Output, place
from .skills import ChosenSkills, find_skill

EVALS, TRIGGERS = 'evals/evals.json', 'evals/triggers.json'

NEIGHBOURS = 3
"""How many similar skills get a query that should load them and not this one."""

WANTED = (
    'Ask for what the skill does, in the words of its description',
    'Ask for it as a user would who has never heard of the skill',
    'Ask for it in passing, with a file name, a figure and a typo',
    'Describe only the problem, not the solution',
)
"""Hints for queries that should load the skill."""

UNWANTED = ('Use its words for something else', 'Ask something that no skill is for')
"""Hints for queries that should not."""


def new_evals(out: Output, names: Sequence[str], chosen: ChosenSkills) -> None:
    """Write the files that a skill does not have yet."""
    if len(names) != 1:
        raise Failure('Name the skill to write cases for: pydantic-ai-skills eval new NAME')
    toolset = chosen.look(out)
    skill = find_skill(toolset, names[0])
    folder = _folder(skill)
    texts = {EVALS: _tasks(skill), TRIGGERS: _queries(skill, toolset)}
    missing = {name: text for name, text in texts.items() if not (folder / name).exists()}
    if not missing:
        raise Failure(f'{place(str(folder / "evals"))} already has {" and ".join(Path(name).name for name in texts)}.')
    for name, text in missing.items():
        (folder / name).parent.mkdir(exist_ok=True)
        with open(folder / name, 'x', encoding='utf-8') as file:  # nothing is overwritten, and no link is followed
            file.write(text)
    _tell(out, skill, folder, list(missing), chosen)


def _folder(skill: api.Skill[Any]) -> Path:
    if skill.path is None or skill.source is not None:
        raise Failure(f'{skill.name!r} was fetched or written in Python, so its folder cannot be written to.')
    if (Path(skill.path) / 'evals').is_symlink():
        raise Failure(f'{place(str(Path(skill.path) / "evals"))} is a link, which is not followed.')
    return Path(skill.path)


def _tell(out: Output, skill: api.Skill[Any], folder: Path, written: list[str], chosen: ChosenSkills) -> None:
    if out.as_json:
        out.data({'name': skill.name, 'path': str(folder), 'files': written})
        return
    for name in written:
        out.line('Wrote ', (place(str(folder / name)), 'bold'))
    where = ''.join(f' -d {directory}' for directory in chosen.directory or ())
    out.line('Put your own queries and tasks in place of the hints, and run:')
    out.line(f'pydantic-ai-skills eval {skill.name}{where}')


def _tasks(skill: api.Skill[Any]) -> str:
    """A first `evals.json`: one task, with a check of each kind that needs no model."""
    task = {
        'id': 1,
        'prompt': f'A task that {skill.name} is for, as a user would word it.',
        'expected_output': 'What a good answer is, in words, for --judge MODEL.',
        'files': [],
        'checks': [
            {'type': 'contains', 'text': 'a text that the answer has to contain'},
            {'type': 'regex', 'pattern': 'an expression that has to match it'},
            {'type': 'file', 'path': 'a-file-that-is-made.txt'},
            {'type': 'exit-code', 'code': 0},
        ],
    }
    return json.dumps({'skill_name': skill.name, 'evals': [task]}, indent=2, ensure_ascii=False) + '\n'


def _queries(skill: api.Skill[Any], toolset: api.SkillsToolset[Any]) -> str:
    """A first set of queries. Those for the most similar skills are the most telling ones."""
    queries: list[dict[str, Any]] = [{'query': f'{hint}.', 'should_trigger': True} for hint in WANTED]
    for other in _neighbours(skill, toolset):
        hint = f'Ask for what {other.name} is for: {other.description}'
        queries.append({'query': hint, 'should_trigger': False, 'expected_skill': other.name})
    queries += [{'query': f'{hint}.', 'should_trigger': False} for hint in UNWANTED]
    lines = ',\n'.join(f'  {json.dumps(query, ensure_ascii=False)}' for query in queries)
    return f'[\n{lines}\n]\n'


def _neighbours(skill: api.Skill[Any], toolset: api.SkillsToolset[Any]) -> list[api.Skill[Any]]:
    found = toolset.search(f'{skill.name} {skill.description}', NEIGHBOURS + 1)
    return [other for other in found if other.name != skill.name][:NEIGHBOURS]
