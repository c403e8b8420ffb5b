"""A script or a command that is about to be started: what every executor on this machine needs to know about it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

from .arguments import ArgumentVector, build_arguments
from .cgroup import ControlGroup
from .disk_use import WorkRoom
from .environment import EnvValues, SkillEnv
from .limits import ScriptLimits
from .packages import UvEnvironments
from .streaming import OnOutput
from .watchdog import Watchdog
from .work_dir import WorkDir

StartIn: TypeAlias = Literal['work', 'script', 'skill']
"""Where a script starts: in the work folder, in its own folder, or in its skill's folder."""


class SubprocessOptions(TypedDict, total=False):
    """The settings of `SubprocessSkillScriptExecutor` that each of its subclasses takes, documented there."""

    timeout: float | None
    python_executable: str | Path | None
    limits: ScriptLimits | None
    env: EnvValues | None
    pass_env: Sequence[str]
    skill_env: Mapping[str, SkillEnv] | None
    cwd: StartIn
    control_group: Path | Literal['auto'] | None
    dependencies: Literal['uv'] | UvEnvironments | None


COMMAND = 'run_command'
"""What messages call a shell command."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A script or a command that is about to be started, with absolute paths."""

    label: str
    """The name of the script, for messages."""

    shown: tuple[Path, ...]
    """The folders of skills that it may read, and its file if that is in none of them."""

    work_dir: Path
    """The work folder of its conversation, or of this run."""

    is_private: bool
    """Whether the work folder belongs to one conversation, or to one run, and is removed after it."""

    is_new: bool = False
    """Whether the work folder was made for this run, so that it starts empty and no other run uses it."""

    room: WorkRoom
    """What the work folder may hold."""

    start_in: Path
    """The folder in which it starts."""

    interpreter: list[str]
    """The program that runs it, with its own arguments."""

    start: list[str]
    """What follows the interpreter: the path of the script, or its module."""

    arguments: ArgumentVector
    env: dict[str, str]

    secrets: frozenset[str]
    """Values in the environment that are masked in its output."""

    group: ControlGroup | None
    """The control group of this run."""

    packages: Path | None = None
    """The Python of the environment with the packages that the skill needs, if one was made."""

    on_output: OnOutput | None = None
    """Called with what it prints, as it is printed."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A process to run."""

    label: str
    """The name of the script, for messages."""

    argv: tuple[str, ...]
    setup: Sequence[str] = ()
    """What a shell does before it becomes the process."""

    cwd: Path
    env: Mapping[str, str]

    stdin: str | None
    """Text for its standard input; `None` gives an empty one."""

    null: str = os.devnull
    """The file to open as an empty standard input."""

    timeout: float
    """Seconds it may run."""

    max_output: int
    """Bytes of output that are kept, both streams together."""

    secrets: Collection[str] = ()
    """Values that are masked in the output."""

    pass_fds: Collection[int] = ()
    """Descriptors it inherits."""

    on_start: Callable[[int], None] | None = None
    """Called with its process id as soon as it has started."""

    watch: Watchdog | None = None
    """Asked repeatedly whether to stop it, and at the end whether the kernel did."""

    kill: Callable[[], None] | None = None
    """Ends it more thoroughly than killing its group does."""

    check: Callable[[str], None] | None = None
    """Called with standard error at the end; raises if the script has not run at all."""

    group: ControlGroup | None = None
    """The control group it runs in."""

    on_output: OnOutput | None = None
    """Called with what it prints, as it is printed, without secrets."""


def launch_command(
    command: str,
    work_dir: WorkDir,
    *,
    shown: Sequence[Path],
    env: Mapping[str, str],
    secrets: frozenset[str],
    room: WorkRoom,
    group: ControlGroup | None,
    on_output: OnOutput | None = None,
) -> Launch:
    """A shell command that starts in a work folder, for bash where it is installed, or else for sh.

    Raises:
        SkillScriptExecutionError: The command cannot be passed to a program, or the work folder is not on this machine
            or is read-only.
    """
    folder = work_dir.local_path()
    return Launch(
        label=COMMAND,
        shown=tuple(shown),
        work_dir=folder,
        is_private=work_dir.is_private,
        room=room,
        start_in=folder,
        interpreter=[shutil.which('bash', path=env.get('PATH', os.defpath)) or '/bin/sh'],
        start=[],
        arguments=build_arguments(['-c', command]),
        env={**env, 'SKILL_WORK_DIR': str(folder)},
        secrets=secrets,
        group=group,
        on_output=on_output,
    )
