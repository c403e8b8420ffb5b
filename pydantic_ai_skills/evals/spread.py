"""Means with their spread, and differences with the interval in which they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t for an interval of 95 % with 1 to 30 degrees of freedom."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A summary of some values."""

    mean: float
    """Their mean."""

    stddev: float
    """Their standard deviation, as that of a sample; 0 for a single value."""

    min: float
    """The smallest."""

    max: float
    """The largest."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        spread = stdev(values) if len(values) > 1 else 0.0
        return cls(mean=fmean(values), stddev=spread, min=min(values), max=max(values))


@dataclass(frozen=True, kw_only=True)
class Delta:
    """A difference between two configurations, from pairs of values."""

    mean: float
    """The mean of the differences; above 0 if the values are higher with the skill."""

    stderr: float | None
    """Its standard error; `None` if there is only one pair."""

    low: float | None
    """The lower end of the interval that holds the difference with 95 % confidence."""

    high: float | None
    """The upper end of that interval."""

    pairs: int
    """How many pairs there are: tasks, or the repeats of a single task."""

    @classmethod
    def of(cls, differences: Sequence[float]) -> Delta:
        """The delta of at least one difference, by Student's t."""
        mean, pairs = fmean(differences), len(differences)
        if pairs == 1:
            return cls(mean=mean, stderr=None, low=None, high=None, pairs=1)
        error = stdev(differences) / sqrt(pairs)
        reach = error * (_T[pairs - 2] if pairs - 2 < len(_T) else 1.96)
        return cls(mean=mean, stderr=error, low=mean - reach, high=mean + reach, pairs=pairs)
