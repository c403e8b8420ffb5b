"""Runs scripts in a sandbox: Linux namespaces, set up by bubblewrap."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import ClassVar

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SandboxUnavailableError, SkillScriptExecutionError
from pydantic_ai_skills.execution.environment import with_folder_first
from pydantic_ai_skills.execution.interpreters import ScriptHead, is_uv
from pydantic_ai_skills.execution.launch import Command, Launch, SubprocessOptions
from pydantic_ai_skills.execution.local import SubprocessSkillScriptExecutor
from pydantic_ai_skills.execution.watchdog import Watchdog
from pydantic_ai_skills.execution.work_files import remove_outward_links

from .command import Handshake, file_with
from .devices import Entrance, ReadOnlyDevices
from .mounts import (
    HOME,
    hidden_mounts,
    is_system,
    network_mounts,
    outer_first,
    program_mounts,
    python_mounts,
    shown,
    system_mounts,
)
from .seccomp import seccomp_filter

SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
"""The `PATH` in the sandbox."""

TEMP_BYTES = 256 * 1024 * 1024
"""How much `/tmp` holds in the sandbox, in memory; at most a quarter of what the script may have."""

SHARED_MEMORY_BYTES = 64 * 1024 * 1024
"""How much `/dev/shm` holds in the sandbox; at most an eighth."""

SHELLS = frozenset({'ash', 'bash', 'dash', 'fish', 'ksh', 'sh', 'zsh'})
"""Shells, whose scripts often call Python."""

_NAMESPACES = ('user', 'pid', 'ipc', 'uts', 'mnt')
_USER = f'sandbox:x:1000:1000::{HOME}:/bin/sh\n'.encode()
_GROUP = b'sandbox:x:1000:\n'
_PROBE = (
    *('/bin/sh', '-c'),
    'cd /proc/self/ns && readlink user pid ipc uts mnt net && exec cat /proc/self/status /proc/self/mountinfo',
)


class BubblewrapSkillScriptExecutor(SubprocessSkillScriptExecutor):
    """Runs a script in a sandbox on this Linux machine, for scripts that strangers wrote.

    The script sees the system's programs and libraries, the Python it runs on and its skill's folder, all read-only,
    and the work folder of the conversation, where it starts and may write. Both have their own paths, which `SKILL_DIR`
    and `SKILL_WORK_DIR` name. It sees no other files unless you add them, no processes of the host, and no network
    unless you allow it; none of its processes outlives the run or this process. System calls that scripts do not need
    are refused. It takes about 10 ms more than a local process.

    It also takes the options of [`LocalSkillScriptExecutor`][pydantic_ai_skills.LocalSkillScriptExecutor].
    The constructor sets up a sandbox on trial, which takes a moment: call it once, outside of async code.

    ```python {test="skip"}
    from pydantic_ai_skills import BubblewrapSkillScriptExecutor, SkillsDirectory

    skills = SkillsDirectory('./skills', script_executor=BubblewrapSkillScriptExecutor())
    ```

    Args:
        network: Whether scripts may use the network of this machine, all of it.
        read: More folders and files of this machine that scripts may read, at their own paths.
        write: Those that scripts may change, too. What is in one of them has no limit but `file_size`.
        read_only: Another name for `read`.
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
        read: Sequence[str | Path] = (),
        write: Sequence[str | Path] = (),
        read_only: Sequence[str | Path] = (),
        bwrap: str = 'bwrap',
        setup_timeout: float = 10.0,
        **options: Unpack[SubprocessOptions],
    ) -> None:
        super().__init__(**options)
        self.network = network
        self.read = (*_paths(read), *_paths(read_only))
        """More folders and files that scripts may read."""
        self.write = _paths(write)
        """More folders and files that scripts may read and change."""
        self._setup_timeout = setup_timeout
        self._bwrap = _find_bubblewrap(bwrap)
        # Without a group that counts it, memory that no process has mapped would have no limit.
        self._filter = seccomp_filter(shared_memory=self.limits.memory is None or 'memory' in self._held())
        self.seccomp = self._filter is not None
        """Whether system calls are filtered, which needs an x86-64 or 64-bit ARM processor."""
        self._devices = self._read_only_devices() if os.geteuid() == 0 else None
        self._isolation = self._isolation_options()
        self._probe()

    def _held(self) -> Collection[str]:
        # In a user namespace the kernel counts the processes of each sandbox, but never those of root.
        return {*super()._held(), *(() if os.getuid() == 0 else ('processes',))}

    def _base_variables(self) -> dict[str, str]:
        kept = {k: v for k, v in super()._base_variables().items() if k.startswith(('LANG', 'LC_', 'TERM', 'TZ'))}
        return kept | {
            'HOME': HOME,
            'LOGNAME': 'sandbox',
            'PATH': SEARCH_PATH,
            'SHELL': '/bin/sh',
            'TMPDIR': '/tmp',  # noqa: S108 - the sandbox has a /tmp of its own
            'USER': 'sandbox',
            'UV_CACHE_DIR': '/tmp/uv',  # noqa: S108
        }

    def _interpreter(self, head: ScriptHead, packages: Path | None = None) -> list[str]:
        # Programs are looked up as usual; those outside the system folders are mounted.
        interpreter = super()._interpreter(head, packages if self.network else packages or self._own_python())
        if is_uv(interpreter) and '--python' not in interpreter:  # uv cannot find the Pythons of the host from inside
            interpreter[2:2] = ['--python', sys.executable]
        return interpreter

    def _provides(self, check: list[str], launch: Launch, cancelled: Callable[[], bool]) -> bool:
        # With a network; without one, uv is not used. What it downloads is gone with the sandbox, so it is asked once.
        return True

    def _command(self, launch: Launch, cleanup: ExitStack) -> Command:
        limits = self.limits
        mounts = self._mounts(launch)
        files: dict[tuple[str, ...], bytes] = {('--file', '/etc/passwd'): _USER, ('--file', '/etc/group'): _GROUP}
        if self._filter is not None:
            files['--seccomp',] = self._filter
        handshake = Handshake(launch.label, limits, files, setup_timeout=self._setup_timeout)
        cleanup.callback(handshake.close)
        prefix, null = self._entrance(launch.label, cleanup)
        argv = [*prefix, self._bwrap, *self._isolation, *mounts, *handshake.options]
        return Command(
            label=launch.label,
            argv=(
                *argv,
                '--remount-ro',
                '/',
                '--chdir',
                str(launch.start_in),
                '--',
                *launch.interpreter,
                *launch.start,
                *launch.arguments.argv,
            ),
            cwd=Path('/'),
            env={**launch.env, 'PATH': self._search_path(launch)},
            stdin=launch.arguments.stdin,
            null=null,
            timeout=limits.wall_time,
            max_output=limits.output,
            secrets=launch.secrets,
            pass_fds=handshake.pass_fds,
            on_start=handshake.on_start,
            # Bubblewrap and the first process of the sandbox are not the script's.
            watch=Watchdog(
                limits,
                work_dir=launch.work_dir,
                room=launch.room,
                helpers=2,
                group=launch.group,
                in_memory=tuple if 'memory' in self._held() else handshake.in_memory,
            ),
            group=launch.group,
            on_output=launch.on_output,
            kill=handshake.kill,
            check=handshake.check,
        )

    def _read_only_devices(self) -> ReadOnlyDevices:
        try:
            return ReadOnlyDevices(self._setup_timeout)
        except OSError as error:
            raise self._unavailable(error.strerror or str(error)) from error

    def _entrance(self, name: str, cleanup: ExitStack) -> Entrance:
        if self._devices is None:
            return Entrance([], os.devnull)
        try:
            return self._devices.enter(cleanup)
        except OSError as error:
            message = f'The script {name!r} could not be started in its sandbox: {error.strerror}.'
            raise SkillScriptExecutionError(message) from error

    def _search_path(self, launch: Launch) -> str:
        """The `PATH`, with the folders of the programs that are mounted for the script."""
        search_path = launch.env['PATH']
        programs = [*launch.interpreter[:1], *([self._python(launch)] if _is_shell(launch.interpreter) else [])]
        for program in programs:
            if program and not is_system(os.path.dirname(program)):
                search_path = with_folder_first(search_path, program)
        return search_path

    def _python(self, launch: Launch) -> str | None:
        """The Python with the packages of the skill, or else that of this executor."""
        return str(launch.packages or '') or shutil.which(self.python_executable or sys.executable)

    def _mounts(self, launch: Launch) -> list[str]:
        mounts = shown(launch.work_dir, way_out='Choose another `work_dir`.', writable=True)
        if not launch.is_private:
            mounts += hidden_mounts(launch.work_dir)
        python = self._python(launch)
        for program in launch.interpreter[:1]:
            mounts += python_mounts(program) if program == python else program_mounts(program)
        # For the programs that a script starts, its packages are there, too.
        if python and launch.interpreter[:1] != [python] and (launch.packages or is_uv(launch.interpreter)):
            mounts += python_mounts(python)
        elif python and _is_shell(launch.interpreter):
            with suppress(SkillScriptExecutionError):  # a shell script may do without Python
                mounts += python_mounts(python)
        for path in self.read:
            mounts += shown(path, way_out='Name the folders inside it that scripts may read.')
        for path in self.write:
            mounts += shown(path, way_out='Name the folders inside it that scripts may change.', writable=True)
        for path in launch.shown:
            mounts += shown(path, way_out='Put the skill into a folder of its own.')
            mounts += hidden_mounts(path)
        return [*self._temporary('/tmp', TEMP_BYTES, 4), '--dir', HOME, *outer_first(mounts)]  # noqa: S108

    def _tidy(self, launch: Launch) -> None:
        """Remove links to other places too: a script that is not in a sandbox might follow them."""
        super()._tidy(launch)
        remove_outward_links(launch.work_dir, lambda target: is_system(target) and not os.access(target, os.W_OK))

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
            raise self._unavailable(reason)
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

    def _unavailable(self, reason: str) -> SandboxUnavailableError:
        return SandboxUnavailableError(
            f'bubblewrap ({self._bwrap}) cannot make a sandbox here: {reason}. It needs version 0.8 or '
            'newer and user namespaces: see the sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone '
            'and kernel.apparmor_restrict_unprivileged_userns; in Docker, `--security-opt seccomp=unconfined`.'
        )

    def _run_probe(self) -> subprocess.CompletedProcess[str]:
        fds = [] if self._filter is None else [file_with(self._filter)]
        options = [*self._temporary('/tmp', TEMP_BYTES, 4), *(word for fd in fds for word in ('--seccomp', str(fd)))]  # noqa: S108
        try:
            with ExitStack() as cleanup:
                prefix, _ = self._entrance('probe', cleanup)
                return subprocess.run(
                    [*prefix, self._bwrap, *self._isolation, *options, '--remount-ro', '/', '--', *_PROBE],
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


def _paths(paths: Sequence[str | Path] | Path) -> tuple[Path, ...]:
    several = [paths] if isinstance(paths, str | Path) else paths
    return tuple(Path(path).expanduser().absolute() for path in several)


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


def _is_shell(interpreter: list[str]) -> bool:
    return bool(interpreter) and Path(interpreter[0]).name in SHELLS
