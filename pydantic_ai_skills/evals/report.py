"""The report of an evaluation: frozen values that have the same shape in JSON."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter

from .outcome_report import OutcomeReport
from .trigger_report import TriggerReport


@dataclass(frozen=True, kw_only=True)
class SkillScore:
    """What an evaluation says about a skill, in short."""

    skill: str
    """The skill."""

    pass_rate: float | None
    """The share of its cases that passed, a task by the share of its checks; `None` if nothing could be checked."""

    cases: int
    """How many cases count towards that share."""

    model: str
    """The model that was tried."""

    content_hash: str | None
    """The hash of the files that were tried, if the skill has any."""


@dataclass(frozen=True, kw_only=True)
class EvalReport:
    """The results of an evaluation."""

    model: str
    """The model that was tried."""

    judge: str | None
    """The model that judged, if one did."""

    repeat: int
    """How often each case ran in each configuration."""

    threshold: float
    """The share of correct runs at which a query or a check passes: see `evaluate`."""

    baseline: str | None
    """What the skills were compared with, in words, if with anything."""

    hashes: dict[str, str]
    """The hash of the files of each skill that was tried, as in the lock file."""

    trigger: TriggerReport | None
    """Whether the right skills are loaded; `None` if there was no query."""

    outcome: OutcomeReport | None
    """Whether skills help; `None` if there was no task."""

    problems: tuple[str, ...] = ()
    """What was wrong with the cases."""

    @property
    def errors(self) -> tuple[str, ...]:
        """Why runs failed, each with its case."""
        queries = [(each.case_id, run) for each in self.trigger.results for run in each.runs] if self.trigger else []
        tasks = [(each.case_id, run) for each in self.outcome.results for run in each.runs] if self.outcome else []
        return tuple(dict.fromkeys(f'{case}: {run.error}' for case, run in [*queries, *tasks] if run.error))

    def score(self, skill: str) -> SkillScore:
        """The score of a skill: the mean over its queries and its tasks with the skill."""
        queries = [float(each.passed) for each in self.trigger.results if each.skill == skill] if self.trigger else []
        tasks = (
            [
                each.pass_rate
                for each in self.outcome.results
                if each.skill == skill and each.configuration == 'with_skill' and each.pass_rate is not None
            ]
            if self.outcome
            else []
        )
        rates = [*queries, *tasks]
        return SkillScore(
            skill=skill,
            pass_rate=sum(rates) / len(rates) if rates else None,
            cases=len(rates),
            model=self.model,
            content_hash=self.hashes.get(skill),
        )

    def to_json(self) -> str:
        """The report as JSON text. The same report gives the same bytes."""
        return _adapter().dump_json(self, indent=2).decode() + '\n'

    @classmethod
    def from_json(cls, text: str | bytes) -> EvalReport:
        """Read a report that `to_json` wrote.

        Raises:
            ValueError: It is not one.
        """
        return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[EvalReport]:
    return TypeAdapter(EvalReport)
