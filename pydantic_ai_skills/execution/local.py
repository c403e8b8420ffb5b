"""Runs scripts as processes on this machine. The sandbox shares the base class."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict

import anyio
from anyio import to_thread

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

from .arguments import ArgumentVector, build_arguments
from .base import ScriptResult, SkillScriptStoppedError, SkillScriptTimeoutError
from .cgroup import ControlGroup, control_groups, groups_in
from .environment import EnvValues, ScriptEnvironment, SkillEnv, inherited_variables
from .interpreters import find_interpreter
from .limits import (
    ScriptLimits,
    can_watch,
    group_limits,
    limits_prefix,
    unenforced_limits,
    warn_of_unwatched,
    watched_limits,
)
from .process import TICK, Command, Process
from .script_file import ScriptHead, local_file, read_script_head
from .watchdog import Watchdog
from .work_dir import keep_work_folder, make_work_folder, remove_work_folder

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A script that is about to be started, with absolute paths."""

    script: SkillScript
    path: Path

    skill_dir: Path
    """The folder of its skill, or its own folder if it has no skill."""

    work_dir: Path
    """The work folder of this run."""

    interpreter: list[str]
    """The program that runs it, with its own arguments."""

    arguments: ArgumentVector
    env: dict[str, str]

    secrets: frozenset[str]
    """Values in the environment that are masked in its output."""

    group: ControlGroup | None
    """The control group of this run."""


class SubprocessOptions(TypedDict, total=False):
    """The settings of `SubprocessSkillScriptExecutor` that each of its subclasses takes, documented there."""

    timeout: float | None
    python_executable: str | Path | None
    limits: ScriptLimits | None
    env: EnvValues | None
    pass_env: Sequence[str]
    skill_env: Mapping[str, SkillEnv] | None
    work_root: str | Path | None
    control_group: Path | Literal['auto'] | None


