"""One process from start to end: its pipes, its clock, its group. Blocking code, for one worker thread.

A single thread starts, reads, kills and reaps the process, so there is no moment at which its id could already belong
to another. The process leads a session of its own, and whatever is left of its group is killed when it ends, when its
time is up and when the run is cancelled. A child that made a session of its own has left the group and survives;
only a control group or a sandbox can prevent that.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

from .base import ScriptResult
from .capture import StreamCapture, fit_output
from .cgroup import ControlGroup

__all__ = ('DRAIN_GRACE', 'KILL_GRACE', 'TICK', 'Command', 'Process')

TICK = 0.01
"""Seconds between two looks at the clock and at the cancellation of the run."""

DRAIN_GRACE = 0.5
"""Seconds in which a child may finish writing after the script itself has ended."""

KILL_GRACE = 0.2
"""Seconds in which the pipes and the process have to end after they were killed."""

FLOOD_BYTES = 1024 * 1024
"""A stream with more than this is a flood: nearly all of it will be left out, so it is taken in gulps."""

FLOOD_NAP = 0.0005
"""Seconds to let a flood rise after a small gulp. Otherwise each short line would wake this thread."""

_GULP = 1024 * 1024
"""How much is read at once, and how much a pipe holds where that can be set."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A process to run."""

    label: str
    """What messages call it: the name of the script."""

    argv: tuple[str, ...]
    """The program and its arguments."""

    cwd: Path
    """The folder it starts in."""

    env: Mapping[str, str]
    """All of its environment."""

    stdin: str | None
    """Text for its standard input; `None` gives an empty one."""

    timeout: float
    """Seconds it may run."""

    max_output: int
    """Bytes of output that are kept, both streams together."""

    secrets: Collection[str] = ()
    """Values that are masked in the output."""

    pass_fds: Collection[int] = ()
    """Descriptors it inherits."""

    on_start: Callable[[int], None] | None = None
    """Called with its id as soon as it was started."""

    watch: Callable[[int], str | None] | None = None
    """Called with its id again and again; an answer is the reason to stop it."""

    kill: Callable[[], None] | None = None
    """A way to end it that reaches further than killing its group."""

    group: ControlGroup | None = None
    """The control group it is born in, which ends with it."""


