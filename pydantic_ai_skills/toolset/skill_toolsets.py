"""Serves the toolsets that skills bring: their tools and instructions, once a run has loaded the skill.

A run enters a toolset once it has loaded the skill, and exits it when the run ends. `async with agent` enters those of
all skills, so that the runs share their connections.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AsyncExitStack
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.messages import InstructionPart
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.skill import DepsT, Skill

from .actions import SkillActions
from .library import may_read
from .prompt import View
from .results import outgoing
from .typed_tools.offered import PATIENCE, WAITING

CONFLICT_HINT = (
    'The tools of a toolset that a skill brings keep their names: rename the tool, or wrap that toolset, as in '
    "`Skill(toolsets=[toolset.prefixed('billing')])`. For the tools of the skills toolset itself, wrap it: "
    "`SkillsToolset(...).prefixed('team')`."
)
"""What to do if two tools have one name."""


@dataclass(kw_only=True, eq=False, repr=False)
class ToolOfToolset(ToolsetTool[Any]):
    """A tool of a toolset that a skill brings."""

    skill: Skill[Any]
    """The skill."""

    inner: AbstractToolset[Any]
    """The toolset, as the run uses it."""

    tool: ToolsetTool[Any]
    """The tool, as the toolset made it."""

    async def call(self, name: str, args: dict[str, Any], ctx: RunContext[Any]) -> Any:
        """Have the toolset call it. An error is a tool failure, as for other tools of skills."""
        calling = self.inner.call_tool(name, args, ctx, self.tool)
        return await guarded(calling, what=f'tool {name!r}', error=ToolFailed)


class InUse(NamedTuple):
    """A toolset that a run has entered."""

    given: AbstractToolset[Any]
    """The toolset as the skill has it."""

    used: AbstractToolset[Any] | None
    """The toolset as the run uses it; `None` if it could not be entered."""


class SkillToolsets:
    """The toolsets of skills: those that a run has entered, or with `shared`, those that all runs share."""

    def __init__(self, actions: SkillActions[Any], *, shared: bool = True) -> None:
        self.actions = actions
        self.shared = shared
        self._in_use: list[InUse] = []
        self._stacks: list[AsyncExitStack] = []
        self.is_dynamic = False
        """Whether it was entered without a run, as pydantic-ai does with a toolset that a function returns."""

    def __getstate__(self) -> dict[str, Any]:
        # A copy opens its own connections.
        return {**vars(self), '_in_use': [], '_stacks': [], 'is_dynamic': False}

    def for_run(self) -> SkillToolsets:
        """The toolsets of one run, none of them entered yet."""
        return SkillToolsets(self.actions, shared=False)

    # --- Enter and exit -------------------------------------------------------------------------------------------

    async def enter(self) -> None:
        """Enter the toolsets of all skills, if runs share them; a run enters its own as it loads skills."""
        async with AsyncExitStack() as stack:
            if self.shared:
                for toolset in _each(self.actions.library.written()):
                    await stack.enter_async_context(toolset)
            self._stacks.append(stack.pop_all())
        self.is_dynamic = self.shared

    async def exit(self) -> None:
        """Exit what was entered last."""
        if self._stacks:
            await self._stacks.pop().aclose()
        self.is_dynamic = self.shared and bool(self._stacks)
        if not self.shared:
            self._in_use.clear()

    async def step(self, ctx: RunContext[Any]) -> None:
        """Enter the toolsets of the skills that the run has loaded since the last step."""
        if self.shared or not may_read():
            return
        await self.actions.library.catch_up()
        for index, (given, used) in enumerate(self._in_use):
            if used is not None:
                self._in_use[index] = InUse(given, await used.for_run_step(ctx))
        for skill in await self.actions.history.loaded(ctx):
            for toolset in skill.toolsets:
                if self._find(toolset) is None:
                    self._in_use.append(InUse(toolset, await self._entered(skill, toolset, ctx)))

    async def _entered(
        self, skill: Skill[Any], toolset: AbstractToolset[Any], ctx: RunContext[Any]
    ) -> AbstractToolset[Any] | None:
        async def enter() -> AbstractToolset[Any]:
            used = await toolset.for_run(ctx)
            await self._stacks[-1].enter_async_context(used)
            return await used.for_run_step(ctx)

        if not self._stacks:  # the run has not entered the toolset of the skills, so nobody would exit this one
            return toolset
        try:
            return await guarded(enter(), what=_what(skill, toolset), error=SkillError)
        except SkillError:
            return None  # it was logged, and the instructions tell the model

    def _find(self, toolset: AbstractToolset[Any]) -> InUse | None:
        return next((each for each in self._in_use if each.given is toolset), None)

    def _used(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """The toolset as it can be used now."""
        if self.shared:
            return toolset
        entry = self._find(toolset)
        return None if entry is None else entry.used

    # --- Tools ----------------------------------------------------------------------------------------------------

    async def tools(
        self, view: View, loaded: Sequence[Skill[Any]], ctx: RunContext[Any], *, taken: Collection[str]
    ) -> dict[str, ToolOfToolset]:
        """The tools of toolsets for a request, by name. Those of loaded skills come first.

        Raises:
            UserError: Two tools have the same name; `taken` are the names of other tools.
        """
        tools: dict[str, ToolOfToolset] = {}
        if not may_read():  # in the code of a Temporal workflow, nothing can be listed
            return tools
        library, seen = self.actions.library, list[AbstractToolset[Any]]()
        deferred = library.deferred(view.catalog.skills.values(), ctx)
        waiting = [skill for skill in view.with_tools if not _holds(loaded, skill)]
        for skill in (*loaded, *waiting):
            is_loaded = _holds(loaded, skill)
            comes_as_capability = _holds(deferred, skill) and (not is_loaded or library.comes_as_capability(skill, ctx))
            for toolset in skill.toolsets:
                if _holds(seen, toolset):
                    continue  # two skills share it
                seen.append(toolset)
                for name, tool in (await self._listed(skill, toolset, ctx, loaded=is_loaded)).items():
                    if name in tools or name in taken:
                        raise UserError(_conflict(name, skill, tools.get(name)))
                    tools[name] = self._mark(tool, is_loaded=is_loaded, comes_as_capability=comes_as_capability)
        return tools

    async def _listed(
        self, skill: Skill[Any], toolset: AbstractToolset[Any], ctx: RunContext[Any], *, loaded: bool
    ) -> dict[str, ToolOfToolset]:
        """The tools of one toolset. Before the skill is loaded, only those that can be listed without connecting."""
        used = self._used(toolset) if loaded else toolset if _is_local(toolset) else None
        if used is None:
            return {}
        try:
            found = await guarded(used.get_tools(ctx), what=_what(skill, toolset), error=SkillError)
        except SkillError:
            return {}  # it was logged
        return {
            name: ToolOfToolset(
                toolset=used,
                tool_def=tool.tool_def,
                max_retries=tool.max_retries,
                args_validator=tool.args_validator,
                args_validator_func=tool.args_validator_func,
                skill=skill,
                inner=used,
                tool=tool,
            )
            for name, tool in found.items()
        }

    def _mark(self, tool: ToolOfToolset, *, is_loaded: bool, comes_as_capability: bool) -> ToolOfToolset:
        """Hold a tool back until its skill is loaded, as typed tools are."""
        tool_def = tool.tool_def
        if comes_as_capability:
            tool_def = replace(tool_def, defer_loading=True, capability_id=tool.skill.name)
        if is_loaded:
            return replace(tool, tool_def=tool_def)
        metadata = {**(tool_def.metadata or {}), WAITING: tool.skill.name}
        is_deferred = comes_as_capability or not self.actions.history.has_capability
        return replace(
            tool, tool_def=replace(tool_def, metadata=metadata, defer_loading=is_deferred), max_retries=PATIENCE
        )

    # --- Instructions ---------------------------------------------------------------------------------------------

    async def instructions(self, loaded: Sequence[Skill[Any]], ctx: RunContext[Any]) -> list[InstructionPart]:
        """What the toolsets of the loaded skills say about their tools: a part for each skill that has some."""
        parts: list[InstructionPart] = []
        for skill in loaded if may_read() else ():
            texts: list[str] = []
            for toolset in skill.toolsets:
                used = self._used(toolset)
                if used is None:
                    texts.append(f'A part of the tools of the skill {skill.name!r} cannot be reached at the moment.')
                else:
                    texts += _texts(await used.get_instructions(ctx))
            if texts:
                text = str(outgoing('\n\n'.join(texts)))
                parts.append(InstructionPart(text, name=f'tools-of-{skill.name}', on_change='append'))
        return parts

    def addressed(self, parts: list[InstructionPart]) -> list[InstructionPart]:
        """The instruction parts, changed to fit a toolset that a function with `@agent.toolset` returned.

        Its parts have no address in the conversation, so a change is not appended but rewrites the part.
        """
        return [replace(part, on_change='rewrite') for part in parts]


class WithToolsets(FunctionToolset[DepsT]):
    """A toolset that, when it is entered and exited, enters and exits the toolsets that its skills bring."""

    toolsets: SkillToolsets
    """The toolsets that skills bring."""

    def copy_for_run(self) -> Self:
        """The same toolset for one run, which enters the toolsets of the skills that it loads."""
        of_run = copy(self)
        of_run.toolsets = self.toolsets.for_run()
        return of_run

    async def for_run_step(self, ctx: RunContext[DepsT]) -> Self:
        """Enter the toolsets of the skills that were loaded in the last step."""
        await self.toolsets.step(ctx)
        return self

    async def __aenter__(self) -> Self:
        await self.toolsets.enter()
        return self

    async def __aexit__(self, *args: Any) -> bool | None:
        await self.toolsets.exit()

    @property
    def tool_name_conflict_hint(self) -> str:
        """What to do if another tool of the agent has the same name."""
        return CONFLICT_HINT


async def known_names(skill: Skill[Any], ctx: RunContext[Any]) -> list[str]:
    """The names of the tools that a skill's toolsets have, if they can be listed without connecting."""
    listed = [await toolset.get_tools(ctx) for toolset in skill.toolsets if _is_local(toolset)]
    return [name for tools in listed for name in tools]


