"""Runs git: with an environment built from scratch, a deadline and a size limit; no process outlives the call."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.registries.progress import ProgressCallback
from pydantic_ai_skills.registries.secrets import HostSecret
from pydantic_ai_skills.registries.upstream import Deadline

from .address import GitAddress
from .options import SAFE_VARIABLES, FetchArguments
from .progress import Report

STALL_SECONDS = 20
"""How long a server may send less than `STALL_BYTES` a second."""

STALL_BYTES = 100

MAX_OUTPUT_BYTES = 1024 * 1024
"""How much git may print, unless more is expected of it."""

MAX_MEMORY_BYTES = 48 * 1024 * 1024
"""How much memory git may take to find out what a repository has."""

MAX_FETCH_MEMORY_BYTES = 256 * 1024 * 1024
"""How much memory git may take to fetch files."""

_SHELL = '/bin/sh'
_LIMIT = '(ulimit -d "$0") 2>/dev/null && ulimit -d "$0"; exec "$@"'
_CHUNK_BYTES = 64 * 1024
_LOOK_SECONDS = 0.05
_PROGRESS = re.compile(r':\s+\d+% \(|, done\.')
_ADDED = re.compile(
    r'fatal: Could not read from remote repository|Please make sure you have the correct|and the repository exists|'
    r'To add an exception for this directory|git config --global'
)
"""Lines that git adds to every error, and advice to change settings that are not read here."""

HINTS = {
    'could not read Username': ' The repository is private or does not exist: give a token as token=; at the '
    'terminal: --token-env.',
    'error: 403': ' The token does not allow this.',
    'error: 30': ' The server sends to another address, and a token is not sent on: use that address (often the same '
    "with '.git' at its end).",
    'Permission denied (publickey': ' Give a key as ssh_key_file=; at the terminal: --ssh-key.',
    'Host key verification failed': ' Put the key of the host into known_hosts.',
    'dubious ownership': ' It belongs to another user, and your git settings are not read: reach it over ssh or https, '
    'or make a copy of your own.',
    'Out of memory': ' What the server sends takes more memory than git is given: 48 MB to list a repository, 256 MB '
    'to fetch files.',
    'transport ': ' The repository refers to a protocol that is not among allowed_protocols.',
}
"""What to do about an error, by a part of git's message."""

REFUSALS = re.compile(
    r'Authentication failed|could not read (Username|Password)|error: 40[13]|Access denied|Permission denied \(|'
    r'Permission denied, please try again|Unauthorized'
)
"""What git says when a server does not accept the credential, or wants one."""

HIDDEN = ('not found', 'could not be found')
"""What git says about a repository or project that a server hides from a credential."""

FIXED_SETTINGS = {
    'core.askPass': '',
    # Larger files are not held in memory.
    'core.bigFileThreshold': '8m',
    'core.deltaBaseCacheLimit': '16m',
    'core.fsmonitor': 'false',
    'core.hooksPath': os.devnull,
    'core.symlinks': 'false',
    'credential.helper': '',
    'fetch.recurseSubmodules': 'false',
    # Objects are always kept as a pack, which is what `max_bytes` measures.
    'fetch.unpackLimit': '1',
    'fetch.writeCommitGraph': 'false',
    'gc.auto': '0',
    'http.lowSpeedLimit': str(STALL_BYTES),
    'maintenance.auto': 'false',
    'pack.threads': '1',
    'protocol.allow': 'never',
    'protocol.version': '2',
    'submodule.recurse': 'false',
    'transfer.bundleURI': 'false',
}
"""Settings of every git process. They override those of repository, user and system."""

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
"""Variables passed on to git. `HOME` is not: git and curl would read settings and passwords there."""


