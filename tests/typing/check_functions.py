"""Checked by pyright only, as a user's code would be: what `RunContext[Deps]` may be in functions of a skill.

A line that must be an error carries a suppression, and pyright reports a suppression that is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pydantic_ai import Agent, RunContext

from pydantic_ai_skills import Skill, SkillsCapability, SkillsToolset, SkillWrapper


@dataclass
class Deps:
    name: str


@dataclass
class OtherDeps:
    number: int


skills = SkillsToolset[Deps](skills=[])


@skills.skill
def bare() -> str:
    """Bare."""
    return ''


@skills.skill(metadata={'version': '1.0'})
def called() -> str:
    """Called."""
    return ''


assert_type(bare, SkillWrapper[Deps])
assert_type(called, SkillWrapper[Deps])


@bare.resource
async def right(ctx: RunContext[Deps], name: str) -> str:
    return ctx.deps.name + name


@bare.script(name='x')
def right_with_options(ctx: RunContext[Deps]) -> str:
    return ctx.deps.name


@called.script
def without_context(query: str, limit: int = 3) -> str:
    return query * limit


@called.resource
def without_anything() -> list[str]:
    return []


@called.script  # pyright: ignore[reportDeprecated, reportUntypedFunctionDecorator] - other dependencies than the skill has
def wrong(ctx: RunContext[OtherDeps]) -> int:
    return ctx.deps.number


@called.resource(name='y')  # pyright: ignore[reportUntypedFunctionDecorator] - other dependencies than the skill has
async def wrong_with_options(ctx: RunContext[OtherDeps]) -> int:
    return ctx.deps.number


# What was decorated keeps its type.
assert_type(without_context('a'), str)
assert_type(without_anything(), list[str])

typed_skill = Skill[Deps]('typed', 'Typed.', '')


@typed_skill.script
def also_right(ctx: RunContext[Deps]) -> str:
    return ctx.deps.name


@typed_skill.script  # pyright: ignore[reportDeprecated, reportUntypedFunctionDecorator] - other dependencies than the skill has
def also_wrong(ctx: RunContext[OtherDeps]) -> int:
    return ctx.deps.number


# Without a type argument, functions of any dependencies are welcome.
open_skills = SkillsToolset(directories=[])


@open_skills.skill
def open_skill() -> str:
    """Open."""
    return ''


@open_skill.script
def anything(ctx: RunContext[OtherDeps]) -> int:
    return ctx.deps.number


Agent('test', deps_type=Deps, toolsets=[skills, open_skills], capabilities=[SkillsCapability(skills=[typed_skill])])
Agent('test', deps_type=OtherDeps, toolsets=[open_skills])
Agent('test', deps_type=OtherDeps, toolsets=[skills])  # pyright: ignore[reportArgumentType, reportCallIssue] - other
