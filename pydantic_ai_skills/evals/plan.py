"""Plans an evaluation: which cases run, in which configurations, under which names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .cases import SkillCase
from .runs import PlannedRun, RunKind

LIBRARY = 'library'
"""Stands for the name of the skill in a case of the whole library."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be run."""

    queries: Sequence[PlannedRun]
    """The runs that show which skills are loaded. For a query that is a task too, those are its runs with the skill."""

    tasks: Sequence[PlannedRun]
    """The tasks in all configurations, in the order of the cases."""

    @property
    def runs(self) -> int:
        """How many different runs there are, not counting repeats."""
        return len({each.key for each in (*self.queries, *self.tasks)})

    def of(self, kind: RunKind) -> list[PlannedRun]:
        """The runs of one kind."""
        planned = {each.key: each for each in (*self.queries, *self.tasks)}
        return [each for each in planned.values() if each.kind == kind]


def make_plan(
    cases: Sequence[SkillCase], *, trigger: bool, outcome: bool, without_skill: bool, with_baseline: Collection[str]
) -> Plan:
    """Plan the runs of cases.

    Args:
        cases: The cases.
        trigger: Whether to run queries.
        outcome: Whether to run tasks.
        without_skill: Whether to run tasks without their skill, too.
        with_baseline: The skills that have another version to compare with.
    """
    queries: list[PlannedRun] = []
    tasks: list[PlannedRun] = []
    for case_id, case in name_cases(cases):
        is_task = outcome and case.is_task
        if trigger and case.is_query:
            queries.append(PlannedRun(case=case, case_id=case_id, kind='with_skill' if is_task else 'trigger'))
        if is_task:
            wanted: dict[RunKind, bool] = {
                'with_skill': True,
                'without_skill': without_skill,
                'baseline': case.skill in with_baseline,
            }
            tasks += [PlannedRun(case=case, case_id=case_id, kind=kind) for kind, is_run in wanted.items() if is_run]
    return Plan(queries=queries, tasks=tasks)


def name_cases(cases: Sequence[SkillCase]) -> list[tuple[str, SkillCase]]:
    """The cases, each with a name that no other one has: its skill and its id, or its number."""
    numbers = Counter[str]()
    named: dict[str, SkillCase] = {}
    for case in cases:
        skill = case.skill or LIBRARY
        numbers[skill] += 1
        name = wanted = f'{skill}/{case.id if case.id != "" else numbers[skill]}'
        again = 1
        while name in named:
            again += 1
            name = f'{wanted}#{again}'
        named[name] = case
    return list(named.items())
