"""Runs scripts in a sandbox: Linux namespaces, set up by bubblewrap."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar, Literal

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SandboxUnavailableError, SkillScriptExecutionError
from pydantic_ai_skills.execution.local import Launch, SubprocessOptions, SubprocessSkillScriptExecutor
from pydantic_ai_skills.execution.process import Command
from pydantic_ai_skills.execution.script_file import ScriptHead
from pydantic_ai_skills.execution.watchdog import Watchdog

from .command import Handshake, file_with
from .mounts import (
    WORK_DIR,
    hidden_mounts,
    is_system,
    network_mounts,
    program_mounts,
    python_mounts,
    read_only_mount,
    system_mounts,
)
from .seccomp import seccomp_filter

SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
"""The `PATH` in the sandbox."""

TEMP_BYTES = 256 * 1024 * 1024
"""How much `/tmp` holds in the sandbox, in memory; at most a quarter of what the script may have."""

SHARED_MEMORY_BYTES = 64 * 1024 * 1024
"""How much `/dev/shm` holds in the sandbox; at most an eighth."""

_NAMESPACES = ('user', 'pid', 'ipc', 'uts', 'mnt')
_USER = b'sandbox:x:1000:1000::/sandbox:/bin/sh\n'
_GROUP = b'sandbox:x:1000:\n'
_PROBE = (
    *('/bin/sh', '-c'),
    'cd /proc/self/ns && readlink user pid ipc uts mnt net && exec cat /proc/self/status /proc/self/mountinfo',
)


class BubblewrapSkillScriptExecutor(SubprocessSkillScriptExecutor):
    """Runs a script in a sandbox on this Linux machine, for scripts that strangers wrote.

    The script sees the system's programs and libraries, the Python it runs on and its skill's folder, all read-only. It
    starts in a private work folder, which is also its home; `SKILL_DIR` names the skill's folder. It sees no other
    files, no processes of the host and no network unless you allow it, and none of its processes outlives the run or
    this process. System calls that scripts do not need are refused. It takes about 10 ms more than a local process.

    It also takes the options of [`LocalSkillScriptExecutor`][pydantic_ai_skills.LocalSkillScriptExecutor].
    The constructor sets up a sandbox on trial, which takes a moment: call it once, outside of async code.

    ```python {test="skip"}
    from pydantic_ai_skills import BubblewrapSkillScriptExecutor, SkillsDirectory

    skills = SkillsDirectory('./skills', script_executor=BubblewrapSkillScriptExecutor())
    ```

    Args:
        network: Whether scripts may use the network of this machine, all of it.
        read_only: More folders and files of this machine that scripts may read, at their own paths.
        cwd: Whether a script starts in its work folder or, read-only, in its own folder.
        bwrap: The bubblewrap program.
        setup_timeout: Seconds that bubblewrap may take to set up a sandbox.

    Raises:
        SandboxUnavailableError: No sandbox can be made here. Scripts are never run without one.
    """

    sandboxed: ClassVar[bool] = True

    def __init__(
        self,
        *,
        network: bool = False,
        read_only: Sequence[str | Path] = (),
        cwd: Literal['script', 'work'] = 'work',
        bwrap: str = 'bwrap',
        setup_timeout: float = 10.0,
        **options: Unpack[SubprocessOptions],
    ) -> None:
        super().__init__(cwd=cwd, **options)
        self.network = network
        self.read_only = tuple(Path(path).absolute() for path in read_only)
        self._setup_timeout = setup_timeout
        self._bwrap = _find_bubblewrap(bwrap)
        # Without a group that counts it, memory that no process has mapped would have no limit.
        self._filter = seccomp_filter(shared_memory=self.limits.memory is None or 'memory' in self._held())
        self.seccomp = self._filter is not None
        """Whether system calls are filtered, which needs an x86-64 or 64-bit ARM processor."""
        self._prefix = _with_read_only_devices() if os.geteuid() == 0 else []
        self._isolation = self._isolation_options()
        self._probe()

    def _held(self) -> Collection[str]:
        # In a user namespace the kernel counts the processes of each sandbox, but never those of root.
        return {*super()._held(), *(() if os.getuid() == 0 else ('processes',))}

    def _base_variables(self) -> dict[str, str]:
        kept = {k: v for k, v in super()._base_variables().items() if k.startswith(('LANG', 'LC_', 'TERM', 'TZ'))}
        return kept | {
            'HOME': WORK_DIR,
            'LOGNAME': 'sandbox',
            'PATH': SEARCH_PATH,
            'SHELL': '/bin/sh',
            'SKILL_WORK_DIR': WORK_DIR,
            'TMPDIR': '/tmp',  # noqa: S108 - the sandbox has a /tmp of its own
            'USER': 'sandbox',
            'UV_CACHE_DIR': '/tmp/uv',  # noqa: S108
        }

    def _interpreter(self, head: ScriptHead) -> list[str]:
        # Programs are looked up as usual; those outside the system folders are mounted.
        interpreter = super()._interpreter(head)
        if not _is_uv(interpreter):
            return interpreter
        if not self.network:
            raise SkillScriptExecutionError(
                f'{head.name!r} has dependencies that uv would have to download, and the sandbox has no network. '
                'The developer can allow it with `network=True`.'
            )
        if '--python' not in interpreter:  # uv cannot find the Pythons of the host from inside
            interpreter[2:2] = ['--python', sys.executable]
        return interpreter

    def _command(self, launch: Launch, cleanup: ExitStack) -> Command:
        limits = self.limits
        mounts = self._mounts(launch)
        files: dict[tuple[str, ...], bytes] = {('--file', '/etc/passwd'): _USER, ('--file', '/etc/group'): _GROUP}
        if self._filter is not None:
            files['--seccomp',] = self._filter
        handshake = Handshake(launch.script.name, limits, files, setup_timeout=self._setup_timeout)
        cleanup.callback(handshake.close)
        start = WORK_DIR if self.cwd == 'work' else str(launch.path.parent)
        argv = [*self._prefix, self._bwrap, *self._isolation, *mounts, *handshake.options]
        return Command(
            label=launch.script.name,
            argv=(
                *argv,
                '--remount-ro',
                '/',
                '--chdir',
                start,
                '--',
                *launch.interpreter,
                str(launch.path),
                *launch.arguments.argv,
            ),
            cwd=Path('/'),
            env=_with_program(launch.env, launch.interpreter),
            stdin=launch.arguments.stdin,
            timeout=limits.wall_time,
            max_output=limits.output,
            secrets=launch.secrets,
            pass_fds=handshake.pass_fds,
            on_start=handshake.on_start,
            # Bubblewrap and the first process of the sandbox are not the script's.
            watch=Watchdog(
                limits,
                work_dir=launch.work_dir,
                helpers=2,
                group=launch.group,
                in_memory=tuple if 'memory' in self._held() else handshake.in_memory,
            ),
            group=launch.group,
            kill=handshake.kill,
            check=handshake.check,
        )

    def _mounts(self, launch: Launch) -> list[str]:
        mounts = [*self._temporary('/tmp', TEMP_BYTES, 4), '--bind', str(launch.work_dir), WORK_DIR]  # noqa: S108
        python = shutil.which(self.python_executable or sys.executable)
        for program in launch.interpreter[:1]:
            mounts += python_mounts(program) if program == python else program_mounts(program)
        if python and _is_uv(launch.interpreter):
            mounts += python_mounts(python)
        for path in self.read_only:
            mounts += read_only_mount(path, way_out='Name the folders inside it that scripts may read.')
        mounts += read_only_mount(launch.skill_dir, way_out='Put the skill into a folder of its own.')
        mounts += hidden_mounts(launch.skill_dir)
        if launch.skill_dir not in launch.path.parents:
            mounts += ['--ro-bind', os.path.realpath(launch.path), str(launch.path)]
        return mounts

    def _isolation_options(self) -> list[str]:
        # No --new-session: the process already has a session without a terminal, and its group can be killed at once.
        return [
            *(f'--unshare-{name}' for name in ('user', 'pid', 'ipc', 'uts', 'cgroup-try')),
            *([] if self.network else ['--unshare-net']),
            *('--uid', '1000', '--gid', '1000', '--hostname', 'sandbox', '--die-with-parent'),
            *system_mounts(),
            *(network_mounts() if self.network else []),
            *self._temporary('/dev/shm', SHARED_MEMORY_BYTES, 8),  # noqa: S108
            *('--remount-ro', '/dev'),
            # When this process is root, the kernel treats a script as the owner of the settings in /proc/sys.
            *('--remount-ro', '/proc'),
        ]

    def _temporary(self, folder: str, size: int, share: int) -> list[str]:
        """A folder in memory, for at most this share of the memory that the script may have."""
        memory = self.limits.memory
        return ['--size', str(size if memory is None else min(size, memory // share)), '--tmpfs', folder]

    def _probe(self) -> None:
        """Set up a sandbox and check from inside that it isolates, so that no other program can pose as bubblewrap."""
        done = self._run_probe()
        lines = done.stdout.splitlines()
        inside = {line for line in lines[:6] if ':[' in line}
        if done.returncode or len(inside) <= len(_NAMESPACES):
            reason = done.stderr.strip() or f'it ended with exit code {done.returncode}'
            raise SandboxUnavailableError(
                f'bubblewrap ({self._bwrap}) cannot make a sandbox here: {reason}. It needs version 0.8 or '
                'newer and user namespaces: see the sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone '
                'and kernel.apparmor_restrict_unprivileged_userns; in Docker, `--security-opt seccomp=unconfined`.'
            )
        names = _NAMESPACES if self.network else (*_NAMESPACES, 'net')
        missing = [name for name in names if os.readlink(f'/proc/self/ns/{name}') in inside]
        if self.seccomp and 'Seccomp:\t2' not in lines:
            missing.append('seccomp')
        if os.geteuid() == 0 and not any(' /dev/null ro,' in line for line in lines):
            missing.append('read-only devices')
        if missing:
            raise SandboxUnavailableError(
                f'bubblewrap ({self._bwrap}) does not isolate scripts: no {", ".join(missing)} of its own.'
            )

    def _run_probe(self) -> subprocess.CompletedProcess[str]:
        fds = [] if self._filter is None else [file_with(self._filter)]
        options = [*self._temporary('/tmp', TEMP_BYTES, 4), *(word for fd in fds for word in ('--seccomp', str(fd)))]  # noqa: S108
        try:
            return subprocess.run(
                [*self._prefix, self._bwrap, *self._isolation, *options, '--remount-ro', '/', '--', *_PROBE],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors='replace',
                timeout=self._setup_timeout,
                env={'PATH': SEARCH_PATH},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SandboxUnavailableError(f'bubblewrap ({self._bwrap}) cannot be run: {error}.') from error
        finally:
            for fd in fds:
                os.close(fd)


def _find_bubblewrap(bwrap: str) -> str:
    if sys.platform != 'linux':
        raise SandboxUnavailableError(
            f'Bubblewrap makes sandboxes on Linux only; this is {platform.system()}. Use WorkspaceSkillScriptExecutor '
            'with a container or remote workspace.'
        )
    if found := shutil.which(bwrap):
        return found
    raise SandboxUnavailableError(
        f'bubblewrap ({bwrap}) is not installed. Install it with `apt-get install bubblewrap`, '
        '`dnf install bubblewrap` or `apk add bubblewrap`.'
    )


def _is_uv(interpreter: list[str]) -> bool:
    return bool(interpreter) and Path(interpreter[0]).name == 'uv'


def _with_program(env: Mapping[str, str], interpreter: list[str]) -> Mapping[str, str]:
    """The environment, with the interpreter's folder on the `PATH` unless it is a system folder."""
    folder = os.path.dirname(interpreter[0]) if interpreter else ''
    return env if not folder or is_system(folder) else {**env, 'PATH': f'{folder}:{env["PATH"]}'}


def _with_read_only_devices() -> list[str]:
    """Words to put before a command: it gets a `/dev` of its own in which the devices cannot be changed.

    Root owns the devices, so a script of root could take the rights to `/dev/null` away from everybody. Bubblewrap
    cannot forbid that: what it mounts read-only is no device any more. An empty standard input is a device, too.
    """
    unshare = shutil.which('unshare')
    if unshare is None:
        raise SandboxUnavailableError('A sandbox for root also needs `unshare` and `mount`, of the package util-linux.')
    options = '--user', '--map-root-user', '--mount', '--propagation', 'slave'
    steps = (
        'mount -n --rbind /dev /dev',
        'mount -n -o remount,bind,ro /dev',
        '{ [ -p /dev/stdin ] || exec </dev/null; }',
        'exec "$@"',
    )
    return [unshare, *options, '/bin/sh', '-c', ' && '.join(steps), 'sh']
