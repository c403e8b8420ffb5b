"""Skills and problems in formats that programs read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pydantic_ai_skills as api

from .output import safe
from .skills import source_of

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolReturnPart


def result_text(part: ToolReturnPart) -> str:
    """The result of a tool, or why it failed, as text."""
    return part.content if isinstance(part.content, str) else part.model_response_str()


def problems_data(problems: Iterable[api.SkillProblem]) -> list[dict[str, Any]]:
    """Problems as JSON."""
    return [{**asdict(problem), 'url': problem.url} for problem in problems]


def content_of(skill: api.Skill[Any]) -> str:
    """The instructions of a skill; empty if they cannot be read."""
    try:
        return skill.content
    except api.SkillError:
        return ''


def skill_data(skill: api.Skill[Any]) -> dict[str, Any]:
    """A skill as JSON, with its size and cost."""
    files = [item.uri for item in (*skill.resources, *skill.scripts) if item.uri and os.path.isfile(item.uri)]
    content = content_of(skill)
    return {
        'name': skill.name,
        'description': skill.description,
        'from': source_of(skill),
        'path': skill.path,
        'size': sum(map(os.path.getsize, files)) + len(content.encode()),
        'tokens': api.estimate_tokens(content),
        'files': len(skill.resources) + len(skill.scripts),
        'problems': problems_data(skill.files.problems),
        'source': asdict(skill.source) if skill.source else None,
    }


def as_github(problem: api.SkillProblem) -> str:
    """A problem as a workflow command, which GitHub shows beside the line."""
    place = {'file': _relative(problem.path), 'line': str(problem.line or 1), 'title': problem.code}
    properties = ','.join(f'{name}={_escaped(value, also=":,")}' for name, value in place.items())
    return safe(f'::{problem.severity} {properties}::{_escaped(_message(problem))}')


def as_sarif(problems: Sequence[api.SkillProblem]) -> dict[str, Any]:
    """Problems as SARIF 2.1.0, which code hosts and editors read."""
    rules = api.skill_rules()
    codes = sorted({problem.code for problem in problems})
    return {
        '$schema': 'https://json.schemastore.org/sarif-2.1.0.json',
        'version': '2.1.0',
        'runs': [
            {
                'tool': {
                    'driver': {
                        'name': 'pydantic-ai-skills',
                        'version': version('pydantic-ai-skills'),
                        'rules': [
                            {
                                'id': code,
                                'shortDescription': {'text': rules[code].summary},
                                'help': {'text': rules[code].fix or rules[code].summary},
                                'helpUri': next(problem.url for problem in problems if problem.code == code),
                                'defaultConfiguration': {'level': rules[code].severity},
                            }
                            for code in codes
                        ],
                    }
                },
                'originalUriBaseIds': {'SRCROOT': {'uri': f'{Path.cwd().as_uri()}/'}},
                'columnKind': 'unicodeCodePoints',
                'results': [_result(problem, codes.index(problem.code)) for problem in problems],
            }
        ],
    }


def _result(problem: api.SkillProblem, rule_index: int) -> dict[str, Any]:
    place: dict[str, Any] = {'artifactLocation': _artifact(problem.path)}
    if problem.line is not None:
        place['region'] = {'startLine': problem.line}
    return {
        'ruleId': problem.code,
        'ruleIndex': rule_index,
        'level': problem.severity,
        'message': {'text': _message(problem)},
        'locations': [{'physicalLocation': place}],
    }


def _message(problem: api.SkillProblem) -> str:
    return f'{problem.message} {problem.fix or ""}'.rstrip()


def _artifact(path: str) -> dict[str, str]:
    relative = _relative(path)
    if os.path.isabs(relative):
        return {'uri': Path(relative).as_uri()}
    # A path is bytes, which need not be UTF-8.
    return {'uri': quote(os.fsencode(relative)), 'uriBaseId': 'SRCROOT'}


def _relative(path: str) -> str:
    """A path relative to the current folder, with `/`, if it is inside of it."""
    near = os.path.relpath(path)
    return path if near.startswith(os.pardir) else near.replace(os.sep, '/')


def _escaped(text: str, also: str = '') -> str:
    for character in f'%\r\n{also}':
        text = text.replace(character, f'%{ord(character):02X}')
    return text
