"""Between the event loop and the worker thread in which a process lives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio import to_thread

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

from .base import ScriptResult, SkillScriptStoppedError, SkillScriptTimeoutError
from .process import TICK, Command, Process

__all__ = ('Job', 'run_job')


def _as_it_is(result: ScriptResult) -> ScriptResult:
    return result


def _nothing() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Job:
    """A command, and what there is to do around it."""

    command: Command
    """What to run."""

    finish: Callable[[ScriptResult], ScriptResult] = _as_it_is
    """Completes the result of a process that ended or was stopped."""

    cleanup: Callable[[], None] = _nothing
    """Called in any case, at the end."""


class _Call:
    """What the event loop and the worker thread tell each other, as flags that are only ever set."""

    started = False
    cancelled = False
    finished = False


async def run_job(prepare: Callable[[], Job]) -> ScriptResult:
    """Prepare a job and run it, both in a worker thread. Cancelling kills the process.

    Raises:
        SkillScriptExecutionError: It could not be started.
        SkillScriptStoppedError: It did not end by itself.
    """
    call = _Call()

    def work() -> ScriptResult:
        call.started = True
        try:
            return _run(prepare(), call)
        finally:
            call.finished = True

    try:
        # A limiter of its own: a long script must not hold a thread that file reads are waiting for.
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    except BaseException:
        call.cancelled = True
        with anyio.CancelScope(shield=True):
            await _finished(call)
        raise


def _run(job: Job, call: _Call) -> ScriptResult:
    try:
        if call.cancelled:
            raise SkillScriptExecutionError('The run was cancelled before the script started.')
        process = Process(job.command, lambda: call.cancelled)
        result = job.finish(process.run())
    finally:
        job.cleanup()
    if process.stopped is None:
        return result
    error = SkillScriptTimeoutError if process.timed_out else SkillScriptStoppedError
    raise error(f'The script {job.command.label!r} was stopped: {process.stopped}.', result=result)


async def _finished(call: _Call) -> None:
    """Wait until the worker has killed and reaped the process, which takes a tick, but never for long."""
    deadline = anyio.current_time() + 8 * TICK
    # No event: the thread may outlive the loop, and then it could not set one.
    while call.started and not call.finished and anyio.current_time() < deadline:  # noqa: ASYNC110
        await anyio.sleep(TICK / 5)
