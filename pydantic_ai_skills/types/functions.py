"""Python functions as resources and scripts: schemas, the decorator, and calls with the model's arguments."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import (
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    cast,
    get_type_hints,
    overload,
)

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

_CALLS = '__skill_calls__'

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

    schema_generator: type[GenerateJsonSchema] | None = None
    """What makes the JSON schema of the arguments; pydantic-ai's own when not given."""

    def read_schema(self, function: Callable[..., Any]) -> FunctionSchema:
        """The schema of `function` under these options."""
        function = with_name(function)
        tool = Tool[Any](
            function,
            takes_ctx=self._takes_ctx(function),
            docstring_format=self.docstring_format,
            schema_generator=self.schema_generator or GenerateToolJsonSchema,
        )
        return cast(FunctionSchema, tool.function_schema)

    def _takes_ctx(self, function: Callable[..., Any]) -> bool | None:
        """Whether it takes a `RunContext`. A first parameter `ctx` without annotation counts as one."""
        if self.takes_ctx is not None:
            return self.takes_ctx
        first = next(iter(inspect.signature(function).parameters.values()), None)
        return True if first is not None and first.name == 'ctx' and first.annotation is first.empty else None


def schema_of(
    function: Callable[..., Any], known: FunctionSchema | None = None, takes_ctx: bool | None = None
) -> FunctionSchema:
    """The schema of a function: the `known` one, unless that was read from another function."""
    if known is None:
        return FunctionOptions(takes_ctx=takes_ctx).read_schema(function)
    # What the other function took says nothing about this one.
    read_from: Any = getattr(known, 'function', function)
    is_own = getattr(read_from, _CALLS, read_from) == function
    return known if is_own else FunctionOptions().read_schema(function)


def name_of(function: Callable[..., object]) -> str:
    """The name of a function; for a partial, of what it calls; for a callable object, of its class."""
    called = called_by(function)
    return getattr(called, '__name__', type(called).__name__)


def called_by(function: Any) -> Any:
    """What a partial calls in the end; any other function itself."""
    while isinstance(function, partial):
        function = cast('partial[Any]', function).func
    return function


def with_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, or a named one that calls it: pydantic-ai reads schemas only from functions with names."""
    if hasattr(function, '__name__'):
        return function
    called = called_by(function)
    described = called if hasattr(called, '__name__') else type(called).__call__

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    named = call_async if inspect.iscoroutinefunction(described) else call
    named.__name__ = named.__qualname__ = name_of(function)
    named.__doc__ = described.__doc__ or called.__doc__
    named.__annotations__ = get_type_hints(described, include_extras=True)
    vars(named).update({'__signature__': inspect.signature(function), _CALLS: function})
    return named


class FunctionMarkOptions(TypedDict, total=False):
    """The fields of `FunctionOptions` as keyword arguments."""

    name: str | None
    description: str | None
    takes_ctx: bool | None
    docstring_format: DocstringFormat
    schema_generator: type[GenerateJsonSchema] | None


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
    def __call__(self, /, *, func: Callable[P, R], **options: Unpack[FunctionMarkOptions]) -> Callable[P, R]: ...

    @overload
    def __call__(self, /, *, func: None = None, **options: Unpack[FunctionMarkOptions]) -> FunctionDecorator[DepsT]: ...

    def __call__(self, function: Any = None, /, *, func: Any = None, **options: Unpack[FunctionMarkOptions]) -> Any:
        function = func if function is None else function
        chosen = FunctionOptions(**options) if options else self._options
        if function is None:
            return FunctionDecorator[DepsT](self._add, chosen)
        self._add(function, chosen)
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

    Exceptions meant for pydantic-ai pass unchanged. An iterator is replaced by a list of its items: its
    first reader would leave nothing for the model.
    """
    try:
        return cast(R, await items_of(await call))
    except FRAMEWORK_ERRORS:
        raise
    except (Exception, SystemExit) as failure:  # the border between a skill's code and the run
        raise error(await log_failure(failure, what)) from failure


async def log_failure(failure: BaseException, what: str) -> str:
    """Log a failure in code outside this package; return the message for the model."""
    # A log handler reads source files for the traceback, so this runs off the event loop.
    await anyio.to_thread.run_sync(partial(logger.error, '%s failed', what, exc_info=failure))
    return f'The {what} failed with {type(failure).__name__}: {failure}'


async def items_of(value: object) -> object:
    """The first items of an iterator as a list, with a note if there are more; any other value as it is."""
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
    """Say, for the model, which arguments are wrong and which the function takes."""
    wrong = '; '.join(
        f'{".".join(str(step) for step in detail["loc"]) or "arguments"}: {detail["msg"]}'
        for detail in misfit.errors(include_url=False, include_context=False, include_input=False)
    )
    properties: dict[str, dict[str, Any]] = json_schema.get('properties', {})
    required = json_schema.get('required', [])
    parameters = ', '.join(
        f'{name} ({_type_in(schema, json_schema.get("$defs", {}))}{"" if name in required else ", optional"})'
        for name, schema in properties.items()
    )
    return f'{wrong}. It takes: {parameters or "no arguments"}.'


def _type_in(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """What a JSON schema takes, in a word or two: `string`, `integer or null`, or the fields of a model."""
    if '$ref' in schema:
        referred = defs.get(str(schema['$ref']).rpartition('/')[2], {})
        fields = ', '.join(referred.get('properties', ()))
        return f'object with {fields}' if fields else str(referred.get('type', 'any'))
    kinds = [_type_in(each, defs) for each in schema.get('anyOf', ())]
    return ' or '.join(dict.fromkeys(kinds)) or str(schema.get('type', 'any'))
