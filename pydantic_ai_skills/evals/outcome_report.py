"""The results of tasks with a skill and without it, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .run_cost import RunCost
from .spread import Delta, Spread

Configuration: TypeAlias = Literal['with_skill', 'without_skill', 'baseline']
"""With the skill as it is, without it, and with the version that it is compared with."""


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """How a check went."""

    text: str
    """What was checked, in words."""

    kind: str
    """The kind of the check, such as `contains` or `judge`."""

    passed: bool | None
    """Whether it is true; `None` if nobody could tell, because there is no judging model or it failed."""

    evidence: str = ''
    """What was found."""


@dataclass(frozen=True, kw_only=True)
class OutcomeRun:
    """One run of a task."""

    number: int
    """Which of the repeats it is, counted from 1."""

    checks: tuple[CheckResult, ...]
    """Its checks, in the order of the case."""

    pass_rate: float | None
    """The share that passed of the checks that could be made; 0 if the run failed, `None` if none could be made."""

    loaded: tuple[str, ...]
    """The skills that were loaded, in their order."""

    output: str
    """The answer, cut if it is very long."""

    used: RunCost
    """What it took."""

    error: str | None = None
    """Why the run failed, if it did."""


@dataclass(frozen=True, kw_only=True)
class OutcomeResult:
    """The runs of a task in one configuration."""

    case_id: str
    """The case."""

    prompt: str
    """What the user says."""

    skill: str | None
    """The skill that is tried."""

    configuration: Configuration
    """With which version of the skill, if any."""

    pass_rate: float | None
    """The mean pass rate of the runs; `None` if nothing could be checked."""

    runs: tuple[OutcomeRun, ...]
    """The runs, in their order."""


@dataclass(frozen=True, kw_only=True)
class OutcomeSummary:
    """All runs of a skill's tasks in one configuration."""

    configuration: Configuration
    """With which version of the skill, if any."""

    runs: int
    """How many runs there were."""

    failed: int
    """How many of them raised an error."""

    unchecked: int
    """How many checks could not be made."""

    pass_rate: Spread | None
    """The share of checks that passed; `None` if nothing could be checked."""

    tokens: Spread
    """Tokens of a run."""

    requests: Spread
    """Requests of a run."""

    seconds: Spread
    """Seconds of a run."""

    cost: Spread | None
    """US dollars of a run; `None` if a price is not known."""


@dataclass(frozen=True, kw_only=True)
class OutcomeDelta:
    """What the skill changes, against another configuration."""

    against: Configuration
    """What it is compared with."""

    pass_rate: Delta | None
    """The share of checks that passed; `None` if nothing could be checked in both."""

    tokens: Delta
    """Tokens of a run."""

    requests: Delta
    """Requests of a run."""

    seconds: Delta
    """Seconds of a run."""

    cost: Delta | None
    """US dollars of a run; `None` if a price is not known."""

    verdict: Literal['helps', 'harms', 'unclear']
    """`'helps'` or `'harms'` if the interval of the pass rate's delta is on one side of zero, else `'unclear'`."""


@dataclass(frozen=True, kw_only=True)
class SkillOutcomes:
    """The results of a skill's tasks."""

    skill: str | None
    """The skill; `None` for tasks of the whole library."""

    tasks: int
    """How many tasks it has."""

    summaries: tuple[OutcomeSummary, ...]
    """Each configuration."""

    deltas: tuple[OutcomeDelta, ...]
    """What the skill changes, against each of the other configurations."""

    def summary(self, configuration: Configuration) -> OutcomeSummary | None:
        """The summary of a configuration, if it was run."""
        return next((each for each in self.summaries if each.configuration == configuration), None)

    def delta(self, against: Configuration = 'without_skill') -> OutcomeDelta | None:
        """What the skill changes against a configuration, if it was run."""
        return next((each for each in self.deltas if each.against == against), None)


@dataclass(frozen=True, kw_only=True)
class OutcomeReport:
    """Whether skills help."""

    results: tuple[OutcomeResult, ...]
    """Each task in each configuration, in the order of the cases."""

    skills: tuple[SkillOutcomes, ...]
    """Each skill that has tasks, sorted by name."""
