"""The `tools` of a frontmatter → typed tools that run scripts, with a problem for each that cannot be made."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from .findings import Finding, Value, shown
from .rules import MAX_TOOL_NAME_LENGTH, tool_name

__all__ = (
    'ArgumentType',
    'Passing',
    'ToolArgument',
    'ToolSpec',
    'read_tools',
    'restore_tools',
    'schema_of',
)

MAX_TOOLS = 64
"""How many tools one skill may declare."""

ArgumentType = Literal['string', 'integer', 'number', 'boolean', 'array', 'object']
"""What an argument may be, in the words of JSON Schema."""

Passing = Literal['positional', 'flags', 'json-stdin']
"""How a script gets its arguments: in their declared order, as flags, or as JSON on standard input."""

_TYPES: dict[str, ArgumentType] = {
    **{kind: kind for kind in get_args(ArgumentType)},
    'str': 'string',
    'int': 'integer',
    'float': 'number',
    'bool': 'boolean',
    'list': 'array',
    'dict': 'object',
}
_FLAGS = {'true': True, 'yes': True, 'on': True, 'false': False, 'no': False, 'off': False}
_TOOL_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_ARGUMENT_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_.-]{0,63}')


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolArgument:
    """One argument of a declared tool."""

    name: str
    """What the model calls it, and the name of its flag."""

    type: ArgumentType
    """What it is."""

    description: str | None = None
    """What it means, for the model."""

    enum: tuple[Any, ...] = ()
    """The values it may have; empty for any."""

    default: Any = None
    """What the script gets where the model gives none; `None` for nothing."""

    required: bool = True
    """Whether the model has to give it."""

    items: ArgumentType | None = None
    """What the items of an array are; `None` for anything."""

    item_enum: tuple[Any, ...] = ()
    """The values an item of an array may have; empty for any."""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its value."""
        schema = schema_of(self.type)
        if self.description:
            schema['description'] = self.description
        if self.enum:
            schema['enum'] = list(self.enum)
        if self.items is not None:
            schema['items'] = schema_of(self.items) | ({'enum': list(self.item_enum)} if self.item_enum else {})
        if self.default is not None:
            schema['default'] = self.default
        return schema


def schema_of(kind: ArgumentType) -> dict[str, Any]:
    """The JSON schema of a type. Some providers refuse an array that says nothing about its items."""
    return {'type': kind} | ({'items': {}} if kind == 'array' else {})


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """A tool that a skill declares in its frontmatter: a script with typed arguments."""

    name: str
    """What the skill calls it; the model sees it behind the skill's name."""

    description: str
    """What it does, for the model."""

    script: str
    """The file it runs, below the skill's folder."""

    arguments: tuple[ToolArgument, ...] = ()
    """What it takes, in the order the script gets it."""

    passing: Passing = 'positional'
    """How the script gets it."""

    timeout: float | None = None
    """Seconds the script may run; `None` for what its executor allows."""

    requires_approval: bool = False
    """Whether a person has to approve each call."""


