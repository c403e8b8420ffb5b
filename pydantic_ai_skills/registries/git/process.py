"""One git process: an environment made from nothing, a deadline, and nothing left when it ends."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pydantic_ai_skills.exceptions import SkillRegistryError

from .address import GitAddress
from .options import SAFE_VARIABLES
from .progress import ProgressCallback, Report
from .secrets import HostSecret

__all__ = ('Deadline', 'Git')

STALL_SECONDS = 20
"""How long a server may send next to nothing."""

STALL_BYTES = 100
"""What counts as next to nothing, in bytes a second."""

_LOOK_SECONDS = 0.05
_PROGRESS = re.compile(r':\s+\d+% \(|, done\.')
_ADDED = re.compile(
    r'fatal: Could not read from remote repository|Please make sure you have the correct|and the repository exists|'
    r'To add an exception for this directory|git config --global'
)
"""What git adds whatever the reason was, and its advice to change settings, which are not read here."""

FIXED_SETTINGS = {
    'core.askPass': '',
    'core.fsmonitor': 'false',
    'core.hooksPath': os.devnull,
    'core.symlinks': 'false',
    'credential.helper': '',
    'fetch.recurseSubmodules': 'false',
    'fetch.writeCommitGraph': 'false',
    'gc.auto': '0',
    'http.lowSpeedLimit': str(STALL_BYTES),
    'maintenance.auto': 'false',
    'protocol.allow': 'never',
    'protocol.version': '2',
    'submodule.recurse': 'false',
    'transfer.bundleURI': 'false',
}
"""Settings every git process gets, whatever the repository, the user or the system says."""

FIXED_VARIABLES = {
    'GCM_INTERACTIVE': 'never',
    'GIT_ASKPASS': '',
    'GIT_ATTR_NOSYSTEM': '1',
    'GIT_CONFIG_GLOBAL': os.devnull,
    'GIT_CONFIG_NOSYSTEM': '1',
    'GIT_CONFIG_SYSTEM': os.devnull,
    'GIT_LFS_SKIP_SMUDGE': '1',
    'GIT_NO_LAZY_FETCH': '1',
    'GIT_NO_REPLACE_OBJECTS': '1',
    'GIT_OPTIONAL_LOCKS': '0',
    'GIT_PROTOCOL_FROM_USER': '0',
    'GIT_TERMINAL_PROMPT': '0',
    'LANGUAGE': 'C',
    'LC_ALL': 'C',
    'SSH_ASKPASS': '',
}

KEPT_VARIABLES = {
    *(name for name in SAFE_VARIABLES if not name.startswith('GIT_')),
    *('COMSPEC', 'PATH', 'PATHEXT', 'SYSTEMROOT', 'TEMP', 'TMP', 'WINDIR'),
}
"""What is kept of the environment. `HOME` is not: git and curl would read settings and passwords there."""


class Deadline:
    """When a whole operation has to be over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._end - time.monotonic()


@dataclass(frozen=True, kw_only=True)
class Git:
    """How git is called for one repository."""

    address: GitAddress
    """The repository."""

    allowed: frozenset[str]
    """The protocols git may use."""

    secret: HostSecret | None = None
    """The token, if there is one."""

    ssh_key_file: Path | None = None
    """The private key, if there is one."""

    config: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings the developer asked for."""

    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables the developer asked for."""

    max_bytes: int
    """How much may be written to the folder of the repository."""

    progress: ProgressCallback | None = None
    """Told how far a fetch is."""

    def run(self, arguments: Iterable[str], *, repository: Path, deadline: Deadline, stdin: bytes = b'') -> bytes:
        """Run git in a bare repository of ours and return what it prints.

        Raises:
            SkillRegistryError: It fails, takes longer than the deadline, or writes more than it may.
        """
        report = Report(self.progress)
        words = list(arguments)
        process = self._start([git_program(), *words], repository, deadline)
        if isinstance(process, str):
            raise SkillRegistryError(f'Git cannot be started: {process}')
        watch = _Watch(process, repository, deadline, self.max_bytes)
        try:
            output = _talk(process, stdin, report)
            _await_exit(process)
        finally:
            watch.stop()
        if watch.verdict or process.returncode:
            said = self.secret.redact(report.text) if self.secret else report.text
            raise SkillRegistryError(self._explain(words[0], watch.verdict, said))
        return output

    def _start(self, command: list[str], repository: Path, deadline: Deadline) -> subprocess.Popen[bytes] | str:
        """Start git, or say why it cannot be. An exception would carry the token in the variables of its frames."""
        try:
            return subprocess.Popen(
                command,
                cwd=repository,
                env=self._environment(repository, deadline),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return error.strerror or type(error).__name__

    def _environment(self, repository: Path, deadline: Deadline) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.upper() in KEPT_VARIABLES}
        settings = {
            **FIXED_SETTINGS,
            'remote.origin.url': self.address.url,
            **{f'protocol.{protocol}.allow': 'always' for protocol in self.allowed},
            'http.lowSpeedTime': str(max(1, min(STALL_SECONDS, int(deadline.left)))),
            **self.config,
            **(self.secret.config() if self.secret else {}),
        }
        numbered = {
            name: text
            for number, (key, value) in enumerate(settings.items())
            for name, text in ((f'GIT_CONFIG_KEY_{number}', key), (f'GIT_CONFIG_VALUE_{number}', value))
        }
        return {
            **kept,
            **FIXED_VARIABLES,
            'GIT_ALLOW_PROTOCOL': ':'.join(sorted(self.allowed)),
            'GIT_DIR': str(repository),
            'GIT_SSH_COMMAND': self._ssh_command(),
            'HOME': str(repository),
            'XDG_CONFIG_HOME': str(repository),
            **self.env,
            **numbered,
            'GIT_CONFIG_COUNT': str(len(settings)),
        }

    def _ssh_command(self) -> str:
        words = ['ssh', '-o', 'BatchMode=yes']
        if self.ssh_key_file is not None:
            words += ['-o', 'IdentitiesOnly=yes', '-i', str(self.ssh_key_file)]
        return shlex.join(words)

    def _explain(self, command: str, verdict: str, said: str) -> str:
        """What went wrong, in a sentence, and the way out where one is known."""
        what = f'{self.address.url}: git {command}'
        if verdict:
            return f'{what} {verdict}'
        told = [line.strip() for line in said.splitlines() if not _PROGRESS.search(line)]
        lines = [line for line in told if not _ADDED.match(line)]
        reason = ' '.join(lines[-3:] or told[:1]) or 'it says nothing about why'
        hint = next((hint for sign, hint in HINTS.items() if sign in said), '')
        if self.secret is not None and 'could not read Username' in said:
            hint = ' The token is not set, or was not accepted.'
        return f'{what} failed: {reason}'.rstrip('.') + f'.{hint}'


