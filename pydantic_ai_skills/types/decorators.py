"""Decorators: `@skill.tool` for typed tools; marks for the functions of a `tools.py` and the methods of a class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypedDict, TypeVar, cast, overload

from pydantic.json_schema import GenerateJsonSchema
from pydantic_ai.tools import ArgsValidatorFunc, DocstringFormat, RunContext, Tool, ToolPrepareFunc
from typing_extensions import Unpack

from .functions import DepsT, FunctionMarkOptions, with_name

P = ParamSpec('P')
R = TypeVar('R')
FunctionT = TypeVar('FunctionT', bound=Callable[..., Any])

_MARK = '__skill_mark__'


class ToolOptions(TypedDict, total=False):
    """How a function is offered as a tool: options of `pydantic_ai.Tool`, which explains each of them.

    `name` is what the skill calls the tool; the model sees it after the skill's name.
    """

    name: str | None
    description: str | None
    max_retries: int | None
    prepare: ToolPrepareFunc[Any] | None
    args_validator: ArgsValidatorFunc[Any, ...] | None
    docstring_format: DocstringFormat
    require_parameter_descriptions: bool
    schema_generator: type[GenerateJsonSchema]
    strict: bool | None
    sequential: bool
    requires_approval: bool
    metadata: dict[str, Any] | None
    timeout: float | None
    include_return_schema: bool | None


@dataclass(frozen=True)
class Mark:
    """What a marked function is to its skill, and how it is offered."""

    kind: Literal['tool', 'resource', 'script']
    options: dict[str, Any]


def mark_of(function: object) -> Mark | None:
    """The mark on a function, if it has one."""
    mark = getattr(function, _MARK, None)
    return mark if isinstance(mark, Mark) else None


def make_tool(function: Callable[..., Any], options: ToolOptions, *, takes_ctx: bool | None = None) -> Tool[Any]:
    """Make a function a tool."""
    return Tool[Any](with_name(function), takes_ctx=takes_ctx, **options)


@overload
def tool(function: FunctionT, /) -> FunctionT: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[FunctionT], FunctionT]: ...


def tool(function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Mark a function of a skill's `tools.py`, or a method of a `SkillClass`, as a typed tool of the skill.

    Args:
        function: The function, sync or async, with or without a `RunContext` as its first argument.
        **options: The fields of `ToolOptions`.
    """
    return _mark('tool', function, options)


@overload
def resource(function: FunctionT, /) -> FunctionT: ...


@overload
def resource(**options: Unpack[FunctionMarkOptions]) -> Callable[[FunctionT], FunctionT]: ...


def resource(function: Any = None, /, **options: Unpack[FunctionMarkOptions]) -> Any:
    """Mark a method of a `SkillClass` as a resource: what it returns can be read.

    Args:
        function: The method.
        **options: The fields of `FunctionOptions`.
    """
    return _mark('resource', function, options)


@overload
def script(function: FunctionT, /) -> FunctionT: ...


@overload
def script(**options: Unpack[FunctionMarkOptions]) -> Callable[[FunctionT], FunctionT]: ...


def script(function: Any = None, /, **options: Unpack[FunctionMarkOptions]) -> Any:
    """Mark a method of a `SkillClass` as a script, which can be run.

    Args:
        function: The method.
        **options: The fields of `FunctionOptions`.
    """
    return _mark('script', function, options)


def _mark(kind: Literal['tool', 'resource', 'script'], function: Any, options: Any) -> Any:
    def mark(marked: Any) -> Any:
        setattr(marked, _MARK, Mark(kind, dict(options)))
        return marked

    return mark if function is None else mark(function)


@dataclass(frozen=True)
class ToolDecorator(Generic[DepsT]):
    """Adds a function that takes a `RunContext` to a skill as a typed tool; used bare or with `ToolOptions`."""

    add: Callable[[Tool[Any]], None]

    @overload
    def __call__(
        self, function: Callable[Concatenate[RunContext[DepsT], P], R], /
    ) -> Callable[Concatenate[RunContext[DepsT], P], R]: ...

    @overload
    def __call__(
        self, /, **options: Unpack[ToolOptions]
    ) -> Callable[[Callable[Concatenate[RunContext[DepsT], P], R]], Callable[Concatenate[RunContext[DepsT], P], R]]: ...

    def __call__(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        return _adding(self.add, function, options, takes_ctx=True)


@dataclass(frozen=True)
class PlainToolDecorator:
    """Adds a function that takes no `RunContext` to a skill as a typed tool; used bare or with `ToolOptions`."""

    add: Callable[[Tool[Any]], None]

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def __call__(self, /, **options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def __call__(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        return _adding(self.add, function, options, takes_ctx=False)


def _adding(add: Callable[[Tool[Any]], None], function: Any, options: ToolOptions, *, takes_ctx: bool) -> Any:
    def adding(added: Callable[..., Any]) -> Callable[..., Any]:
        add(make_tool(added, options, takes_ctx=takes_ctx))
        return added

    return adding if function is None else adding(cast(Callable[..., Any], function))
