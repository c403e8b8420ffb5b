"""The result of a check in the formats that other programs read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic_ai_skills import SkillProblem, skill_rules

from .output import safe

__all__ = ('as_github', 'as_sarif')

SARIF_SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'


def as_github(problem: SkillProblem) -> str:
    """A problem as a workflow command, which GitHub shows beside the line."""
    place = {'file': _relative(problem.path), 'line': str(problem.line or 1), 'title': problem.code}
    properties = ','.join(f'{name}={_escaped(value, also=":,")}' for name, value in place.items())
    return safe(f'::{problem.severity} {properties}::{_escaped(_told(problem))}')


def as_sarif(problems: Sequence[SkillProblem]) -> dict[str, Any]:
    """Problems as SARIF 2.1.0, which code hosts and editors read."""
    rules = skill_rules()
    codes = sorted({problem.code for problem in problems})
    return {
        '$schema': SARIF_SCHEMA,
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


def _result(problem: SkillProblem, rule_index: int) -> dict[str, Any]:
    place: dict[str, Any] = {'artifactLocation': _artifact(problem.path)}
    if problem.line is not None:
        place['region'] = {'startLine': problem.line}
    return {
        'ruleId': problem.code,
        'ruleIndex': rule_index,
        'level': problem.severity,
        'message': {'text': _told(problem)},
        'locations': [{'physicalLocation': place}],
    }


def _told(problem: SkillProblem) -> str:
    return f'{problem.message} {problem.fix or ""}'.rstrip()


def _artifact(path: str) -> dict[str, str]:
    relative = _relative(path)
    if os.path.isabs(relative):
        return {'uri': Path(relative).as_uri()}
    # A path is bytes; what is not UTF-8 in it is kept as such.
    return {'uri': quote(os.fsencode(relative)), 'uriBaseId': 'SRCROOT'}


def _relative(path: str) -> str:
    """A path from where one is, with `/`, unless it is elsewhere."""
    near = os.path.relpath(path)
    return path if near.startswith(os.pardir) else near.replace(os.sep, '/')


def _escaped(text: str, also: str = '') -> str:
    for character in f'%\r\n{also}':
        text = text.replace(character, f'%{ord(character):02X}')
    return text
