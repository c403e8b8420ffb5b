"""Runs scripts as processes on this machine. The sandbox shares the base class."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

from .arguments import build_arguments, script_arguments
from .cgroup import ControlGroup, control_groups, groups_in
from .disk_use import WorkRoom, room_in, take_back
from .environment import EnvValues, ScriptEnvironment, SkillEnv, inherited_variables, with_folder_first, with_skill
from .interpreters import (
    ScriptHead,
    find_interpreter,
    local_file,
    path_in,
    read_script_head,
    skill_folder,
    start_words,
    uv_check,
)
from .launch import Command, Launch, StartIn, launch_command
from .limits import ScriptLimits
from .packages import UvEnvironments, as_environments, with_packages
from .process import Process, in_thread
from .result import ScriptResult
from .streaming import OnOutput
from .watchdog import (
    Watchdog,
    can_watch,
    group_limits,
    limits_in_shell,
    unenforced_limits,
    warn_of_unwatched,
    watched_limits,
)
from .work_dir import WorkDir, close_to_others, is_empty, work_dir_for
from .work_files import changed_files, stamps_of

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript

logger = logging.getLogger('pydantic_ai_skills')


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
        control_group: The folder of the control group in which each run gets a group of its own. By default, it is one
            in which this process may make groups; `None` makes none.
        dependencies: With `'uv'`, the Python packages that a skill needs are installed before its first script starts,
            in an environment of its own in the user's cache. See [`UvEnvironments`][pydantic_ai_skills.UvEnvironments].
        cwd: Whether a script starts in the work folder, in its own folder, or in its skill's folder.
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
        control_group: Path | Literal['auto'] | None = 'auto',
        dependencies: Literal['uv'] | UvEnvironments | None = None,
        cwd: StartIn = 'work',
    ) -> None:
        limits = limits or ScriptLimits()
        self.limits = limits if timeout is None else replace(limits, wall_time=timeout)
        warn_of_unwatched(self.limits)
        python = None if python_executable is None else os.fspath(python_executable)
        # A bare name is looked up; a path is relative to the current folder, which is not the script's.
        self.python_executable = str(Path(python).absolute()) if python and os.path.dirname(python) else python
        self.environment = ScriptEnvironment(env=env, pass_env=pass_env, skill_env=skill_env or {})
        self.cwd: StartIn = cwd
        self._control_group: Path | Literal['auto'] | None = control_group
        self.dependencies = as_environments(dependencies)

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

        What the kernel can enforce is found out once, by making control groups, which takes a few milliseconds.
        """
        return watched_limits(self.limits, held=self._held())

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> ScriptResult:
        """Run the script and return what it printed, its exit code, and the files it added or changed.

        Raises:
            SkillScriptExecutionError: The arguments cannot be passed on, or the script could not be started.
            SkillScriptStoppedError: It exceeded a limit. The error holds its output until then.
        """
        local_file(script)
        env, secrets = self.environment.build(script.skill_name, ctx, base=self._base_variables())
        return await in_thread(lambda cancelled: self._run(script, args, env, secrets, cancelled))

    def command_line(self, script: SkillScript, args: Any = None) -> list[str]:
        """The program and the arguments that a run would start. Reads the file, so call it in a thread.

        Raises:
            SkillScriptExecutionError: The script could not be started with these arguments.
        """
        path, head = local_file(script).absolute(), read_script_head(script)
        interpreter = self._interpreter(head)
        start = start_words(path, skill_folder(script, path), head, interpreter)
        return [*interpreter, *start, *script_arguments(script, args, head.head).argv]

    def environment_names(self, script: SkillScript, ctx: Any = None) -> list[str]:
        """The names of the environment variables that a run would have, sorted.

        Raises:
            SkillScriptExecutionError: The script is not a file, or a function made variables no process can be given.
        """
        local_file(script)
        env, _ = self.environment.build(script.skill_name, ctx, base=self._base_variables())
        return sorted({*env, 'CLAUDE_SKILL_DIR', 'PYTHONPATH', 'SKILL_DIR', 'SKILL_WORK_DIR'})

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

    def _interpreter(self, head: ScriptHead, packages: Path | None = None) -> list[str]:
        return find_interpreter(
            head,
            python=self.python_executable if packages is None else str(packages),
            search_path=os.environ.get('PATH'),
            # A sandbox shows the interpreter to the script, so the script must not choose what is shown.
            anywhere=not self.sandboxed,
            inline=packages is None,
        )

    def _own_python(self) -> Path:
        return Path(self.python_executable or sys.executable)

    def _on_python_if_needed(self, launch: Launch, head: ScriptHead, cancelled: Callable[[], bool]) -> Launch:
        """The launch, with Python in place of uv if uv cannot provide the declared packages: Python may have them."""
        check = uv_check(launch.interpreter, head)
        if not check or self._provides(check, launch, cancelled):
            return launch
        return replace(launch, interpreter=self._interpreter(head, self._own_python()))

    def _provides(self, check: list[str], launch: Launch, cancelled: Callable[[], bool]) -> bool:
        """Whether uv provides the packages of a script, which it downloads now if they are not in its cache."""
        asked = replace(launch, interpreter=check, arguments=build_arguments([]), group=None, on_output=None)
        with ExitStack() as cleanup:
            result = Process(self._command(asked, cleanup), cancelled).run()
        if result.exit_code == 0 or cancelled():
            return True
        logger.warning('uv cannot provide the packages of %r, so Python runs it:\n%s', launch.label, result.stderr)
        return False

    def _run(
        self,
        script: SkillScript,
        args: Any,
        env: dict[str, str],
        secrets: frozenset[str],
        cancelled: Callable[[], bool],
    ) -> ScriptResult:
        # Absolute paths, since the script does not start in the current folder.
        path = local_file(script).absolute()
        skill_dir, head = skill_folder(script, path), read_script_head(script)
        arguments = script_arguments(script, args, head.head)
        packages = None
        if self.dependencies is not None:
            python = str(self._own_python())
            packages = self.dependencies.provide_for(
                script, python=python, builds=not self.sandboxed, cancelled=cancelled
            )
        env = env if packages is None else with_packages(env, packages)
        with work_dir_for(script, skill_dir) as work_dir, ExitStack() as cleanup:
            folder = work_dir.local_path()
            launch = Launch(
                label=script.name,
                shown=(skill_dir, path) if path_in(skill_dir, path) is None else (skill_dir,),
                work_dir=folder,
                is_private=work_dir.is_private,
                is_new=work_dir.is_new,
                room=self._room(work_dir),
                start_in={'work': folder, 'script': path.parent, 'skill': skill_dir}[self.cwd],
                interpreter=self._interpreter(head, packages),
                start=[str(path)],
                arguments=arguments,
                env={**env, 'SKILL_WORK_DIR': str(folder)},
                secrets=secrets,
                group=self._make_group(cleanup),
                packages=packages,
                on_output=script.on_output,
            )
            launch = self._on_python_if_needed(launch, head, cancelled)
            start = start_words(path, skill_dir, head, launch.interpreter)
            env = with_skill(launch.env, skill_dir, as_module='-m' in start)
            launch = replace(launch, start=start, env=env)
            # The script is checked again, right before it starts: it may have been replaced meanwhile.
            process, result = self._execute(launch, cleanup, cancelled, lambda: read_script_head(script))
        return process.unless_stopped(result, f'The script {script.name!r}')

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
        """Run a shell command in a work folder, with the limits, the environment and the isolation of scripts.

        Args:
            command: The text for the shell: bash, or else sh.
            work_dir: Where it starts, reads and writes.
            shown: Folders of skills that it may read.
            env: More environment variables.
            on_output: Called with what it prints, as it is printed, from a worker thread.
            ctx: The `RunContext`, for a function that makes environment variables.

        Raises:
            SkillScriptExecutionError: It could not be started.
            SkillScriptStoppedError: It exceeded a limit. The error holds its output until then.
        """
        here = partial(
            self.run_command_here, command, work_dir=work_dir, shown=shown, env=env or {}, on_output=on_output
        )
        return await in_thread(lambda cancelled: here(cancelled=cancelled, ctx=ctx))

    def run_command_here(
        self,
        command: str,
        *,
        work_dir: WorkDir,
        shown: Sequence[Path],
        env: Mapping[str, str],
        cancelled: Callable[[], bool],
        on_output: OnOutput | None = None,
        ctx: Any = None,
    ) -> ScriptResult:
        """Like `run_command`, but it blocks. `cancelled` returns whether to stop the command."""
        variables, secrets = self.environment.build(None, ctx, base=self._base_variables())
        with ExitStack() as cleanup:
            launch = launch_command(
                command,
                work_dir,
                shown=shown,
                env={**variables, **env},
                secrets=secrets,
                room=self._room(work_dir),
                group=self._make_group(cleanup),
                on_output=on_output,
            )
            process, result = self._execute(launch, cleanup, cancelled)
        return process.unless_stopped(result, 'The command')

    def _room(self, work_dir: WorkDir) -> WorkRoom:
        limit, folder = self.limits.work_folder if can_watch() else None, work_dir.local_path()
        if limit is None or work_dir.is_new or is_empty(folder):
            return WorkRoom(limit)
        return room_in(folder, limit, is_private=work_dir.is_private)

    def _execute(
        self,
        launch: Launch,
        cleanup: ExitStack,
        cancelled: Callable[[], bool],
        check: Callable[[], object] = lambda: None,
    ) -> tuple[Process, ScriptResult]:
        """Run what is launched to its end. `check` raises if it must not be started."""
        command = self._command(launch, cleanup)
        before = {} if launch.is_new or is_empty(launch.work_dir) else stamps_of(launch.work_dir)
        check()
        if cancelled():
            raise SkillScriptExecutionError('The run was cancelled before the script started.')
        process = Process(command, cancelled)
        result = process.run()
        self._tidy(launch)
        if is_empty(launch.work_dir):
            return process, result
        is_filled_up = launch.is_private and not launch.is_new
        over = take_back(launch.work_dir, launch.room, before) if is_filled_up else None
        process.stopped = process.stopped or over
        files = changed_files(launch.work_dir, before)
        return process, replace(result, files=files, work_dir=launch.work_dir if files else None)

    def _tidy(self, launch: Launch) -> None:
        """Make a private work folder private again, whatever the script did to its permissions."""
        if launch.is_private:
            close_to_others(launch.work_dir)

    def _make_group(self, cleanup: ExitStack) -> ControlGroup | None:
        parents = self._group_parents()
        limits = {name: value for name, value in group_limits(self.limits).items() if name in parents}
        if not limits:
            return None
        group = ControlGroup(parents, limits)
        cleanup.callback(group.close)
        return group


