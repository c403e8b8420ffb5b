"""Runs scripts in the workspace of an agent run: on this machine, in a container or in a remote sandbox."""

from __future__ import annotations

import posixpath
import re
import shlex
import time
from collections.abc import AsyncGenerator, Collection, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import anyio
from anyio import to_thread
from pydantic_ai.exceptions import UserError
from pydantic_ai.workspaces import (
    Workspace,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

from .arguments import ArgumentVector, script_arguments
from .environment import EnvValues, ScriptEnvironment, SkillEnv, import_variables, top_modules
from .interpreters import (
    UV_CHECK,
    Interpreter,
    interpreters_for,
    local_file,
    module_name,
    module_words,
    needs,
    path_in,
    refuse_links,
)
from .limits import ScriptLimits
from .process import StreamCapture, fit_output
from .result import ScriptResult, SkillScriptStoppedError, SkillScriptTimeoutError
from .snapshot import FolderSnapshot, snapshot_file, snapshot_folder
from .streaming import OnOutput
from .work_dir import WorkDir
from .work_files import changed_files, stamps_of

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript

NO_INTERPRETER = 'pydantic-ai-skills: no interpreter'
"""Printed by the command when no program that can run the script is installed."""

NO_COPY = 'pydantic-ai-skills: no copy'
"""Printed by the command when the copy of the skill is no longer there."""

COMPLETE = '.complete'
"""The file that marks a copy as whole."""

POLL = 0.01
"""Seconds between two checks whether somebody else has finished a copy."""

_NOT_IN_NAMES = re.compile(r'[^A-Za-z0-9._-]+')


class WorkspaceSkillScriptExecutor:
    """Runs scripts in `ctx.workspace`, wherever that is: on this machine, in a container, in a remote sandbox.

    The skill's folder is copied into the workspace once for each version of its content. Scripts start in the
    workspace's own folder, where the agent's files are, and find the copy of their skill in `SKILL_DIR`. How far they
    are isolated is up to the workspace.

    ```python {test="skip"}
    from pydantic_ai import Agent
    from pydantic_ai.workspaces import LocalWorkspaceBackend

    from pydantic_ai_skills import SkillsDirectory, SkillsToolset, WorkspaceSkillScriptExecutor

    skills = SkillsDirectory('./skills', script_executor=WorkspaceSkillScriptExecutor())
    agent = Agent('openai:gpt-5.2', toolsets=[SkillsToolset(directories=[skills])])
    agent.run_sync('Fill in the form.', workspace=LocalWorkspaceBackend('./work'))
    ```

    Args:
        timeout: Seconds after which a script is stopped.
        max_output: Bytes of output that are kept.
        env: Environment variables for every script, or a function that makes them from the `RunContext`.
        pass_env: Names of variables to pass on from this process to every script.
        skill_env: The same for the scripts of single skills.
        staging_dir: Where copies of skills are kept, in the workspace.
        cwd: Whether a script starts in the workspace's folder, in its own folder there, or in its skill's.
        sandboxed: Whether your workspaces keep scripts away from this machine, so that scripts from registries may run.
        max_remembered: How many copies are remembered, so that the workspace need not be asked about them again.
    """

    def __init__(
        self,
        *,
        timeout: float = ScriptLimits.wall_time,
        max_output: int = ScriptLimits.output,
        env: EnvValues | None = None,
        pass_env: Sequence[str] = (),
        skill_env: Mapping[str, SkillEnv] | None = None,
        staging_dir: str = '.skills',
        cwd: Literal['work', 'script', 'skill'] = 'work',
        sandboxed: bool = False,
        max_remembered: int = 1_000,
    ) -> None:
        self.limits = ScriptLimits(wall_time=timeout, output=max_output)
        self.environment = ScriptEnvironment(env=env, pass_env=pass_env, skill_env=skill_env or {})
        self.cwd: Literal['work', 'script', 'skill'] = cwd
        self.sandboxed = sandboxed
        """Whether scripts are kept away from this machine."""
        self._copies = _Copies(staging_dir, max_remembered)

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> ScriptResult:
        """Run the script in the run's workspace and return what it printed and its exit code.

        Raises:
            SkillScriptExecutionError: There is no workspace that can run it, or the arguments cannot be passed on.
            SkillScriptStoppedError: It ran too long or printed too much. The error holds its output until then.
        """
        workspace = _workspace(ctx)
        snapshot, name = await _snapshot(script)
        file = next((file for file in snapshot.files if file.name == name), None)
        if file is None:
            raise SkillScriptExecutionError(f'The script {script.name!r} is not a regular file of its skill.')
        arguments = await to_thread.run_sync(script_arguments, script, args, file.content)
        interpreters = interpreters_for(PurePosixPath(name).name, file.content, executable=file.executable)
        module = module_name(name, file.content) if interpreters and interpreters[0].is_python else None
        env, secrets = self.environment.build(script.skill_name, ctx, base={})
        skill_name = script.skill_name or 'script'
        here = script.work_dir and script.work_dir.path  # if it is on this machine
        try:
            folder = await self._copies.provide(workspace, skill_name, snapshot)
            before = {} if here is None else await to_thread.run_sync(stamps_of, here)
            start = [f'{folder}/{name}'] if module is None else module_words(module)
            command_line = _command_line(interpreters, start, arguments.argv)
            command = await self._command(workspace, folder, f'{folder}/{name}', command_line, arguments)
            modules = top_modules(file.name for file in snapshot.files)
            env |= import_variables(folder, modules, env, as_module=module is not None, separator=':')
            env |= {'SKILL_DIR': folder, 'CLAUDE_SKILL_DIR': folder}
            done = await self._execute(workspace, f'The script {script.name!r}', command, env, secrets)
            if _gave_up(done, NO_COPY):
                await self._copies.provide(workspace, skill_name, snapshot, anew=True)
                done = await self._execute(workspace, f'The script {script.name!r}', command, env, secrets)
        except WorkspaceUnavailableError as error:
            raise SkillScriptExecutionError(f'The workspace is not available: {error}') from error
        except (WorkspaceError, OSError) as error:  # also where a script left something in the way of the copies
            raise SkillScriptExecutionError(f'The workspace refused to run a script: {error}') from error
        _check_started(script, done, interpreters)
        if here is None:
            return done
        files = await to_thread.run_sync(changed_files, here, before)
        return replace(done, files=files, work_dir=here if files else None)

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
        """Run a shell command in a workspace, and copy the folders of skills there first unless it is on this machine.

        Paths of such folders in the command become those of the copies. Workspaces return the output only at the end.

        Raises:
            SkillScriptExecutionError: There is no workspace, or it refused.
            SkillScriptStoppedError: It ran too long or printed too much. The error holds its output until then.
        """
        workspace, here = _workspace(work_dir), work_dir.path
        variables, secrets = self.environment.build(None, ctx, base={})
        variables |= env or {}
        try:
            for folder in shown if here is None else ():
                snapshot = await to_thread.run_sync(snapshot_folder, folder)
                copy = await self._copies.provide(workspace, folder.name, snapshot)
                command = command.replace(str(folder), copy)
                variables = {name: copy if value == str(folder) else value for name, value in variables.items()}
            before = {} if here is None else await to_thread.run_sync(stamps_of, here)
            command = f'export SKILL_WORK_DIR="$PWD"; {command}'
            done = await self._execute(workspace, 'The command', command, variables, secrets)
        except (WorkspaceError, OSError, UserError) as error:
            raise SkillScriptExecutionError(f'The workspace refused to run a command: {error}') from error
        files = () if here is None else await to_thread.run_sync(changed_files, here, before)
        return replace(done, files=files, work_dir=here if files else None)

    async def _command(
        self, workspace: Workspace, folder: str, path: str, command: str, arguments: ArgumentVector
    ) -> str:
        """The shell command that runs a script. Text for standard input is written into the workspace first."""
        if self.cwd != 'work':
            start_in = posixpath.dirname(path) if self.cwd == 'script' else folder
            command = f'cd {shlex.quote(start_in)} && {command}'
        if arguments.stdin is not None:
            # Commands have no standard input in a workspace, so the script's is a file, removed before it starts.
            stdin = f'{folder}.stdin-{uuid4().hex}'
            await workspace.write_bytes(stdin, arguments.stdin.encode())
            command = f'exec <{shlex.quote(stdin)}; rm -f {shlex.quote(stdin)}; {command}'
        is_copied = ' && '.join(f'[ -e {shlex.quote(file)} ]' for file in (f'{folder}/{COMPLETE}', path))
        return f'export SKILL_WORK_DIR="$PWD"; {is_copied} || {_give_up(NO_COPY)}; {command}'

    async def _execute(
        self, workspace: Workspace, what: str, command: str, env: Mapping[str, str], secrets: Collection[str]
    ) -> ScriptResult:
        started = time.monotonic()
        limits = self.limits

        def result(exit_code: int, stdout: str, stderr: str, *, timed_out: bool = False) -> ScriptResult:
            captures = StreamCapture(limits.output), StreamCapture(limits.output)
            for capture, text in zip(captures, (stdout, stderr), strict=True):
                capture.feed(text.encode())
            output = fit_output(*captures, limit=limits.output, secrets=secrets)
            duration = time.monotonic() - started
            return ScriptResult(exit_code=exit_code, duration=duration, timed_out=timed_out, **output._asdict())

        try:
            # Every word of the command is quoted. Only a shell can choose the interpreter and the folder.
            done = await workspace.run(command, shell=True, env=env, timeout=limits.wall_time)  # noqa: S604
        except WorkspaceTimeoutError as error:
            message = f'{what} was stopped: it did not end within {limits.wall_time:g} s.'
            stopped = result(137, error.stdout, error.stderr, timed_out=True)
            raise SkillScriptTimeoutError(message, result=stopped) from error
        except WorkspaceOutputLimitError as error:
            message = f'{what} was stopped: it printed more than {error.limit:,} bytes.'
            raise SkillScriptStoppedError(message, result=result(137, error.stdout, error.stderr)) from error
        return result(done.exit_code, done.stdout, done.stderr)


def _workspace(ctx: Any) -> Workspace:
    workspace = getattr(ctx, 'workspace', None)
    if not isinstance(workspace, Workspace) or not workspace.attached:
        raise SkillScriptExecutionError(
            'This run has no workspace to run scripts in. For the developer: pass `workspace=` to the run, or give the '
            'agent a capability that provides one.'
        )
    if workspace.read_only:
        raise SkillScriptExecutionError('The workspace of this run is read-only, so scripts cannot be run in it.')
    return workspace


async def _snapshot(script: SkillScript) -> tuple[FolderSnapshot, str]:
    """The files to copy into the workspace, and the script's name among them."""
    path, folder = local_file(script), script.skill_dir
    await to_thread.run_sync(refuse_links, script)
    inside = None if folder is None else path_in(folder, path)
    if folder is None or inside is None:
        return await to_thread.run_sync(snapshot_file, path), path.name
    return await to_thread.run_sync(snapshot_folder, folder), inside


def _command_line(interpreters: list[Interpreter], start: list[str], arguments: Sequence[str]) -> str:
    """A shell command that runs the script with the first of the interpreters that the workspace has."""
    tail = shlex.join([*start, *arguments])
    if not interpreters:
        return f'exec {tail}'
    choices = [
        f'{_can_run(program, interpreter, start)} && exec {shlex.join([program, *interpreter.arguments])} {tail}'
        for interpreter in interpreters
        for program in _names(interpreter)
    ]
    return f'{{ {"; ".join(choices)}; {_give_up(NO_INTERPRETER)}; }}'


def _can_run(program: str, interpreter: Interpreter, start: list[str]) -> str:
    """A shell command that succeeds if the program is installed and can provide the packages that it has to."""
    is_there = f'command -v {shlex.quote(program)} >/dev/null 2>&1'
    if not interpreter.dependencies:
        return is_there
    return f'{is_there} && {shlex.join([program, *UV_CHECK, *start])} </dev/null >/dev/null 2>&1'


def _check_started(script: SkillScript, done: ScriptResult, interpreters: list[Interpreter]) -> None:
    if _gave_up(done, NO_COPY):
        raise SkillScriptExecutionError(
            f'The workspace does not keep the copy of the skill, so {script.name!r} cannot be run in it.'
        )
    if interpreters and _gave_up(done, NO_INTERPRETER):
        raise SkillScriptExecutionError(
            f'{script.name!r} {needs(interpreters)}, which the workspace does not have. '
            'For the developer: install it there.'
        )


def _give_up(reason: str) -> str:
    """A shell command that ends the whole command in a way that `_gave_up` recognizes."""
    return f'{{ echo {shlex.quote(reason)} >&2; exit 127; }}'


def _gave_up(done: ScriptResult, reason: str) -> bool:
    return done.exit_code == 127 and done.stderr.strip().endswith(reason)


def _names(interpreter: Interpreter) -> list[str]:
    """Possible names of the program in the workspace. Any Python can replace another."""
    others = ('python3', 'python') if interpreter.is_python else ()
    return list(dict.fromkeys((interpreter.program, PurePosixPath(interpreter.program).name, *others)))


class _Copies:
    """Copies the folders of skills into workspaces, once for each version of their content."""

    def __init__(self, folder: str, max_remembered: int) -> None:
        self._folder = folder
        self._max_remembered = max_remembered
        self._known: set[tuple[str, str, str]] = set()
        self._copying: dict[Hashable, object] = {}

    async def provide(
        self, workspace: Workspace, skill_name: str, snapshot: FolderSnapshot, *, anew: bool = False
    ) -> str:
        """Make sure that the workspace has this version of the skill, and return its folder there.

        With `anew` the skill is copied in any case, because the existing copy is no longer whole.
        """
        # Skills of the same name from different places may share a workspace; the digest keeps them apart.
        name = f'{_NOT_IN_NAMES.sub("-", skill_name)[:64]}-{snapshot.digest[:16]}'
        target = await workspace.resolve(posixpath.join(self._folder, name))
        ref = workspace.ref
        key = None if ref is None else (ref.provider, ref.id, target)
        if anew or key is None or key not in self._known:
            async with self._alone(key or target) as waited:
                # After waiting, the copy that was just made is used: a script in it may be running already.
                if (anew and not waited) or not await workspace.exists(f'{target}/{COMPLETE}'):
                    await self._write(workspace, target, snapshot)
            if key is not None:
                if len(self._known) >= self._max_remembered:
                    self._known.clear()
                self._known.add(key)
        return target

    @asynccontextmanager
    async def _alone(self, copy: Hashable) -> AsyncGenerator[bool]:
        """Wait until nobody else makes this copy; yields whether that was necessary."""
        mine, waited = object(), False
        # Not a lock of the event loop: several loops may share an executor.
        while self._copying.setdefault(copy, mine) is not mine:
            waited = True
            await anyio.sleep(POLL)
        try:
            yield waited
        finally:
            del self._copying[copy]

    async def _write(self, workspace: Workspace, target: str, snapshot: FolderSnapshot) -> None:
        for file in snapshot.files:
            await workspace.write_bytes(f'{target}/{file.name}', file.content)
        if executables := [f'{target}/{file.name}' for file in snapshot.files if file.executable]:
            await workspace.run(['chmod', '+x', *executables])
        # Written last, so that an interrupted copy is made again.
        await workspace.write_bytes(f'{target}/{COMPLETE}', snapshot.digest.encode())
