"""The `tools` of a frontmatter → typed tools that run scripts, with a problem for each that cannot be made."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast, get_args

from pydantic import TypeAdapter

from .characters import hidden_characters
from .findings import Finding, Value, read_flag, shown
from .skill_names import MAX_TOOL_NAME_LENGTH, tool_name

MAX_TOOLS = 64
"""How many tools one skill may declare."""

ArgumentType = Literal['string', 'integer', 'number', 'boolean', 'array', 'object']
"""The types an argument may have, as JSON Schema names them."""

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
_TOOL_OPTIONS = frozenset(
    ('description', 'script', 'args', 'pass', 'timeout', 'requires_approval', 'requires-approval')
)
_ARGUMENT_OPTIONS = frozenset(('type', 'description', 'enum', 'default', 'required', 'items'))
_TOOL_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_ARGUMENT_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_.-]{0,63}')


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolArgument:
    """One argument of a declared tool."""

    name: str
    """What the model calls it, and the name of its flag."""

    type: ArgumentType
    """The type of its value."""

    description: str | None = None
    """What it means, for the model."""

    enum: tuple[Any, ...] = ()
    """The values it may have; empty for any."""

    default: Any = None
    """The value the script gets if the model gives none; `None` for no default."""

    required: bool = True
    """Whether the model has to give it."""

    items: ArgumentType | None = None
    """The type of an array's items; `None` for any."""

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
    """The JSON schema of a type.

    In strict mode, providers refuse an array that does not declare its items, and allow an object no keys but those
    declared, so an object may also be given as JSON text.
    """
    if kind == 'array':
        return {'type': 'array', 'items': {'anyOf': [{'type': item} for item in ('string', 'number', 'boolean')]}}
    if kind == 'object':
        return {
            'anyOf': [{'type': 'object', 'additionalProperties': True}, {'type': 'string', 'description': 'As JSON.'}]
        }
    return {'type': kind}


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """A tool that a skill declares in its frontmatter: a script with typed arguments."""

    name: str
    """What the skill calls it; the model sees it after the skill's name."""

    description: str
    """What it does, for the model."""

    script: str
    """The file it runs, below the skill's folder."""

    arguments: tuple[ToolArgument, ...] = ()
    """Its arguments, in the order in which the script gets them."""

    passing: Passing = 'positional'
    """How the script gets the arguments."""

    timeout: float | None = None
    """Seconds the script may run; `None` for what its executor allows."""

    requires_approval: bool = False
    """Whether a person has to approve each call."""


class _Bad(Exception):
    """Why a declared tool cannot be made."""

    def __init__(self, message: str, code: str = 'tool-invalid') -> None:
        super().__init__(message)
        self.code = code


def read_tools(value: dict[str, Value], *, skill: str) -> tuple[tuple[ToolSpec, ...], list[Finding]]:
    """Read the mapping under `tools`. A tool that cannot be made is left out with a finding."""
    tools: dict[str, ToolSpec] = {}
    findings: list[Finding] = []
    for key, entry in list(value.items())[:MAX_TOOLS]:
        try:
            tool = _tool(key, entry)
            if tool.name in tools:
                raise _Bad(f'another tool is called {tool.name!r} already', 'tool-name-clash')
            name = tool_name(skill, tool.name)
            if len(name) > MAX_TOOL_NAME_LENGTH:
                raise _Bad(f'{name!r} has more than {MAX_TOOL_NAME_LENGTH} characters', 'tool-name-too-long')
        except _Bad as bad:
            findings.append(Finding(bad.code, f'The tool {shown(key)} is left out: {bad}.'))
        else:
            tools[tool.name] = tool
    if len(value) > MAX_TOOLS:
        findings.append(Finding('tool-invalid', f'There are {len(value)} tools; the first {MAX_TOOLS} are offered.'))
    return tuple(tools.values()), findings


def restore_tools(value: Any) -> tuple[ToolSpec, ...]:
    """Restore tools from JSON."""
    return _adapter().validate_python(value)


@cache
def _adapter() -> TypeAdapter[tuple[ToolSpec, ...]]:
    return TypeAdapter(tuple[ToolSpec, ...])


def _tool(key: str, entry: Value) -> ToolSpec:
    name = key.strip().replace('-', '_')
    if not _TOOL_NAME.fullmatch(name):
        raise _Bad('a name is made of Latin letters, digits and underscores')
    if not isinstance(entry, dict):
        raise _Bad("it should be a mapping with 'description', 'script' and 'args'")
    _check_options(entry, _TOOL_OPTIONS, 'it')
    script = _text(entry, 'script')
    arguments, passing = _arguments(entry.get('args', '')), _passing(entry.get('pass', 'positional'))
    hidden = next((argument.name for argument in arguments if argument.name.startswith('_')), None)
    if passing == 'flags' and hidden is not None:
        raise _Bad(f'{hidden!r} cannot be the name of a flag')
    approval = entry.get('requires_approval', entry.get('requires-approval', 'false'))
    return ToolSpec(
        name=name,
        description=_text(entry, 'description') or f'Runs {script}.',
        script=_script(script),
        arguments=arguments,
        passing=passing,
        timeout=_timeout(entry.get('timeout')),
        requires_approval=_flag(approval, 'requires_approval'),
    )


