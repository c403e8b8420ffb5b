"""Limits what a script may use of the machine, without touching the limits of this process.

A local script starts as a shell, which sets the kernel's limits and then becomes the script; a sandbox waits until they
are set from outside. In both cases the script never runs without them, and no code runs between `fork` and `exec`,
which would not be safe in a program with threads. What a script and its children use together is held by a control
group where one can be made, and watched.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Container, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields

MIB = 1024 * 1024

TASKS_PER_PROCESS = 8
"""The kernel counts threads too, so its cap leaves room for this many in each process."""

MEMORY_SLACK = 16 * MIB
"""The kernel's cap on the memory of a run is higher than the limit by this or by a quarter, so that a script that
reaches the limit can still end by itself, with an error message."""


@dataclass(frozen=True, kw_only=True)
class ScriptLimits:
    """What a script may use before it is stopped. `None` lifts a limit.

    The kernel enforces `cpu_time`, `memory`, `file_size` and `open_files` for each process. `memory`, `processes` and
    `work_folder` are watched for all processes of a run together, many times a second, so they may be exceeded for a
    moment. Where control groups can be made, the kernel caps `memory` and `processes` too. An executor lists in
    `watched` what is only watched, and in `unenforced` what a script can get around.
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
"""Limits on all processes of a run together."""


def unenforced_limits(
    limits: ScriptLimits, *, held: Container[str] = _TOGETHER, platform: str | None = None
) -> tuple[str, ...]:
    """The names of limits that are set but that a script can get around here. `held` names those the kernel holds."""
    if not can_watch(platform=platform):
        return _set(limits, _TOGETHER)
    # A watcher sees what processes have mapped, but not what the kernel keeps for them, such as full sockets.
    return _set(limits, ['memory'] if 'memory' not in held else [])


def warn_of_unwatched(limits: ScriptLimits, *, platform: str | None = None) -> None:
    """Warn about limits that the developer chose and that do nothing here: they must not look like those that do."""
    platform = platform or sys.platform
    names = () if can_watch(platform=platform) else _set(limits, _TOGETHER)
    if chosen := [name for name in names if getattr(limits, name) != getattr(ScriptLimits(), name)]:
        warnings.warn(
            f'{" and ".join(chosen)} cannot be limited on {platform}. Set them to None to say that this is accepted, '
            'or run scripts in a workspace that limits them.',
            stacklevel=3,
        )


def watched_limits(limits: ScriptLimits, *, held: Container[str]) -> tuple[str, ...]:
    """The names of limits that are set and only watched. `held` names those that the kernel holds."""
    return _set(limits, [name for name in _TOGETHER if name not in held]) if can_watch() else ()


def group_limits(limits: ScriptLimits) -> dict[str, int]:
    """What a control group should hold for a run."""
    memory = limits.memory and limits.memory + max(MEMORY_SLACK, limits.memory // 4)
    wanted = {'processes': most_tasks(limits), 'memory': memory}
    return {name: value for name, value in wanted.items() if value is not None}


def most_tasks(limits: ScriptLimits) -> int | None:
    """How many processes and threads the kernel should let a run have."""
    # One more, so that the watchdog stops the script first and says why, before the kernel refuses a process.
    return None if limits.processes is None else (limits.processes + 1) * TASKS_PER_PROCESS


def can_watch(*, platform: str | None = None) -> bool:
    """Whether the processes of a run can be watched, which needs Linux's `/proc`."""
    return (platform or sys.platform) == 'linux'


def apply_limits(limits: ScriptLimits, pid: int, *, own_namespace: bool = False) -> None:
    """Set the kernel's limits on a waiting process. Its children inherit them.

    Only in a user namespace of its own does the kernel count the processes of this run, not all of the user.
    """
    import resource  # not on every platform

    for which, soft_and_hard in _kernel_limits(limits, most_tasks(limits) if own_namespace else None).items():
        with suppress(ProcessLookupError):  # the process has ended
            resource.prlimit(pid, which, soft_and_hard)


def limits_prefix(limits: ScriptLimits) -> list[str]:
    """Words to put before a command: a shell that sets the kernel's limits and then becomes the command."""
    import resource

    units = {
        resource.RLIMIT_CPU: ('t', 1),
        resource.RLIMIT_DATA: ('d', 1024),
        resource.RLIMIT_FSIZE: ('f', 512),
        resource.RLIMIT_NOFILE: ('n', 1),
        resource.RLIMIT_CORE: ('c', 1),
    }
    lines: list[str] = []
    for which, (soft, hard) in _kernel_limits(limits).items():
        flag, unit = units[which]
        lines += [f'ulimit -S{flag} {soft // unit}', f'ulimit -H{flag} {hard // unit}']
    return ['/bin/sh', '-c', '; '.join([*lines, 'exec "$@"']), 'sh']


def _set(limits: ScriptLimits, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if getattr(limits, name) is not None)


def _kernel_limits(limits: ScriptLimits, tasks: int | None = None) -> dict[int, tuple[int, int]]:
    """The soft and the hard limits to set, capped at those of this process: root could raise them by accident."""
    import resource

    wanted: dict[int, float | None] = {
        resource.RLIMIT_CPU: limits.cpu_time,
        # Not RLIMIT_AS: Node reserves gigabytes of addresses that it never uses.
        resource.RLIMIT_DATA: limits.memory,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: tasks,
    }
    found: dict[int, tuple[int, int]] = {}
    for which, value in wanted.items():
        if value is not None:
            _, ceiling = resource.getrlimit(which)
            # The soft limit of processor time is a second lower: its signal says what happened, a kill does not.
            hard = math.ceil(value) + (which == resource.RLIMIT_CPU)
            hard = hard if ceiling == resource.RLIM_INFINITY else min(hard, ceiling)
            found[which] = min(math.ceil(value), hard), hard
    return found
