"""Skills as a pydantic-ai toolset: an instruction part that lists them, and tools to use them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, overload

import anyio.to_thread
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
from pydantic_ai.messages import InstructionPart, TextContent, UserContent
from pydantic_ai.tools import RunContext, Tool, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool
from pydantic_ai.toolsets.function import FunctionToolsetTool
from typing_extensions import Unpack

from pydantic_ai_skills.catalog.search import SkillSearch
from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillError, SkillNotFoundError
from pydantic_ai_skills.execution.gate import Gate, check_policy
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.skill import DepsT, Skill, SkillOptions
from pydantic_ai_skills.types.wrapper import SkillWrapper

from .actions import SkillActions
from .events import EventHandler, EventT
from .history import DEFAULT_ID, INVOKED, SkillHistory
from .lenient_args import fail_on_timeout, with_lenient_args
from .library import SkillLibrary
from .model_tools import ModelTools
from .options import SkillsToolsetOptions, published, with_defaults
from .prompt import SKILLS_LIST, TOOLS, View, ViewSettings
from .recording import Recorder
from .results import outgoing, outgoing_error, outgoing_tool

DEFAULT_DIRECTORY = './skills'

USING_TOOLS = frozenset({'read_skill_resource', 'run_skill_script'})
"""The tools that need a loaded skill."""


class SkillsToolset(FunctionToolset[DepsT]):
    """Skills from Python, directories and registries, for an agent.

    ```python {test="skip"}
    from pydantic_ai import Agent

    from pydantic_ai_skills import SkillsToolset

    agent = Agent('openai:gpt-5.2', toolsets=[SkillsToolset(directories=['./skills'])])
    ```
    """

    @published(SkillsToolsetOptions)
    def __init__(self, **options: Unpack[SkillsToolsetOptions[DepsT]]) -> None:
        """Remember where the skills are; they are read on first use, or by `await toolset.load()`.

        Args:
            **options: See `SkillsToolsetOptions`.

        Raises:
            ImportError: `auto_reload` is `'watch'`, and watchfiles is not installed.
            TypeError: An option does not exist.
            ValueError: The template lacks `{skills_list}`, `exclude_tools` names a tool that does not exist, the budget
                is negative, or `trust` is given without `directories='standard'`.
        """
        given = with_defaults(options)
        toolset_id = given['id'] or DEFAULT_ID
        super().__init__(id=toolset_id)
        self.auto_reload = given['auto_reload']
        if self.auto_reload == 'watch':
            from pydantic_ai_skills.directory.watch import require_watchfiles  # only needed to watch

            require_watchfiles()
        if given['script_policy'] is not None:
            check_policy(given['script_policy'])
        settings = _view_settings(given)
        self.library = SkillLibrary[DepsT](
            directories=_directories(given),
            registries=given['registries'] or (),
            settings=settings,
            watch=self.auto_reload == 'watch',
            skill_filter=given['skill_filter'],
            gate=Gate(given['script_policy'], closed='run_skill_script' not in settings.tools),
        )
        """Loads the sources lazily and swaps the catalog atomically."""
        self.history = SkillHistory[DepsT](self.library, toolset_id, TOOLS)
        """Tells from the messages of a run which skills are loaded."""
        self.recorder = Recorder[DepsT](toolset_id)
        """Records loads, reads and runs as spans, logs and events."""
        self.actions = SkillActions[DepsT](self.library, self.history, self.recorder)
        """Single entry point for loading, reading and running."""
        self._search = SkillSearch(given['ranker'])
        self._model_tools = ModelTools[DepsT](self.actions, self._search)
        self._prepared: dict[tuple[frozenset[str], int], dict[str, ToolsetTool[DepsT]]] = {}
        for skill in given['skills'] or ():
            self._write(skill)
        for name in TOOLS:
            if name in self.library.settings.tools:
                function = getattr(self._model_tools, name)
                self.add_tool(Tool(function, name=name, takes_ctx=True, tool_kind=self.history.kinds[name]))

    # --- What there is --------------------------------------------------------------------------------------------

    @property
    def skills(self) -> dict[str, Skill[DepsT]]:
        """The skills by name."""
        return dict(self.library.look().catalog.skills)

    @property
    def problems(self) -> list[SkillProblem]:
        """Problems with skills, including those that were left out, and with their sources."""
        view = self.library.look()
        skills = view.catalog.skills
        of_files = (problem for skill in skills.values() if skill.is_listed for problem in skill.files.problems)
        return [*view.catalog.problems, *view.problems, *of_files, *self.actions.typed.problems(skills)]

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
            ValueError: The query is empty, or the limit is not at least 1.
            SkillError: The ranker failed.
        """
        skills = self.library.look().catalog.skills
        return self._search.find(query, skills, skills, limit)

    async def visible_skills(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """The skills that a run may see, sorted by name."""
        return list((await self.library.visible(ctx)).catalog.skills.values())

    def loaded_skills(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """The loaded skills of a run whose instructions the model can still read.

        A skill that an async `skill_filter` would have to wait for is not among them.
        """
        return self.history.loaded_now(ctx)

    @property
    def invocable_skills(self) -> dict[str, Skill[DepsT]]:
        """The skills that a person may load with `invoke`, by name."""
        return {name: skill for name, skill in self.skills.items() if skill.user_invocable}

    async def invoke(self, name: str, arguments: str = '') -> list[UserContent]:
        """Load a skill for a person who typed `/name arguments`.

        Pass the prompt to the agent: `await agent.run(await toolset.invoke('release-notes', 'v1.2'))`.

        Args:
            name: The name of the skill.
            arguments: The text after the name. It replaces `$ARGUMENTS`, `$0`, `$1` … in the instructions.

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
        text = await self.actions.prepare(skill, arguments=arguments)
        mark = {INVOKED: {'skill': skill.name, 'toolset': self.id}}
        return [f'/{skill.name} {arguments}'.strip(), TextContent(text, metadata=mark)]

    async def load(self, *, tools: bool = False) -> None:
        """Read the skills now, off the event loop, so that the first run does not have to.

        Args:
            tools: Whether to make the typed tools of all skills too, which imports their `tools.py`, so that they are
                ready for resumed conversations.
        """
        await self.library.load()
        if tools:
            for skill in self.library.look().catalog.skills.values():
                with suppress(SkillError):  # already logged
                    await self.actions.make_tools(skill)

    def on(self, event_type: type[EventT], /) -> Callable[[EventHandler[DepsT, EventT]], EventHandler[DepsT, EventT]]:
        """Decorator: call the function, sync or async, with the run's context and each event of this type.

        Args:
            event_type: `SkillLoaded`, `ResourceRead` or `ScriptFinished`, or `SkillEvent` for all of them.
        """
        return partial(self.recorder.handlers.add, event_type)

    def reload(self, *, include_registries: bool = False) -> None:
        """Read the directories again, and the registries if asked to. Skills written in Python stay.

        Args:
            include_registries: Whether to fetch from the registries again.
        """
        self.library.reload(include_registries=include_registries)

    # --- Skills written in Python ---------------------------------------------------------------------------------

    @overload
    def skill(self, func: Callable[[], str], /) -> SkillWrapper[DepsT]: ...

    @overload
    def skill(
        self,
        func: None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[SkillOptions],
    ) -> Callable[[Callable[[], str]], SkillWrapper[DepsT]]: ...

    def skill(self, func: Callable[[], str] | None = None, /, **options: Any) -> Any:
        """Decorator: make a skill of a function that returns its instructions.

        The skill has the function's name (`data_analyzer` becomes `data-analyzer`) and its docstring as description,
        unless others are given.

        Args:
            func: The function.
            **options: `name`, `description`, and the fields of `SkillOptions`: `license`, `compatibility`, `metadata`,
                `resources`, `scripts`, `tools`, `allowed_tools`, `disable_model_invocation`, `user_invocable` and
                `model_settings`.

        Raises:
            SkillValidationError: The name or the description does not follow the rules.
        """
        if func is None:
            return partial(self.skill, **options)
        wrapper = SkillWrapper[DepsT](func, **options)
        self._write(wrapper)
        return wrapper

    def _write(self, skill: Skill[DepsT]) -> None:
        if skill.name in self.library.in_python:
            warnings.warn(
                f'The skill {skill.name!r} is defined twice; the later one is used.', UserWarning, stacklevel=3
            )
        self.library.write(skill)

    # --- For pydantic-ai ------------------------------------------------------------------------------------------

    async def for_run(self, ctx: RunContext[DepsT]) -> AbstractToolset[DepsT]:
        """With `auto_reload`, pick up changes in the directories before the run starts."""
        if self.auto_reload:
            await self.library.reload_for_run()
        return self

    async def get_instructions(self, ctx: RunContext[DepsT]) -> InstructionPart | list[InstructionPart] | None:  # pyright: ignore[reportIncompatibleMethodOverride] - one part, as AbstractToolset allows
        """The part that lists the skills, if there are any, and what `@toolset.instructions` added."""
        part = self.library.listed(await self.library.visible(ctx), ctx).instructions
        if part is not None and ctx.tools:
            part = replace(part, content=self.history.with_tool_names(part.content, ctx))
        added = list(await super().get_instructions(ctx) or ())
        if ctx.messages:
            self.history.note_loaded(ctx)
            if self.history.tells_of_lost and (lost := await self.history.lost(ctx, ctx.messages)):
                added.append(InstructionPart(lost, name='lost', on_change='append'))
        return part if not added else [part, *added] if part else added

    async def get_tools(self, ctx: RunContext[DepsT]) -> dict[str, ToolsetTool[DepsT]]:
        """The tools that the visible skills need, and the typed tools of the loaded skills."""
        view = await self.library.visible(ctx)
        loaded = await self.history.loaded(ctx)
        # Deferred skills, and those that a person invoked, are read and run with the same tools as the others.
        using = view.tools | (self.library.look().tools if loaded else frozenset[str]())
        names = self.library.listed(view, ctx).tools | (using & USING_TOOLS)
        return await self._own_tools(names, ctx) | await self._tools_of_skills(view, loaded, ctx)

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

    async def _tools_of_skills(
        self, view: View, loaded: Iterable[Skill[DepsT]], ctx: RunContext[DepsT]
    ) -> dict[str, ToolsetTool[DepsT]]:
        tools: dict[str, ToolsetTool[Any]] = {}
        if self.library.on_demand:
            deferred = self.library.deferred(view.catalog.skills.values(), ctx)
            tools = await self.actions.typed.deferred(deferred, ctx, loaded=ctx.loaded_capability_ids)
            loaded = [skill for skill in loaded if not self.library.is_deferred(skill, ctx)]
        tools |= await self.actions.typed.offered(loaded, ctx)
        return {
            name: with_lenient_args(
                replace(tool, toolset=self, tool_def=replace(outgoing_tool(tool.tool_def), toolset_id=self.id))
            )
            for name, tool in tools.items()
        }

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
            # A tool of a skill is one that the skill may have lost meanwhile.
            called = call(tool) if is_own else fail_on_timeout(call, tool)
            value = await (called if is_own else guarded(called, what=f'tool {name!r}', error=ToolFailed))
            return await anyio.to_thread.run_sync(outgoing, value)
        except SkillError as error:
            raise outgoing_error(ToolFailed(self.history.with_tool_names(str(error), ctx))) from error
        except (ToolFailed, ModelRetry, ApprovalRequired) as error:
            outgoing_error(error)
            raise


def _view_settings(options: dict[str, Any]) -> ViewSettings:
    template, budget = options['instruction_template'], options['catalog_budget']
    if template is not None and SKILLS_LIST not in template:
        raise ValueError(f'instruction_template must contain {SKILLS_LIST!r}, where the list of skills goes.')
    if budget is not None and budget < 0:
        raise ValueError(f'catalog_budget must be 0 or more, or None for no limit, not {budget}.')
    excluded: set[str] = set(options['exclude_tools'] or ())
    unknown = excluded - set(TOOLS)
    if unknown:
        raise ValueError(f'exclude_tools names {sorted(unknown)}; the tools are {list(TOOLS)}.')
    if 'load_skill' in excluded:
        warnings.warn('Without load_skill the model sees skills that it cannot use.', UserWarning, stacklevel=3)
    return ViewSettings(
        template=template,
        budget=budget,
        pinned=tuple(options['pinned']),
        search_tool=options['search_tool'],
        tools=frozenset(TOOLS) - excluded,
        always_all_tools=bool(options['auto_reload']),
    )


def _directories(options: dict[str, Any]) -> list[SkillsDirectory] | Callable[[], list[SkillsDirectory]]:
    """The directories, or a function that finds them if that takes a look at the file system."""
    given = options['directories']
    settings = {name: options[name] for name in ('validate', 'max_depth', 'script_executor', 'disk_index')}
    if given == 'standard':
        return partial(SkillsDirectory.standard, trust=options['trust'], **settings)
    if options['trust'] is not None:
        raise ValueError("trust= is for directories='standard'; SkillsDirectory.standard() has its own.")
    if (given, options['skills'], options['registries']) == (None, None, None):
        given = _default_directory()
    if isinstance(given, (str, Path, SkillsDirectory)):
        given = [given]
    return [each if isinstance(each, SkillsDirectory) else SkillsDirectory(each, **settings) for each in given or ()]


def _default_directory() -> str:
    if not os.path.isdir(DEFAULT_DIRECTORY):
        message = f'There is no {DEFAULT_DIRECTORY}. Say where the skills are: skills=, directories= or registries=.'
        warnings.warn(message, UserWarning, stacklevel=4)
    return DEFAULT_DIRECTORY