class _Bad(Exception):
    """Why a declared tool cannot be made."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_tools(value: dict[str, Value], *, skill: str) -> tuple[tuple[ToolSpec, ...], list[Finding]]:
    """Read the tools that a skill declares. One that cannot be made is left out with a finding.

    Args:
        value: The mapping under `tools`.
        skill: The name of the skill.
    """
    tools: dict[str, ToolSpec] = {}
    findings: list[Finding] = []
    for key, entry in list(value.items())[:MAX_TOOLS]:
        try:
            tool = _tool(key, entry)
            if tool.name in tools:
                raise _Bad('tool-name-clash', f'another tool is called {tool.name!r} already')
            name = tool_name(skill, tool.name)
            if len(name) > MAX_TOOL_NAME_LENGTH:
                raise _Bad('tool-name-too-long', f'{name!r} has more than {MAX_TOOL_NAME_LENGTH} characters')
        except _Bad as bad:
            findings.append(Finding(bad.code, f'The tool {shown(key)} is left out: {bad}.'))
        else:
            tools[tool.name] = tool
    if len(value) > MAX_TOOLS:
        findings.append(Finding('tool-invalid', f'There are {len(value)} tools; the first {MAX_TOOLS} are offered.'))
    return tuple(tools.values()), findings


def restore_tools(value: Any) -> tuple[ToolSpec, ...]:
    """The tools that were written down as JSON."""
    return _tool_specs().validate_python(value) if value else ()


@cache
def _tool_specs() -> TypeAdapter[tuple[ToolSpec, ...]]:
    return TypeAdapter(tuple[ToolSpec, ...])


def _tool(key: str, entry: Value) -> ToolSpec:
    name = key.strip().replace('-', '_')
    if not _TOOL_NAME.fullmatch(name):
        raise _Bad('tool-invalid', 'a name is made of Latin letters, digits and underscores')
    if not isinstance(entry, dict):
        raise _Bad('tool-invalid', "it should be a mapping with 'description', 'script' and 'args'")
    unknown = entry.keys() - {'description', 'script', 'args', 'pass', 'timeout', 'requires_approval'}
    unknown.discard('requires-approval')
    if unknown:
        raise _Bad('tool-invalid', f'it has no option {shown(min(unknown))}')
    approval = entry.get('requires_approval', entry.get('requires-approval', 'false'))
    arguments, passing = _arguments(entry.get('args', {})), _passing(entry.get('pass', 'positional'))
    hidden = next((argument.name for argument in arguments if argument.name.startswith('_')), None)
    if passing == 'flags' and hidden is not None:
        raise _Bad('tool-invalid', f'{hidden!r} cannot be the name of a flag')
    return ToolSpec(
        name=name,
        description=_text(entry, 'description') or f'Runs {_text(entry, "script")}.',
        script=_script(_text(entry, 'script')),
        arguments=arguments,
        passing=passing,
        timeout=_timeout(entry.get('timeout')),
        requires_approval=_flag(approval, 'requires_approval'),
    )


def _text(entry: dict[str, Value], key: str) -> str:
    value = entry.get(key, '')
    if not isinstance(value, str):
        raise _Bad('tool-invalid', f'its {key!r} should be text')
    return value.strip()


def _script(path: str) -> str:
    if not path:
        raise _Bad('tool-invalid', "it has no 'script'")
    steps = path.removeprefix('./').split('/')
    if any(step in ('', '.', '..') for step in steps) or '\\' in path or ':' in path:
        raise _Bad('tool-script-outside', f"{shown(path)} is not a path below the skill's folder")
    return '/'.join(steps)


def _passing(value: Value) -> Passing:
    for known in get_args(Passing):
        if value == known:
            return known
    raise _Bad('tool-invalid', f"'pass' is one of {', '.join(map(repr, get_args(Passing)))}")


def _timeout(value: Value | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise _Bad('tool-invalid', "its 'timeout' should be a number of seconds")
    return seconds


def _flag(value: Value, what: str) -> bool:
    flag = _FLAGS.get(value.strip().lower()) if isinstance(value, str) else None
    if flag is None:
        raise _Bad('tool-invalid', f"{what!r} should be 'true' or 'false'")
    return flag


# --- Arguments ----------------------------------------------------------------------------------------------------


def _arguments(value: Value) -> tuple[ToolArgument, ...]:
    if value == '':
        return ()
    if not isinstance(value, dict):
        raise _Bad('tool-invalid', "its 'args' should be a mapping of names to types")
    return tuple(_argument(name, entry) for name, entry in value.items())


def _argument(name: str, entry: Value) -> ToolArgument:
    if not _ARGUMENT_NAME.fullmatch(name):
        raise _Bad('tool-invalid', f'{shown(name)} cannot be the name of an argument')
    if isinstance(entry, str):
        return ToolArgument(name=name, type=_type(entry, name))
    if not isinstance(entry, dict):
        raise _Bad('tool-invalid', f'the argument {name!r} should be a type or a mapping')
    unknown = entry.keys() - {'type', 'description', 'enum', 'default', 'required', 'items'}
    if unknown:
        raise _Bad('tool-invalid', f'the argument {name!r} has no option {shown(min(unknown))}')
    kind = _type(entry.get('type', 'string'), name)
    items = entry.get('items') if kind == 'array' else None
    item_options = items if isinstance(items, dict) else {} if items is None else {'type': items}
    item_kind = _type(item_options.get('type', 'string'), name) if item_options else None
    item_enum = _enum(item_options.get('enum'), item_kind, name)
    enum = _enum(entry.get('enum'), kind, name)
    given = entry.get('default')
    default = None if given is None else _default(given, kind, item_kind, name)
    allowed = item_enum or enum
    if default is not None and allowed and not set(default if kind == 'array' else [default]) <= set(allowed):
        raise _Bad('tool-invalid', f"the default of {name!r} is not in its 'enum'")
    return ToolArgument(
        name=name,
        type=kind,
        description=' '.join(_text(entry, 'description').split()) or None,
        enum=enum,
        default=default,
        required=_flag(entry.get('required', 'true' if default is None else 'false'), 'required'),
        items=item_kind,
        item_enum=item_enum,
    )


def _type(value: Value, name: str) -> ArgumentType:
    kind = _TYPES.get(value.strip().lower()) if isinstance(value, str) else None
    if kind is None:
        types = ', '.join(get_args(ArgumentType))
        raise _Bad('tool-type-unknown', f'the argument {name!r} has a type that is none of {types}')
    return kind


def _enum(value: Value | None, kind: ArgumentType | None, name: str) -> tuple[Any, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not value or kind in (None, 'array', 'object'):
        raise _Bad('tool-invalid', f"the 'enum' of {name!r} should be a list of texts or numbers")
    return tuple(_scalar(item, kind, name) for item in value)


def _default(value: Value, kind: ArgumentType, items: ArgumentType | None, name: str) -> Any:
    if kind == 'array' and isinstance(value, list):
        return [item if items in (None, 'array', 'object') else _scalar(item, items, name) for item in value]
    if kind == 'object' and isinstance(value, dict):
        return value
    return _scalar(value, kind, name)


def _scalar(value: Value, kind: ArgumentType, name: str) -> Any:
    """A value of the frontmatter, where all is text, as what it is meant to be."""
    read = _READERS.get(kind)
    try:
        if read is not None and isinstance(value, str):
            return read(value)
    except (KeyError, ValueError):
        pass
    raise _Bad('tool-invalid', f'a value of {name!r} is no {kind}')


def _number(value: str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


_READERS: dict[ArgumentType, Callable[[str], Any]] = {
    'string': str,
    'integer': int,
    'number': _number,
    'boolean': lambda value: _FLAGS[value.strip().lower()],
}
