"""How much of the machine a script may use, and how that is enforced without touching this process.

A plain process starts as a shell, which sets the kernel's limits and then becomes the script; a sandbox waits until
they were set from outside. In both cases the script never runs without them, and no code runs between `fork` and
`exec`, which is not safe in a program with threads.
What a script and its children use together is watched by [`Watchdog`][pydantic_ai_skills.execution.watchdog.Watchdog].
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields

__all__ = (
    'ScriptLimits',
    'apply_limits',
    'can_watch',
    'limits_prefix',
    'most_tasks',
    'unenforced_limits',
    'watched_limits',
)

MIB = 1024 * 1024

TASKS_PER_PROCESS = 8
"""The kernel counts threads as well, so where it caps their number, it leaves room for as many in each process."""


@dataclass(frozen=True, kw_only=True)
class ScriptLimits:
    """What a script may use before it is stopped. `None` lifts a limit.

    The kernel enforces `cpu_time`, `memory`, `file_size` and `open_files` for each process. `memory`, `processes` and
    `work_folder` are watched for all processes of a run together, several times a second, so these may be exceeded for
    a moment; `processes` by little where the kernel caps their number too. An executor says in `watched` which of them
    nothing but watching holds.
    """

    wall_time: float = 30.0
    """Seconds from start to end."""

    cpu_time: float | None = 60.0
    """Seconds of processor time, for each process."""

    memory: int | None = 2048 * MIB
    """Bytes of memory: private memory of each process, and all memory of all processes together."""

    processes: int | None = 128
    """Processes at the same time."""

    file_size: int | None = 512 * MIB
    """Bytes in a file it writes."""

    open_files: int | None = 1024
    """Files it has open at the same time, in each process."""

    work_folder: int | None = 1024 * MIB
    """Bytes in its work folder, all files together."""

    output: int = 60 * 1024
    """Bytes of standard output and standard error that are kept, together. Of longer output the beginning and the end
    are kept, with a line between them that says how much was left out. The default leaves room for labels in the 64 KiB
    that reach the model."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name not in ('wall_time', 'output'):
                continue
            if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
                raise ValueError(f'{field.name} must be a positive number, not {value!r}.')


_TOGETHER = ('memory', 'processes', 'work_folder')
"""Limits on all processes of a run together, for which the kernel has nothing of its own."""


def unenforced_limits(limits: ScriptLimits, *, platform: str = sys.platform) -> tuple[str, ...]:
    """The names of limits that are set and that this platform has no means to enforce.

    Those that the developer chose are warned about: a limit that does nothing must not look like one that does.
    """
    names = () if can_watch(platform=platform) else _set(limits, _TOGETHER)
    if chosen := [name for name in names if getattr(limits, name) != getattr(ScriptLimits(), name)]:
        warnings.warn(
            f'{" and ".join(chosen)} cannot be limited on {platform}. Set them to None to say that this is accepted, '
            'or run scripts in a workspace that limits them.',
            stacklevel=3,
        )
    return names


def watched_limits(limits: ScriptLimits, *, capped: bool) -> tuple[str, ...]:
    """The names of limits that are set and that nothing but watching holds.

    Args:
        limits: The limits.
        capped: Whether the kernel caps the number of processes of a run.
    """
    if not can_watch():
        return ()
    return _set(limits, [name for name in _TOGETHER if not (capped and name == 'processes')])


def most_tasks(limits: ScriptLimits) -> int | None:
    """How many processes and threads the kernel should let a run have."""
    # One more, so that it is not the kernel's refusal that a script runs into first but the watchdog, which tells why.
    return None if limits.processes is None else (limits.processes + 1) * TASKS_PER_PROCESS


def can_watch(*, platform: str = sys.platform) -> bool:
    """Whether one can see what the processes of a run use together, for which it takes Linux's `/proc`."""
    return platform == 'linux'


def apply_limits(limits: ScriptLimits, pid: int, *, own_namespace: bool = False) -> None:
    """Set the kernel's limits on a process that waits for it. Its children inherit them.

    Args:
        limits: The limits.
        pid: The process.
        own_namespace: Whether the process is in a user namespace of its own. Only there does the kernel's limit on the
            number of processes count those of this run, and not all that the user has.
    """
    import resource  # not on every platform

    wanted = _kernel_limits(limits)
    if own_namespace and (tasks := most_tasks(limits)) is not None:
        wanted[resource.RLIMIT_NPROC] = tasks
    for which, value in wanted.items():
        with suppress(ProcessLookupError):  # it has ended already
            resource.prlimit(pid, which, _soft_and_hard(which, value))


def limits_prefix(limits: ScriptLimits) -> list[str]:
    """Words to put before a command, so that a shell sets the kernel's limits and then becomes the command."""
    import resource

    units = {
        resource.RLIMIT_CPU: ('t', 1),
        resource.RLIMIT_DATA: ('d', 1024),
        resource.RLIMIT_FSIZE: ('f', 512),
        resource.RLIMIT_NOFILE: ('n', 1),
        resource.RLIMIT_CORE: ('c', 1),
    }
    lines: list[str] = []
    for which, value in _kernel_limits(limits).items():
        flag, unit = units[which]
        soft, hard = _soft_and_hard(which, value)
        lines += [f'ulimit -S{flag} {soft // unit}', f'ulimit -H{flag} {hard // unit}']
    return ['/bin/sh', '-c', '; '.join([*lines, 'exec "$@"']), 'sh']


def _set(limits: ScriptLimits, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if getattr(limits, name) is not None)


def _soft_and_hard(which: int, value: int) -> tuple[int, int]:
    """Both limits to set, none above what this process has itself, which not even root should raise by accident."""
    import resource

    _, ceiling = resource.getrlimit(which)
    # The soft limit of processor time comes a second earlier: its signal tells what happened, a kill does not.
    hard = value + 1 if which == resource.RLIMIT_CPU else value
    hard = hard if ceiling == resource.RLIM_INFINITY else min(hard, ceiling)
    return min(value, hard), hard


def _kernel_limits(limits: ScriptLimits) -> dict[int, int]:
    import resource

    wanted: dict[int, float | None] = {
        resource.RLIMIT_CPU: limits.cpu_time,
        # Not RLIMIT_AS: Node reserves gigabytes of addresses that it never uses.
        resource.RLIMIT_DATA: limits.memory,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
    }
    return {which: math.ceil(value) for which, value in wanted.items() if value is not None} | {resource.RLIMIT_CORE: 0}