HINTS = {
    'could not read Username': ' The repository is private or not there: give a token as token=; at the '
    'terminal: --token-env.',
    'error: 403': ' The token does not allow this.',
    'error: 30': ' The server sends to another address, and a token is not sent on: use that address (often the same '
    "with '.git' at its end).",
    'Permission denied (publickey': ' Give a key as ssh_key_file=; at the terminal: --ssh-key.',
    'Host key verification failed': ' Put the key of the host into known_hosts.',
    'dubious ownership': ' It belongs to another user, and your git settings are not read: reach it over ssh or https, '
    'or make a copy of your own.',
    'transport ': ' The repository refers to a way of access that is not among allowed_protocols.',
}
"""What to say about an error that git words in this way."""


class _Watch:
    """Ends a process, with all it has started, when its time or its space is up."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, deadline: Deadline, max_bytes: int) -> None:
        self.verdict = ''
        self._process = process
        self._folder = folder
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(max(0.0, min(_LOOK_SECONDS, self._deadline.left))):
            if self._deadline.left <= 0:
                self.verdict = f'took longer than {self._deadline.seconds:g} s and was ended.'
            elif _bytes_below(self._folder) > self._max_bytes:
                self.verdict = f'fetched more than {self._max_bytes:,} bytes and was ended; see max_bytes=.'
            if self.verdict:
                _end(self._process)
                return

    def stop(self) -> None:
        """Stop looking; whatever of the process is still there is ended."""
        self._over.set()
        self._thread.join()
        # Not before this is its number given to another process.
        _end(self._process)
        self._process.wait()


def _await_exit(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has ended, and leave its number taken, so that its group can be ended safely."""
    if hasattr(os, 'waitid'):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, 'killpg'):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _bytes_below(folder: Path) -> int:
    size = 0
    # Git renames and removes files in there while we look.
    with contextlib.suppress(OSError), os.scandir(folder / 'objects' / 'pack') as entries:
        size = sum(entry.stat().st_size for entry in entries)
    return size


def _talk(process: subprocess.Popen[bytes], stdin: bytes, report: Report) -> bytes:
    """Write all of the input and listen to what it reports while reading all of the output."""
    assert process.stdin
    assert process.stdout
    assert process.stderr

    def write(pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError), pipe:
            pipe.write(stdin)

    with process.stdout, process.stderr:
        threads = [
            threading.Thread(target=write, args=(process.stdin,), daemon=True),
            threading.Thread(target=report.listen, args=(process.stderr.fileno(),), daemon=True),
        ]
        for thread in threads:
            thread.start()
        output = process.stdout.read()
        for thread in threads:
            thread.join()
    return output


def git_program() -> str:
    """The git that GitPython runs, without importing GitPython for that: it takes longer than most fetches."""
    binding = getattr(sys.modules.get('git'), 'Git', None)
    chosen: str | None = getattr(binding, 'GIT_PYTHON_GIT_EXECUTABLE', None)
    return chosen or os.environ.get('GIT_PYTHON_GIT_EXECUTABLE') or 'git'
