"""Runs one process from start to end and captures its output. Blocking code, for a worker thread.

A single thread starts, reads, kills and reaps the process, so its id cannot already belong to another. The process
leads a session of its own, and what is left of its group is killed when it ends, when its time is up and when the run
is cancelled. A child that starts a session of its own leaves the group and survives, unless there is a control group or
a sandbox.
"""

from __future__ import annotations

import codecs
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import NamedTuple

import anyio
from anyio import to_thread

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

from .cgroup import SHELL
from .launch import Command
from .result import ScriptResult, SkillScriptStoppedError, SkillScriptTimeoutError
from .streaming import OutputStream, StreamName

TICK = 0.01
"""Seconds between two checks of the clock and of the run's cancellation."""

DRAIN_GRACE = 0.5
"""Seconds that children have to finish writing after the script itself has ended."""

KILL_GRACE = 0.2
"""Seconds to wait for the process and its pipes after it was killed."""

FLOOD_BYTES = 1024 * 1024
"""A stream with more than this is a flood. Nearly all of it will be left out, so it is read in large chunks."""

FLOOD_NAP = 0.0005
"""Seconds to wait in a flood after a small chunk. Otherwise each short line would wake this thread."""

MASK = '[secret]'
"""Replaces secret values in the output."""

_CHUNK = 64 * 1024
"""How much is read at once, as much as a pipe holds."""

_LARGE_CHUNK = 1024 * 1024
"""The same for long output, for which the pipe is enlarged. That takes time, which most scripts do not need."""

_CUT_NOTE_BYTES = 64
"""Room kept for the line that says how much was left out."""


