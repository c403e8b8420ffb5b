"""Skills as a pydantic-ai toolset: an instruction part that lists them, and tools to use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast, overload

import anyio.to_thread
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
from pydantic_ai.messages import InstructionPart, TextContent, UserContent
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_ai.toolsets.function import FunctionToolsetTool
from typing_extensions import Unpack

from pydantic_ai_skills.catalog.merge import list_files_of
from pydantic_ai_skills.catalog.search import SkillSearch, wait_here
from pydantic_ai_skills.exceptions import SkillError, SkillNotFoundError
from pydantic_ai_skills.execution.base import SkillScriptExecutor
from pydantic_ai_skills.execution.gate import Gate, check_policy
from pydantic_ai_skills.execution.work_dir import WorkDirs
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.instructions import InstructionsFunction
from pydantic_ai_skills.types.skill import DepsT, Skill, SkillOptions
from pydantic_ai_skills.types.wrapper import SkillWrapper

from .actions import SkillActions
from .given import SkillsByName, check_event_type, checked, open_directories, view_settings, warn_of_skill
from .history import DEFAULT_ID, INVOKED, NOTICE, SkillHistory
from .invoke import NOT_GIVEN, context_of
from .lenient_args import fail_on_timeout, with_lenient_args
from .library import SkillLibrary, is_context
from .model_tools import ModelTools
from .of_run import ADDED, ToolsetOfRun
from .options import SkillsToolsetOptions, for_function_toolset, published, with_defaults, with_places
from .prompt import TOOLS
from .results import outgoing, outgoing_error, outgoing_tool
from .skill_tools import call_tool_of_skill, served_tools
from .skill_toolsets import SkillToolsets, WithToolsets
from .work_folder import WorkFolders

if TYPE_CHECKING:
    from .events import EventHandler, EventT

USING_TOOLS = frozenset({'read_skill_resource', 'run_skill_script'})
"""The tools that need a loaded skill."""


class SkillsToolset(WorkFolders, WithToolsets[DepsT]):
    """Skills from Python, directories and registries, for an agent.

    ```python {test="skip"}
    from pydantic_ai import Agent

    from pydantic_ai_skills import SkillsToolset

    agent = Agent('openai:gpt-5.2', toolsets=[SkillsToolset(directories=['./skills'])])
    ```
    """

    @published(SkillsToolsetOptions)
    def __init__(self, places: Any = None, /, **options: Unpack[SkillsToolsetOptions[DepsT]]) -> None:
        """Remember where the skills are; they are read on first use, or by `await toolset.load()`.

        Args:
            places: Short for `directories`.
            **options: See `SkillsToolsetOptions`.

        Raises:
            ImportError: `auto_reload` is `'watch'`, and watchfiles is not installed.
            TypeError: An option does not exist, or its value is of the wrong kind.
            ValueError: The template lacks `{skills_list}`, `exclude_tools` names a tool that does not exist, the budget
                is negative, `max_work_dirs` is not positive, or `trust` is given without `directories='standard'`.
        """
        options = with_places(places, options)
        given = with_defaults(options)
        toolset_id = given['id'] or DEFAULT_ID
        super().__init__(id=toolset_id, **for_function_toolset(options))
        self.auto_reload = given['auto_reload']
        if self.auto_reload == 'watch':
            from pydantic_ai_skills.directory.watch import require_watchfiles  # only needed to watch

            require_watchfiles()
        if given['script_policy'] is not None:
            check_policy(given['script_policy'])
        settings = view_settings(given)
        self.library = SkillLibrary[DepsT](
            directories=open_directories(given),
            registries=given['registries'] or (),
            settings=settings,
            watch=self.auto_reload == 'watch',
            skill_filter=given['skill_filter'],
            gate=Gate(given['script_policy'], closed='run_skill_script' not in settings.tools),
            max_on_demand=given['max_on_demand'],
        )
        """Loads the sources lazily and swaps the catalog atomically."""
        self.history = SkillHistory[DepsT](self.library, toolset_id, TOOLS)
        """Works out from the messages of a run which skills are loaded."""
        self.script_executor: SkillScriptExecutor | None = given['script_executor']
        self.work_dirs = WorkDirs(given['work_dir'], most=given['max_work_dirs'])
        self.actions = SkillActions[DepsT](self.library, self.history, self.work_dirs)
        """Single entry point for loading, reading and running."""
        self.toolsets = SkillToolsets(self.actions)
        self.skill_search = SkillSearch(given['ranker'])
        self._model_tools = ModelTools[DepsT](self.actions, self.skill_search)
        self._prepared: dict[tuple[frozenset[str], int], dict[str, ToolsetTool[DepsT]]] = {}
        for skill in given['skills'] or ():
            self._write(skill)
        for name in TOOLS:
            if name in self.library.settings.tools:
                function = getattr(self._model_tools, name)
                self.add_function(function, name=name, takes_ctx=True, tool_kind=self.history.kinds[name])

    # --- Skills ---------------------------------------------------------------------------------------------------

    @property
    def skills(self) -> Mapping[str, Skill[DepsT]]:
        """The skills by name, read-only. To change them, use `add_skill` and `remove_skill`."""
        return SkillsByName(self.library.look().catalog.skills)

    @property
    def problems(self) -> list[SkillProblem]:
        """Problems with skills, including those that were left out, and with their sources."""
        view = self.library.look()
        skills = view.catalog.skills
        of_files = (problem for skill in skills.values() for problem in skill.file_problems)
        of_tools = self.actions.typed.problems(skills)
        return [*view.catalog.problems, *view.problems, *of_files, *of_tools, *self.skill_search.problems]

    def get_skill(self, name: str) -> Skill[DepsT]:
        """The skill of this name.

        Raises:
            SkillNotFoundError: No skill has this name. The message lists the closest names.
        """
        catalog = self.library.look().catalog
        return catalog.find(name, partial(self._model_tools.close_to, catalog))

    def search(self, query: str, limit: int = 10) -> list[Skill[DepsT]]:
        """Find skills by words, as `search_skills` does for the model, the best ones first.

        The first search builds the index. In async code, call it in a worker thread.

        Args:
            query: Words, in any form; a skill of exactly that name comes first.
            limit: How many skills to return at most.

        Raises:
            ValueError: The query is empty, or the limit is less than 1.
            SkillError: The ranker failed.
        """
        skills = self.library.look().catalog.skills
        return self.skill_search.find(query, skills, skills, limit)

    async def visible_skills(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """The skills that a run may see, sorted by name."""
        return list((await self.library.visible(ctx)).catalog.skills.values())

    def loaded_skills(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """The loaded skills of a run whose instructions the model can still read.

        A skill for which an async `skill_filter` has to wait for something is left out.
        """
        return self.history.loaded_now(ctx)

    @property
    def invocable_skills(self) -> dict[str, Skill[DepsT]]:
        """The skills that a person may load with `invoke`, by name."""
        return {name: skill for name, skill in self.skills.items() if skill.user_invocable}

    async def invoke(self, name: str, arguments: str = '', *, deps: Any = NOT_GIVEN) -> list[UserContent]:
        """Load a skill for a person who typed `/name arguments`.

        Pass the prompt to the agent: `await agent.run(await toolset.invoke('release-notes', 'v1.2'))`.

        Args:
            name: The name of the skill.
            arguments: The text after the name. It replaces `$ARGUMENTS`, `$0`, `$1` … in the instructions.
            deps: The dependencies of the run, for instructions that are a function of its context.

        Returns:
            The prompt to send. It loads the skill: the run has its tools, and can read and run its files.

        Raises:
            SkillNotFoundError: No skill has this name, or people may not load it.
            SkillError: Its instructions cannot be read, or its `tools.py` cannot be imported.
        """
        await self.load()
        skill = await anyio.to_thread.run_sync(self.get_skill, name.removeprefix('/'))
        if not skill.user_invocable:
            raise SkillNotFoundError(f'The skill {skill.name!r} is not for people to load.')
        text = await self.actions.prepare(skill, context_of(deps), arguments=arguments)
        mark = {INVOKED: {'skill': skill.name, 'toolset': self.id}}
        return [f'/{skill.name} {arguments}'.strip(), TextContent(text, metadata=mark)]

    async def load(self, *, tools: bool = False, search: bool = False) -> None:
        """Read the skills now, off the event loop, so that the first run does not have to.

        Args:
            tools: Whether to make the typed tools of all skills too, which imports their `tools.py`, so that they are
                ready for resumed conversations.
            search: Whether to build the index of the search too, so that the first search does not have to.
        """
        await self.library.load()
        skills = self.library.look().catalog.skills
        await anyio.to_thread.run_sync(partial(list_files_of, skills.values(), judge=True))
        if search:
            await anyio.to_thread.run_sync(self.skill_search.prepare, skills, wait_here)
        if tools:
            for skill in skills.values():
                with suppress(SkillError):  # already logged
                    await self.actions.make_tools(skill)

    def on(self, event_type: type[EventT], /) -> Callable[[EventHandler[DepsT, EventT]], EventHandler[DepsT, EventT]]:
        """Decorator: call the function, sync or async, with the run's context and each event of this type.

        Args:
            event_type: `SkillLoaded`, `ResourceRead` or `ScriptFinished`, or `SkillEvent` for all of them; or
                `ScriptOutput` for what scripts print while they run.
        """
        check_event_type(event_type)
        return partial(self.actions.recorder.handlers.add, event_type)

    def reload(self, *, include_registries: bool = False) -> None:
        """Read the directories again, and the registries if asked to. Skills written in Python stay.

        Args:
            include_registries: Whether to fetch from the registries again.
        """
        self.library.reload(include_registries=include_registries)

    # --- Skills written in Python ---------------------------------------------------------------------------------

    @overload
    def skill(self, func: InstructionsFunction[DepsT]) -> SkillWrapper[DepsT]: ...

    @overload
    def skill(
        self,
        func: None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[SkillOptions],
    ) -> Callable[[InstructionsFunction[DepsT]], SkillWrapper[DepsT]]: ...

    def skill(self, func: InstructionsFunction[DepsT] | None = None, **options: Any) -> Any:
        """Decorator: make a skill of a function that returns its instructions.

        The function takes nothing and is called once, or a `RunContext` and is called for each load; it may be async.
        The skill has the function's name (`data_analyzer` becomes `data-analyzer`) and its docstring as description,
        unless others are given.

        Args:
            func: The function.
            **options: `name`, `description`, and the fields of `SkillOptions`, such as `license` or `scripts`.

        Raises:
            SkillValidationError: The name or the description does not follow the rules.
        """
        if func is None:
            return partial(self.skill, **options)
        wrapper = SkillWrapper[DepsT](func, **options)
        self._write(wrapper)
        return wrapper

    def add_skill(self, skill: Skill[DepsT]) -> None:
        """Add a skill that was made after the toolset. Runs see it from their next request on.

        Args:
            skill: The skill. It wins over skills of the same name in directories and registries.

        Raises:
            TypeError: It is not a skill.
        """
        (added,) = checked('skills', [skill])
        self._write(added)

    def remove_skill(self, name: str) -> None:
        """Remove a skill that was given with `skills=`, by the decorator or by `add_skill`.

        Args:
            name: The name of the skill.

        Raises:
            SkillNotFoundError: No skill has this name, or it is from a directory or registry, which decides itself
                which skills it has. Hide such a skill with `skill_filter`.
        """
        skill = self.get_skill(name)
        if self.library.in_python.get(skill.name) is not skill:
            raise SkillNotFoundError(
                f'The skill {skill.name!r} was not added in Python; it is from {skill.path or skill.uri}. Hide it with '
                '`skill_filter`.'
            )
        self.library.remove(skill)

    def _write(self, skill: Skill[DepsT]) -> None:
        warn_of_skill(skill, self.library.in_python, has_capability=self.history.has_capability, stacklevel=4)
        self.library.write(skill)

    # --- For pydantic-ai ------------------------------------------------------------------------------------------

    async def for_run(self, ctx: RunContext[DepsT]) -> AbstractToolset[DepsT]:
        """Pick up changes before the run starts: in stale registries, and with `auto_reload` in directories."""
        if self.auto_reload or self.library.is_stale:
            await self.library.reload_for_run(include_directories=bool(self.auto_reload))
        return ToolsetOfRun(self.copy_for_run())

    async def get_instructions(self, ctx: RunContext[DepsT] | None) -> InstructionPart | list[InstructionPart] | None:  # pyright: ignore[reportIncompatibleMethodOverride] - one part, as AbstractToolset allows
        """The part that lists the skills, if there are any, and what `@toolset.instructions` added.

        You can call it yourself; outside of a run, pass `None` or whatever `skill_filter` accepts as `ctx`. The text is
        in `part.content`. In a function with `@agent.instructions`, it replaces what the toolset would add.
        """
        if self.auto_reload and getattr(ctx, 'run_id', None) is None:  # `for_run` does it for a run
            await self.library.reload_for_run()
        if not is_context(ctx):
            return self.library.listed(await self.library.visible(cast(Any, ctx)), None).instructions
        ADDED.set((self.library, ctx))
        view = self.library.listed(await self.library.visible(ctx), ctx)
        part = self.history.worded(view, ctx) if ctx.tools or self.library.has_filter else view.instructions
        added = list(await super().get_instructions(ctx) or ())
        if ctx.messages:
            self.history.note_loaded(ctx)
            if any(skill.toolsets for skill in self.library.look().with_tools):
                added += await self.toolsets.instructions(await self.history.loaded(ctx), ctx)
            notice = None if self.history.has_capability else await self.history.notice(ctx, ctx.messages)
            if notice is not None:
                added.append(InstructionPart(notice, name=NOTICE, on_change='append'))
        parts = [part, *added] if part else added
        parts = self.toolsets.addressed(parts) if self.toolsets.is_dynamic else parts
        return parts if added else next(iter(parts), None)

    async def get_tools(self, ctx: RunContext[DepsT]) -> dict[str, ToolsetTool[DepsT]]:
        """The tools that the visible skills need, and the typed tools of the loaded skills."""
        view = await self.library.visible(ctx)
        loaded = await self.history.loaded(ctx)
        # Deferred skills, and those that a person invoked, are read and run with the same tools as the others.
        using = view.tools | (self.library.look().tools if loaded else frozenset[str]())
        names = self.library.listed(view, ctx).tools | (using & USING_TOOLS)
        own = await self._own_tools(names, ctx)
        tools = await served_tools(self.actions, view, loaded, ctx)
        tools |= await self.toolsets.tools(view, loaded, ctx, taken=(*own, *tools))
        return own | {name: self._as_own(tool) for name, tool in tools.items()}

    async def _own_tools(self, names: frozenset[str], ctx: RunContext[DepsT]) -> dict[str, ToolsetTool[DepsT]]:
        own = self.library.settings.tools
        if len(self.tools) > len(own):
            # A developer has added tools, which pydantic-ai prepares for each request.
            tools = await super().get_tools(ctx)
            return {
                name: with_lenient_args(tool) if name in own else tool
                for name, tool in tools.items()
                if name in names or name not in own
            }
        key = names, ctx.max_retries
        if key not in self._prepared:
            # With the toolset's id, or pydantic-ai would copy each definition for each request to add it.
            definitions = (
                replace(self.tools[name].tool_def, toolset_id=self.id) for name in self.tools if name in names
            )
            self._prepared[key] = {tool.name: self.tool_for_tool_def(tool, ctx=ctx) for tool in definitions}
        return self._prepared[key]

    def _as_own(self, tool: ToolsetTool[DepsT]) -> ToolsetTool[DepsT]:
        definition = replace(outgoing_tool(tool.tool_def), toolset_id=self.id)
        return with_lenient_args(replace(tool, toolset=self, tool_def=definition))

    def tool_for_tool_def(
        self, tool_def: ToolDefinition, *, ctx: RunContext[DepsT], original_name: str | None = None
    ) -> FunctionToolsetTool[DepsT]:
        """The tool for a definition that was made elsewhere, as in durable engines."""
        name = original_name or tool_def.name
        made = self.actions.typed.owner(name)
        if made is not None:
            tool = made.toolset.tool_for_tool_def(tool_def, ctx=ctx, original_name=original_name)
            return with_lenient_args(replace(tool, toolset=self))
        tool = super().tool_for_tool_def(tool_def, ctx=ctx, original_name=original_name)
        return with_lenient_args(tool) if name in self.library.settings.tools else tool

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[DepsT], tool: ToolsetTool[DepsT]
    ) -> Any:
        """Call a tool. An error of a skill is a tool failure that the model can act on, not the end of the run."""
        call = partial(super().call_tool, name, tool_args, ctx)
        is_own = name in self.library.settings.tools
        if name in self.tools and not is_own:  # the developer's own
            return await fail_on_timeout(call, tool)
        try:
            value = await (call(tool) if is_own else call_tool_of_skill(self.actions, name, tool_args, ctx, tool, call))
            return await anyio.to_thread.run_sync(outgoing, value)
        except SkillError as error:
            raise outgoing_error(ToolFailed(self.history.with_tool_names(str(error), ctx))) from error
        except (ToolFailed, ModelRetry, ApprovalRequired) as error:
            outgoing_error(error)
            raise
