"""Talks to bubblewrap while it sets up a sandbox: it reports when the sandbox is ready, and waits for the limits."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.limits import ScriptLimits
from pydantic_ai_skills.execution.process import KILL_GRACE
from pydantic_ai_skills.execution.watchdog import apply_limits


class Handshake:
    """The descriptors between this process and bubblewrap. The keys of `files` are the options that pass each file."""

    def __init__(
        self, label: str, limits: ScriptLimits, files: dict[tuple[str, ...], bytes], *, setup_timeout: float
    ) -> None:
        self._label = label
        self._limits = limits
        self._setup_timeout = setup_timeout
        self._text = b''
        self._sandbox: int | None = None
        self._killed = False
        self._group = 0
        self._theirs: list[int] = []
        self._ours: list[int] = []
        self.sandbox: int | None = None
        """The first process of the sandbox, as soon as it is known."""
        try:
            self._status, status = self._pipe()
            waiting, self._go = self._pipe(ours=1)
            self.options = ['--json-status-fd', str(status), '--block-fd', str(waiting)]
            for (option, *destination), content in files.items():
                self._theirs.append(fd := file_with(content))
                self.options += [option, str(fd), *destination]
        except OSError as error:
            self.close()
            raise SkillScriptExecutionError(
                f'The script {label!r} could not be started in its sandbox: {error.strerror}.'
            ) from error
        self.pass_fds = tuple(self._theirs)

    def on_start(self, pid: int) -> None:
        """Set the limits on the sandbox as soon as it is ready, then let it start the script."""
        self._group = pid
        self._close_theirs()
        deadline = time.monotonic() + min(self._setup_timeout, self._limits.wall_time)
        while b'\n' not in self._text and self._read(deadline - time.monotonic()):
            pass
        sandbox = self._said('child-pid')
        if sandbox is None:
            return  # `check` reports it, with bubblewrap's own message
        with suppress(ProcessLookupError):
            self._sandbox = os.pidfd_open(sandbox)
            self._ours.append(self._sandbox)
        self.sandbox = sandbox
        apply_limits(self._limits, sandbox, own_namespace=True)
        with suppress(BrokenPipeError):
            os.write(self._go, b'.')

    def in_memory(self) -> Iterator[int]:
        """Descriptors of the sandbox's folders whose files are in memory, each open until the next one is requested."""
        for folder in ('/tmp', '/dev/shm') if self.sandbox is not None else ():  # noqa: S108
            with suppress(OSError):  # not there yet, or not any more
                # By descriptor: until the sandbox is set up, the path may lead to the host's own folder again.
                inside = os.open(f'/proc/{self.sandbox}/root{folder}', os.O_PATH | os.O_DIRECTORY)
                try:
                    if os.fstat(inside).st_dev != os.stat(folder).st_dev:
                        yield inside
                finally:
                    os.close(inside)

    def kill(self) -> None:
        """Kill everything in the sandbox, and wait until it has ended."""
        self._killed = True
        with suppress(ProcessLookupError):
            # Among thousands of processes the first one may have to wait for its turn to die. The group does not.
            os.killpg(self._group, signal.SIGKILL)
        self._end()

    def check(self, stderr: str) -> None:
        """Raise an error if the sandbox could not be set up, or the program could not be started in it."""
        self._end()
        while self._read(0):
            pass
        if not self._killed and self._said('exit-code') is None:
            message = f'The script {self._label!r} could not be started in its sandbox: {stderr.strip()}'
            raise SkillScriptExecutionError(message)

    def close(self) -> None:
        """Close the descriptors that are still open."""
        self._close_theirs()
        while self._ours:
            os.close(self._ours.pop())

    def _pipe(self, ours: int = 0) -> tuple[int, int]:
        """Both ends of a pipe, of which one is ours."""
        ends = os.pipe()
        self._ours.append(ends[ours])
        self._theirs.append(ends[1 - ours])
        return ends

    def _end(self) -> None:
        """Kill the first process of the sandbox, whereupon the kernel kills all others, and wait for it."""
        if self._sandbox is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._sandbox, signal.SIGKILL)
            _ready(self._sandbox, KILL_GRACE)

    def _close_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())

    def _read(self, timeout: float) -> bool:
        if not _ready(self._status, max(0, timeout)):
            return False
        chunk = os.read(self._status, 4096)
        self._text += chunk
        return bool(chunk)

    def _said(self, key: str) -> int | None:
        """A number in one of the lines that bubblewrap has written so far."""
        for line in self._text.splitlines():
            with suppress(ValueError):
                if key in (status := json.loads(line)):
                    return int(status[key])
        return None


def _ready(fd: int, timeout: float) -> bool:
    """Whether there is something to read within `timeout` seconds."""
    poll = select.poll()  # `select` does not work with high descriptors, as in a busy server
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


def file_with(content: bytes) -> int:
    """A descriptor from which this content can be read."""
    fd = os.memfd_create('skill')  # a few KiB, which fit at once
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
