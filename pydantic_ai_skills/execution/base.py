"""The executor protocol, and executors that wrap a function or another executor."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import anyio
from anyio import to_thread

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript

T = TypeVar('T')


@runtime_checkable
class SkillScriptExecutor(Protocol):
    """Runs a script of a skill. Implement it to run scripts somewhere else."""

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
        """Run the script and return its outcome: a [`ScriptResult`][pydantic_ai_skills.ScriptResult] or any value.

        Args:
            script: The script; `script.path` is its file where it has one.
            args: Arguments as the model sent them: an object, a list, or a string that holds one of them as JSON.
            ctx: The `RunContext` of the agent run, where there is one.

        Raises:
            SkillScriptExecutionError: The script could not be started or did not end by itself.
        """
        ...


class CallableSkillScriptExecutor:
    """Hands scripts to your own function, sync or async.

    ```python
    from pydantic_ai_skills import CallableSkillScriptExecutor


    async def run_remotely(script, args):
        return f'would run {script.name} with {args}'


    executor = CallableSkillScriptExecutor(run_remotely)
    ```

    Args:
        func: Called as `func(script=…, args=…)`, and with `ctx=…` if it has a parameter of that name. A sync function
            runs in a thread, which runs to its end even if the run is cancelled.
    """

    def __init__(self, func: Callable[..., Any]) -> None:
        if not callable(func):
            raise TypeError(f'CallableSkillScriptExecutor takes a function, not {func!r}.')
        self._func = func
        parameters = inspect.signature(func).parameters
        self._takes_ctx = 'ctx' in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        self._is_async = inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(
            getattr(func, '__call__', None)  # noqa: B004 - an object may have an async `__call__`
        )

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
        from .interpreters import refuse_links  # not needed before a file is run

        await to_thread.run_sync(refuse_links, script)
        call = partial(self._func, script=script, args=args, **({'ctx': ctx} if self._takes_ctx else {}))
        result = call() if self._is_async else await to_thread.run_sync(call, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result


def as_executor(given: object) -> SkillScriptExecutor | None:
    """The executor that a developer passed; a plain function becomes a `CallableSkillScriptExecutor`.

    Raises:
        TypeError: It is neither an executor nor a function.
    """
    is_class = isinstance(given, type)
    if given is None or (isinstance(given, SkillScriptExecutor) and not is_class):
        return given
    if callable(given) and not is_class:
        return CallableSkillScriptExecutor(given)
    way_out = f'Call it: {given.__name__}().' if is_class else 'Such as BubblewrapSkillScriptExecutor().'
    raise TypeError(f'script_executor takes an executor or a function, not {given!r}. {way_out}')


def is_sandbox(executor: object) -> bool:
    """Whether an executor declares that it keeps scripts away from this user's files, processes and network."""
    return getattr(executor, 'sandboxed', False) is True


def result_at_once(awaitable: Awaitable[T]) -> T:
    """What an async function of the developer returns, for code that cannot wait.

    Raises:
        RuntimeError: It has to wait for something, or needs an event loop, which this thread may not have.
    """
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as done:
        return done.value
    steps.close()
    raise RuntimeError('It has to wait for something.')


def with_timeout(executor: SkillScriptExecutor, seconds: float) -> SkillScriptExecutor:
    """The executor with the time limit that a skill asks for, capped at the executor's own limit."""
    from .limits import ScriptLimits  # only needed for tools with a limit of their own

    limits = getattr(executor, 'limits', None)
    if not isinstance(limits, ScriptLimits):
        return _TimeLimited(executor, seconds)
    limited: Any = copy(executor)
    limited.limits = replace(limits, wall_time=min(seconds, limits.wall_time))
    return limited


class _TimeLimited:
    """Cancels an executor that has no limits of its own when the time is up."""

    def __init__(self, inner: SkillScriptExecutor, seconds: float) -> None:
        self.sandboxed = is_sandbox(inner)
        self._inner = inner
        self._seconds = seconds

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
        try:
            with anyio.fail_after(self._seconds):
                return await self._inner.run(script, args, ctx)
        except TimeoutError:
            message = f'The script {script.name!r} was stopped: it did not end within {self._seconds:g} s.'
            raise SkillScriptExecutionError(message) from None
