"""Fixes what can be fixed in a `SKILL.md` without a decision by its author.

A fix is kept only if the text means the same after it: the same header, the same instructions, the problem gone and no
new one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from .skill_md import ParsedSkill, parse_skill_text

_LEADING_BLANK_LINES = re.compile(r'\A(\ufeff?)(?:[ \t]*+[\r\n])++(?=---)')
_OPENING_LINE = re.compile(r'\A\ufeff?---[ \t]*(\r\n|\n|\r)')
_NAME_LINE = re.compile(r'^name[ \t]*:[^\r\n#\[{]*(?=\r?$)', re.MULTILINE)
_PLAIN_VALUE = re.compile(r"""^([A-Za-z][\w-]*[ \t]*:[ \t]+)(?![\s"'|>\[{&*!#])([^\r\n]*[^\s])""", re.MULTILINE)
"""A value without quotes on the line of its key."""


def mend(text: str, folder_name: str) -> tuple[str, frozenset[str]]:
    """Fix the text of a `SKILL.md`; return it with the codes of the problems it no longer has."""
    mended: set[str] = set()
    before = parse_skill_text(text, folder_name=folder_name)
    todo = list(_FIXES)
    while todo and before.header is not None:
        code = todo.pop(0)
        if code not in _codes(before):
            continue
        candidate = _FIXES[code](text, before.header.name)
        after = parse_skill_text(candidate, folder_name=folder_name)
        if after[:2] == before[:2] and _codes(after) < _codes(before) and code not in _codes(after):
            mended |= _codes(before) - _codes(after)
            text, before = candidate, after
            todo = list(_FIXES)  # what could not be fixed before may be possible now
    return text, frozenset(mended)


def _codes(parsed: ParsedSkill) -> set[str]:
    return {problem.code for problem in parsed.problems}


def _without_blank_lines(text: str, name: str) -> str:
    return _LEADING_BLANK_LINES.sub(r'\1', text)


def _with_quotes(text: str, name: str) -> str:
    """Quote plain values of the frontmatter."""
    head, rest = _split(text)
    return _PLAIN_VALUE.sub(lambda line: line[1] + json.dumps(line[2], ensure_ascii=False), head) + rest


def _with_name(text: str, name: str) -> str:
    """Write the name under which the skill is loaded, on its line or on a new one."""
    line = f'name: {name}'
    head, rest = _split(text)
    if _NAME_LINE.search(head):
        return _NAME_LINE.sub(line, head, count=1) + rest
    return _OPENING_LINE.sub(lambda opening: f'{opening[0]}{line}{opening[1]}', text)


def _split(text: str) -> tuple[str, str]:
    """The frontmatter, and the rest, which begins with the closing `---` line."""
    end = text.find('\n---', 3)
    return text[:end], text[end:]


_FIXES: Mapping[str, Callable[[str, str], str]] = {
    'frontmatter-not-first': _without_blank_lines,
    'yaml-repaired': _with_quotes,
    'name-missing': _with_name,
    'name-invalid': _with_name,
    'name-too-long': _with_name,
}
