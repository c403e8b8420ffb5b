"""The executor protocol, the result of a run, and executors that wrap a function or another executor."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import anyio
from anyio import to_thread

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError

from .interpreters import refuse_links
from .missing import MissingNeed
from .work_files import MAX_READ_BYTES, ScriptFile, read_work_file

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript


@dataclass(frozen=True, kw_only=True)
class ScriptResult:
    """The output, exit code and files of a run. A failed script gives a result too, not an exception."""

    exit_code: int
    """The exit code; 128 + N when signal N ended it, as in a shell."""

    stdout: str
    """Standard output, decoded as UTF-8. A line says how many bytes were left out, and where."""

    stderr: str
    """Standard error, decoded and cut like `stdout`."""

    duration: float
    """Seconds from the start of the process to its end."""

    truncated: bool = False
    """Whether part of the output was left out."""

    timed_out: bool = False
    """Whether the script was stopped because its time was up."""

    files: tuple[ScriptFile, ...] = ()
    """The files in the work folder that the script added or changed, at most 200 of them."""

    left: tuple[str, ...] = ()
    """The commands of processes that it left running, which were stopped with it, where they are known: on Linux,
    outside of a sandbox. At most 10 of them."""

    work_dir: Path | None = None
    """The work folder of the conversation, if the script added or changed files and it is on this machine.

    A script that is run without a toolset has a folder of its own, which is removed after many newer runs with files
    and when this process ends.
    """

    missing: MissingNeed | None = None
    """What the script failed for lack of, if its output tells: a package, a program or a key."""

    def __str__(self) -> str:
        parts = [self.stdout.rstrip('\n')] if self.stdout.rstrip('\n') else []
        if self.stderr.strip():
            parts.append(f'stderr:\n{self.stderr.rstrip()}')
        if self.files:
            parts += ['files:', *(f'{file.name} ({file.size:,} bytes)' for file in self.files)]
        if self.left:
            parts.append(self.tell_left())
        if self.timed_out:
            parts.append(f'stopped after {self.duration:.1f} s')
        elif self.exit_code:
            parts.append(f'exit code: {describe_exit(self.exit_code)}')
        return '\n'.join(parts) or '(no output)'

    def tell_left(self) -> str:
        """A sentence about the processes that it left running."""
        named = ', '.join(self.left)
        if len(self.left) == 1:
            return f'It left 1 process ({named}), which was stopped.'
        return f'It left {len(self.left)} processes ({named}), which were stopped.'

    def read_file(self, name: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Read a file in the work folder, without following links.

        Raises:
            SkillResourceLoadError: There is no such file, or it is longer than `max_bytes`.
        """
        if self.work_dir is None:
            raise SkillResourceLoadError(f'There is no file {name!r} in the work folder.')
        return read_work_file(self.work_dir, name, max_bytes=max_bytes)


def describe_exit(code: int) -> str:
    """An exit code, with the name of the signal it stands for, if any."""
    try:
        return f'{code} ({signal.Signals(code - 128).name})'
    except ValueError:
        return str(code)


class SkillScriptStoppedError(SkillScriptExecutionError):
    """A script exceeded a limit and was stopped; `result` holds its output until then."""

    def __init__(self, message: str, *, result: ScriptResult) -> None:
        super().__init__(message)
        self.result = result


class SkillScriptTimeoutError(SkillScriptStoppedError):
    """A script exceeded its time limit and was stopped."""


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
    """Hands scripts to a function of yours, sync or async.

    ```python
    from pydantic_ai_skills import CallableSkillScriptExecutor


    async def run_remotely(script, args):
        return f'would run {script.name} with {args}'


    executor = CallableSkillScriptExecutor(run_remotely)
    ```

    Args:
        func: Called as `func(script=…, args=…)`, and with `ctx=…` if it has a parameter of that name. A sync function
            runs in a thread, which goes on to its end if the run is cancelled.
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
        await to_thread.run_sync(refuse_links, script)
        call = partial(self._func, script=script, args=args, **({'ctx': ctx} if self._takes_ctx else {}))
        result = call() if self._is_async else await to_thread.run_sync(call, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result


def as_executor(given: object) -> SkillScriptExecutor | None:
    """The executor that a developer passed; a plain function becomes a `CallableSkillScriptExecutor`.

    Raises:
        TypeError: It is neither.
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


def with_timeout(executor: SkillScriptExecutor, seconds: float) -> SkillScriptExecutor:
    """The executor with a time limit that a skill asks for, at most the executor's own."""
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
