"""Functions as typed tools: their options, the decorators of a skill, and the marks for `tools.py` and for classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypedDict, TypeVar, cast, overload

from pydantic.json_schema import GenerateJsonSchema
from pydantic_ai.tools import ArgsValidatorFunc, DocstringFormat, RunContext, Tool, ToolPrepareFunc
from typing_extensions import Unpack

from .functions import DepsT

__all__ = (
    'FunctionMarkOptions',
    'Mark',
    'PlainToolDecorator',
    'ToolDecorator',
    'ToolOptions',
    'make_tool',
    'mark_of',
    'resource',
    'script',
    'tool',
)

P = ParamSpec('P')
R = TypeVar('R')
FunctionT = TypeVar('FunctionT', bound=Callable[..., Any])

_MARK = '__skill_mark__'


class ToolOptions(TypedDict, total=False):
    """How a function is offered as a tool; what each means is told by `pydantic_ai.Tool`."""

    name: str | None
    """What the skill calls it; the function's name when not given. The model sees it behind the skill's name."""

    description: str | None
    """What it does; the function's docstring when not given."""

    max_retries: int | None
    """How often the model may try again when the function raises `ModelRetry`."""

    prepare: ToolPrepareFunc[Any] | None
    """Changes or leaves out the tool before each request."""

    args_validator: ArgsValidatorFunc[Any, ...] | None
    """Checks arguments beyond their types."""

    docstring_format: DocstringFormat
    """How parameters are described in the docstring."""

    require_parameter_descriptions: bool
    """Whether a parameter without a description is an error."""

    schema_generator: type[GenerateJsonSchema]
    """What makes the JSON schema of the arguments."""

    strict: bool | None
    """Whether the provider holds the model to the schema."""

    sequential: bool
    """Whether no other tool runs at the same time."""

    requires_approval: bool
    """Whether a person approves each call."""

    metadata: dict[str, Any] | None
    """Anything else, not for the model."""

    timeout: float | None
    """Seconds after which a call is given up."""

    include_return_schema: bool | None
    """Whether the model is told the type of the result."""


class FunctionMarkOptions(TypedDict, total=False):
    """How a method is offered as a resource or a script."""

    name: str | None
    """What the model calls it; the method's name when not given."""

    description: str | None
    """What it does; the method's docstring when not given."""

    docstring_format: DocstringFormat
    """How parameters are described in the docstring."""

    schema_generator: type[GenerateJsonSchema]
    """What makes the JSON schema of the arguments."""


@dataclass(frozen=True)
class Mark:
    """What a marked function is to a skill."""

    kind: Literal['tool', 'resource', 'script']
    """What it is."""

    options: dict[str, Any]
    """How it is offered."""


def mark_of(function: object) -> Mark | None:
    """The mark on a function, if it has one."""
    mark = getattr(function, _MARK, None)
    return mark if isinstance(mark, Mark) else None


def make_tool(function: Callable[..., Any], options: ToolOptions, *, takes_ctx: bool | None = None) -> Tool[Any]:
    """The tool that a function is under these options."""
    return Tool[Any](function, takes_ctx=takes_ctx, **options)


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
        **options: `name`, `description`, `docstring_format` and `schema_generator`.
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
        **options: `name`, `description`, `docstring_format` and `schema_generator`.
    """
    return _mark('script', function, options)


def _mark(kind: Literal['tool', 'resource', 'script'], function: Any, options: Any) -> Any:
    def mark(marked: Any) -> Any:
        setattr(marked, _MARK, Mark(kind, dict(options)))
        return marked

    return mark if function is None else mark(function)


@dataclass(frozen=True)
class ToolDecorator(Generic[DepsT]):
    """Adds a function that takes a `RunContext` to a skill as a typed tool, used bare or with options."""

    add: Callable[[Tool[Any]], None]
    """What takes the tool in."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[RunContext[DepsT], P], R], /
    ) -> Callable[Concatenate[RunContext[DepsT], P], R]: ...

    @overload
    def __call__(
        self, /, **options: Unpack[ToolOptions]
    ) -> Callable[[Callable[Concatenate[RunContext[DepsT], P], R]], Callable[Concatenate[RunContext[DepsT], P], R]]: ...

    def __call__(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Add `function`, or remember the options for the function that follows.

        Args:
            function: The function, sync or async.
            **options: The fields of `ToolOptions`.
        """
        return _adding(self.add, function, options, takes_ctx=True)


@dataclass(frozen=True)
class PlainToolDecorator:
    """Adds a function that takes no `RunContext` to a skill as a typed tool, used bare or with options."""

    add: Callable[[Tool[Any]], None]
    """What takes the tool in."""

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def __call__(self, /, **options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def __call__(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Add `function`, or remember the options for the function that follows.

        Args:
            function: The function, sync or async.
            **options: The fields of `ToolOptions`.
        """
        return _adding(self.add, function, options, takes_ctx=False)


def _adding(add: Callable[[Tool[Any]], None], function: Any, options: ToolOptions, *, takes_ctx: bool) -> Any:
    def adding(added: Callable[..., Any]) -> Callable[..., Any]:
        add(make_tool(added, options, takes_ctx=takes_ctx))
        return added

    return adding if function is None else adding(cast(Callable[..., Any], function))
