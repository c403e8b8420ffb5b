"""Reads and writes checks in JSON: a text in plain words, or an object with a type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from .checks import (
    Check,
    ExitCode,
    FileWritten,
    Judged,
    OutputContains,
    OutputEquals,
    OutputMatches,
    Satisfies,
    ScriptRan,
)

_VALUE = ('value', 'text', 'pattern', 'path', 'file', 'script', 'code', 'expected')
_WORDS = ('text', 'assertion', 'description', 'criterion', 'check', 'name', 'value')

_READERS: dict[str, Callable[[str, dict[str, Any]], Check]] = {
    'contains': lambda value, more: OutputContains(value, _flag(more, 'ignore_case'), _flag(more, 'absent')),
    'not-contains': lambda value, more: OutputContains(value, _flag(more, 'ignore_case'), absent=True),
    'equals': lambda value, _: OutputEquals(value),
    'regex': lambda value, more: OutputMatches(value, _flag(more, 'absent')),
    'not-regex': lambda value, _: OutputMatches(value, absent=True),
    'file': lambda value, more: FileWritten(value, _text(more, 'contains')),
    'exit-code': lambda value, more: ExitCode(int(value), _text(more, 'of')),
    'script': lambda value, _: ScriptRan(value),
    'judge': lambda value, _: Judged(value),
}
_SAME = {'matches': 'regex', 'file-exists': 'file', 'does-not-contain': 'not-contains'}


def read_check(value: object) -> Check | None:
    """The check that a value in JSON stands for; `None` if it stands for none."""
    if isinstance(value, str):
        return Judged(value) if value.strip() else None
    if not isinstance(value, dict):
        return None
    said = cast(dict[str, Any], value)
    kind = str(said.get('type', '')).lower().replace('_', '-')
    reader = _READERS.get(_SAME.get(kind, kind))
    argument = next((said[key] for key in _VALUE if isinstance(said.get(key), str | int)), None)
    if reader is None or argument is None:
        return _in_words(said)
    try:
        return reader(str(argument), said)
    except ValueError:  # an exit code that is not a number
        return None


def _in_words(said: Mapping[str, Any]) -> Judged | None:
    """The check for a person or a model that an object without a known type stands for: its name and its text."""
    words = [said[key].strip() for key in _WORDS if isinstance(said.get(key), str) and said[key].strip()]
    if not words:
        return None
    name = said.get('name')
    text = f'{name}: {words[0]}' if isinstance(name, str) and words[0] != name.strip() else words[0]
    return Judged(text, dict(said))


def check_in_json(check: Check) -> str | dict[str, Any]:
    """A check as `read_check` reads it: plain text if it is only a statement for the judge, else an object.

    Raises:
        ValueError: It is a function, which JSON cannot hold.
    """
    if isinstance(check, Judged):
        return dict(check.extra) or check.text
    if isinstance(check, Satisfies):
        raise ValueError(f'The check {str(check)!r} is a function, which a file cannot hold.')
    said: dict[str, Any] = {'type': check.kind}
    if isinstance(check, ExitCode):
        return said | {'code': check.code} | ({'of': check.script} if check.script is not None else {})
    if isinstance(check, FileWritten):
        return said | {'path': check.path} | ({'contains': check.contains} if check.contains is not None else {})
    if isinstance(check, ScriptRan):
        return said | {'script': check.script}
    if isinstance(check, OutputMatches):
        return said | {'pattern': check.pattern} | ({'absent': True} if check.absent else {})
    said['text'] = check.text
    if isinstance(check, OutputContains):
        said |= {name: True for name in ('ignore_case', 'absent') if getattr(check, name)}
    return said


def _flag(said: Mapping[str, Any], name: str) -> bool:
    return said.get(name) is True


def _text(said: Mapping[str, Any], name: str) -> str | None:
    value = said.get(name)
    return value if isinstance(value, str) else None