@dataclass(frozen=True, kw_only=True)
class Git:
    """How git is called for one repository."""

    address: GitAddress
    allowed: frozenset[str]
    """The protocols git may use."""

    options: FetchArguments
    max_bytes: int
    """How much may be fetched."""

    secret: HostSecret | None = None
    ssh_key_file: Path | None = None
    progress: ProgressCallback | None = None

    @cached_property
    def owner(self) -> str:
        """Identifies the credentials, without giving them away; empty if there are none."""
        key = self.ssh_key_file if self.address.protocol == 'ssh' else None
        # With options that are not safe, credentials can be anywhere.
        unsafe = {name: value for name, value in self.options.env.items() if name.upper() not in SAFE_VARIABLES}
        given = (
            self.secret.fingerprint() if self.secret else '',
            '' if key is None else _digest_of(key),
            sorted({**self.options.config, **unsafe}.items()),
        )
        return hashlib.sha256(repr(given).encode()).hexdigest()[:16] if any(given) else ''

    def run(
        self,
        arguments: list[str],
        *,
        repository: Path,
        deadline: Deadline,
        stdin: bytes = b'',
        max_output: int = MAX_OUTPUT_BYTES,
        max_memory: int = MAX_MEMORY_BYTES,
    ) -> bytes:
        """Run git in a bare repository and return its output, which may have up to `max_output` bytes."""
        chunks: list[bytes] = []
        left = max_output
        with self.output(
            arguments, repository=repository, deadline=deadline, stdin=stdin, max_memory=max_memory
        ) as stdout:
            while chunk := stdout.read1(_CHUNK_BYTES):
                chunks.append(chunk)
                left -= len(chunk)
                if left < 0:
                    why = f'printed more than {max_output:,} bytes (max_output) and was ended'
                    raise SkillRegistryError(f'{self.address.url}: git {arguments[0]} {why}')
        return b''.join(chunks)

    @contextlib.contextmanager
    def output(
        self,
        arguments: list[str],
        *,
        repository: Path,
        deadline: Deadline,
        stdin: bytes = b'',
        max_memory: int = MAX_MEMORY_BYTES,
    ) -> Generator[BufferedReader]:
        """Run git in a bare repository and yield its output, which must be read to its end. An exception ends git.

        Raises:
            SkillRegistryError: It failed, took too long or needed too much.
        """
        report = Report(self.progress)
        with tempfile.TemporaryFile(dir=repository) as given:
            given.write(stdin)
            given.seek(0)
            process = self._start([git_program(), *arguments], given, repository, deadline, max_memory)
        if isinstance(process, str):
            raise SkillRegistryError(f'Git cannot be started: {process}')
        with _limited(process, repository, deadline, self.max_bytes) as verdicts:
            with _streams(process, report) as stdout:
                yield stdout
            _await_exit(process)
        if verdicts or process.returncode:
            said = self.secret.redact(report.text) if self.secret else report.text
            why = ''.join(verdicts) or self._explain(said)
            is_refused = not verdicts and (REFUSALS.search(said) or (self.owner and _hides(said)))
            error = SkillRegistryRefusedError if is_refused else SkillRegistryError
            raise error(f'{self.address.url}: git {arguments[0]} {why}')

    def _start(
        self, command: list[str], stdin: IO[bytes], repository: Path, deadline: Deadline, max_memory: int
    ) -> subprocess.Popen[bytes] | str:
        """Start git, or return why not: the frames of an exception would hold the token."""
        environment = self._environment(repository, deadline)
        if shutil.which(command[0], path=environment.get('PATH')) is None:
            return os.strerror(errno.ENOENT)
        if os.path.exists(_SHELL):
            # A limit that is set after the start would come too late for the processes that git starts.
            command = [_SHELL, '-c', _LIMIT, str(max_memory // 1024), *command]
        try:
            return subprocess.Popen(
                command,
                cwd=repository,
                env=environment,
                stdin=stdin,
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
            **self.options.config,
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
            **self.options.env,
            **numbered,
            'GIT_CONFIG_COUNT': str(len(settings)),
        }

    def _ssh_command(self) -> str:
        words = ['ssh', '-o', 'BatchMode=yes']
        if self.ssh_key_file is not None:
            words += ['-o', 'IdentitiesOnly=yes', '-i', str(self.ssh_key_file)]
        return shlex.join(words)

    def _explain(self, output: str) -> str:
        """Why git failed, and the way out where one is known."""
        hint = next((hint for sign, hint in HINTS.items() if sign in output), '')
        if self.secret is not None and 'could not read Username' in output:
            hint = f' {self.secret.about_refusal()}'
        return f'failed: {_reason(output).rstrip(".")}.{hint}'


def _digest_of(key: Path) -> str:
    try:
        return hashlib.sha256(key.read_bytes()).hexdigest()
    except OSError:
        return str(key)  # ssh will say what is wrong with it


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if not _PROGRESS.search(line)]
    return ' '.join([line for line in lines if not _ADDED.match(line)][-3:] or lines[:1]) or 'git gave no reason'


@contextlib.contextmanager
def _limited(
    process: subprocess.Popen[bytes], folder: Path, deadline: Deadline, max_bytes: int
) -> Generator[list[str]]:
    """Kill a process and its children when it takes too long or fetches too much; the yielded list then says why."""
    over = threading.Event()
    verdicts: list[str] = []

    def watch() -> None:
        while not verdicts and not over.wait(max(0.0, min(_LOOK_SECONDS, deadline.left))):
            if deadline.left <= 0:
                verdicts.append(f'took longer than {deadline.seconds:g} s and was ended.')
            elif _bytes_below(folder) > max_bytes:
                verdicts.append(f'fetched more than {max_bytes:,} bytes and was ended; see max_bytes=.')
        if verdicts:
            _kill(process)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield verdicts
    finally:
        over.set()
        thread.join()
        # Until `wait` its number cannot go to another process.
        _kill(process)
        process.wait()


def _await_exit(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process to end without reaping it, so that its group can still be killed safely."""
    if hasattr(os, 'waitid'):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, 'killpg'):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _bytes_below(folder: Path) -> int:
    size = 0
    # Git renames and removes files there at the same time.
    with contextlib.suppress(OSError), os.scandir(folder / 'objects' / 'pack') as entries:
        size = sum(entry.stat().st_size for entry in entries)
    return size


@contextlib.contextmanager
def _streams(process: subprocess.Popen[bytes], report: Report) -> Generator[BufferedReader]:
    """Yield the output of a process while a thread reads its standard error. An exception kills the process."""
    stdout = cast(BufferedReader, process.stdout)
    assert process.stderr
    with stdout, process.stderr:
        listener = threading.Thread(target=report.listen, args=(process.stderr.fileno(),), daemon=True)
        listener.start()
        try:
            yield stdout
        except BaseException:
            _kill(process)
            raise
        finally:
            listener.join()


def git_program() -> str:
    """The git that GitPython would run. GitPython is not imported for this: that takes longer than most fetches."""
    binding = getattr(sys.modules.get('git'), 'Git', None)
    chosen: str | None = getattr(binding, 'GIT_PYTHON_GIT_EXECUTABLE', None)
    return chosen or os.environ.get('GIT_PYTHON_GIT_EXECUTABLE') or 'git'


def _hides(said: str) -> bool:
    """Whether a server says that there is no such repository, as many do to a credential that may not see it."""
    lines = said.lower().splitlines()
    about = (line for line in lines if 'repository' in line or 'project' in line)
    return any(words in line for line in about for words in HIDDEN)
