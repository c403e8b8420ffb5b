"""Checked by pyright only, as a user's code would be: what `RunContext[Deps]` may be in functions of a skill.

A line that must be an error carries a suppression, and pyright reports a suppression that is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, assert_type

from pydantic_ai import Agent, RunContext

from pydantic_ai_skills import (
    ScriptFinished,
    ScriptResult,
    Skill,
    SkillClass,
    SkillEvent,
    SkillLoaded,
    SkillsCapability,
    SkillsToolset,
    SkillWrapper,
    resource,
    tool,
)


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


@skills.on(ScriptFinished)
async def hear_of_scripts(ctx: RunContext[Deps], event: ScriptFinished) -> None:
    assert_type(event.result, ScriptResult)


@skills.on(SkillEvent)
def hear_of_all(ctx: RunContext[Deps], event: SkillEvent) -> None: ...


@skills.on(SkillLoaded)  # pyright: ignore[reportArgumentType] - an event of another type
def hear_of_others(ctx: RunContext[Deps], event: ScriptFinished) -> None: ...


@skills.on(SkillLoaded)  # pyright: ignore[reportArgumentType] - other dependencies
def hear_with_others(ctx: RunContext[OtherDeps], event: SkillLoaded) -> None: ...


# --- Typed tools --------------------------------------------------------------------------------------------------


@bare.tool
async def right_tool(ctx: RunContext[Deps], number: int) -> str:
    return ctx.deps.name * number


right_tool_call: Callable[[RunContext[Deps], int], Coroutine[Any, Any, str]] = right_tool


@bare.tool(requires_approval=True, timeout=5)
def right_tool_with_options(ctx: RunContext[Deps]) -> str:
    return ctx.deps.name


@bare.tool  # pyright: ignore[reportArgumentType] - other dependencies
def wrong_tool(ctx: RunContext[OtherDeps]) -> int:
    return ctx.deps.number


@bare.tool_plain
def plain_tool(number: int) -> int:
    return number


@bare.tool_plain(nothing=1)  # pyright: ignore[reportCallIssue, reportUntypedFunctionDecorator] - no such option
def wrong_option(number: int) -> int:
    return number


class Typed(SkillClass[Deps]):
    """Typed."""

    instructions = ''

    @tool
    def greeting(self, ctx: RunContext[Deps]) -> str:
        return ctx.deps.name

    @resource(name='other')
    def other(self) -> str:
        return self.name_of()

    def name_of(self) -> str:
        return ''


assert_type(Typed().other(), str)
SkillsToolset[Deps](skills=[Typed()])
SkillsToolset[OtherDeps](skills=[Typed()])  # pyright: ignore[reportArgumentType] - other dependencies
