"""Scripts in the workspace of an agent run: this machine, a container or a remote sandbox."""

from __future__ import annotations

import posixpath
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from anyio import to_thread
from pydantic_ai.workspaces import (
    Workspace,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

from .arguments import build_arguments
from .base import ScriptResult, SkillScriptStoppedError, SkillScriptTimeoutError
from .capture import StreamCapture, fit_output
from .environment import EnvValues, ScriptEnvironment, SkillEnv
from .interpreters import Interpreter, interpreters_for, needs
from .limits import ScriptLimits
from .snapshot import FolderSnapshot, read_file, take_snapshot
from .staging import COMPLETE, Stage

if TYPE_CHECKING:
    from pydantic_ai_skills.types.skill import SkillScript

__all__ = ('WorkspaceSkillScriptExecutor',)

NO_INTERPRETER = 'pydantic-ai-skills: no interpreter'
"""What the command prints when none of the programs that could run a script is there."""

NO_COPY = 'pydantic-ai-skills: no copy'
"""What it prints when the copy of the skill was deleted since it was made."""


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
        cwd: Whether a script starts in the workspace's folder or beside its copy.
        sandboxed: Say that your workspaces keep scripts away from this machine, so scripts from registries may run.
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
        cwd: Literal['script', 'work'] = 'work',
        sandboxed: bool = False,
    ) -> None:
        self.limits = ScriptLimits(wall_time=timeout, output=max_output)
        self.environment = ScriptEnvironment(env=env, pass_env=pass_env, skill_env=skill_env or {})
        self.cwd: Literal['script', 'work'] = cwd
        self.sandboxed = sandboxed
        """Whether scripts are kept away from this machine."""
        self._stage = Stage(staging_dir)

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> ScriptResult:
        """Run the script in the run's workspace and return what it printed and its exit code.

        Raises:
            SkillScriptExecutionError: There is no workspace that can run it, or the arguments cannot be passed on.
            SkillScriptStoppedError: It ran too long or printed too much. The error holds what it had printed.
        """
        workspace = _workspace(ctx)
        arguments = build_arguments(args)
        snapshot, name = await _snapshot(script)
        file = next((file for file in snapshot.files if file.name == name), None)
        if file is None:
            raise SkillScriptExecutionError(f'The script {script.name!r} is not a regular file of its skill.')
        interpreters = interpreters_for(PurePosixPath(name).name, file.content, executable=file.executable)
        env, secrets = self.environment.build(script.skill_name, ctx, base={})
        skill_name = script.skill_name or 'script'
        try:
            folder = await self._stage.copy(workspace, skill_name, snapshot)
            path = f'{folder}/{name}'
            command = _command_line(interpreters, path, arguments.argv)
            if self.cwd == 'script':
                command = f'cd {shlex.quote(posixpath.dirname(path))} && {command}'
            stdin = await _write_stdin(workspace, folder, arguments.stdin)
            if stdin is not None:
                # The text is removed before the script starts; the open descriptor is all it needs.
                command = f'exec <{shlex.quote(stdin)}; rm -f {shlex.quote(stdin)}; {command}'
            command = f'{_check_copy(folder, path)} || {_give_up(NO_COPY)}; {command}'
            env |= {'SKILL_DIR': folder, 'CLAUDE_SKILL_DIR': folder}
            done = await self._execute(workspace, script, command, env, secrets)
            if _gave_up(done, NO_COPY):
                await self._stage.copy(workspace, skill_name, snapshot, anew=True)
                done = await self._execute(workspace, script, command, env, secrets)
        except WorkspaceUnavailableError as error:
            raise SkillScriptExecutionError(f'The workspace is not available: {error}') from error
        except (WorkspaceError, OSError) as error:  # also where a script left something in the way of the copies
            raise SkillScriptExecutionError(f'The workspace refused to run a script: {error}') from error
        if _gave_up(done, NO_COPY):
            raise SkillScriptExecutionError(
                f'The workspace does not keep the copy of the skill, so {script.name!r} cannot be run in it.'
            )
        if interpreters and _gave_up(done, NO_INTERPRETER):
            raise SkillScriptExecutionError(
                f'{script.name!r} {needs(interpreters)}, which the workspace does not have. '
                'For the developer: install it there.'
            )
        return done

    async def _execute(
        self, workspace: Workspace, script: SkillScript, command: str, env: Mapping[str, str], secrets: Collection[str]
    ) -> ScriptResult:
        started = time.monotonic()
        limits = self.limits

        def result(exit_code: int, stdout: str, stderr: str, *, timed_out: bool = False) -> ScriptResult:
            captures = StreamCapture(limits.output), StreamCapture(limits.output)
            for capture, text in zip(captures, (stdout, stderr), strict=True):
                capture.feed(text.encode())
            output = fit_output(*captures, limit=limits.output, secrets=secrets)
            return ScriptResult(
                exit_code=exit_code,
                stdout=output.stdout,
                stderr=output.stderr,
                duration=time.monotonic() - started,
                truncated=output.truncated,
                timed_out=timed_out,
            )

        try:
            # Every word of the command is quoted. Only a shell can choose the interpreter and the folder there.
            done = await workspace.run(command, shell=True, env=env, timeout=limits.wall_time)  # noqa: S604
        except WorkspaceTimeoutError as error:
            raise SkillScriptTimeoutError(
                f'The script {script.name!r} was stopped: it did not end within {limits.wall_time:g} s.',
                result=result(137, error.stdout, error.stderr, timed_out=True),
            ) from error
        except WorkspaceOutputLimitError as error:
            raise SkillScriptStoppedError(
                f'The script {script.name!r} was stopped: it printed more than {error.limit:,} bytes.',
                result=result(137, error.stdout, error.stderr),
            ) from error
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
    """What has to be in the workspace, and the script's name in it."""
    path, folder = script.path, script.skill_dir
    if path is None:
        raise SkillScriptExecutionError(f'The script {script.name!r} is not a file on this machine.')
    if folder is None or folder not in path.parents:
        return await to_thread.run_sync(read_file, path), path.name
    return await to_thread.run_sync(take_snapshot, folder), path.relative_to(folder).as_posix()


