"""Python functions as resources and scripts: their schemas, their decorator, and calls with a model's arguments."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

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
from typing_extensions import deprecated

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.execution.arguments import as_mapping

__all__ = (
    'DepsT',
    'FunctionDecorator',
    'FunctionOptions',
    'FunctionSchema',
    'call_function',
    'describe_misfit',
    'guarded',
)

logger = logging.getLogger('pydantic_ai_skills')

DepsT = TypeVarWithDefault('DepsT', default=Any, contravariant=True)
"""The type of the agent's dependencies; give it to have `RunContext[...]` checked in the functions of a skill."""

P = ParamSpec('P')
R = TypeVar('R')

MAX_ITEMS = 1000
"""How many items of an iterator that a function returns are told."""

_FRAMEWORK_ERRORS = (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    RunCancelled,
    SkillError,
    ToolFailed,
    UsageLimitExceeded,
    UserError,
)
"""What a function raises to speak to pydantic-ai or to this package; everything else is its own failure.

Other errors of agents and models come from an agent that the function has asked itself.
"""


class FunctionSchema(Protocol):
    """What a function takes, as `pydantic_ai.Tool(function).function_schema` tells it."""

    description: str | None
    """The function's docstring, without its parameters."""

    json_schema: dict[str, Any]
    """The JSON schema of its arguments."""

    takes_ctx: bool
    """Whether its first argument is a `RunContext`."""

    validator: Any
    """Checks arguments and turns them into the types the function declares."""

    async def call(self, args_dict: dict[str, Any], ctx: RunContext[Any]) -> Any:
        """Call the function with checked arguments, in a thread when it is not async."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FunctionOptions:
    """How a decorated function is offered to the model."""

    name: str | None = None
    """What the model calls it; the function's name when not given."""

    description: str | None = None
    """What it does; the function's docstring when not given."""

    takes_ctx: bool | None = None
    """Whether its first argument is a `RunContext`; found out from the signature when not given."""

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


class FunctionDecorator(Generic[DepsT]):
    """Adds a function to a skill, used bare (`@skill.script`) or with options (`@skill.script(name='…')`)."""

    def __init__(
        self, add: Callable[[Callable[..., Any], FunctionOptions], None], options: FunctionOptions | None = None
    ) -> None:
        """Remember what takes the function in, and how it is offered."""
        self._add = add
        self._options = options or FunctionOptions()

    @overload
    def __call__(
        self, function: Callable[Concatenate[RunContext[DepsT], P], R], /
    ) -> Callable[Concatenate[RunContext[DepsT], P], R]: ...

    # A plain function of any signature is welcome, so one with a `RunContext` of the wrong type would pass as such.
    # This overload catches it: a type checker reports that it is deprecated and that its result has no type.
    @overload
    @deprecated('The function takes a RunContext of other dependencies than this skill has.')
    def __call__(  # pyright: ignore[reportUnknownParameterType] - on purpose
        self, function: Callable[Concatenate[RunContext[Any], P], Any], /
    ): ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def __call__(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        takes_ctx: bool | None = None,
        docstring_format: DocstringFormat = 'auto',
        schema_generator: type[GenerateJsonSchema] = GenerateToolJsonSchema,
    ) -> FunctionDecorator[DepsT]: ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Add `function`, or remember the options for the function that follows.

        Args:
            function: The function to add, sync or async, with or without a `RunContext` as its first argument.
            **options: The fields of `FunctionOptions`.
        """
        if function is None:
            return FunctionDecorator[DepsT](self._add, FunctionOptions(**options))
        self._add(function, self._options)
        return function


async def call_function(
    schema: FunctionSchema, ctx: RunContext[Any] | None, args: object, *, what: str, error: type[SkillError]
) -> Any:
    """Check a model's arguments, then call the function with them.

    Raises:
        SkillError: Of the given type, with a message the model can act on, when the arguments do not fit or the
            function fails.
    """
    try:
        arguments = schema.validator.validate_python(as_mapping(args))
    except ValidationError as misfit:
        raise error(f'The arguments for {what} do not fit. {describe_misfit(misfit, schema.json_schema)}') from misfit
    except ValueError as misfit:
        raise error(f'The arguments for {what} do not fit: {misfit}') from misfit
    return await guarded(schema.call(arguments, cast(RunContext[Any], ctx)), what=what, error=error)


async def guarded(call: Awaitable[R], *, what: str, error: type[Exception]) -> R:
    """What a call of a skill's code gives. What goes wrong in it is logged, and raised as an error for the model.

    Of an iterator it gives the items: whoever looks at it first would leave nothing for the model.

    Raises:
        Exception: Of the given type, with a message the model can act on. What speaks to pydantic-ai passes as it is.
    """
    try:
        return cast(R, await _items_of(await call))
    except _FRAMEWORK_ERRORS:
        raise
    except (Exception, SystemExit) as failure:  # the border between a skill's code and the run
        # A handler reads source files for the traceback, so not on the event loop.
        await anyio.to_thread.run_sync(partial(logger.error, '%s failed', what, exc_info=failure))
        raise error(f'The {what} failed with {type(failure).__name__}: {failure}') from failure


async def _items_of(value: object) -> object:
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
    """Say which arguments are wrong and which would be right, in words a model can act on."""
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
