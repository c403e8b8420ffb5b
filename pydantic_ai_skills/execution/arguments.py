"""From the arguments a model sends to an argument vector: pure functions, no surprises for the script.

| sent | passed to the script |
|---|---|
| `{'query': 'x'}` | `--query x` |
| `{'n': 5}` | `-n 5`: a one-letter name is a short flag |
| `{'verbose': true}` | `--verbose`; `false` and `null` pass nothing |
| `{'tag': ['a', 'b']}` | `--tag a --tag b` |
| `{'offset': '-1'}` | `--offset=-1`: a value is never read as a flag |
| `{'_': ['in.pdf', 'out.pdf']}` | `in.pdf out.pdf` |
| `{'_stdin': 'text'}` | text on standard input |
| `['in.pdf', '--fast']` | `in.pdf --fast`, as it stands |

Flags and positional arguments keep the order in which they were sent.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import from_json

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

__all__ = ('POSITIONAL_KEY', 'STDIN_KEY', 'ScriptArguments', 'as_mapping', 'build_arguments')

POSITIONAL_KEY = '_'
"""The key whose value is passed as positional arguments."""

STDIN_KEY = '_stdin'
"""The key whose value is written to standard input. It cannot clash with a script's own `--stdin` flag."""

MAX_ARGUMENTS = 1_000
"""How many items an argument vector may have."""

MAX_ARGUMENT_BYTES = 100_000
"""How long one argument may be. Linux refuses to start a program with one of 128 KiB."""

MAX_ARGV_BYTES = 500_000
"""How long all arguments may be together. macOS allows 1 MiB with the environment."""

MAX_STDIN_BYTES = 1024 * 1024
"""How much text may be sent to standard input."""

MAX_JSON_CHARS = 4 * 1024 * 1024
"""How long a string that holds the arguments as JSON may be."""

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,99}')
_NEGATIVE_NUMBER = re.compile(r'-\d+(\.\d+)?')


@dataclass(frozen=True, kw_only=True)
class ScriptArguments:
    """What a script is started with."""

    argv: tuple[str, ...] = ()
    """The argument vector, without the program."""

    stdin: str | None = None
    """Text for standard input; `None` gives an empty one."""


def build_arguments(args: Any) -> ScriptArguments:
    """Turn the arguments a model sent into an argument vector and text for standard input.

    Raises:
        SkillScriptExecutionError: An argument cannot be passed on safely; the message says which and what would do.
    """
    value = _parse(args) if isinstance(args, str) else args
    if value is None:
        return ScriptArguments()
    if isinstance(value, dict):
        return _from_object(cast('dict[Any, Any]', value))
    if isinstance(value, list):
        items = cast('list[Any]', value)
        _check_count(len(items))
        return ScriptArguments(argv=_checked(tuple(_scalar(item, f'Item {i}') for i, item in enumerate(items, 1))))
    raise SkillScriptExecutionError(
        f'Arguments must be an object such as {{"query": "x"}} or a list such as ["in.pdf"], not {_kind(value)}.'
    )


def _parse(text: str) -> Any:
    if len(text) > MAX_JSON_CHARS:
        raise SkillScriptExecutionError(f'The arguments are longer than {MAX_JSON_CHARS:,} characters. Send less.')
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SkillScriptExecutionError(
            'The arguments are a string that does not hold JSON. Send an object such as {"query": "x"} or a list '
            'such as ["in.pdf", "--fast"].'
        ) from error


def _from_object(args: dict[Any, Any]) -> ScriptArguments:
    argv: list[str] = []
    stdin: str | None = None
    for name, value in args.items():
        if name == STDIN_KEY:
            stdin = _stdin(value)
        elif name == POSITIONAL_KEY:
            argv.extend(_positionals(value))
        else:
            argv.extend(_flags(_flag_name(name), value))
        _check_count(len(argv))
    return ScriptArguments(argv=_checked(tuple(argv)), stdin=stdin)