class SubprocessSkillScriptExecutor(ABC):
    """Base of the executors that start a process on this machine.

    Args:
        timeout: Seconds after which the script and its children are killed; short for `limits.wall_time`, which is 30.
        python_executable: The Python for Python scripts. By default it is the one this process runs on, so that a
            script can import what is installed beside your application.
        limits: What a script may use.
        env: Environment variables for every script, or a function that makes them from the `RunContext`.
        pass_env: Names of variables to pass on from this process to every script.
        skill_env: The same for the scripts of single skills, such as `{'weather': ['WEATHER_API_KEY']}`.
        work_root: Where the work folders of runs are made, and stay. By default they are temporary.
        control_group: The folder of the control group in which each run gets a group of its own. By default it is found
            where this process may make groups; `None` makes none.
        cwd: Whether a script starts in its own folder or in its work folder.
    """

    sandboxed: ClassVar[bool] = False
    """Whether a script is kept away from this user's files, processes and network."""

    def __init__(
        self,
        *,
        timeout: float | None = None,
        python_executable: str | Path | None = None,
        limits: ScriptLimits | None = None,
        env: EnvValues | None = None,
        pass_env: Sequence[str] = (),
        skill_env: Mapping[str, SkillEnv] | None = None,
        work_root: str | Path | None = None,
        control_group: Path | Literal['auto'] | None = 'auto',
        cwd: Literal['script', 'work'] = 'script',
    ) -> None:
        limits = limits or ScriptLimits()
        self.limits = limits if timeout is None else replace(limits, wall_time=timeout)
        warn_of_unwatched(self.limits)
        python = None if python_executable is None else os.fspath(python_executable)
        # A bare name is looked up; a path is relative to the current folder, which is not the script's.
        self.python_executable = str(Path(python).absolute()) if python and os.path.dirname(python) else python
        self.environment = ScriptEnvironment(env=env, pass_env=pass_env, skill_env=skill_env or {})
        self.work_root = None if work_root is None else Path(work_root)
        self.cwd: Literal['script', 'work'] = cwd
        self._control_group: Path | Literal['auto'] | None = control_group

    @property
    def timeout(self) -> float:
        """Seconds a script may run."""
        return self.limits.wall_time

    @property
    def unenforced(self) -> tuple[str, ...]:
        """Names of limits that a script can get around here, or that cannot be enforced on this platform at all.

        Without a control group this is `memory`: a watcher does not see all memory that the kernel keeps for a script.
        """
        return unenforced_limits(self.limits, held=self._held())

    @property
    def watched(self) -> tuple[str, ...]:
        """Names of limits that are only watched, not enforced by the kernel, so they may be exceeded for a moment.

        What the kernel can hold is tried once, by making control groups, which takes some milliseconds.
        """
        return watched_limits(self.limits, held=self._held())

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> ScriptResult:
        """Run the script and return what it printed, its exit code and the files it left in its work folder.

        Raises:
            SkillScriptExecutionError: The arguments cannot be passed on, or the script could not be started.
            SkillScriptStoppedError: It exceeded a limit. The error holds its output until then.
        """
        local_file(script)
        arguments = build_arguments(args)
        env, secrets = self.environment.build(script.skill_name, ctx, base=self._base_variables())
        return await _in_thread(lambda cancelled: self._run(script, arguments, env, secrets, cancelled))

    def command_line(self, script: SkillScript, args: Any = None) -> list[str]:
        """The program and the arguments that a run would start. Reads the file, so call it in a thread.

        Raises:
            SkillScriptExecutionError: The script could not be started with these arguments.
        """
        head, arguments = read_script_head(script), build_arguments(args)
        return [*self._interpreter(head), str(local_file(script).absolute()), *arguments.argv]

    def environment_names(self, script: SkillScript, ctx: Any = None) -> list[str]:
        """The names of the environment variables that a run would have, sorted.

        Raises:
            SkillScriptExecutionError: The script is not a file, or a function made variables no process can be given.
        """
        local_file(script)
        env, _ = self.environment.build(script.skill_name, ctx, base=self._base_variables())
        return sorted({*env, 'CLAUDE_SKILL_DIR', 'SKILL_DIR', 'SKILL_WORK_DIR'})

    @abstractmethod
    def _command(self, launch: Launch, cleanup: ExitStack) -> Command:
        """The command that runs the script. What has to be closed afterwards goes into `cleanup`."""

    def _group_parents(self) -> Mapping[str, Path]:
        if self._control_group == 'auto':
            return control_groups()
        return {} if self._control_group is None else groups_in(self._control_group)

    def _held(self) -> Collection[str]:
        """The names of limits that the kernel holds for all processes of a run together."""
        return self._group_parents()

    def _base_variables(self) -> dict[str, str]:
        return inherited_variables()

    def _interpreter(self, head: ScriptHead) -> list[str]:
        # A sandbox shows the interpreter to the script, so the script must not choose what is shown.
        return find_interpreter(
            head, python=self.python_executable, search_path=os.environ.get('PATH'), anywhere=not self.sandboxed
        )

    def _run(
        self,
        script: SkillScript,
        arguments: ArgumentVector,
        env: dict[str, str],
        secrets: frozenset[str],
        cancelled: Callable[[], bool],
    ) -> ScriptResult:
        # Absolute paths, since the script does not start in the current folder.
        path = local_file(script).absolute()
        skill_dir = (script.skill_dir or path.parent).absolute()
        interpreter, work_dir = self._interpreter(read_script_head(script)), self._work_folder(script.name)
        try:
            with ExitStack() as cleanup:
                launch = Launch(
                    script=script,
                    path=path,
                    skill_dir=skill_dir,
                    work_dir=work_dir,
                    interpreter=interpreter,
                    arguments=arguments,
                    env={**env, 'SKILL_DIR': str(skill_dir), 'CLAUDE_SKILL_DIR': str(skill_dir)},
                    secrets=secrets,
                    group=self._make_group(cleanup),
                )
                command = self._command(launch, cleanup)
                read_script_head(script)  # again, right before it starts: it may have been replaced meanwhile
                if cancelled():
                    raise SkillScriptExecutionError('The run was cancelled before the script started.')
                process = Process(command, cancelled)
                result = process.run()
            files = keep_work_folder(work_dir, forever=self.work_root is not None)
        except BaseException:
            remove_work_folder(work_dir)
            raise
        result = replace(result, files=files, work_dir=work_dir if files else None)
        if process.stopped is None:
            return result
        error = SkillScriptTimeoutError if process.timed_out else SkillScriptStoppedError
        raise error(f'The script {script.name!r} was stopped: {process.stopped}.', result=result)

    def _make_group(self, cleanup: ExitStack) -> ControlGroup | None:
        parents = self._group_parents()
        limits = {name: value for name, value in group_limits(self.limits).items() if name in parents}
        if not limits:
            return None
        group = ControlGroup(parents, limits)
        cleanup.callback(group.close)
        return group

    def _work_folder(self, name: str) -> Path:
        try:
            return make_work_folder(self.work_root)
        except OSError as error:
            raise SkillScriptExecutionError(
                f'The script {name!r} could not be started: its work folder cannot be made: {error.strerror}. '
                'For the developer: see `work_root`, or else TMPDIR.'
            ) from error


class LocalSkillScriptExecutor(SubprocessSkillScriptExecutor):
    """Runs a script as a process on this machine, in the script's folder.

    The process has a session of its own, an empty standard input unless text was sent, limits on what it may use, and
    an environment without secrets: `PATH`, `HOME`, `LANG` and a few others, and those you add. It finds the skill's
    folder in `SKILL_DIR` and a folder for its files in `SKILL_WORK_DIR`.

    It can read and write whatever this user can, and a child that starts a session of its own is killed with it only
    where this process may make control groups: for scripts of strangers, use
    [`BubblewrapSkillScriptExecutor`][pydantic_ai_skills.BubblewrapSkillScriptExecutor].

    ```python
    from pydantic_ai_skills import LocalSkillScriptExecutor

    executor = LocalSkillScriptExecutor(timeout=60, skill_env={'weather': ['WEATHER_API_KEY']})
    ```
    """

    def _command(self, launch: Launch, cleanup: ExitStack) -> Command:
        limits = self.limits
        return Command(
            label=launch.script.name,
            argv=(*limits_prefix(limits), *launch.interpreter, str(launch.path), *launch.arguments.argv),
            cwd=launch.work_dir if self.cwd == 'work' else launch.path.parent,
            env={**launch.env, 'SKILL_WORK_DIR': str(launch.work_dir)},
            stdin=launch.arguments.stdin,
            timeout=limits.wall_time,
            max_output=limits.output,
            secrets=launch.secrets,
            watch=Watchdog(limits, work_dir=launch.work_dir, group=launch.group) if can_watch() else None,
            group=launch.group,
        )


async def _in_thread(run: Callable[[Callable[[], bool]], ScriptResult]) -> ScriptResult:
    """Call `run` in a worker thread, with a function that tells whether the call was cancelled meanwhile."""
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
