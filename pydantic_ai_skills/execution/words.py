"""Turns single values into the words of a command line, or says why that is impossible."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

POSITIONAL_KEY = '_'
"""The key whose value is passed as positional arguments."""

STDIN_KEY = '_stdin'
"""The key whose value is written to standard input. It does not clash with a `--stdin` flag of the script."""

MAX_ARGUMENT_BYTES = 100_000
"""How long one argument may be. Linux refuses to start a program with one of 128 KiB."""

_NEGATIVE_NUMBER = re.compile(r'-(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?', re.ASCII)


def to_word(value: Any, what: str) -> str:
    """One value as the text of one argument; `what` begins the message if that is impossible."""
    text = value if isinstance(value, str) else _as_text(value, what)
    size = len(encoded(text, what))
    if '\0' in text:
        raise SkillScriptExecutionError(f'{what} contains a NUL character, which no program accepts. Leave it out.')
    if size > MAX_ARGUMENT_BYTES:
        raise SkillScriptExecutionError(
            f'{what} is {size:,} bytes long; an argument may have {MAX_ARGUMENT_BYTES:,}. '
            f'Send long text under {STDIN_KEY!r}, or as a file the script can read.'
        )
    return text


def to_positional(value: Any, what: str) -> str:
    """One value as a word that stands for itself: it must not be read as a flag."""
    text = to_word(value, what)
    if is_read_as_flag(text):
        raise SkillScriptExecutionError(
            f'The positional argument {shown(text)} begins with a dash and would be read as a flag. Send a flag '
            'as {"name": value}, a file as "./-name", or all arguments as one list, which is passed on as it is.'
        )
    return text


def is_read_as_flag(text: str) -> bool:
    """Whether a script would read a positional argument as a flag, unlike a negative number or a single dash."""
    return text.startswith('-') and text != '-' and not _NEGATIVE_NUMBER.fullmatch(text)


def flag_words(flag: str, text: str) -> tuple[str, ...]:
    """A flag and its value. One that begins with a dash is joined to the flag, or it would be read as another flag."""
    if not text.startswith('-'):
        return flag, text
    return (f'{flag}={text}' if flag.startswith('--') else f'{flag}{text}',)


def encoded(text: str, what: str) -> bytes:
    """The bytes of a text."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f'{what} contains half of a surrogate pair. Send valid Unicode text.'
        raise SkillScriptExecutionError(message) from error


def kind_of(value: object) -> str:
    """The type of a value in the terms of JSON, which the model wrote."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds: dict[type, str] = {dict: 'an object', list: 'a list', str: 'text', int: 'a number', float: 'a number'}
    return kinds.get(type(value), f'a {type(value).__name__}')


def shown(value: Any) -> str:
    """A value for a message."""
    return text if len(text := repr(value)) <= 60 else f'{text[:57]}…'


def _as_text(value: Any, what: str) -> str:
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and value.bit_length() <= 1024:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    kind = 'a number a script cannot be given' if isinstance(value, int | float) else kind_of(value)
    raise SkillScriptExecutionError(
        f'{what} is {kind}. A script takes text, numbers, true or false, or a list of them. '
        'Send structured data as a string that holds JSON.'
    )
