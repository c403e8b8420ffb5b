"""Turns the arguments a model sends into an argument vector.

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
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from pydantic_core import from_json

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

POSITIONAL_KEY = '_'
"""The key whose value is passed as positional arguments."""

STDIN_KEY = '_stdin'
"""The key whose value is written to standard input. It does not clash with a `--stdin` flag of the script."""

MAX_ARGUMENTS = 1_000
"""How many items an argument vector may have."""

MAX_ARGUMENT_BYTES = 100_000
"""How long one argument may be. Linux refuses to start a program with one of 128 KiB."""

MAX_ARGV_BYTES = 500_000
"""How long all arguments may be together. macOS allows 1 MiB with the environment."""

MAX_STDIN_BYTES = 1024 * 1024
"""How much text may be sent to standard input."""

MAX_JSON_CHARS = 4 * 1024 * 1024
"""How long arguments may be that are sent as a JSON string."""

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,99}')
_NEGATIVE_NUMBER = re.compile(r'-(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?', re.ASCII)


class ArgumentVector(NamedTuple):
    """The arguments and the standard input of a script."""

    argv: tuple[str, ...] = ()
    """The argument vector, without the program."""

    stdin: str | None = None
    """Text for standard input; `None` gives an empty one."""


def build_arguments(args: Any) -> ArgumentVector:
    """Turn the arguments a model sent into an argument vector and text for standard input, or say what to change."""
    value = _parse(args) if isinstance(args, str) else args
    if value is None:
        return ArgumentVector()
    if isinstance(value, dict):
        return _from_object(cast('dict[Any, Any]', value))
    if isinstance(value, list):
        return ArgumentVector(argv=_checked(_scalar(item, f'Item {i}') for i, item in enumerate(_items(value), 1)))
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


def _from_object(args: dict[Any, Any]) -> ArgumentVector:
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
    return ArgumentVector(argv=_checked(argv), stdin=stdin)


def _stdin(value: Any) -> str | None:
    if value is None:
        return None
    what = f'The value of {STDIN_KEY!r}'
    if not isinstance(value, str):
        raise SkillScriptExecutionError(f'{what} must be text, not {_kind(value)}.')
    if len(_encoded(value, what)) > MAX_STDIN_BYTES:
        raise SkillScriptExecutionError(f'{what} is longer than {MAX_STDIN_BYTES:,} bytes. Send less.')
    return value


def _positionals(value: Any) -> Iterator[str]:
    for item in [] if value is None else _items(value):
        text = _scalar(item, f'A value of {POSITIONAL_KEY!r}')
        if is_read_as_flag(text):
            raise SkillScriptExecutionError(
                f'The positional argument {_shown(text)} begins with a dash and would be read as a flag. Send a flag '
                'as {"name": value}, a file as "./-name", or all arguments as one list, which is passed on as it is.'
            )
        yield text


def is_read_as_flag(text: str) -> bool:
    """Whether a script would read a positional argument as a flag, unlike a negative number or a single dash."""
    return text.startswith('-') and text != '-' and not _NEGATIVE_NUMBER.fullmatch(text)


def _flags(name: str, value: Any) -> Iterator[str]:
    flag = f'-{name}' if len(name) == 1 else f'--{name}'
    for item in _items(value):
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


def _items(value: Any) -> list[Any]:
    items = cast('list[Any]', value) if isinstance(value, list) else [value]
    _check_count(len(items))
    return items


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
    text = value if isinstance(value, str) else _as_text(value, what)
    size = len(_encoded(text, what))
    if '\0' in text:
        raise SkillScriptExecutionError(f'{what} contains a NUL character, which no program accepts. Leave it out.')
    if size > MAX_ARGUMENT_BYTES:
        raise SkillScriptExecutionError(
            f'{what} is {size:,} bytes long; an argument may have {MAX_ARGUMENT_BYTES:,}. '
            f'Send long text under {STDIN_KEY!r}, or as a file the script can read.'
        )
    return text


def _as_text(value: Any, what: str) -> str:
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and value.bit_length() <= 1024:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    kind = 'a number a script cannot be given' if isinstance(value, int | float) else _kind(value)
    raise SkillScriptExecutionError(
        f'{what} is {kind}. A script takes text, numbers, true or false, or a list of them. '
        'Send structured data as a string that holds JSON.'
    )


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f'{what} contains half of a surrogate pair. Send valid Unicode text.'
        raise SkillScriptExecutionError(message) from error


def _check_count(count: int) -> None:
    if count > MAX_ARGUMENTS:
        raise SkillScriptExecutionError(
            f'There are {count:,} arguments; a script may have {MAX_ARGUMENTS:,}. '
            f'Send long lists under {STDIN_KEY!r}, or as a file the script can read.'
        )


def _checked(words: Iterable[str]) -> tuple[str, ...]:
    argv = tuple(words)
    total = sum(len(item.encode()) + 1 for item in argv)
    if total > MAX_ARGV_BYTES:
        raise SkillScriptExecutionError(
            f'The arguments are {total:,} bytes long together; a script may have {MAX_ARGV_BYTES:,}. '
            f'Send long text under {STDIN_KEY!r}, or as a file the script can read.'
        )
    return argv


def _kind(value: object) -> str:
    """The type of a value in the terms of JSON, which the model wrote."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds: dict[type, str] = {dict: 'an object', list: 'a list', str: 'text', int: 'a number', float: 'a number'}
    return kinds.get(type(value), f'a {type(value).__name__}')


def _shown(value: Any) -> str:
    return text if len(text := repr(value)) <= 60 else f'{text[:57]}…'


def as_mapping(args: object) -> object:
    """Normalize arguments as the model may write them: nothing, an object, or a string that holds either."""
    if isinstance(args, str):
        args = from_json(args) if args.strip() else None
    return {} if args is None else args