def _stdin(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise SkillScriptExecutionError(f'The value of {STDIN_KEY!r} must be text, not {_kind(value)}.')
    if value is not None and len(_encoded(value, repr(STDIN_KEY))) > MAX_STDIN_BYTES:
        raise SkillScriptExecutionError(
            f'The value of {STDIN_KEY!r} is longer than {MAX_STDIN_BYTES:,} bytes. Send less.'
        )
    return value


def _positionals(value: Any) -> Iterator[str]:
    items = cast('list[Any]', value) if isinstance(value, list) else [] if value is None else [value]
    _check_count(len(items))
    for item in items:
        text = _scalar(item, f'A value of {POSITIONAL_KEY!r}')
        if text.startswith('-') and text != '-' and not _NEGATIVE_NUMBER.fullmatch(text):
            raise SkillScriptExecutionError(
                f'The positional argument {_shown(text)} begins with a dash and would be read as a flag. Send a flag '
                'as {"name": value}, a file as "./-name", or all arguments as one list, which is passed on as it is.'
            )
        yield text


def _flags(name: str, value: Any) -> Iterator[str]:
    flag = f'-{name}' if len(name) == 1 else f'--{name}'
    items = cast('list[Any]', value) if isinstance(value, list) else [value]
    _check_count(len(items))
    for item in items:
        if item is None or item is False:
            continue
        if item is True:
            yield flag
            continue
        text = _scalar(item, f'The value of {name!r}')
        if not text.startswith('-'):
            yield from (flag, text)
        elif len(name) == 1:
            yield f'{flag}{text}'
        else:
            yield f'{flag}={text}'


def _flag_name(name: Any) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    if isinstance(name, str) and (bare := name.lstrip('-')) != name and _NAME.fullmatch(bare):
        raise SkillScriptExecutionError(f'Write the argument {name!r} without its dashes: {bare!r}.')
    raise SkillScriptExecutionError(
        f'{_shown(name)} cannot be the name of an argument. A name is letters, digits, "_", "-" and ".", at most 100 '
        f'of them, and begins with a letter or digit. Positional arguments go under {POSITIONAL_KEY!r}.'
    )


def _scalar(value: Any, what: str) -> str:
    """One value as the text of one argument."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = 'true' if value else 'false'
    elif isinstance(value, int) and value.bit_length() <= 1024:
        text = str(value)
    elif isinstance(value, float) and math.isfinite(value):
        text = repr(value)
    else:
        kind = 'a number a script cannot be given' if isinstance(value, int | float) else _kind(value)
        raise SkillScriptExecutionError(
            f'{what} is {kind}. A script takes text, numbers, true or false, or a list of them. '
            'Send structured data as a string that holds JSON.'
        )
    size = len(_encoded(text, what))
    if '\0' in text:
        raise SkillScriptExecutionError(
            f'{what} contains a NUL character, which no program can be given. Leave it out.'
        )
    if size > MAX_ARGUMENT_BYTES:
        raise SkillScriptExecutionError(
            f'{what} is {size:,} bytes long; an argument may have {MAX_ARGUMENT_BYTES:,}. '
            f'Send long text under {STDIN_KEY!r}, or as a file the script can read.'
        )
    return text


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SkillScriptExecutionError(
            f'{what} contains half of a surrogate pair. Send valid Unicode text.'
        ) from error


def _check_count(count: int) -> None:
    if count > MAX_ARGUMENTS:
        raise SkillScriptExecutionError(
            f'There are {count:,} arguments; a script may have {MAX_ARGUMENTS:,}. '
            f'Send long lists under {STDIN_KEY!r}, or as a file the script can read.'
        )


def _checked(argv: tuple[str, ...]) -> tuple[str, ...]:
    total = sum(len(item.encode()) + 1 for item in argv)
    if total > MAX_ARGV_BYTES:
        raise SkillScriptExecutionError(
            f'The arguments are {total:,} bytes long together; a script may have {MAX_ARGV_BYTES:,}. '
            f'Send long text under {STDIN_KEY!r}, or as a file the script can read.'
        )
    return argv


def _kind(value: Any) -> str:
    """What a value is in the words of JSON, which is what the model wrote."""
    if value is None:
        return 'null'
    if isinstance(value, dict):
        return 'an object'
    if isinstance(value, list):
        return 'a list'
    if isinstance(value, str):
        return 'text'
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, int | float):
        return 'a number'
    return f'a {type(value).__name__}'


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f'{text[:57]}…'


def as_mapping(args: object) -> object:
    """Arguments as the model may write them: nothing, an object, or a string that holds one of them."""
    if isinstance(args, str):
        args = from_json(args) if args.strip() else None
    return {} if args is None else args
