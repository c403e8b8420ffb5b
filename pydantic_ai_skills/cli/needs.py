"""Shows what a skill needs: for `doctor NAME`, and in short for `show`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Literal, NamedTuple

import pydantic_ai_skills as api

KINDS = {
    'python': 'Python packages',
    'npm': 'npm packages',
    'programs': 'Programs',
    'keys': 'Keys',
    'tools': 'Tools',
}
"""The kinds of needs, and what people call them."""

MAX_FILES = 2
"""How many files are named for each need."""


class NeedLine(NamedTuple):
    """One need as `doctor` shows it: its name, its state, what was found, and what to do about it."""

    what: str
    state: Literal['ok', 'missing', 'note']
    found: str
    advice: str = ''


def need_lines(skill: api.Skill[Any], needs: api.SkillNeeds) -> Iterator[tuple[str, list[NeedLine]]]:
    """The needs of a skill by kind, each kind with its title. The last need of a kind has the advice for all of it."""
    for kind, title in KINDS.items():
        wanted: Sequence[api.SkillNeed] = getattr(needs, kind)
        if wanted:
            lines = [_line(kind, need) for need in wanted]
            lines[-1] = lines[-1]._replace(advice=_advice(skill, kind, wanted))
            yield title, lines
    said = list(_said(needs))
    if said:
        yield 'The skill says', said


def _line(kind: str, need: api.SkillNeed) -> NeedLine:
    """One need. If it is missing but optional, that is only noted."""
    files = ', '.join(need.files[:MAX_FILES])
    more = len(need.files) - MAX_FILES
    where = f'{files} and {more} more' if more > 0 else files
    if need.state == 'met':
        return NeedLine(need.requirement or need.name, 'ok', where)
    how = 'not set' if kind == 'keys' else 'cannot be checked' if need.state == 'unknown' else 'not installed'
    about = f'; {need.detail}' if kind == 'tools' and need.detail else ''
    text = f'{how}{", optional" if need.optional else ""} ({where}{about})'
    return NeedLine(need.requirement or need.name, 'missing' if need.is_lacking else 'note', text)


def _advice(skill: api.Skill[Any], kind: str, needs: Sequence[api.SkillNeed]) -> str:
    lacking = [need for need in needs if need.is_lacking]
    if kind == 'keys':
        names = [need.name for need in needs]
        return f'Scripts get none of them unless you pass them on: skill_env={{{skill.name!r}: {names!r}}}'
    if kind == 'tools' or not lacking:
        return ''
    if kind == 'python':
        return f"Install: pip install {_words(lacking)}. Or let scripts have them with dependencies='uv'."
    if kind == 'npm':
        return f'Install in a folder above the skill: npm install {_words(lacking)}'
    return f'Install: {", ".join(dict.fromkeys(need.detail or need.name for need in lacking))}.'


def _words(needs: Sequence[api.SkillNeed]) -> str:
    return shlex.join(need.requirement or need.name for need in needs)


def _said(needs: api.SkillNeeds) -> Iterator[NeedLine]:
    if needs.compatibility:
        yield NeedLine('compatibility', 'note', ' '.join(needs.compatibility.split()))
    if name := needs.interface.get('display_name'):
        yield NeedLine('display name', 'note', name)
    if not needs.implicit_invocation:
        text = 'agents/openai.yaml asks that a model loads it only when a person asks for it'
        hint = 'Nothing here acts on that. To have the same, add `disable-model-invocation: true` to its SKILL.md.'
        yield NeedLine('invocation', 'note', text, hint)


def needs_summary(needs: api.SkillNeeds) -> str:
    """The needs that are not optional on one line, with the missing ones marked."""
    names = [f'{need.name}{" (missing)" if need.is_lacking else ""}' for need in needs if not need.optional]
    return ', '.join(names)


def needs_data(needs: api.SkillNeeds) -> dict[str, Any]:
    """The needs as JSON."""
    return asdict(needs)
