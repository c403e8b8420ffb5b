"""Tools that a skill declares in its frontmatter: scripts with typed arguments."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import BeforeValidator, ConfigDict, WithJsonSchema
from pydantic_ai.tools import RunContext, Tool
from typing_extensions import TypedDict

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.arguments import STDIN_KEY, is_read_as_flag
from pydantic_ai_skills.parsing.tool_specs import ToolArgument, ToolSpec, schema_of
from pydantic_ai_skills.toolset.results import clean
from pydantic_ai_skills.types.script import SkillScript
from pydantic_ai_skills.types.skill import Skill


def _from_json(value: object) -> object:
    """The value of a text that is JSON; any other value unchanged."""
    if isinstance(value, str):
        with suppress(ValueError):
            return json.loads(value)
    return value


_PYTHON_TYPES: dict[str, Any] = {
    'string': str,
    'integer': int,
    'number': float,
    'boolean': bool,
    'array': list[Any],
    'object': Annotated[dict[str, Any], BeforeValidator(_from_json)],
}


RunScript = Callable[..., Awaitable[Any]]
"""Runs a script as policy and approval allow, and returns the answer for the model: see `SkillActions.run`."""


def declared_tool(spec: ToolSpec, skill: Skill[Any], script: SkillScript, run: RunScript) -> Tool[Any]:
    """Make the tool that a skill declares in its frontmatter, for the script it names."""

    async def call(ctx: RunContext[Any], args: dict[str, Any]) -> Any:
        return await run(ctx, skill, script, script_arguments(spec, args), ask=spec.requires_approval)

    call.__annotations__ = {'ctx': RunContext[Any], 'args': _arguments_type(spec, trusted=skill.is_trusted)}
    # Some providers announce a new tool in the system's name, so an untrusted skill's text is kept out of it.
    told = spec.description if skill.is_trusted else f'A tool of the skill {skill.name!r}, which says what it does.'
    return Tool[Any](call, name=spec.name, description=clean(told), takes_ctx=True)


def script_arguments(spec: ToolSpec, given: Mapping[str, Any]) -> Any:
    """Turn the arguments of a call into those of an executor, or raise a `SkillScriptExecutionError`."""
    values = {argument.name: given.get(argument.name) for argument in spec.arguments}
    for argument in spec.arguments:
        if values[argument.name] is None:
            values[argument.name] = argument.default
    if spec.passing == 'json-stdin':
        given_values = {name: value for name, value in values.items() if value is not None}
        return {STDIN_KEY: json.dumps(given_values, ensure_ascii=False)}
    if spec.passing == 'flags':
        return {name: _flag(value) for name, value in values.items()}
    return list(_positional(values))


def _positional(values: Mapping[str, Any]) -> Iterator[str | int | float]:
    missing: str | None = None
    for name, value in values.items():
        if value is None:
            missing = missing or name
            continue
        if missing is not None:
            raise SkillScriptExecutionError(f'{name!r} cannot be given without {missing!r}, which comes before it.')
        for item in cast(list[Any], value) if isinstance(value, list) else [value]:
            single = _single(item)
            if isinstance(single, str) and is_read_as_flag(single):
                raise SkillScriptExecutionError(
                    f'The value of {name!r} begins with a dash, which the script would read as a flag. Write a file as '
                    "'./-name'."
                )
            yield single


def _flag(value: Any) -> Any:
    """The value of a flag, or its values: one for each item of a list."""
    return [_single(item) for item in cast(list[Any], value)] if isinstance(value, list) else _single(value)


def _single(value: Any) -> Any:
    """A value that fits into one argument: mappings, and lists in a list, become JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


# --- The schema ---------------------------------------------------------------------------------------------------


def _arguments_type(spec: ToolSpec, *, trusted: bool) -> Any:
    """The type that pydantic checks the arguments against."""
    fields = {argument.name: _field(argument, trusted=trusted) for argument in spec.arguments}
    arguments: Any = TypedDict(spec.name, fields)  # pyright: ignore[reportArgumentType] - made of data
    arguments.__pydantic_config__ = ConfigDict(extra='forbid')
    return arguments


def _field(argument: ToolArgument, *, trusted: bool) -> Any:
    kind: Any = Literal[argument.enum] if argument.enum else _PYTHON_TYPES[argument.type]
    if argument.items is not None:
        kind = list[Literal[argument.item_enum] if argument.item_enum else _PYTHON_TYPES[argument.items]]
    schema = _clean(argument.schema()) if trusted else schema_of(argument.type)
    if argument.required:
        return Annotated[kind, WithJsonSchema(schema)]
    # In strict mode, a model has to send a value even for an argument that it leaves out. Others send `null`, too.
    return NotRequired[Annotated[kind | None, WithJsonSchema(_or_null(schema) if argument.default is None else schema)]]


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    about = {key: schema[key] for key in ('description',) if key in schema}
    kind = {key: value for key, value in schema.items() if key not in about}
    return about | {'anyOf': [*kind.get('anyOf', [kind]), {'type': 'null'}]}


def _clean(schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {'description': clean(schema['description'])} if 'description' in schema else schema
