"""Presents a work folder on this machine as a pydantic-ai workspace: its files, and commands that an executor runs.

No path leads out of the folder. Links in it are resolved, and what they lead to is opened step by step, without
following any other link: one that is swapped meanwhile gives an error.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, runtime_checkable
from uuid import uuid4

from anyio import to_thread
from pydantic_ai.messages import WorkspaceRef
from pydantic_ai.workspaces import (
    CommandResult,
    FileEntry,
    WorkspaceCommand,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError
from pydantic_ai_skills.filesystem.safe_open import OpenFolder

from .base import with_timeout
from .result import ScriptResult, SkillScriptStoppedError, SkillScriptTimeoutError
from .streaming import OnOutput
from .work_dir import MAX_READ_BYTES, WorkDir

T = TypeVar('T')


@runtime_checkable
class CommandExecutor(Protocol):
    """An executor that also runs shell commands in a work folder."""

    async def run_command(
        self,
        command: str,
        *,
        work_dir: WorkDir,
        shown: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
        on_output: OnOutput | None = None,
        ctx: Any = None,
    ) -> ScriptResult:
        """Run a command with the limits and the isolation of scripts."""
        ...


class WorkDirBackend:
    """The work folder of a conversation as the back end of a workspace.

    It keeps the contract of pydantic-ai, except that processes left running by a command are stopped with it.
    """

    def __init__(self, work_dir: WorkDir, executor: CommandExecutor) -> None:
        self._work_dir = work_dir
        self._folder = work_dir.local_path()
        self._executor = executor

    @property
    def ref(self) -> WorkspaceRef:
        """Identifies the folder."""
        return WorkspaceRef(provider='pydantic-ai-skills', id=str(self._folder))

    async def working_dir(self) -> str:
        """The folder."""
        return await to_thread.run_sync(self._root)

    # --- Commands -------------------------------------------------------------------------------------------------

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Run a command as the executor runs scripts: with its limits, its environment and its isolation."""
        if isinstance(command, str) is not shell:
            raise TypeError('A command is a text with `shell=True`, or else a list of words.')
        text = command if isinstance(command, str) else shlex.join(command)
        executor: CommandExecutor = self._executor
        if timeout is not None:
            executor = cast(Any, with_timeout(cast(Any, executor), timeout))
        try:
            done = await executor.run_command(text, work_dir=self._work_dir, env=env)
        except SkillScriptTimeoutError as error:
            raise WorkspaceTimeoutError(str(error), stdout=error.result.stdout, stderr=error.result.stderr) from error
        except SkillScriptStoppedError as error:
            raise WorkspaceError(str(error)) from error
        except SkillScriptExecutionError as error:
            raise WorkspaceUnavailableError(str(error)) from error
        if done.truncated:
            limit = len(done.stdout) + len(done.stderr)
            message = 'The command printed more than is kept.'
            raise WorkspaceOutputLimitError(message, limit=limit, stdout=done.stdout, stderr=done.stderr)
        return CommandResult(exit_code=done.exit_code, stdout=done.stdout, stderr=done.stderr)

    # --- Files ----------------------------------------------------------------------------------------------------

    async def read_bytes(self, path: str) -> bytes:
        """Read a regular file of at most 10 MiB."""
        return await self._at(path, _read)

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file beside its place, then move it there. An existing file keeps its mode."""
        await self._at(path, partial(_write, data=data), make=True)

    async def stat(self, path: str) -> FileEntry:
        """Whether it is a folder, and how long a file is."""
        found = await self._at(path, _status)
        name = os.path.basename(path.rstrip('/'))
        is_dir = stat.S_ISDIR(found.st_mode)
        return FileEntry(name=name, path=path, is_dir=is_dir, size=None if is_dir else found.st_size)

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        """The entries of a folder; a link counts as a folder if it leads to one inside the work folder."""
        return await to_thread.run_sync(self._list, path)

    async def make_dir(self, path: str) -> None:
        """Make a folder, and those above it."""
        await self._at(path, _make_dir, make=True)

    async def remove(self, path: str) -> None:
        """Remove a file, a link or a whole folder."""
        await to_thread.run_sync(self._remove, path)

    async def exists(self, path: str) -> bool:
        """Whether a path leads to anything inside the work folder."""
        try:
            await self._at(path, _status)
        except OSError:
            return False
        return True

    async def realpath(self, path: str) -> str:
        """Where a path leads, which may be outside."""
        return await to_thread.run_sync(os.path.realpath, path)

    def _root(self) -> str:
        root = os.path.realpath(self._folder)
        if not os.path.isdir(root):
            raise WorkspaceUnavailableError('The work folder does not exist any more.')
        return root

    def _steps(self, path: str) -> tuple[str, ...]:
        """The way to a file from the work folder, with links resolved."""
        root, real = self._root(), os.path.realpath(path)
        if real == root:
            return ()
        if not real.startswith(f'{root}/'):
            raise PermissionError(errno.EACCES, 'it is not in the work folder', path)
        return tuple(real[len(root) + 1 :].split('/'))

    async def _at(self, path: str, work: Callable[[OpenFolder, str], T], *, make: bool = False) -> T:
        """Do something with the entry at a path, in the folder that holds it. With `make`, that folder is made."""

        def do() -> T:
            steps = self._steps(path)
            if not steps:
                with OpenFolder.beneath(self._root()) as folder:
                    return work(folder, '.')
            with _open(self._root(), steps[:-1], make=make) as folder:
                return work(folder, steps[-1])

        return await to_thread.run_sync(do)

    def _list(self, path: str) -> list[FileEntry]:
        with OpenFolder.beneath(self._root(), self._steps(path)) as folder:
            return [
                FileEntry(name=entry.name, path=f'{path}/{entry.name}', is_dir=is_dir, size=None if is_dir else size)
                for entry in folder.entries()
                for is_dir, size in [self._kind(f'{path}/{entry.name}', entry.stat(follow_symlinks=False))]
            ]

    def _kind(self, path: str, status: os.stat_result) -> tuple[bool, int]:
        """Whether an entry is a folder, and its size. A link that leads outside is not followed."""
        if stat.S_ISLNK(status.st_mode):
            with suppress(OSError):
                steps = self._steps(path)
                with OpenFolder.beneath(self._root(), steps[:-1]) as folder:
                    status = _status(folder, steps[-1] if steps else '.')
        return stat.S_ISDIR(status.st_mode), status.st_size

    def _remove(self, path: str) -> None:
        root = self._root()
        target = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if target == root or not target.startswith(f'{root}/'):
            raise ValueError('Only what is inside the work folder can be removed.')
        *steps, name = target[len(root) + 1 :].split('/')
        with OpenFolder.beneath(root, steps) as folder:
            if stat.S_ISDIR(_status(folder, name).st_mode):
                shutil.rmtree(name, dir_fd=folder.descriptor)
            else:
                os.unlink(name, dir_fd=folder.descriptor)


def _open(root: str, steps: Sequence[str], *, make: bool) -> OpenFolder:
    folder = OpenFolder.beneath(root)
    for step in steps:
        with folder:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(step, 0o700, dir_fd=folder.descriptor)
            folder = folder.folder(step)
    return folder


def _status(folder: OpenFolder, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)


def _read(folder: OpenFolder, name: str) -> bytes:
    if stat.S_ISDIR(_status(folder, name).st_mode):
        raise IsADirectoryError(errno.EISDIR, 'it is a folder', name)
    try:
        return folder.read(name, MAX_READ_BYTES).data
    except SkillResourceLoadError as error:
        raise OSError(errno.EINVAL, f'it {str(error).rstrip(".")}', name) from error


def _write(folder: OpenFolder, name: str, data: bytes) -> None:
    before = folder.status_of(name)
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, 'it is a folder', name)
    if before is not None and not (stat.S_ISREG(before.st_mode) and os.access(name, os.W_OK, dir_fd=folder.descriptor)):
        raise PermissionError(errno.EACCES, 'it is not a file that may be changed', name)
    beside, at = f'.{uuid4().hex}', folder.descriptor
    mode = 0o600 if before is None else stat.S_IMODE(before.st_mode) & 0o777
    try:
        with open(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=at), 'wb') as file:
            file.write(data)
            os.chmod(file.fileno(), mode)
        os.replace(beside, name, src_dir_fd=at, dst_dir_fd=at)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=at)
        raise


def _make_dir(folder: OpenFolder, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder.descriptor)
    if not stat.S_ISDIR(_status(folder, name).st_mode):
        raise FileExistsError(errno.EEXIST, 'it is a file', name)
