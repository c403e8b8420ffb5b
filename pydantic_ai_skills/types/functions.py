"""Python functions as resources and scripts: schemas, the decorator, and calls with the model's arguments."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypedDict, TypeVar, cast, overload

import anyio.to_thread
from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    RunCancelled,
    ToolFailed,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.tools import DocstringFormat, GenerateToolJsonSchema, RunContext, Tool
from typing_extensions import TypeVar as TypeVarWithDefault
from typing_extensions import Unpack, deprecated

from pydantic_ai_skills.exceptions import SkillError

logger = logging.getLogger('pydantic_ai_skills')

DepsT = TypeVarWithDefault('DepsT', default=Any, contravariant=True)
"""The type of the agent's dependencies; give it to have `RunContext[...]` checked in the functions of a skill."""

P = ParamSpec('P')
R = TypeVar('R')

MAX_ITEMS = 1000
"""How many items of a returned iterator are sent to the model."""

FRAMEWORK_ERRORS = (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    RunCancelled,
    SkillError,
    ToolFailed,
    UsageLimitExceeded,
    UserError,
)
"""Exceptions raised on purpose, for pydantic-ai or this package; any other is a failure of the function."""


class FunctionSchema(Protocol):
    """What a function takes: the public part of `pydantic_ai.Tool(function).function_schema`."""

    description: str | None
    """The function's docstring, without its parameters."""

    json_schema: dict[str, Any]
    """The JSON schema of its arguments."""

    takes_ctx: bool
    """Whether its first argument is a `RunContext`."""

    validator: Any
    """Checks arguments and turns them into the types the function declares."""

    async def call(self, args_dict: dict[str, Any], ctx: RunContext[Any]) -> Any:
        """Call the function with validated arguments, in a thread when it is not async."""
        ...


class FunctionOptions(NamedTuple):
    """How a decorated function is offered to the model."""

    name: str | None = None
    """What the model calls it; the function's name when not given."""

    description: str | None = None
    """What it does; the function's docstring when not given."""

    takes_ctx: bool | None = None
    """Whether its first argument is a `RunContext`; read from the signature when not given."""

    docstring_format: DocstringFormat = 'auto'
    """How parameters are described in the docstring."""

    schema_generator: type[GenerateJsonSchema] = GenerateToolJsonSchema
    """What makes the JSON schema of the arguments."""

    def read_schema(self, function: Callable[..., Any]) -> FunctionSchema:
        """The schema of `function` under these options."""
        tool = Tool[Any](
            function,
            takes_ctx=self.takes_ctx,
            docstring_format=self.docstring_format,
            schema_generator=self.schema_generator,
        )
        return cast(FunctionSchema, tool.function_schema)


class FunctionMarkOptions(TypedDict, total=False):
    """The fields of `FunctionOptions` as keyword arguments."""

    name: str | None
    description: str | None
    takes_ctx: bool | None
    docstring_format: DocstringFormat
    schema_generator: type[GenerateJsonSchema]


class FunctionDecorator(Generic[DepsT]):
    """Adds a function to a skill, used bare (`@skill.script`) or with options (`@skill.script(name='…')`)."""

    def __init__(
        self, add: Callable[[Callable[..., Any], FunctionOptions], None], options: FunctionOptions | None = None
    ) -> None:
        self._add = add
        self._options = options or FunctionOptions()

    @overload
    def __call__(
        self, function: Callable[Concatenate[RunContext[DepsT], P], R], /
    ) -> Callable[Concatenate[RunContext[DepsT], P], R]: ...

    # The next overload takes functions of any signature, so this one has to catch a `RunContext` of the wrong type: a
    # type checker reports that it is deprecated and that its result has no type.
    @overload
    @deprecated('The function takes a RunContext of other dependencies than this skill has.')
    def __call__(  # pyright: ignore[reportUnknownParameterType] - on purpose
        self, function: Callable[Concatenate[RunContext[Any], P], Any], /
    ): ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def __call__(self, /, **options: Unpack[FunctionMarkOptions]) -> FunctionDecorator[DepsT]: ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Unpack[FunctionMarkOptions]) -> Any:
        if function is None:
            return FunctionDecorator[DepsT](self._add, FunctionOptions(**options))
        self._add(function, self._options)
        return function


async def call_function(
    schema: FunctionSchema, ctx: RunContext[Any] | None, args: object, *, what: str, error: type[SkillError]
) -> Any:
    """Validate the model's arguments, then call the function with them. Raises `error` if either fails."""
    from pydantic_ai_skills.execution.arguments import as_mapping  # not needed before the first call

    try:
        arguments = schema.validator.validate_python(as_mapping(args))
    except ValidationError as misfit:
        raise error(f'The arguments for {what} do not fit. {describe_misfit(misfit, schema.json_schema)}') from misfit
    except ValueError as misfit:
        raise error(f'The arguments for {what} do not fit: {misfit}') from misfit
    return await guarded(schema.call(arguments, cast(RunContext[Any], ctx)), what=what, error=error)


async def guarded(call: Awaitable[R], *, what: str, error: type[Exception]) -> R:
    """Await a call of a skill's code; if it fails, log why and raise `error` for the model.

    Exceptions meant for pydantic-ai pass unchanged. An iterator is replaced by a list of its items: whoever looked at
    it first would leave nothing for the model.
    """
    try:
        return cast(R, await items_of(await call))
    except FRAMEWORK_ERRORS:
        raise
    except (Exception, SystemExit) as failure:  # the border between a skill's code and the run
        raise error(await log_failure(failure, what)) from failure


async def log_failure(failure: BaseException, what: str) -> str:
    """Log what went wrong in code of others; return the message for the model."""
    # A handler reads source files for the traceback, so not on the event loop.
    await anyio.to_thread.run_sync(partial(logger.error, '%s failed', what, exc_info=failure))
    return f'The {what} failed with {type(failure).__name__}: {failure}'


async def items_of(value: object) -> object:
    """The items of an iterator as a list, of which the model is sent the first; any other value as it is."""
    if isinstance(value, AsyncIterator):
        items: list[object] = []
        async for item in cast(AsyncIterator[object], value):
            items.append(item)
            if len(items) > MAX_ITEMS:
                break
    elif isinstance(value, Iterator):
        items = await anyio.to_thread.run_sync(list, islice(cast(Iterator[object], value), MAX_ITEMS + 1))
    else:
        return value
    return items if len(items) <= MAX_ITEMS else [*items[:MAX_ITEMS], f'(Only the first {MAX_ITEMS:,} items.)']


def describe_misfit(misfit: ValidationError, json_schema: dict[str, Any]) -> str:
    """Tell the model which arguments are wrong and which the function takes."""
    wrong = '; '.join(
        f'{".".join(str(step) for step in detail["loc"]) or "arguments"}: {detail["msg"]}'
        for detail in misfit.errors(include_url=False, include_context=False, include_input=False)
    )
    properties: dict[str, dict[str, Any]] = json_schema.get('properties', {})
    required = json_schema.get('required', [])
    parameters = ', '.join(
        f'{name} ({schema.get("type", "any")}{"" if name in required else ", optional"})'
        for name, schema in properties.items()
    )
    return f'{wrong}. It takes: {parameters or "no arguments"}.'
