"""Offers skills to the person at the terminal, who chooses some of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from textwrap import shorten
from typing import Any

import pydantic_ai_skills as api

from .output import Failure, Output, counted

QUESTION = 'Which ones? Numbers or names, such as 1 3-5; Enter takes all: '

DESCRIPTION_WIDTH = 100
"""How many characters of a description are shown."""


def choose(out: Output, skills: Sequence[api.Skill[Any]]) -> tuple[str, ...]:
    """Ask which skills to take, until the answer makes sense. Returns their names; an empty answer means all.

    Raises:
        Failure: There is no answer.
    """
    names = [skill.name for skill in skills]
    width = len(str(len(names)))
    out.note(f'{counted(len(names), "skill")}:')
    for number, skill in enumerate(skills, start=1):
        description = shorten(skill.description, DESCRIPTION_WIDTH, placeholder=' …')
        out.note(f'{number:>{width + 2}}  ', (skill.name, 'bold'), f'  {description}')
    while True:
        out.errors.print(QUESTION, end='')
        answer = sys.stdin.readline()
        if not answer:
            raise Failure('No skill was chosen, so nothing was added.')
        words = answer.replace(',', ' ').split()
        chosen = [_meant(word, names) for word in words]
        unknown = [word for word, meant in zip(words, chosen, strict=True) if not meant]
        if not unknown:
            return tuple(dict.fromkeys(name for meant in chosen for name in meant))
        out.note((f'Not in the list: {", ".join(unknown)}', 'yellow'))


def _meant(word: str, names: Sequence[str]) -> Sequence[str]:
    """The skills that a name, a number or a range of numbers stands for; none if it makes no sense."""
    if word in names:
        return [word]
    numbers = re.fullmatch(r'([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}))?', word)
    if numbers is None:
        return []
    first, last = int(numbers[1]), int(numbers[2] or numbers[1])
    return names[first - 1 : last] if last <= len(names) else []
