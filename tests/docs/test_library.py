"""The example library: twelve skills that break no rule, each with cases of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pydantic_ai_skills import SkillsToolset, validate_skills
from pydantic_ai_skills.evals import Judged, cases_of, read_cases

LIBRARY = Path(__file__).parent.parent.parent / 'examples/library'
SKILLS = SkillsToolset[None](directories=[LIBRARY]).skills


def test_it_has_twelve_skills_without_a_problem():
    report = validate_skills(LIBRARY)
    assert (report.skills, report.problems) == (12, ())
    assert len(SKILLS) == 12


def test_every_file_of_a_skill_is_named_in_its_instructions():
    for skill in SKILLS.values():
        files = [item.name for item in (*skill.resources, *skill.scripts)]
        assert [name for name in files if name not in skill.content] == [], skill.name
        assert files, skill.name


@pytest.mark.parametrize('name', SKILLS)
def test_each_skill_has_cases_that_a_machine_can_decide(name: str):
    read = read_cases(LIBRARY / name, skill=name)
    queries, tasks = ([case for case in read.cases if case.is_query is is_query] for is_query in (True, False))
    assert list(read.problems) == []
    assert [case.should_trigger for case in queries] == [True] * 4 + [False] * 4
    assert len(tasks) >= 2
    assert all(case.checks for case in tasks)
    assert not any(isinstance(check, Judged) for case in tasks for check in case.all_checks)
    assert all(case.expected_skill in (None, *SKILLS) for case in queries)


def test_the_model_is_not_shown_the_answers():
    for skill in SKILLS.values():
        assert [item.name for item in (*skill.resources, *skill.scripts) if item.name.startswith('evals')] == []


def test_each_skill_is_a_near_miss_of_another():
    instead = {case.expected_skill for case in cases_of(SKILLS.values()).cases if case.expected_skill}
    assert len(instead) >= 9
