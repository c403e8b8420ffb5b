"""Approves calls that a loaded skill allows in the `allowed-tools` of its frontmatter."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic_ai.messages import ToolCallPart

from pydantic_ai_skills.parsing.skill_names import tool_name
from pydantic_ai_skills.types.skill import Skill

_ALLOWED = r'(?s)([^()]+)(?:\((.*)\))?'
_SHELL_SYNTAX = frozenset(';&|<>`$(){}\\\n\r')
"""Characters that can turn a text into several commands, or into another command than it seems."""


def is_approved(call: ToolCallPart, skills: Iterable[Skill[Any]], *, run_tool: str) -> bool:
    """Whether one of the loaded skills is trusted and allows this call.

    `Read` allows every call of the tool `Read`, `Bash(git add *)` the calls of `Bash` whose text matches, and
    `Bash(git:*)` those that start with the word `git`. A skill may name its own tools without its prefix. Calls of
    `run_skill_script`, which the model knows as `run_tool`, are allowed for scripts of the skill itself only.
    """
    return any(
        _fits(allowed, call, skill, run_tool) for skill in skills if skill.is_trusted for allowed in skill.allowed_tools
    )


def _fits(allowed: str, call: ToolCallPart, skill: Skill[Any], run_tool: str) -> bool:
    match = re.fullmatch(_ALLOWED, allowed)
    if match is None:
        return False
    name, pattern = match[1], match[2]
    args = call.args_as_dict()
    if call.tool_name == run_tool:
        # Skills write the name it has here, whatever the model calls it.
        is_named = name == 'run_skill_script' and args.get('skill_name') == skill.name
        subject = args.get('script_name')
    else:
        is_named = call.tool_name in (name, tool_name(skill.name, name.replace('-', '_')))
        texts = [value for value in args.values() if isinstance(value, str)]
        subject = args.get('command', texts[0] if len(texts) == 1 else None)
    return is_named and (pattern is None or (isinstance(subject, str) and _matches(subject, pattern)))


def _matches(text: str, pattern: str) -> bool:
    if '*' not in pattern:
        return text == pattern
    if not _SHELL_SYNTAX.isdisjoint(text):
        return False
    beginning = pattern.removesuffix(':*')
    if beginning != pattern:
        return text == beginning or text.startswith(f'{beginning} ')
    return re.fullmatch('.*'.join(map(re.escape, pattern.split('*'))), text) is not None