class LocalSkillScriptExecutor(SubprocessSkillScriptExecutor):
    """Runs a script as a process on this machine, in the work folder of the conversation.

    The process has a session of its own, an empty standard input unless text was sent, limits on what it may use, and
    an environment without secrets: `PATH`, `HOME`, `LANG` and a few others, and those you add. It finds the skill's
    folder in `SKILL_DIR` and the work folder, where it starts, in `SKILL_WORK_DIR`.

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
            label=launch.label,
            setup=limits_in_shell(limits, held=() if launch.group is None else launch.group.held),
            argv=(*launch.interpreter, *launch.start, *launch.arguments.argv),
            cwd=launch.start_in,
            env={**launch.env, 'PATH': self._search_path(launch)},
            stdin=launch.arguments.stdin,
            timeout=limits.wall_time,
            max_output=limits.output,
            secrets=launch.secrets,
            watch=Watchdog(limits, work_dir=launch.work_dir, room=launch.room, group=launch.group)
            if can_watch()
            else None,
            group=launch.group,
            on_output=launch.on_output,
        )

    def _search_path(self, launch: Launch) -> str:
        """The `PATH`, on which a shell script finds the Python that runs Python scripts."""
        python = str(launch.packages or self.python_executable or sys.executable)
        found = python if launch.interpreter[:1] == [python] else shutil.which(python)
        return with_folder_first(launch.env.get('PATH', os.defpath), found)
