"""Handles what a person passes to load a skill: the arguments of `/name arguments`, and the run's dependencies."""

from __future__ import annotations

import re
import shlex
from typing import Any, cast

from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage

NOT_GIVEN: Any = object()
"""Stands for dependencies that were not given, because `None` is what many agents have as theirs."""

_NUMBER = r'(?<![A-Z$\\])\$(\d{1,2})(?![\w]|[.,]\d)'
_PLACES = rf'{_NUMBER}|\$ARGUMENTS\[(\d{{1,3}})\]|\$ARGUMENTS\b'
_COUNTS_FROM_ZERO = _NUMBER.replace(r'\d{1,2}', '0')


def context_of(deps: Any) -> RunContext[Any] | None:
    """The context of a run that has not begun: it has dependencies, and no model. `None` if they were not given."""
    return None if deps is NOT_GIVEN else RunContext(deps=deps, model=cast(Any, None), usage=RunUsage())


def fill_in_arguments(text: str, arguments: str) -> str:
    """Fill in the arguments that a person gave. Without a placeholder for them, they are added at the end.

    `$ARGUMENTS` is all that was written after the name. `$ARGUMENTS[0]` is the first argument, and so is `$0`; in a
    text that has no `$0`, `$1` is the first. Arguments are split as a shell does. A placeholder without an argument
    stays, since it may be an amount of money.
    """
    words = _words(arguments)
    first = 0 if re.search(_COUNTS_FROM_ZERO, text) else 1
    found = False

    def fill(match: re.Match[str]) -> str:
        nonlocal found
        number, index = match[1], match[2]
        position = int(index) if index else int(number) - first if number else None
        if position is not None and not 0 <= position < len(words):
            return match[0]
        found = True
        return arguments if position is None else words[position]

    filled = re.sub(_PLACES, fill, text)
    return filled if found or not arguments.strip() else f'{filled}\n\nARGUMENTS: {arguments}'


def _words(arguments: str) -> list[str]:
    """Split the arguments as a shell does, or at blanks if quotes do not match."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()