async def _write_stdin(workspace: Workspace, folder: str, text: str | None) -> str | None:
    """Commands have no standard input in a workspace, so the text goes into a file that is read from."""
    if text is None:
        return None
    path = f'{folder}.stdin-{uuid4().hex}'
    await workspace.write_bytes(path, text.encode())
    return path


def _command_line(interpreters: list[Interpreter], path: str, argv: Sequence[str]) -> str:
    """A shell command that runs the script with the first of the interpreters that the workspace has."""
    tail = shlex.join([path, *argv])
    if not interpreters:
        return f'exec {tail}'
    choices = [
        f'command -v {shlex.quote(program)} >/dev/null 2>&1 && '
        f'exec {shlex.join([program, *interpreter.arguments])} {tail}'
        for interpreter in interpreters
        for program in _names(interpreter)
    ]
    return f'{{ {"; ".join(choices)}; {_give_up(NO_INTERPRETER)}; }}'


def _check_copy(folder: str, path: str) -> str:
    """A shell command that succeeds if the copy and the script are there."""
    return ' && '.join(f'[ -e {shlex.quote(file)} ]' for file in (f'{folder}/{COMPLETE}', path))


def _give_up(reason: str) -> str:
    """A shell command that ends the whole command in a way that `_gave_up` knows again."""
    return f'{{ echo {shlex.quote(reason)} >&2; exit 127; }}'


def _gave_up(done: ScriptResult, reason: str) -> bool:
    return done.exit_code == 127 and done.stderr.strip().endswith(reason)


def _names(interpreter: Interpreter) -> list[str]:
    """What the program may be called in the workspace, without repetition. Any Python will do in place of another."""
    others = ('python3', 'python') if interpreter.is_python else ()
    return list(dict.fromkeys((interpreter.program, PurePosixPath(interpreter.program).name, *others)))
