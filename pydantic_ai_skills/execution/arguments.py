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
| `['in.pdf', '--fast']` | `in.pdf --fast`, unchanged |
| `'in.pdf --fast'` | the same: a line is split as a shell splits it, and nothing in it is expanded |

This applies to a script whose text does not declare its parameters. Otherwise names are matched to the declared ones:
see `declared/match.py`.
"""

from __future__ import annotations

import ast
import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic_core import from_json

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript

    from .declared import Declaration

POSITIONAL_KEY = '_'
"""The key whose value is passed as positional arguments."""

STDIN_KEY = '_stdin'
"""The key whose value is written to standard input. It does not clash with a `--stdin` flag of the script."""

MAX_ARGUMENT_BYTES = 100_000
"""How long one argument may be. Linux refuses to start a program with one of 128 KiB."""

MAX_ARGUMENTS = 1_000
"""How many items an argument vector may have."""

MAX_ARGV_BYTES = 500_000
"""How long all arguments may be together. macOS allows 1 MiB with the environment."""

MAX_STDIN_BYTES = 1024 * 1024
"""How much text may be sent to standard input."""

MAX_JSON_CHARS = 4 * 1024 * 1024
"""How many characters a JSON string with the arguments may have."""

MAX_LITERAL_CHARS = 64 * 1024
"""How many characters a Python literal or a line with the arguments may have."""

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,99}')
_DASHED = re.compile(rf'-{{0,2}}{_NAME.pattern}')
_NEGATIVE_NUMBER = re.compile(r'-(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?', re.ASCII)
_OPERATORS = frozenset({'|', '||', '&', '&&', ';', '>', '>>', '<', '2>', '2>&1'})
_RUNNERS = frozenset({'python', 'python3', 'node', 'bash', 'sh', 'uv', 'run', 'bun', 'npx', 'tsx', 'ruby', 'perl'})


class ArgumentVector(NamedTuple):
    """The arguments and the standard input of a script."""

    argv: tuple[str, ...] = ()
    """The argument vector, without the program."""

    stdin: str | None = None
    """Text for standard input; `None` gives an empty one."""


def script_arguments(script: SkillScript, args: Any, source: bytes | None = None) -> ArgumentVector:
    """The arguments for a run of this script, matched to what `source` declares; without it, the script's file is read.

    Every run, and every description that a person approves, gets its arguments from here.

    Raises:
        SkillScriptExecutionError: The arguments do not fit, or the file cannot be opened.
    """
    value = _plain(args, script.name)
    if not isinstance(value, dict):  # passed on as it is
        return build_arguments(value)
    from .declared import declaration_of  # brings in the readers, which few processes need

    return build_arguments(value, declaration_of(script, source), name=script.name)


def build_arguments(args: Any, declared: Declaration | None = None, *, name: str = '') -> ArgumentVector:
    """Turn the arguments a model sent into an argument vector and text for standard input.

    Args:
        args: An object, a list, or a string that holds one of them or a line of words.
        declared: What the script declares, where it can be read.
        name: The script, for messages.

    Raises:
        SkillScriptExecutionError: The arguments do not fit. The message says what to change.
    """
    value = _plain(args, name)
    if isinstance(value, dict):
        return _from_object(cast('dict[Any, Any]', value), declared, name)
    if isinstance(value, list):
        return ArgumentVector(argv=_checked(to_word(item, f'Item {i}') for i, item in enumerate(_items(value), 1)))
    raise SkillScriptExecutionError(
        f'Arguments must be an object such as {{"query": "x"}} or a list such as ["in.pdf"], not {_kind_of(value)}.'
    )


# --- Text ---------------------------------------------------------------------------------------------------------


def _plain(args: Any, name: str) -> Any:
    """The arguments as values, parsed if they were sent as text; no arguments are an empty object."""
    value = _parse(args, name) if isinstance(args, str) else args
    return {} if value is None else value


def _parse(text: str, name: str) -> Any:
    if len(text) > MAX_JSON_CHARS:
        raise SkillScriptExecutionError(f'The arguments are longer than {MAX_JSON_CHARS:,} characters. Send less.')
    stripped = text.strip()
    if stripped.startswith(('{', '[')):
        return _object_or_list(stripped)
    return None if stripped in ('', 'null', 'None', '""') else _line(stripped, name)


def _object_or_list(text: str) -> Any:
    """An object or a list in JSON, or as Python writes it, which models mix up."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        broken = error
    try:
        return ast.literal_eval(text if len(text) <= MAX_LITERAL_CHARS else '')
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise SkillScriptExecutionError(
            'The arguments are a string that does not hold JSON. Send an object such as {"query": "x"} or a list '
            'such as ["in.pdf", "--fast"].'
        ) from broken


def _line(text: str, name: str) -> list[str]:
    """The words of a line as somebody would type them in a terminal, without the program and the script's name."""
    try:
        words = shlex.split(text if len(text) <= MAX_LITERAL_CHARS else '"')
    except ValueError as error:
        raise SkillScriptExecutionError(
            f'The arguments are a line that cannot be split into words: {str(error).lower()}. Send a list such as '
            '["in.pdf", "--fast"].'
        ) from error
    if operators := sorted(_OPERATORS.intersection(words)):
        raise SkillScriptExecutionError(
            f'The arguments are passed to the script, not to a shell, so {operators[0]!r} has no meaning in them. Send '
            'only the words for the script, as a list such as ["in.pdf", "--fast"].'
        )
    file = PurePosixPath(name).name
    place = next((i for i, word in enumerate(words[:4]) if file and PurePosixPath(word).name == file), None)
    if place is not None and _RUNNERS.issuperset(words[:place]):
        return words[place + 1 :]
    return words


