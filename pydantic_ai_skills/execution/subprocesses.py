"""What executors that start a process have in common: their settings, and the way from a script to a job."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

from .arguments import ScriptArguments, build_arguments
from .base import ScriptResult
from .cgroup import ControlGroup, control_groups
from .environment import EnvValues, ScriptEnvironment, SkillEnv, inherited_variables
from .interpreters import find_interpreter
from .limits import ScriptLimits, most_tasks, unenforced_limits, watched_limits
from .work_dir import keep_work_folder, make_work_folder, remove_folder
from .worker import Job, run_job

if TYPE_CHECKING:
    from pydantic_ai_skills.types.skill import SkillScript

__all__ = ('Launch', 'SubprocessOptions', 'SubprocessSkillScriptExecutor')


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A script that is about to be started."""

    script: SkillScript
    """The script."""

    path: Path
    """Its file."""

    skill_dir: Path
    """The folder of its skill, or its own when that is not known."""

    arguments: ScriptArguments
    """What it is started with."""

    env: Mapping[str, str]
    """Its environment."""

    secrets: frozenset[str]
    """Values in the environment that are masked in its output."""


class SubprocessOptions(TypedDict, total=False):
    """The settings of every executor that starts a process."""

    timeout: float | None
    """Seconds after which the script and its children are killed; short for `limits.wall_time`, which is 30."""

    python_executable: str | Path | None
    """The Python for Python scripts; the one this process runs on by default, so that a script can import what is
    installed beside your application."""

    limits: ScriptLimits | None
    """What a script may use."""

    env: EnvValues | None
    """Environment variables for every script, or a function that makes them from the `RunContext`."""

    pass_env: Sequence[str]
    """Names of variables to pass on from this process to every script."""

    skill_env: Mapping[str, SkillEnv] | None
    """The same for the scripts of single skills, such as `{'weather': ['WEATHER_API_KEY']}`."""

    work_root: str | Path | None
    """Where the work folders of runs are made, and stay. By default they are temporary."""


