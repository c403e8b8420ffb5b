"""Which skills were loaded for which queries, as values."""

from __future__ import annotations

from dataclasses import dataclass

from .run_cost import RunCost

NONE = 'none'
"""The row and the column of a confusion matrix for no skill at all."""


@dataclass(frozen=True, kw_only=True)
class TriggerRun:
    """One run of a query."""

    number: int
    """Which of the repeats it is, counted from 1."""

    loaded: tuple[str, ...]
    """The skills that were loaded, in their order."""

    correct: bool
    """Whether what should be loaded was loaded, and what should not was not. Never true of a run that failed."""

    used: RunCost
    """What it took."""

    error: str | None = None
    """Why the run failed, if it did."""


@dataclass(frozen=True, kw_only=True)
class TriggerResult:
    """How often a query loaded its skill."""

    case_id: str
    """The case."""

    query: str
    """What the user says."""

    skill: str | None
    """The skill that is tried; `None` if no skill at all should be loaded."""

    should_trigger: bool
    """Whether it should be loaded."""

    target: str | None
    """The skill that should be loaded, if one should."""

    rate: float
    """The share of the runs in which the skill was loaded, or any skill if `skill` is `None`."""

    passed: bool
    """Whether enough runs are correct: see the `threshold` of `evaluate`."""

    runs: tuple[TriggerRun, ...]
    """The runs, in their order."""


@dataclass(frozen=True, kw_only=True)
class SkillTriggers:
    """How well a skill is found, over all runs of all queries that say something about it.

    A query that says only that another skill should not be loaded says nothing about this one.
    """

    skill: str
    """The skill."""

    queries: int
    """How many queries of its own it has."""

    passed: int
    """How many of them passed."""

    true_positives: int
    """Runs in which it should be loaded and was."""

    false_positives: int
    """Runs in which it should not be loaded and was."""

    false_negatives: int
    """Runs in which it should be loaded and was not."""

    true_negatives: int
    """Runs in which it should not be loaded and was not."""

    precision: float | None
    """The share of its loads that were right; `None` if there were none."""

    recall: float | None
    """The share that loaded it of the runs that should have; `None` if there were none."""


@dataclass(frozen=True, kw_only=True)
class ConfusionMatrix:
    """Which skills were loaded in place of which: counts of runs."""

    expected: tuple[str, ...]
    """The rows: the skill that should be loaded, or `'none'`, which comes last."""

    loaded: tuple[str, ...]
    """The columns: the skill that was loaded, or `'none'`, which comes last."""

    counts: tuple[tuple[int, ...], ...]
    """For each row the number of runs in each column. A run that loaded two skills counts in both columns."""

    def count(self, expected: str, loaded: str) -> int:
        """The number of runs in a row and a column; 0 if there is no such row or column."""
        if expected not in self.expected or loaded not in self.loaded:
            return 0
        return self.counts[self.expected.index(expected)][self.loaded.index(loaded)]


@dataclass(frozen=True, kw_only=True)
class TriggerReport:
    """Whether the right skills are loaded."""

    results: tuple[TriggerResult, ...]
    """Each query, in the order of the cases."""

    skills: tuple[SkillTriggers, ...]
    """Each skill that was loaded or should have been, sorted by name."""

    matrix: ConfusionMatrix
    """Which skills were loaded in place of which."""

    precision: float | None
    """The share of all loads that were right; `None` if there were none."""

    recall: float | None
    """The share that loaded the right skill of the runs that should have loaded one; `None` if there were none."""

    passed: int
    """How many queries passed."""
