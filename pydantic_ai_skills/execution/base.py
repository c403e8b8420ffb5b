"""What every executor has in common: the protocol, the result of a run, and the executor that calls your function."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from anyio import to_thread

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError

from .work_dir import MAX_READ_BYTES, ScriptFile, read_work_file

if TYPE_CHECKING:
    from pydantic_ai_skills.types.skill import SkillScript

__all__ = (
    'CallableSkillScriptExecutor',
    'ScriptResult',
    'SkillScriptExecutor',
    'SkillScriptStoppedError',
    'SkillScriptTimeoutError',
    'describe_exit',
)


@dataclass(frozen=True, kw_only=True)
class ScriptResult:
    """What a script left behind when it ended. A failed script is a result too, not an exception."""

    exit_code: int
    """The exit code; 128 + N when signal N ended it, as in a shell."""

    stdout: str
    """Standard output, decoded as UTF-8. Where bytes were left out, a line in its place says how many."""

    stderr: str
    """Standard error, decoded and cut like `stdout`."""

    duration: float
    """Seconds from the start of the process to its end."""

    truncated: bool = False
    """Whether part of the output was left out."""

    timed_out: bool = False
    """Whether the script was stopped because its time was up."""

    files: tuple[ScriptFile, ...] = ()
    """The files the script left in its work folder, at most 200 of them."""

    work_dir: Path | None = None
    """The work folder, while it holds files. It is removed when many newer runs have left files, and when this process
    ends, unless the executor was given a place for them."""

    def __str__(self) -> str:
        parts = [part for part in (self.stdout.rstrip('\n'), self._stderr_part(), self._files_part()) if part]
        if self.timed_out:
            parts.append(f'stopped after {self.duration:.1f} s')
        elif self.exit_code:
            parts.append(f'exit code: {describe_exit(self.exit_code)}')
        return '\n'.join(parts) or '(no output)'

    def read_file(self, name: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """The content of a file the script left in its work folder.

        Raises:
            SkillResourceLoadError: There is no such file, or it is longer than `max_bytes`.
        """
        if self.work_dir is None:
            raise SkillResourceLoadError(f'The run left no file {name!r}.')
        return read_work_file(self.work_dir, name, max_bytes=max_bytes)

    def _stderr_part(self) -> str:
        return f'stderr:\n{self.stderr.rstrip()}' if self.stderr.strip() else ''

    def _files_part(self) -> str:
        return (
            '\n'.join(['files:', *(f'{file.name} ({file.size:,} bytes)' for file in self.files)]) if self.files else ''
        )


def describe_exit(code: int) -> str:
    """An exit code, with the name of the signal where it stands for one."""
    try:
        return f'{code} ({signal.Signals(code - 128).name})'
    except ValueError:
        return str(code)


class SkillScriptStoppedError(SkillScriptExecutionError):
    """A script was stopped because it used more than it may; `result` holds what it had printed by then."""

    def __init__(self, message: str, *, result: ScriptResult) -> None:
        super().__init__(message)
        self.result = result


class SkillScriptTimeoutError(SkillScriptStoppedError):
    """A script was stopped because its time was up."""


@runtime_checkable
class SkillScriptExecutor(Protocol):
    """Runs a script of a skill. Implement it to run scripts in a place of your own."""

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
        self._func = func
        self._takes_ctx = _takes_ctx(func)
        self._is_async = inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(
            getattr(func, '__call__', None)  # noqa: B004 - an object may have an async `__call__`
        )

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
        call = partial(self._func, script=script, args=args, **({'ctx': ctx} if self._takes_ctx else {}))
        result = call() if self._is_async else await to_thread.run_sync(call, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result


def _takes_ctx(func: Callable[..., Any]) -> bool:
    parameters = inspect.signature(func).parameters
    return 'ctx' in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