def _check_options(entry: dict[str, Value], known: frozenset[str], what: str) -> None:
    unknown = entry.keys() - known
    if unknown:
        raise _Bad(f'{what} has no option {shown(min(unknown))}')


def _text(entry: dict[str, Value], key: str) -> str:
    value = entry.get(key, '')
    if not isinstance(value, str):
        raise _Bad(f'its {key!r} should be text')
    return value.strip()


def _script(path: str) -> str:
    if not path:
        raise _Bad("it has no 'script'")
    steps = path.removeprefix('./').split('/')
    if any(step in ('', '.', '..') for step in steps) or '\\' in path or ':' in path:
        raise _Bad(f"{shown(path)} is not a path below the skill's folder", 'tool-script-outside')
    return '/'.join(steps)


def _passing(value: Value) -> Passing:
    for known in get_args(Passing):
        if value == known:
            return known
    raise _Bad(f"'pass' is one of {', '.join(map(repr, get_args(Passing)))}")


def _timeout(value: Value | None) -> float | None:
    seconds = None if value is None else _scalar(value, 'number')
    if value is not None and (seconds is None or seconds <= 0):
        raise _Bad("its 'timeout' should be a number of seconds")
    return seconds


def _flag(value: Value, what: str) -> bool:
    flag = read_flag(value)
    if flag is None:
        raise _Bad(f"{what!r} should be 'true' or 'false'")
    return flag


# --- Arguments ----------------------------------------------------------------------------------------------------


def _arguments(value: Value) -> tuple[ToolArgument, ...]:
    if value == '':
        return ()
    if not isinstance(value, dict):
        raise _Bad("its 'args' should be a mapping of names to types")
    return tuple(_argument(name, entry) for name, entry in value.items())


def _argument(name: str, entry: Value) -> ToolArgument:
    if not _ARGUMENT_NAME.fullmatch(name):
        raise _Bad(f'{shown(name)} cannot be the name of an argument')
    if isinstance(entry, str):
        entry = {'type': entry}
    if not isinstance(entry, dict):
        raise _Bad(f'the argument {name!r} should be a type or a mapping')
    _check_options(entry, _ARGUMENT_OPTIONS, f'the argument {name!r}')
    kind, enum = _type(entry.get('type', 'string'), name), entry.get('enum')
    items, item_enum = _items(entry.get('items') if kind == 'array' else None, name)
    allowed = () if enum is None else _enum(enum, kind, name)
    default = _default(entry.get('default'), kind, items, name)
    if not _is_allowed(default, item_enum or allowed):
        raise _Bad(f"the default of {name!r} is not in its 'enum'")
    return ToolArgument(
        name=name,
        type=kind,
        description=' '.join(_text(entry, 'description').split()) or None,
        enum=allowed,
        default=default,
        required=_flag(entry.get('required', 'true' if default is None else 'false'), 'required'),
        items=items,
        item_enum=item_enum,
    )


def _type(value: Value, name: str) -> ArgumentType:
    kind = _TYPES.get(value.strip().lower()) if isinstance(value, str) else None
    if kind is None:
        types = ', '.join(get_args(ArgumentType))
        raise _Bad(f'the type of the argument {name!r} is not one of {types}', 'tool-type-unknown')
    return kind


def _items(value: Value | None, name: str) -> tuple[ArgumentType | None, tuple[Any, ...]]:
    """The type of an array's items, and the values they may have."""
    options = value if isinstance(value, dict) else {'type': value} if value is not None else {}
    if not options:
        return None, ()
    kind = _type(options.get('type', 'string'), name)
    return kind, _enum(options['enum'], kind, name) if 'enum' in options else ()


def _enum(value: Value, kind: ArgumentType, name: str) -> tuple[Any, ...]:
    if not isinstance(value, list) or not value or kind in ('array', 'object'):
        raise _Bad(f"the 'enum' of {name!r} should be a list of texts or numbers")
    return tuple(_value(item, kind, name) for item in value)


def _default(value: Value | None, kind: ArgumentType, items: ArgumentType | None, name: str) -> Any:
    if kind == 'array' and isinstance(value, list):
        return [item if items in (None, 'array', 'object') else _value(item, items, name) for item in value]
    if value is None or (kind == 'object' and isinstance(value, dict)):
        return value
    return _value(value, kind, name)


def _is_allowed(default: Any, allowed: tuple[Any, ...]) -> bool:
    values = cast('list[Any]', default) if isinstance(default, list) else [default]
    return default is None or not allowed or all(value in allowed for value in values)


def _value(value: Value, kind: ArgumentType, name: str) -> Any:
    found = _scalar(value, kind)
    if found is None:
        raise _Bad(f'a value of {name!r} is not of type {kind}')
    return found


def _scalar(value: Value, kind: ArgumentType) -> Any:
    """Convert a value of the frontmatter, where everything is text, to its type; `None` if it does not fit."""
    read = _READERS.get(kind)
    try:
        return read(value) if read is not None and isinstance(value, str) else None
    except ValueError:
        return None


def _shown_text(value: str) -> str:
    """A value as it is shown to the model, so that it equals what the model sends back."""
    return hidden_characters().sub('', value)


def _number(value: str) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


_READERS: dict[ArgumentType, Callable[[str], Any]] = {
    'string': _shown_text,
    'integer': int,
    'number': _number,
    'boolean': read_flag,
}
