"""The settings of a directory and the limits of a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic_ai_skills.filesystem.safe_open import MAX_RESOURCE_BYTES, PATIENCE_S, STALL_NS

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor
    from pydantic_ai_skills.types.provenance import SkillProvenance

    from .patterns import FilePatterns

SKILL_FILE = 'SKILL.md'

TOOLS_MODULE = 'tools.py'
"""The file beside `SKILL.md` that holds typed tools."""

MAX_SKILL_BYTES = 1024 * 1024
"""A larger `SKILL.md` is left out."""

MAX_FILES = 1_000
"""How many files of one skill are offered."""


class ScanLimits(NamedTuple):
    """How far a scan of a directory and the listing of a skill's files go."""

    scanned_folders: int = 200_000
    """How many folders are scanned below one directory."""

    scan_depth: int = 32
    """How deep skills are looked for if `max_depth` is `None`."""

    hidden_folders: bool = False
    """Whether skills are looked for in every hidden folder, as in `skills/.curated`, not only in the standard ones."""

    files: int = MAX_FILES
    """How many files of one skill are offered."""

    entries: int = 5_000
    """How many files and folders of one skill are looked at."""

    folders: int = 500
    """How many folders of one skill are listed."""

    folder_depth: int = 12
    """How deep below a skill's folder files are looked for."""

    resource_bytes: int = MAX_RESOURCE_BYTES
    """The size of the largest file that is offered."""

    stall_ns: int = STALL_NS
    """How long a program that rewrites a good skill may pause halfway."""

    patience_s: float = PATIENCE_S
    """How long to wait until half-written files are whole."""

    coarse_tick_ns: int = 2_000_000_000
    """The tick of the clock of a file system that keeps whole seconds only."""

    index_chunk: int = 200
    """How many folders the disk index keeps in one row; a change rewrites the row."""


class ScanSettings(NamedTuple):
    """How to scan a directory."""

    path: str
    """The directory as the developer gave it, for problems."""

    max_depth: int | None
    """How deep below the directory to look for skills."""

    validate: bool = True
    """Whether to apply the Agent Skills rules beyond a usable name and description."""

    executor: SkillScriptExecutor | None = None
    """What runs the scripts."""

    source: SkillProvenance | None = None
    """Where the skills are from; `None` for a trusted directory without a label."""

    follow_links: bool = False
    """Whether a skill's folder may be a link."""

    limits: ScanLimits = ScanLimits()
    """How far the scan goes."""

    label: str | None = None
    """What the developer calls the directory."""

    offers: FilePatterns | None = None
    """Which files of the skills are offered; all if not given."""

    whole_files: bool = False
    """Whether to read each `SKILL.md` to its end and check all of its text, as validation does."""