def as_mapping(args: object) -> object:
    """Normalize arguments as the model may write them: nothing, an object, or a string that holds either."""
    if isinstance(args, str):
        args = from_json(args) if args.strip() else None
    return {} if args is None else args


# --- Objects ------------------------------------------------------------------------------------------------------


def _from_object(args: dict[Any, Any], declared: Declaration | None, name: str) -> ArgumentVector:
    stdin = _stdin(args.get(STDIN_KEY))
    if declared is None or declared.says_nothing:
        return ArgumentVector(argv=_checked(_as_sent(args)), stdin=stdin)
    from .declared.match import match_arguments  # not needed where nothing is declared

    named = {_flag_name(key, _DASHED): value for key, value in args.items() if key not in (STDIN_KEY, POSITIONAL_KEY)}
    for value in named.values():
        _items(value)
    words = list(_positionals(args.get(POSITIONAL_KEY)))
    matched = match_arguments(declared, name, named, words, other=lambda key, value: list(_flags(key, value)))
    _check_count(len(matched))
    return ArgumentVector(argv=_checked(matched), stdin=stdin)


def _as_sent(args: dict[Any, Any]) -> list[str]:
    """Flags and positional arguments in the order in which they were sent."""
    argv: list[str] = []
    for name, value in args.items():
        if name == POSITIONAL_KEY:
            argv.extend(_positionals(value))
        elif name != STDIN_KEY:
            argv.extend(_flags(_flag_name(name), value))
        _check_count(len(argv))
    return argv


def _stdin(value: Any) -> str | None:
    if value is None:
        return None
    what = f'The value of {STDIN_KEY!r}'
    if not isinstance(value, str):
        raise SkillScriptExecutionError(f'{what} must be text, not {_kind_of(value)}.')
    if len(_encoded(value, what)) > MAX_STDIN_BYTES:
        raise SkillScriptExecutionError(f'{what} is longer than {MAX_STDIN_BYTES:,} bytes. Send less.')
    return value


def _positionals(value: Any) -> Iterator[str]:
    for item in [] if value is None else _items(value):
        yield to_positional(item, f'A value of {POSITIONAL_KEY!r}')


def _flags(name: str, value: Any) -> Iterator[str]:
    bare = name.lstrip('-')
    flag = name if name != bare else f'-{name}' if len(name) == 1 else f'--{name}'
    for item in _items(value):
        if item is None or item is False:
            continue
        if item is True:
            yield flag
        else:
            yield from flag_words(flag, to_word(item, f'The value of {bare!r}'))


def _items(value: Any) -> list[Any]:
    items = cast('list[Any]', value) if isinstance(value, list) else [value]
    _check_count(len(items))
    return items


def _flag_name(name: Any, allowed: re.Pattern[str] = _NAME) -> str:
    """The name of an argument, checked. Models also write its dashes, accepted where flags are declared."""
    if isinstance(name, str) and allowed.fullmatch(name):
        return name
    raise SkillScriptExecutionError(
        f'{_shown(name)} cannot be the name of an argument. A name is letters, digits, "_", "-" and ".", at most 100 '
        f'of them, and begins with a letter or digit. Positional arguments go under {POSITIONAL_KEY!r}.'
    )


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


# --- Words --------------------------------------------------------------------------------------------------------


def to_word(value: Any, what: str) -> str:
    """One value as the text of one argument; `what` begins the message if that is impossible."""
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


def to_positional(value: Any, what: str) -> str:
    """One value as the word for a positional argument, which must not be read as a flag."""
    text = to_word(value, what)
    if is_read_as_flag(text):
        raise SkillScriptExecutionError(
            f'The positional argument {_shown(text)} begins with a dash and would be read as a flag. Send a flag '
            'as {"name": value}, a file as "./-name", or all arguments as one list, which is passed on as it is.'
        )
    return text


def is_read_as_flag(text: str) -> bool:
    """Whether a script would read a positional argument as a flag, unlike a negative number or a single dash."""
    return text.startswith('-') and text != '-' and not _NEGATIVE_NUMBER.fullmatch(text)


def flag_words(flag: str, text: str) -> tuple[str, ...]:
    """A flag and its value, joined if the value begins with a dash: it would be read as another flag otherwise."""
    if not text.startswith('-'):
        return flag, text
    return (f'{flag}={text}' if flag.startswith('--') else f'{flag}{text}',)


def _encoded(text: str, what: str) -> bytes:
    """The bytes of a text."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f'{what} contains half of a surrogate pair. Send valid Unicode text.'
        raise SkillScriptExecutionError(message) from error


def _kind_of(value: object) -> str:
    """The type of a value in the terms of JSON, which the model wrote."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds: dict[type, str] = {dict: 'an object', list: 'a list', str: 'text', int: 'a number', float: 'a number'}
    return kinds.get(type(value), f'a {type(value).__name__}')


def _shown(value: Any) -> str:
    """A value for a message."""
    return text if len(text := repr(value)) <= 60 else f'{text[:57]}…'


def _as_text(value: Any, what: str) -> str:
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and value.bit_length() <= 1024:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    kind = 'a number a script cannot be given' if isinstance(value, int | float) else _kind_of(value)
    raise SkillScriptExecutionError(
        f'{what} is {kind}. A script takes text, numbers, true or false, or a list of them. '
        'Send structured data as a string that holds JSON.'
    )
