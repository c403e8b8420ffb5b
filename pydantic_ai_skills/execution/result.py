"""The result of a run, and the errors of scripts that exceeded a limit."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError

from .missing import MissingNeed
from .work_dir import MAX_READ_BYTES
from .work_files import ScriptFile, read_work_file


@dataclass(frozen=True, kw_only=True)
class ScriptResult:
    """The output, exit code and files of a run. A failed script gives a result too, not an exception."""

    exit_code: int
    """The exit code; 128 + N when signal N ended it, as in a shell."""

    stdout: str
    """Standard output, decoded as UTF-8. A line says how many bytes were left out, and where."""

    stderr: str
    """Standard error, decoded and cut like `stdout`."""

    duration: float
    """Seconds from the start of the process to its end."""

    truncated: bool = False
    """Whether part of the output was left out."""

    timed_out: bool = False
    """Whether the script was stopped because its time was up."""

    files: tuple[ScriptFile, ...] = ()
    """The files in the work folder that the script added or changed, at most 200 of them."""

    left: tuple[str, ...] = ()
    """The commands of processes that it left running, which were stopped with it, where they are known: on Linux,
    outside of a sandbox. At most 10 of them."""

    work_dir: Path | None = None
    """The work folder of the conversation, if the script added or changed files and it is on this machine.

    A script that is run without a toolset has a folder of its own, which is removed once many newer runs have left
    files, or when this process ends.
    """

    missing: MissingNeed | None = None
    """What a failed script was missing, if its output says so: a package, a program or a key."""

    def __str__(self) -> str:
        parts = [self.stdout.rstrip('\n')] if self.stdout.rstrip('\n') else []
        if self.stderr.strip():
            parts.append(f'stderr:\n{self.stderr.rstrip()}')
        if self.files:
            parts += ['files:', *(f'{file.name} ({file.size:,} bytes)' for file in self.files)]
        if self.left:
            parts.append(self.tell_left())
        if self.timed_out:
            parts.append(f'stopped after {self.duration:.1f} s')
        elif self.exit_code:
            parts.append(f'exit code: {describe_exit(self.exit_code)}')
        return '\n'.join(parts) or '(no output)'

    def tell_left(self) -> str:
        """A sentence about the processes that it left running."""
        named = ', '.join(self.left)
        if len(self.left) == 1:
            return f'It left 1 process ({named}), which was stopped.'
        return f'It left {len(self.left)} processes ({named}), which were stopped.'

    def read_file(self, name: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Read a file in the work folder, without following links.

        Raises:
            SkillResourceLoadError: There is no such file, or it is longer than `max_bytes`.
        """
        if self.work_dir is None:
            raise SkillResourceLoadError(f'There is no file {name!r} in the work folder.')
        return read_work_file(self.work_dir, name, max_bytes=max_bytes)


def describe_exit(code: int) -> str:
    """An exit code, with the name of the signal it stands for, if any."""
    try:
        return f'{code} ({signal.Signals(code - 128).name})'
    except ValueError:
        return str(code)


class SkillScriptStoppedError(SkillScriptExecutionError):
    """A script exceeded a limit and was stopped; `result` holds its output until then."""

    def __init__(self, message: str, *, result: ScriptResult) -> None:
        super().__init__(message)
        self.result = result


class SkillScriptTimeoutError(SkillScriptStoppedError):
    """A script exceeded its time limit and was stopped."""
