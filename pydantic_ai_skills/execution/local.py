"""Scripts as plain processes on this machine."""

from __future__ import annotations

from pathlib import Path

from .limits import can_watch, limits_prefix
from .process import Command
from .subprocesses import Launch, SubprocessSkillScriptExecutor
from .watchdog import Watchdog
from .worker import Job

__all__ = ('LocalSkillScriptExecutor',)


class LocalSkillScriptExecutor(SubprocessSkillScriptExecutor):
    """Runs a script as a process on this machine, in the script's folder.

    The process has a session of its own, an empty standard input unless text was sent, limits on what it may use, and
    an environment without secrets: `PATH`, `HOME`, `LANG` and a few others, and those you add. It finds the skill's
    folder in `SKILL_DIR` and a folder for its files in `SKILL_WORK_DIR`.

    It can read and write whatever this user can, and a child that makes a session of its own is killed with it only
    where this process may make control groups: for scripts of strangers, use
    [`BubblewrapSkillScriptExecutor`][pydantic_ai_skills.BubblewrapSkillScriptExecutor].

    ```python
    from pydantic_ai_skills import LocalSkillScriptExecutor

    executor = LocalSkillScriptExecutor(timeout=60, skill_env={'weather': ['WEATHER_API_KEY']})
    ```
    """

    def _job(self, launch: Launch, interpreter: list[str], work_dir: Path) -> Job:
        limits = self.limits
        command = Command(
            label=launch.script.name,
            argv=(*limits_prefix(limits), *interpreter, str(launch.path), *launch.arguments.argv),
            cwd=work_dir if self.cwd == 'work' else launch.path.parent,
            env={**launch.env, 'SKILL_WORK_DIR': str(work_dir)},
            stdin=launch.arguments.stdin,
            timeout=limits.wall_time,
            max_output=limits.output,
            secrets=launch.secrets,
            watch=Watchdog(limits, work_dir=work_dir) if can_watch() else None,
        )
        return Job(command=command)
