"""What a registry has, in one word."""

from __future__ import annotations

from pydantic_ai_skills.registries import SkillRegistry


def names(registry: SkillRegistry) -> list[str]:
    """The names of the skills it finds; none if its source failed."""
    return [skill.name for skill in registry.find().skills]


def given(registry: SkillRegistry) -> list[str]:
    """The names of the skills it gives. A source that failed is an error, unless there are skills from before."""
    return [skill.name for skill in registry.get_skills()]


def codes(registry: SkillRegistry) -> list[str]:
    return [problem.code for problem in registry.find().problems]


def messages(registry: SkillRegistry) -> str:
    return ' '.join(problem.message for problem in registry.find().problems)
