"""What is known about the content of a skill: who signed it, what scanners said and how it did in evals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ScanVerdict:
    """What a scanner said about one content of a skill."""

    scanner: str
    """The name of the scanner."""

    version: str = ''
    """Its version, if it says one."""

    passed: bool
    """Whether the scanner found no errors, so that the skill may be used."""

    errors: int = 0
    """How many errors it found."""

    warnings: int = 0
    """How many warnings."""

    notes: int = 0
    """How many remarks of less weight."""

    ignored: tuple[str, ...] = ()
    """The codes that a person chose not to count."""

    def __str__(self) -> str:
        counts = {'error': self.errors, 'warning': self.warnings, 'note': self.notes}
        found = ', '.join(f'{count} {what}{"s" if count > 1 else ""}' for what, count in counts.items() if count)
        ignored = f', without {", ".join(self.ignored)}' if self.ignored else ''
        name = f'{self.scanner} {self.version}'.rstrip()
        return f'{"passed" if self.passed else "failed"} by {name} ({found or "no findings"}{ignored})'


@dataclass(frozen=True, kw_only=True)
class EvalScore:
    """How one content of a skill did in its latest evals."""

    pass_rate: float
    """The share of the cases that passed, from 0 to 1."""

    cases: int
    """How many cases were run."""

    model: str
    """The model that was asked, or what stood in for it."""

    baseline: str | None = None
    """What it was compared with, such as `'none'` for the same model without the skill."""

    delta: float | None = None
    """How much higher the pass rate is than that of the baseline."""

    def __post_init__(self) -> None:
        if not 0 <= self.pass_rate <= 1 or self.cases < 0:
            raise ValueError(f'A pass rate is from 0 to 1 and a number of cases not negative: {self!r}.')

    def __str__(self) -> str:
        delta = '' if self.delta is None else f', {self.delta:+.0%} against {self.baseline or "none"}'
        return f'{self.pass_rate:.0%} of {self.cases} case{"" if self.cases == 1 else "s"} with {self.model}{delta}'


@dataclass(frozen=True, kw_only=True)
class SkillFacts:
    """All that a lock file knows about one content of a skill besides where it came from."""

    name: str = ''
    """The skill that had this content when a fact was recorded. Recording a fact about its new content drops these."""

    signed_by: str | None = None
    """Who signed it, as verified when it was locked."""

    scans: Mapping[str, ScanVerdict] = field(default_factory=dict[str, ScanVerdict])
    """The latest verdict of each scanner, by its name."""

    score: EvalScore | None = None
    """How it did in its latest evals."""

    @property
    def is_scanned(self) -> bool:
        """Whether a scanner has seen it, and none of them failed it."""
        return bool(self.scans) and all(verdict.passed for verdict in self.scans.values())
