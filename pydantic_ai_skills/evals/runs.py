"""What a run of a case did, for the checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic_ai.messages import ModelMessage

from pydantic_ai_skills.toolset.events import ScriptFinished

from .cases import SkillCase
from .folder_names import FolderNames
from .run_cost import RunCost

RunKind: TypeAlias = Literal['trigger', 'with_skill', 'without_skill', 'baseline']
"""What a run is for: a query, or a task in one of the configurations."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A case in one configuration, which runs several times."""

    case: SkillCase
    """The case."""

    case_id: str
    """Names the case among all of them."""

    kind: RunKind
    """What it is run for."""

    @property
    def key(self) -> str:
        """Identifies it among all planned runs of an evaluation."""
        return f'{self.case_id} {self.kind}'

    def label(self, number: int) -> str:
        """The name of one of its runs."""
        return f'{self.key} {number}'


@dataclass(frozen=True, kw_only=True)
class CaseRun:
    """What a run of a case did. Functions that check runs are called with it."""

    planned: PlannedRun
    """What it is a run of."""

    number: int
    """Which of the repeats it is, counted from 1."""

    output: str
    """The answer, as text."""

    loaded: tuple[str, ...]
    """The skills that were loaded, in their order."""

    scripts: tuple[ScriptFinished, ...]
    """The scripts that ran, in their order, with their exit codes and their output."""

    work_dir: Path
    """The work folder, which exists until the run is checked."""

    folders: FolderNames = field(repr=False)
    """The folders that the model knows, and what a report calls them."""

    messages: Sequence[ModelMessage] = field(repr=False)
    """The whole conversation."""

    used: RunCost
    """What it took."""

    error: str | None = None
    """Why it failed, if it did."""

    @property
    def case(self) -> SkillCase:
        """The case."""
        return self.planned.case

    @property
    def label(self) -> str:
        """The name of the run in an evaluation."""
        return self.planned.label(self.number)