def _each(skills: Sequence[Skill[Any]]) -> Iterator[AbstractToolset[Any]]:
    """The toolsets of skills, each once."""
    seen: list[AbstractToolset[Any]] = []
    for toolset in (toolset for skill in skills for toolset in skill.toolsets):
        if not _holds(seen, toolset):
            seen.append(toolset)
            yield toolset


def _holds(items: Sequence[object], item: object) -> bool:
    """Whether this very object is among the items: toolsets and skills are equal by value."""
    return any(each is item for each in items)


def _is_local(toolset: AbstractToolset[Any]) -> bool:
    """Whether its tools are known without connecting to anything."""
    leaves: list[AbstractToolset[Any]] = []
    toolset.apply(leaves.append)
    return all(isinstance(leaf, FunctionToolset) for leaf in leaves)


def _texts(given: Any) -> list[str]:
    """The instructions of a toolset as texts."""
    items = [given] if given is None or isinstance(given, str | InstructionPart) else list(given)
    texts = (item.content if isinstance(item, InstructionPart) else item for item in items)
    return [text for text in texts if text]


def _what(skill: Skill[Any], toolset: AbstractToolset[Any]) -> str:
    return f'{toolset.label} of skill {skill.name!r}'


def _conflict(name: str, skill: Skill[Any], other: ToolOfToolset | None) -> str:
    of = 'this toolset' if other is None else f'the skill {other.skill.name!r}'
    return f'A toolset of the skill {skill.name!r} has a tool {name!r}, and so has {of}. {CONFLICT_HINT}'
