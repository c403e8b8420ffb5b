"""Approves calls of the application's tools that a loaded skill allows in the `allowed-tools` of its frontmatter."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from pydantic_ai.messages import ToolCallPart

from pydantic_ai_skills.parsing.characters import hidden_characters
from pydantic_ai_skills.types.skill import Skill

MAX_TEXT_CHARS = 2_000
"""A longer text is never approved by a pattern: nobody could say what it does at a glance."""

_ALLOWED = re.compile(r'([^()]+)(?:\((.*)\))?', re.DOTALL)
_SHELL_SYNTAX = frozenset(';&|<>`$(){}\\*?[]~!#%^\n\r')
"""Characters that can turn a text into several commands, or into another command or path than it seems."""


CODING_AGENT_NAMES = {
    'run_command': ('Bash',),
    'read_file': ('Read',),
    'list_files': ('Read', 'Glob', 'LS'),
    'write_file': ('Write',),
    'edit_file': ('Edit', 'MultiEdit'),
}
"""What published skills call the workspace tools: the names that coding agents have for them."""


def is_approved(
    call: ToolCallPart,
    skills: Iterable[Skill[Any]],
    *,
    own_tools: Collection[str],
    workspace_tools: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Whether one of the loaded skills is trusted and allows this call of one of the application's tools.

    `Read` allows every call of the tool `Read`. `Bash(git add *)` allows the calls of `Bash` whose only argument is a
    text that matches, and `Bash(git:*)` those that start with the word `git`. What `*` stands for has no option that
    the pattern does not name, no `..` and no shell syntax. The code of skills is never allowed: neither their scripts
    nor their tools, which are the `own_tools` of the toolset. `workspace_tools` maps the names that the model sees to
    our names; skills may also use the names of coding agents for them. A pattern for a file tool is about the path.
    """
    if call.tool_name in own_tools:
        return False
    known_as = workspace_tools.get(call.tool_name, '')
    allowed = (each for skill in skills if skill.is_trusted for each in skill.allowed_tools)
    return any(_fits(each, call, known_as) for each in allowed)


def _fits(allowed: str, call: ToolCallPart, known_as: str) -> bool:
    match = _ALLOWED.fullmatch(allowed)
    if match is None or match[1] not in (call.tool_name, *CODING_AGENT_NAMES.get(known_as, ())):
        return False
    pattern = match[2]
    if pattern is None:
        return True
    # Another argument may change what the text does: the folder, the environment, the method of a request.
    args = {name: value for name, value in call.args_as_dict().items() if (name, value) != ('background', False)}
    values = [args.get('path')] if known_as not in ('', 'run_command') else list(args.values())
    return len(values) == 1 and isinstance(values[0], str) and _matches(values[0], pattern)


def _matches(text: str, pattern: str) -> bool:
    if '*' not in pattern:
        return text == pattern
    beginning = pattern.removesuffix(':*')
    if beginning != pattern:
        return (text == beginning or text.startswith(f'{beginning} ')) and _is_harmless(text, beginning)
    return _is_covered(text, pattern.split('*')) and _is_harmless(text, pattern)


def _is_covered(text: str, parts: list[str]) -> bool:
    """Whether a text consists of these parts with anything between them. Takes linear time, unlike an expression."""
    first, *middle, last = parts
    if not text.startswith(first):
        return False
    place = len(first)
    for part in middle:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return text.endswith(last) and len(text) - len(last) >= place


def _is_harmless(text: str, pattern: str) -> bool:
    """Whether a text is one plain command that does no more than its pattern suggests."""
    if len(text) > MAX_TEXT_CHARS or '..' in text or '%2e' in text.lower() or hidden_characters().search(text):
        return False
    if not _SHELL_SYNTAX.isdisjoint(text):
        return False
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation without an end
        return False
    # Options can run programs: `git -c core.pager=…`, `find -exec`, `tar --to-command=…`.
    named = Counter(word for word in pattern.split() if '*' not in word)
    return Counter(word for word in words if word.startswith('-')) <= named
