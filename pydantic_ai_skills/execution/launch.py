"""A script or a command that is about to be started: what every executor on this machine needs to know about it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from .arguments import ArgumentVector, build_arguments
from .base import ScriptResult
from .cgroup import ControlGroup
from .disk_use import WorkRoom
from .modules import import_variables, top_modules_in
from .process import TICK
from .streaming import OnOutput
from .work_dir import WorkDir

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript

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
    """Whether nobody but the scripts of the conversation puts files into the work folder."""

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
        SkillScriptExecutionError: The command cannot be passed to a program, or the work folder is elsewhere.
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


def skill_folder(script: SkillScript, path: Path) -> Path:
    """The folder of a script's skill, or its own folder if it has no skill."""
    return (script.skill_dir or path.parent).absolute()


def with_skill(env: Mapping[str, str], skill_dir: Path, *, as_module: bool) -> dict[str, str]:
    """The variables of a script, with those that tell where its skill is and let it import the skill's modules."""
    imports = import_variables(str(skill_dir), top_modules_in(skill_dir), env, as_module=as_module)
    return {**env, **imports, 'SKILL_DIR': str(skill_dir), 'CLAUDE_SKILL_DIR': str(skill_dir)}


async def in_thread(run: Callable[[Callable[[], bool]], ScriptResult]) -> ScriptResult:
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