class Process:
    """A command that was started.

    Args:
        command: What to start.
        cancelled: Asked again and again; once it says so, the process is killed.
    """

    def __init__(self, command: Command, cancelled: Callable[[], bool]) -> None:
        self._command = command
        self._cancelled = cancelled
        self._started = time.monotonic()
        self._process = _start(command)
        self._stdout, self._stderr = StreamCapture(command.max_output), StreamCapture(command.max_output)
        self._input = memoryview((command.stdin or '').encode())
        self._poll = select.poll()
        self._pipes: dict[int, tuple[IO[bytes], StreamCapture | None]] = {}
        self._attach(self._process.stdin, None)
        self._attach(self._process.stdout, self._stdout)
        self._attach(self._process.stderr, self._stderr)
        self._exit_fd = _pidfd(self._process.pid)
        self._exit_seen = False
        if self._exit_fd is not None:
            self._poll.register(self._exit_fd, select.POLLIN)
        self.timed_out = False
        self.stopped: str | None = None
        """Why it did not end by itself."""

    def run(self) -> ScriptResult:
        """Pass data to and from it until it ends, or until it has to be stopped."""
        try:
            if self._command.on_start is not None:
                self._command.on_start(self._process.pid)
            self._until_exit(self._started + self._command.timeout)
            killed = self.stopped is not None or self._cancelled()
            if killed:
                (self._command.kill or self._kill)()
            self._drain(KILL_GRACE if killed else DRAIN_GRACE)
        finally:
            self._kill()
            self._close()
            exit_code = self._reap()
        output = fit_output(self._stdout, self._stderr, limit=self._command.max_output, secrets=self._command.secrets)
        return ScriptResult(
            exit_code=exit_code,
            stdout=output.stdout,
            stderr=output.stderr,
            duration=time.monotonic() - self._started,
            truncated=output.truncated,
            timed_out=self.timed_out,
        )

    def _until_exit(self, deadline: float) -> None:
        # Without a descriptor that tells of the exit, one has to look for it more often.
        tick = TICK / 10 if self._exit_fd is None else TICK
        watch = self._command.watch
        while not self._exited() and not self._cancelled():
            left = deadline - time.monotonic()
            if left <= 0:
                self.timed_out = True
                self.stopped = f'it did not end within {self._command.timeout:g} s'
                return
            if watch is not None and (reason := watch(self._process.pid)):
                self.stopped = reason
                return
            self._pump(min(left, tick))

    def _drain(self, grace: float) -> None:
        """Read what is still in the pipes, and what children write, until they are closed or the grace is over."""
        deadline = time.monotonic() + grace
        while any(capture for _, capture in self._pipes.values()):
            left = deadline - time.monotonic()
            if left <= 0 or (self._cancelled() and grace > KILL_GRACE):
                return
            self._pump(min(left, TICK))

    def _exited(self) -> bool:
        return self._exit_seen if self._exit_fd is not None else self._process.poll() is not None

    def _attach(self, pipe: IO[bytes] | None, capture: StreamCapture | None) -> None:
        import fcntl  # not on every platform

        if pipe is None:
            return
        self._pipes[pipe.fileno()] = pipe, capture
        self._poll.register(pipe, select.POLLOUT if capture is None else select.POLLIN)
        if capture is not None:
            with suppress(AttributeError, OSError):  # only on Linux, and while this user has few of them
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _GULP)

    def _pump(self, timeout: float) -> None:
        for fd, _ in self._poll.poll(timeout * 1000):
            if fd == self._exit_fd:
                self._exit_seen = True
                self._poll.unregister(fd)
                continue
            pipe, capture = self._pipes[fd]
            if not (self._write(fd) if capture is None else self._read(fd, capture)):
                self._poll.unregister(fd)
                del self._pipes[fd]
                pipe.close()

    def _read(self, fd: int, capture: StreamCapture) -> bool:
        chunk = os.read(fd, _GULP)
        capture.feed(chunk)
        if capture.total > FLOOD_BYTES and 0 < len(chunk) < _GULP // 16:
            time.sleep(FLOOD_NAP)
        return bool(chunk)

    def _write(self, fd: int) -> bool:
        try:
            # A pipe that is ready takes this many bytes without blocking.
            self._input = self._input[os.write(fd, self._input[: select.PIPE_BUF]) :]
        except BrokenPipeError:  # the script does not want to know the rest
            return False
        return bool(self._input)

    def _kill(self) -> None:
        # The group is the script's as long as its leader is not reaped. Programs that changed their user, such as sudo,
        # refuse the signal; draining and reaping are bounded all the same.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._command.group is not None:
            self._command.group.kill()

    def _close(self) -> None:
        for pipe, _ in self._pipes.values():
            pipe.close()
        if self._exit_fd is not None:
            os.close(self._exit_fd)

    def _reap(self) -> int:
        try:
            code = self._process.wait(KILL_GRACE)
        except subprocess.TimeoutExpired:
            # It cannot be killed. Somebody has to wait for it, or it would stay as a zombie.
            threading.Thread(target=self._process.wait, daemon=True).start()
            code = -signal.SIGKILL
        return code if code >= 0 else 128 - code


def _start(command: Command) -> subprocess.Popen[bytes]:
    if not hasattr(os, 'killpg'):
        raise SkillScriptExecutionError(
            'Scripts cannot be run on this platform, which has no process groups. '
            'Use WorkspaceSkillScriptExecutor or CallableSkillScriptExecutor.'
        )
    try:
        with nullcontext() if command.group is None else command.group.entered():
            return subprocess.Popen(
                command.argv,
                cwd=command.cwd,
                env=command.env,
                stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                pass_fds=command.pass_fds,
            )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SkillScriptExecutionError(f'The script {command.label!r} could not be started: {reason}.') from error


def _pidfd(pid: int) -> int | None:
    """A descriptor that is readable once the process has ended, where the platform has such a thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
