"""Serves the typed tools of skills: those of loaded skills, and those that wait for their skill to be loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import ToolsetTool

from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.skill import Skill

from .actions import SkillActions
from .lenient_args import fail_on_timeout
from .prompt import View
from .skill_toolsets import ToolOfToolset
from .typed_tools import WAITING


async def served_tools(
    actions: SkillActions[Any], view: View, loaded: Collection[Skill[Any]], ctx: RunContext[Any]
) -> dict[str, ToolsetTool[Any]]:
    """The typed tools of a run, by name.

    The model does not see a tool before its skill is loaded: deferred loading of pydantic-ai holds it back, or the
    capability removes it from each request. A call of such a tool is answered all the same.
    """
    library, typed = actions.library, actions.typed
    typed.keep_only(library.look().catalog.skills)
    deferred = library.deferred(view.catalog.skills.values(), ctx)
    others = {skill.name for skill in (*loaded, *deferred)}
    waiting = await typed.waiting((skill for skill in view.with_tools if skill.name not in others), ctx)
    if not actions.history.has_capability:
        waiting = {
            name: replace(tool, tool_def=replace(tool.tool_def, defer_loading=True)) for name, tool in waiting.items()
        }
    served = [skill for skill in loaded if not library.comes_as_capability(skill, ctx)]
    names = {skill.name for skill in served}
    deferred = [skill for skill in deferred if skill.name not in names]
    tools = await typed.deferred(deferred, ctx, loaded=ctx.loaded_capability_ids) if deferred else {}
    return tools | waiting | await typed.offered(served, ctx)


async def call_tool_of_skill(
    actions: SkillActions[Any],
    name: str,
    args: dict[str, Any],
    ctx: RunContext[Any],
    tool: ToolsetTool[Any],
    call: Callable[[ToolsetTool[Any]], Awaitable[Any]],
) -> Any:
    """Call a tool of a skill, or fail if the skill is not loaded. A tool that is not a script is recorded like one."""
    if isinstance(tool, ToolOfToolset):
        if WAITING in (tool.tool_def.metadata or {}):
            raise actions.history.not_loaded(tool.skill, ctx)
        return await actions.call(ctx, tool.skill, name, partial(tool.call, name, args, ctx))
    made = actions.typed.owner(name)
    called = partial(_guarded, name, tool, call)
    if made is None:  # the skill has lost it meanwhile
        return await called()
    if WAITING in (tool.tool_def.metadata or {}):
        raise actions.history.not_loaded(made.skill, ctx)
    function = made.functions.get(name)
    return await (called() if function is None else actions.call(ctx, made.skill, function, called))


async def _guarded(name: str, tool: ToolsetTool[Any], call: Callable[[ToolsetTool[Any]], Awaitable[Any]]) -> Any:
    return await guarded(fail_on_timeout(call, tool), what=f'tool {name!r}', error=ToolFailed)