class SubprocessSkillScriptExecutor(ABC):
    """Base of the executors that start a process on this machine.

    Args:
        timeout: Seconds after which the script and its children are killed; short for `limits.wall_time`.
        python_executable: The Python for Python scripts; the one this process runs on by default, so that a script can
            import what is installed beside your application.
        limits: What a script may use.
        env: Environment variables for every script, or a function that makes them from the `RunContext`.
        pass_env: Names of variables to pass on from this process to every script.
        skill_env: The same for the scripts of single skills, such as `{'weather': ['WEATHER_API_KEY']}`.
        work_root: Where the work folders of runs are made, and stay. By default they are temporary.
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
        cwd: Literal['script', 'work'] = 'script',
    ) -> None:
        limits = limits or ScriptLimits()
        self.limits = limits if timeout is None else replace(limits, wall_time=timeout)
        self.unenforced = unenforced_limits(self.limits)
        """Names of limits that this platform has no means to enforce."""
        python = None if python_executable is None else os.fspath(python_executable)
        # A bare name is looked up; a path is relative to the folder we are in, which is not the script's.
        self.python_executable = str(Path(python).absolute()) if python and os.path.dirname(python) else python
        self.environment = ScriptEnvironment(env=env, pass_env=pass_env, skill_env=skill_env or {})
        self.work_root = None if work_root is None else Path(work_root)
        self.cwd: Literal['script', 'work'] = cwd

    @property
    def timeout(self) -> float:
        """Seconds a script may run."""
        return self.limits.wall_time

    @property
    def watched(self) -> tuple[str, ...]:
        """Names of limits that the kernel does not hold here: they are watched, and may be exceeded for a moment.

        Whether it can hold `processes` is found out once, by making a control group, which takes about a millisecond.
        """
        return watched_limits(self.limits, capped=self._caps_processes())

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> ScriptResult:
        """Run the script and return what it printed, its exit code and the files it left in its work folder.

        Raises:
            SkillScriptExecutionError: The arguments cannot be passed on, or the script could not be started.
            SkillScriptStoppedError: It used more time, or more of something else, than it may. The error holds what it
                had printed.
        """
        launch = self._launch(script, args, ctx)
        return await run_job(lambda: self._job_in_folder(launch))

    def command_line(self, script: SkillScript, args: Any = None) -> list[str]:
        """The program and the arguments that a run would start. It looks at the file, so call it in a thread.

        Raises:
            SkillScriptExecutionError: The script could not be started with these arguments.
        """
        path = _local_file(script).absolute()
        return [*self._interpreter(path), str(path), *build_arguments(args).argv]

    def environment_names(self, script: SkillScript, ctx: Any = None) -> list[str]:
        """The names of the environment variables that a run would have, sorted.

        Raises:
            SkillScriptExecutionError: The script is not a file, or a function made variables no process can be given.
        """
        return sorted({*_in_place(self._launch(script, None, ctx)).env, 'SKILL_WORK_DIR'})

    @abstractmethod
    def _job(self, launch: Launch, interpreter: list[str], work_dir: Path) -> Job:
        """The command that runs the script with this interpreter and work folder."""

    def _caps_processes(self) -> bool:
        """Whether the kernel caps the number of processes of a run."""
        return control_groups() is not None

    def _control_group(self) -> ControlGroup | None:
        """A control group for a run, where there is something to cap and a way to do it. Whoever asks, closes it."""
        tasks, parent = most_tasks(self.limits), control_groups()
        return None if tasks is None or parent is None else ControlGroup(parent, tasks)

    def _base_variables(self) -> dict[str, str]:
        return inherited_variables()

    def _interpreter(self, path: Path) -> list[str]:
        # A sandbox shows the interpreter to the script, so what is shown must not be the script's choice.
        return find_interpreter(
            path, python=self.python_executable, search_path=os.environ.get('PATH'), anywhere=not self.sandboxed
        )

    def _launch(self, script: SkillScript, args: Any, ctx: Any) -> Launch:
        path = _local_file(script)
        arguments = build_arguments(args)
        env, secrets = self.environment.build(script.skill_name, ctx, base=self._base_variables())
        skill_dir = script.skill_dir or path.parent
        return Launch(script=script, path=path, skill_dir=skill_dir, arguments=arguments, env=env, secrets=secrets)

    def _work_folder(self, launch: Launch) -> Path:
        try:
            return make_work_folder(self.work_root)
        except OSError as error:
            raise SkillScriptExecutionError(
                f'The script {launch.script.name!r} could not be started: its work folder cannot be made: '
                f'{error.strerror}. For the developer: see `work_root`, or else TMPDIR.'
            ) from error

    def _job_in_folder(self, launch: Launch) -> Job:
        launch = _in_place(launch)
        interpreter = self._interpreter(launch.path)
        with ExitStack() as undo:
            work_dir = self._work_folder(launch)
            undo.callback(remove_folder, work_dir)
            group = self._control_group()
            if group is not None:
                undo.callback(group.close)
            job = self._job(launch, interpreter, work_dir)
            undo.pop_all()
        collected = False

        def finish(result: ScriptResult) -> ScriptResult:
            nonlocal collected
            result = job.finish(result)
            collected = True
            files = keep_work_folder(work_dir, forever=self.work_root is not None)
            return replace(result, files=files, work_dir=work_dir if files else None)

        def cleanup() -> None:
            job.cleanup()
            if group is not None:
                group.close()
            if not collected:
                remove_folder(work_dir)

        return replace(job, command=replace(job.command, group=group), finish=finish, cleanup=cleanup)


def _in_place(launch: Launch) -> Launch:
    """The same with whole paths, since the script does not start in the folder that others are relative to."""
    skill_dir = launch.skill_dir.absolute()
    env = {**launch.env, 'SKILL_DIR': str(skill_dir), 'CLAUDE_SKILL_DIR': str(skill_dir)}
    return replace(launch, path=launch.path.absolute(), skill_dir=skill_dir, env=env)


def _local_file(script: SkillScript) -> Path:
    if script.path is None:
        raise SkillScriptExecutionError(f'The script {script.name!r} is not a file on this machine.')
    return script.path
