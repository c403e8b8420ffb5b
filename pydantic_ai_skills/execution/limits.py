"""Limits on what a script may use of the machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

MIB = 1024 * 1024


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

    background_time: float = 3600.0
    """Seconds from start to end, for a command in the background."""

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
            if value is None and field.name not in ('wall_time', 'background_time', 'output'):
                continue
            if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
                raise ValueError(f'{field.name} must be a positive number, not {value!r}.')