class Process:
    """A running command. Once `cancelled` returns true, it is killed."""

    def __init__(self, command: Command, cancelled: Callable[[], bool]) -> None:
        self._command = command
        self._cancelled = cancelled
        self._started = time.monotonic()
        self._stdout, self._stderr = self._capture('stdout'), self._capture('stderr')
        self._input = memoryview((command.stdin or '').encode())
        self._poll = select.poll()
        self._pipes: dict[int, StreamCapture | None] = {}
        self._process = self._start()
        # Nothing after this can fail, so a process that was started is always run to its end.
        self._exit_fd = _pidfd(self._process.pid)
        self._exit_seen = False
        if self._exit_fd is not None:
            self._poll.register(self._exit_fd, select.POLLIN)
        self.timed_out = False
        self.stopped: str | None = None
        """Why it was stopped, if it was."""

    def unless_stopped(self, result: ScriptResult, what: str) -> ScriptResult:
        """The result of the run, or the error if it was stopped."""
        if self.stopped is None:
            return result
        error = SkillScriptTimeoutError if self.timed_out else SkillScriptStoppedError
        raise error(f'{what} was stopped: {self.stopped}.', result=result)

    def _capture(self, name: StreamName) -> StreamCapture:
        command, stream = self._command, None
        if command.on_output is not None:
            masked = partial(mask, secrets=command.secrets)
            stream = OutputStream(name, command.on_output, secrets=command.secrets, mask=masked)
        return StreamCapture(command.max_output, stream)

    def run(self) -> ScriptResult:
        """Pass data to and from it until it ends or has to be stopped."""
        left: tuple[str, ...] = ()
        try:
            if self._command.on_start is not None:
                self._command.on_start(self._process.pid)
            self._until_exit(self._started + self._command.timeout)
            if self.stopped is None and self._command.watch is not None:
                self.stopped = self._command.watch.at_end()
            killed = self.stopped is not None or self._cancelled()
            if killed:
                (self._command.kill or self._kill)()
            self._drain(KILL_GRACE if killed else DRAIN_GRACE)
            if not killed and self._command.watch is not None:
                left = self._command.watch.left_behind(self._process.pid)
        finally:
            self._close()  # first: killing a group needs descriptors, and there may be no others left
            self._kill_session()
            exit_code = self._reap()
            if self._command.group is not None:
                self._command.group.close()  # with what has left the session
        for capture in (self._stdout, self._stderr):
            capture.feed(b'')  # what was held back
        output = fit_output(self._stdout, self._stderr, limit=self._command.max_output, secrets=self._command.secrets)
        if self._command.check is not None:
            self._command.check(output.stderr)
        duration = time.monotonic() - self._started
        return ScriptResult(
            exit_code=exit_code,
            duration=duration,
            timed_out=self.timed_out,
            left=tuple(mask(command, self._command.secrets) for command in left),
            **output._asdict(),
        )

    def _until_exit(self, deadline: float) -> None:
        # Without a descriptor that signals the exit, poll for it more often.
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
        """Read what is left in the pipes and what children write, until they close or the grace period is over."""
        deadline = time.monotonic() + grace
        while any(self._pipes.values()):
            left = deadline - time.monotonic()
            if left <= 0 or (self._cancelled() and grace > KILL_GRACE):
                return
            self._pump(min(left, TICK))

    def _exited(self) -> bool:
        return self._exit_seen if self._exit_fd is not None else self._process.poll() is not None

    def _start(self) -> subprocess.Popen[bytes]:
        command = self._command
        if not hasattr(os, 'killpg'):
            raise SkillScriptExecutionError(
                'Scripts cannot be run on this platform, which has no process groups. '
                'Use WorkspaceSkillScriptExecutor or CallableSkillScriptExecutor.'
            )
        try:
            # The pipes are made here: `Popen` loses those it has made when it cannot make all of them.
            with ExitStack() as theirs, ExitStack() as ours:
                stdin = _opened(theirs, os.open(command.null, os.O_RDONLY)) if command.stdin is None else None
                process = subprocess.Popen(
                    self._argv(),
                    cwd=command.cwd,
                    env=command.env,
                    stdin=self._pipe(theirs, ours, None) if stdin is None else stdin,
                    stdout=self._pipe(theirs, ours, self._stdout),
                    stderr=self._pipe(theirs, ours, self._stderr),
                    bufsize=0,
                    start_new_session=True,
                    pass_fds=command.pass_fds,
                )
                ours.pop_all()
                return process
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            message = f'The script {command.label!r} could not be started: {reason}.'
            raise SkillScriptExecutionError(message) from error

    def _argv(self) -> Sequence[str]:
        command = self._command
        setup = [*([] if command.group is None else [command.group.join]), *command.setup]
        return [SHELL, '-c', '; '.join([*setup, 'exec "$@"']), 'sh', *command.argv] if setup else command.argv

    def _pipe(self, theirs: ExitStack, ours: ExitStack, capture: StreamCapture | None) -> int:
        """Open a pipe to its standard input or, with a `capture`, from one of its outputs; return the process's end."""
        read, write = os.pipe()
        our_end, their_end = (write, read) if capture is None else (read, write)
        _opened(theirs, their_end)
        self._pipes[_opened(ours, our_end)] = capture
        self._poll.register(our_end, select.POLLOUT if capture is None else select.POLLIN)
        return their_end

    def _pump(self, timeout: float) -> None:
        for fd, _ in self._poll.poll(timeout * 1000):
            if fd == self._exit_fd:
                self._exit_seen = True
                self._poll.unregister(fd)
                continue
            capture = self._pipes[fd]
            if not (self._write(fd) if capture is None else self._read(fd, capture)):
                self._poll.unregister(fd)
                del self._pipes[fd]
                os.close(fd)

    def _read(self, fd: int, capture: StreamCapture) -> bool:
        is_long = capture.total >= _CHUNK
        chunk = os.read(fd, _LARGE_CHUNK if is_long else _CHUNK)
        capture.feed(chunk)
        if not is_long and capture.total >= _CHUNK:
            _enlarge(fd)
        if capture.total > FLOOD_BYTES and 0 < len(chunk) < _CHUNK:
            time.sleep(FLOOD_NAP)
        return bool(chunk)

    def _write(self, fd: int) -> bool:
        try:
            # A pipe that is ready accepts this many bytes without blocking.
            self._input = self._input[os.write(fd, self._input[: select.PIPE_BUF]) :]
        except BrokenPipeError:  # the script does not read the rest
            return False
        return bool(self._input)

    def _kill(self) -> None:
        self._kill_session()
        if self._command.group is not None:
            self._command.group.kill()

    def _kill_session(self) -> None:
        # The group is the script's until its leader is reaped. Programs that changed their user, such as sudo, refuse
        # the signal; draining and reaping are bounded all the same.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _close(self) -> None:
        for fd in self._pipes:
            os.close(fd)
        if self._exit_fd is not None:
            os.close(self._exit_fd)

    def _reap(self) -> int:
        try:
            code = self._process.wait(KILL_GRACE)
        except subprocess.TimeoutExpired:
            # It cannot be killed. A thread waits for it, or it would stay as a zombie.
            threading.Thread(target=self._process.wait, daemon=True).start()
            code = -signal.SIGKILL
        return code if code >= 0 else 128 - code


