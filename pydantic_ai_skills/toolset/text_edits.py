"""Replaces a passage of a text, or says why that is not possible and what to try instead."""

from __future__ import annotations

from pydantic_ai_skills.exceptions import SkillResourceLoadError

MAX_LINES_NAMED = 10
"""How many line numbers an error names for an ambiguous passage."""


def replace_passage(text: str, old: str, new: str, *, every: bool = False) -> tuple[str, list[int]]:
    """The text with a passage replaced, and the numbers of the lines in which it began.

    Raises:
        SkillResourceLoadError: The passage is empty, missing, ambiguous, or the same as its replacement. The message
            does not name the file.
    """
    if not old:
        raise SkillResourceLoadError('The passage to replace is empty.')
    if '\r\n' in text and old not in text:  # models write line feeds alone
        old, new = (part.replace('\r\n', '\n').replace('\n', '\r\n') for part in (old, new))
    lines = _lines_of(text, old)
    if not lines:
        raise SkillResourceLoadError(f'The passage to replace is not in it.{_hint(text, old)}')
    if len(lines) > 1 and not every:
        named = ', '.join(map(str, lines[:MAX_LINES_NAMED]))
        raise SkillResourceLoadError(
            f'The passage to replace occurs {len(lines)} times, in lines {named}. Add some of the text around it, or '
            'set replace_all.'
        )
    if old == new:
        raise SkillResourceLoadError('The passage and its replacement are the same.')
    return text.replace(old, new), lines


def _lines_of(text: str, passage: str) -> list[int]:
    lines: list[int] = []
    line, seen, place = 1, 0, text.find(passage)
    while place >= 0:
        line += text.count('\n', seen, place)
        lines.append(line)
        seen, place = place, text.find(passage, place + len(passage))
    return lines


def _hint(text: str, passage: str) -> str:
    """Where a passage begins that differs only in white space, or else which line is the same as its first line."""
    wanted = [' '.join(line.split()) for line in passage.strip().splitlines()]
    present = [' '.join(line.split()) for line in text.splitlines()]
    for number in range(len(present)):
        if wanted and present[number : number + len(wanted)] == wanted:
            return f' One that differs only in white space begins in line {number + 1}: copy it exactly.'
    if wanted and wanted[0] in present:
        return f' Its first line is line {present.index(wanted[0]) + 1}, but what follows differs.'
    return ' Read the file to see what it says now.'
