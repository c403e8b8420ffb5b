"""Keeps a mount namespace in which the devices of this machine cannot be changed. The sandboxes of root start in it.

Root owns the devices, so a script of root could take the rights to `/dev/null` away from everybody. Bubblewrap cannot
forbid that: what it mounts read-only is no device any more. An empty standard input is a device, too.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import threading
import time
import weakref
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from pydantic_ai_skills.exceptions import SandboxUnavailableError

_NAMESPACES = '--user', '--map-root-user', '--mount', '--propagation', 'slave'
_STEPS = 'mount -n --rbind /dev /dev && mount -n -o remount,bind,ro /dev && echo ready && read line'


class Entrance(NamedTuple):
    """How a command starts in the namespace."""

    prefix: list[str]
    """Words to put before it."""

    null: str
    """The file to open as its empty standard input."""


class ReadOnlyDevices:
    """A user and a mount namespace with a `/dev` that is read-only.

    Making them takes three programs, entering them one. So they are made once, and made again when something was
    mounted or unmounted since. No process has to stay in them: the descriptors of this object keep them.

    Args:
        timeout: Seconds that making them may take.
        mounts: The file that lists what is mounted for this process.

    Raises:
        SandboxUnavailableError: The programs for it are not installed.
        OSError: They cannot be made.
    """

    def __init__(self, timeout: float, *, mounts: Path = Path('/proc/self/mountinfo')) -> None:
        self._unshare, self._nsenter = _installed('unshare'), _installed('nsenter')
        self._timeout = timeout
        self._mounts = mounts
        self._mounted = b''
        self._lock = threading.Lock()
        self._descriptors: list[int] = []
        weakref.finalize(self, _close, self._descriptors)
        with ExitStack() as cleanup:
            self.enter(cleanup)

    def enter(self, cleanup: ExitStack) -> Entrance:
        """How to start a command in the namespace, which stays open until the cleanup.

        Raises:
            OSError: The namespace had to be made again, which failed, or too many files are open.
        """
        with self._lock:
            mounted = self._mounts.read_bytes()
            if mounted != self._mounted:
                self._make()
                self._mounted = mounted
            # Duplicates, since another thread may have to make the namespace again while this one enters it.
            duplicates: list[int] = []
            cleanup.callback(_close, duplicates)
            duplicates.extend(map(os.dup, self._descriptors))
        user, mount, devices = (f'/proc/{os.readlink("/proc/self")}/fd/{fd}' for fd in duplicates)
        # By their paths, so that no script inherits the descriptors.
        return Entrance(
            [self._nsenter, '--preserve-credentials', f'--user={user}', f'--mount={mount}', '--'], f'{devices}/null'
        )

    def _make(self) -> None:
        with subprocess.Popen(
            [self._unshare, *_NAMESPACES, '/bin/sh', '-c', _STEPS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as maker:
            try:
                _wait_until_ready(maker, self._timeout)
                made = _open_namespaces(maker.pid)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(maker.pid, signal.SIGKILL)
        _close(self._descriptors)
        self._descriptors += made


def _open_namespaces(pid: int) -> list[int]:
    """Descriptors of the user and the mount namespace of a process, and of its `/dev`."""
    with ExitStack() as cleanup:
        made: list[int] = []
        cleanup.callback(_close, made)
        for path, flags in (('ns/user', os.O_RDONLY), ('ns/mnt', os.O_RDONLY), ('root/dev', os.O_PATH)):
            made.append(os.open(f'/proc/{pid}/{path}', flags))
        cleanup.pop_all()
        return made


def _wait_until_ready(maker: subprocess.Popen[bytes], timeout: float) -> None:
    assert maker.stdout is not None
    deadline, said, chunk = time.monotonic() + timeout, b'', b'.'
    poll = select.poll()
    poll.register(maker.stdout, select.POLLIN)
    while chunk and poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        chunk = os.read(maker.stdout.fileno(), 4096)
        said += chunk
        if said == b'ready\n':
            return
    reason = said.decode(errors='replace').strip() or 'the devices could not be made read-only'
    raise OSError(0, reason if not chunk else f'{reason} within {timeout:g} s')


def _installed(program: str) -> str:
    if found := shutil.which(program):
        return found
    raise SandboxUnavailableError(
        'A sandbox for root also needs `unshare`, `nsenter` and `mount`, of the package util-linux.'
    )


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())