def _opened(stack: ExitStack, fd: int) -> int:
    """The descriptor, which is closed with the stack."""
    stack.callback(os.close, fd)
    return fd


def _enlarge(pipe: int) -> None:
    import fcntl  # not on every platform

    with suppress(AttributeError, OSError):  # only on Linux, and only for a limited number of pipes
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _LARGE_CHUNK)


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the platform supports it."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


async def in_thread(run: Callable[[Callable[[], bool]], ScriptResult]) -> ScriptResult:
    """Call `run` in a worker thread, with a function that returns whether the call was cancelled meanwhile."""
    started, cancelled, finished = threading.Event(), threading.Event(), threading.Event()

    def work() -> ScriptResult:
        started.set()
        try:
            return run(cancelled.is_set)
        finally:
            finished.set()

    try:
        # A limiter of its own: a long script must not hold a thread that file reads are waiting for.
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    except BaseException:
        cancelled.set()
        # The worker kills and reaps the process within a tick. It may outlive the loop, so it is polled.
        with anyio.move_on_after(8 * TICK, shield=True):
            while started.is_set() and not finished.is_set():  # noqa: ASYNC110
                await anyio.sleep(TICK / 5)
        raise


class StreamCapture:
    """Keeps the first and the last half of `limit` bytes of a stream, and counts all of it."""

    def __init__(self, limit: int, stream: OutputStream | None = None) -> None:
        self._stream = stream
        self._keep = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """Add bytes that were read from the stream."""
        if self._stream is not None:
            self._stream.feed(chunk)
        self.total += len(chunk)
        room = self._keep - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Trimmed at twice the size, so that many small chunks do not each move the buffer.
        if len(self._tail) > 2 * self._keep:
            del self._tail[: -self._keep]

    def ends(self) -> tuple[str, str | None]:
        """The whole stream and `None`, or its beginning and its end if the middle was not kept."""
        if self.total == len(self._head) + len(self._tail):
            return (self._head + self._tail).decode('utf-8', 'replace'), None
        # A character that was cut in two belongs to the part that was left out.
        head = codecs.getincrementaldecoder('utf-8')('replace').decode(bytes(self._head))
        return head, self._tail.lstrip(bytes(range(0x80, 0xC0))).decode('utf-8', 'replace')


class CapturedOutput(NamedTuple):
    """Both streams as text that fits the limit, and whether anything was left out."""

    stdout: str
    stderr: str
    truncated: bool


def fit_output(
    stdout: StreamCapture, stderr: StreamCapture, *, limit: int, secrets: Collection[str] = ()
) -> CapturedOutput:
    """Both streams as text of at most `limit` bytes together. A long one cannot push the other out."""
    out, err = _Excerpt(stdout, secrets), _Excerpt(stderr, secrets)
    half = limit // 2
    out_text, out_cut = out.fit(limit - min(err.size, half))
    err_text, err_cut = err.fit(limit - min(out.size, half))
    return CapturedOutput(out_text, err_text, out_cut or err_cut)


def mask(text: str, secrets: Collection[str]) -> str:
    """Replace every secret in the text, longer ones first, since one may be part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


class _Excerpt:
    """The kept parts of one stream, free of secrets."""

    def __init__(self, capture: StreamCapture, secrets: Collection[str]) -> None:
        head, tail = capture.ends()
        self._total = capture.total
        self._head = mask(head, secrets).encode()
        self._tail = None if tail is None else mask(tail, secrets).encode()
        if self._tail is not None and secrets:
            # The cut may have left a part of a secret at either edge.
            edge = max(len(secret.encode()) for secret in secrets) - 1
            self._head = self._head[: max(0, len(self._head) - edge)]
            self._tail = self._tail[edge:]
        self.size = len(self._head) + len(self._tail or b'')

    def fit(self, limit: int) -> tuple[str, bool]:
        """The text in at most `limit` bytes, and whether anything was left out of it."""
        if self._tail is None and len(self._head) <= limit:
            return self._head.decode(), False
        tail = self._head if self._tail is None else self._tail
        keep = max(0, limit - _CUT_NOTE_BYTES) // 2
        first = self._head[:keep].decode(errors='ignore')
        last = tail[len(tail) - min(keep, len(tail)) :].decode(errors='ignore')
        # Bytes that are not UTF-8 count three each as text, so for binary output this is an estimate.
        left_out = max(1, self._total - len(first.encode()) - len(last.encode()))
        return f'{first}\n[… {left_out:,} bytes left out …]\n{last}', True
