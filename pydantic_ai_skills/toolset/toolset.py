"""Skills as a pydantic-ai toolset: an instruction part that lists them, and tools to use them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, overload

import anyio.to_thread
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import InstructionPart, TextContent, UserContent
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool
from pydantic_ai.toolsets.function import FunctionToolsetTool
from typing_extensions import Unpack

from pydantic_ai_skills.catalog.search import SkillRanker, SkillSearch
from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.directory.standard import Trust
from pydantic_ai_skills.directory.watch import require_watchfiles
from pydantic_ai_skills.exceptions import SkillError, SkillNotFoundError, SkillToolsError
from pydantic_ai_skills.execution import ScriptPolicy, SkillScriptExecutor
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.registries.base import SkillRegistry
from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.skill import DepsT, Skill, SkillOptions, SkillWrapper

from . import prompt as disclosure
from .actions import SkillUse
from .approvals import ScriptApprovals
from .conversation import SkillsInConversation
from .events import EventHandler, EventT
from .history import INVOKED, messages_of
from .lenient_args import forgiving_tool
from .library import SkillFilter, SkillLibrary, as_directories
from .model_tools import ModelTools
from .recording import SkillJournal
from .view import SearchTool, View, ViewSettings

__all__ = ('SkillsToolset',)

DEFAULT_DIRECTORY = './skills'
DEFAULT_CATALOG_BUDGET = 8_000
"""Characters the instructions may take by default."""

DEFAULT_ID = 'skills'
"""Instructions of a toolset with an id stay in the cached prefix; a change of them is appended to the conversation."""

AutoReload = bool | Literal['watch']
"""Whether and how changed files are noticed before a run."""

USING_TOOLS = frozenset({'read_skill_resource', 'run_skill_script'})
"""The tools for a skill that is loaded."""


class SkillsToolset(FunctionToolset[DepsT]):
    """Skills from Python, directories and registries, for an agent.

    ```python {test="skip"}
    from pydantic_ai import Agent

    from pydantic_ai_skills import SkillsToolset

    agent = Agent('openai:gpt-5.2', toolsets=[SkillsToolset(directories=['./skills'])])
    ```
    """

    def __init__(
        self,
        *,
        skills: Sequence[Skill[DepsT]] | None = None,
        directories: Sequence[str | Path | SkillsDirectory] | Literal['standard'] | None = None,
        registries: Sequence[SkillRegistry] | None = None,
        validate: bool = True,
        max_depth: int | None = 3,
        id: str | None = None,
        instruction_template: str | None = None,
        exclude_tools: Collection[str] | None = None,
        auto_reload: AutoReload = False,
        catalog_budget: int | None = DEFAULT_CATALOG_BUDGET,
        disk_index: bool | str | Path = False,
        pinned: Sequence[str] = (),
        search_tool: SearchTool = 'auto',
        ranker: SkillRanker | None = None,
        skill_filter: SkillFilter[DepsT] | None = None,
        script_executor: SkillScriptExecutor | None = None,
        script_policy: ScriptPolicy | None = None,
        trust: Trust | None = None,
    ) -> None:
        """Remember where the skills are; they are read on first use, or by `await toolset.load()`.

        Args:
            skills: Skills written in Python. They win over all others.
            directories: Directories of skills; a later one wins over an earlier one. `'standard'` for the places where
                skills are by convention: see `SkillsDirectory.standard`. When no source at all is given, `./skills`.
            registries: Other sources; an earlier one wins over a later one, and directories win over all of them.
            validate: Whether to apply the Agent Skills rules to directories that are given as paths.
            max_depth: How deep below such a directory to look; `None` for no limit.
            id: What identifies the toolset within its agent; `'skills'` by default. Two on one agent need two ids.
            instruction_template: The text around the list of skills; contains `{skills_list}`.
            exclude_tools: Names of tools not to offer.
            auto_reload: Whether to look for changed files in the directories before each run: `True` looks at the
                files, `'watch'` relies on events of the file system and needs `pydantic-ai-skills[watch]`.
            catalog_budget: How many characters the instructions may take; `None` for no limit. Where the list of skills
                is longer, descriptions are shortened, then left out, then the list is cut and says so.
            disk_index: Whether directories that are given as paths keep what they find on disk, so that a later process
                reads only what has changed since: in the user's cache folder, or in this file.
            pinned: Names of skills that are listed whole all the same.
            search_tool: When `search_skills` is offered: `'auto'`, where the list of skills does not fit into its
                budget, or `'always'`.
            ranker: What finds skills for `search_skills`; a `FullTextRanker` when not given.
            skill_filter: Called with the run's context and a skill; a skill for which it is false does not exist for
                that run, neither in the instructions nor for any tool.
            script_executor: What runs the scripts of directories that are given as paths; a `LocalSkillScriptExecutor`
                when not given.
            script_policy: Whether a script is run: `'allow'`, `'ask'` (a person approves each call), `'deny'`, or a
                function of `(ctx, skill, script, args)` that returns one of them. When not given, everything runs but
                scripts from registries, which run in a sandbox or if their registry is trusted.
            trust: With `directories='standard'`, the projects whose skills are used: folders with all that is in them,
                or a function of the project's folder. None by default.

        Raises:
            ImportError: `auto_reload` is `'watch'`, and watchfiles is not installed.
            ValueError: The template lacks `{skills_list}`, `exclude_tools` names a tool there is not, the budget is
                negative, or `trust` is given without `directories='standard'`.
        """
        if instruction_template is not None and disclosure.SKILLS_LIST not in instruction_template:
            raise ValueError(
                f'instruction_template must contain {disclosure.SKILLS_LIST!r}, where the list of skills goes.'
            )
        if catalog_budget is not None and catalog_budget < 0:
            raise ValueError(f'catalog_budget must be 0 or more, or None for no limit, not {catalog_budget}.')
        if trust is not None and directories != 'standard':
            raise ValueError("trust= is for directories='standard'; SkillsDirectory.standard() has its own.")
        if auto_reload == 'watch':
            require_watchfiles()
        super().__init__(id=id or DEFAULT_ID)
        self.auto_reload = auto_reload
        options: dict[str, Any] = {'validate': validate, 'max_depth': max_depth, 'script_executor': script_executor}
        options['disk_index'] = disk_index
        if directories is None and skills is None and registries is None:
            directories = _default_directories()
        self.library = SkillLibrary[DepsT](
            directories=partial(SkillsDirectory.standard, trust=trust, **options)
            if directories == 'standard'
            else as_directories(directories or (), **options),
            registries=registries or (),
            settings=ViewSettings(
                template=instruction_template,
                budget=catalog_budget,
                pinned=tuple(pinned),
                search_tool=search_tool,
                tools=_offered(exclude_tools or ()),
                always_all_tools=bool(auto_reload),
            ),
            watch=auto_reload == 'watch',
            skill_filter=skill_filter,
            approvals=ScriptApprovals(script_policy),
        )
        """Where the skills come from, and what there is of them now."""
        self.conversation = SkillsInConversation[DepsT](self.library, id or DEFAULT_ID, disclosure.TOOLS)
        """Which skills a run has loaded."""
        self.journal = SkillJournal[DepsT](id or DEFAULT_ID)
        """What is told of loads, reads and runs, and who is told."""
        self.use = SkillUse[DepsT](self.library, self.conversation, self.journal)
        """Where every load, read and run passes."""
        self._search = SkillSearch(ranker)
        self._model_tools = ModelTools[DepsT](
            id or DEFAULT_ID,
            library=self.library,
            conversation=self.conversation,
            use=self.use,
            search=self._search,
        )
        self._prepared: dict[tuple[frozenset[str], int], dict[str, ToolsetTool[DepsT]]] = {}
        kinds = self.conversation.history.kinds
        for skill in skills or ():
            self._write(skill)
        for name in disclosure.TOOLS:
            if name in self.library.settings.tools:
                self.add_tool(forgiving_tool(getattr(self._model_tools, name), name, kind=kinds[name]))

    # --- What there is --------------------------------------------------------------------------------------------

    @property
    def skills(self) -> dict[str, Skill[DepsT]]:
        """The skills by name."""
        return dict(self.library.look().catalog.skills)

    @property
    def problems(self) -> list[SkillProblem]:
        """What a person should know about the skills that were found, those that were left out, and their sources."""
        view = self.library.look()
        listed = (skill.files.problems for skill in view.catalog.skills.values() if skill.is_listed)
        of_files = (problem for problems in listed for problem in problems)
        of_tools = self.use.typed.problems(view.catalog.skills)
        return [*view.catalog.problems, *view.problems, *of_files, *of_tools]

    def get_skill(self, name: str) -> Skill[DepsT]:
        """The skill of this name.

        Raises:
            SkillNotFoundError: There is none.
        """
        catalog = self.library.look().catalog
        return catalog.find(name, partial(self._model_tools.close_to, catalog))

    def search(self, query: str, limit: int = 10) -> list[Skill[DepsT]]:
        """Find skills by words, as `search_skills` does for the model: the best ones first.

        The index is made at the first search. Call it in a worker thread where an event loop must not wait.

        Args:
            query: Words, in any form; a skill of that very name comes first.
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
        """The skills that a run has loaded, as far as the model can still read them."""
        return self.conversation.loaded(ctx)

    @property
    def invocable_skills(self) -> dict[str, Skill[DepsT]]:
        """The skills that a person may load by `invoke`, by name."""
        return {name: skill for name, skill in self.skills.items() if skill.user_invocable}

    async def invoke(self, name: str, arguments: str = '') -> list[UserContent]:
        """Load a skill for a person, who wrote `/name arguments`.

        The prompt goes to the agent: `await agent.run(await toolset.invoke('release-notes', 'v1.2'))`.

        Args:
            name: The name of the skill.
            arguments: What was written after it. It takes the place of `$ARGUMENTS`, `$0`, `$1` … in the instructions.

        Returns:
            The prompt to send. With it, the skill is loaded: its tools are there, and its files can be read and run.

        Raises:
            SkillNotFoundError: There is no such skill, or it is not for people to load.
            SkillError: Its instructions cannot be read, or its `tools.py` cannot be imported.
        """
        await self.load()
        skill = await anyio.to_thread.run_sync(self.get_skill, name.removeprefix('/'))
        if not skill.user_invocable:
            raise SkillNotFoundError(f'The skill {skill.name!r} is not for people to load.')
        text = await self.use.render(skill, arguments=arguments)
        mark = {INVOKED: {'skill': skill.name, 'toolset': self.id}}
        return [f'/{skill.name} {arguments}'.strip(), TextContent(text, metadata=mark)]

    async def load(self, *, tools: bool = False) -> None:
        """Read the skills now, off the event loop, so that nothing has to be read when a run begins.

        Args:
            tools: Whether to make the typed tools of all skills too, which imports their `tools.py`. Then a resumed
                conversation finds the tools of its skills ready.
        """
        await self.library.load()
        if tools:
            for skill in self.library.look().catalog.skills.values():
                with suppress(SkillToolsError):  # it is in the log
                    await self.use.typed.of(skill)

    def on(self, event_type: type[EventT], /) -> Callable[[EventHandler[DepsT, EventT]], EventHandler[DepsT, EventT]]:
        """Decorator: call the function, sync or async, with the run's context and each event of this type.

        Args:
            event_type: `SkillLoaded`, `ResourceRead` or `ScriptFinished`; `SkillEvent` for all of them.
        """
        return partial(self.journal.handlers.add, event_type)

    def reload(self, *, include_registries: bool = False) -> None:
        """Look at the directories again, and at the registries if asked to. Skills added by the decorator stay.

        Args:
            include_registries: Whether to ask the registries again.
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
        if skill.name in self.library.written:
            warnings.warn(
                f'The skill {skill.name!r} is defined twice; the later one is used.', UserWarning, stacklevel=3
            )
        self.library.write(skill)

    # --- For pydantic-ai ------------------------------------------------------------------------------------------

    async def for_run(self, ctx: RunContext[DepsT]) -> AbstractToolset[DepsT]:
        """With `auto_reload`, pick up what has changed in the directories before the run begins."""
        if self.auto_reload:
            await self.library.reload_for_run()
        return self

    async def get_instructions(self, ctx: RunContext[DepsT]) -> InstructionPart | list[InstructionPart] | None:  # pyright: ignore[reportIncompatibleMethodOverride] - one part, as AbstractToolset allows
        """The part that lists the skills, `None` without skills; and what `@toolset.instructions` added, if any."""
        part = self.library.listed(await self.library.visible(ctx)).instructions
        if part is not None and (text := self.conversation.as_seen(part.content, ctx)) != part.content:
            part = replace(part, content=text)
        added = list(await super().get_instructions(ctx) or ())
        messages = messages_of(ctx) if self.conversation.tells_of_lost else None
        if messages is not None and (lost := self.conversation.lost(ctx, messages)):
            added.append(InstructionPart(lost, name='lost', on_change='append'))
        return part if not added else [part, *added] if part else added

    async def get_tools(self, ctx: RunContext[DepsT]) -> dict[str, ToolsetTool[DepsT]]:
        """The tools that can do something with the skills there are, and those of the skills that are loaded."""
        view = await self.library.visible(ctx)
        # What is deferred, or was invoked by a person, is read and run with the same tools as the rest.
        using = view.tools | (self.library.look().tools if self.conversation.loaded(ctx) else frozenset[str]())
        names = self.library.listed(view).tools | (using & USING_TOOLS)
        return await self._own_tools(names, ctx) | await self._tools_of_skills(view, ctx)

    async def _own_tools(self, names: frozenset[str], ctx: RunContext[DepsT]) -> dict[str, ToolsetTool[DepsT]]:
        if len(self.tools) > len(self.library.settings.tools):
            # A developer has added tools, which pydantic-ai prepares anew for each request.
            unused = self.library.settings.tools - names
            return {name: tool for name, tool in (await super().get_tools(ctx)).items() if name not in unused}
        key = names, ctx.max_retries
        if key not in self._prepared:
            # With the toolset's id, which pydantic-ai would otherwise put into a copy of each for each request.
            definitions = (
                replace(self.tools[name].tool_def, toolset_id=self.id) for name in self.tools if name in names
            )
            self._prepared[key] = {tool.name: self.tool_for_tool_def(tool, ctx=ctx) for tool in definitions}
        return self._prepared[key]

    async def _tools_of_skills(self, view: View, ctx: RunContext[DepsT]) -> dict[str, ToolsetTool[DepsT]]:
        skills = self.loaded_skills(ctx)
        tools: dict[str, ToolsetTool[Any]] = {}
        if self.library.on_demand:
            deferred = filter(self.library.is_deferred, view.catalog.skills.values())
            tools = await self.use.typed.deferred(deferred, ctx, loaded=ctx.loaded_capability_ids)
            skills = [skill for skill in skills if not self.library.is_deferred(skill)]
        tools |= await self.use.typed.offered(skills, ctx)
        return {
            name: replace(tool, toolset=self, tool_def=replace(tool.tool_def, toolset_id=self.id))
            for name, tool in tools.items()
        }

    def tool_for_tool_def(
        self, tool_def: ToolDefinition, *, ctx: RunContext[DepsT], original_name: str | None = None
    ) -> FunctionToolsetTool[DepsT]:
        """The tool to call for a definition that was made elsewhere, as durable engines do."""
        made = self.use.typed.owner(original_name or tool_def.name)
        if made is None:
            return super().tool_for_tool_def(tool_def, ctx=ctx, original_name=original_name)
        return replace(made.toolset.tool_for_tool_def(tool_def, ctx=ctx, original_name=original_name), toolset=self)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[DepsT], tool: ToolsetTool[DepsT]
    ) -> Any:
        """Call a tool; what goes wrong with a skill is a tool failure the model can act on, not the end of the run."""
        call = super().call_tool(name, tool_args, ctx, tool)
        try:
            if name not in self.tools:  # one of a skill, which may be gone from the skill meanwhile
                return await guarded(call, what=f'tool {name!r}', error=ToolFailed)
            return await call
        except SkillError as error:
            raise ToolFailed(self.conversation.as_seen(str(error), ctx)) from error
        except ModelRetry as retry:
            # Pydantic-ai asks for another try when the time is up (`from None`), and then ends the run.
            if isinstance(retry.__context__, TimeoutError) and retry.__suppress_context__ and not retry.__cause__:
                raise ToolFailed(retry.message) from retry
            raise


def _offered(excluded: Collection[str]) -> frozenset[str]:
    unknown = set(excluded) - set(disclosure.TOOLS)
    if unknown:
        raise ValueError(f'exclude_tools names {sorted(unknown)}; the tools are {list(disclosure.TOOLS)}.')
    if 'load_skill' in excluded:
        warnings.warn('Without load_skill the model sees skills that it cannot use.', UserWarning, stacklevel=3)
    return frozenset(disclosure.TOOLS) - set(excluded)


def _default_directories() -> list[str]:
    if not os.path.isdir(DEFAULT_DIRECTORY):
        message = f'There is no {DEFAULT_DIRECTORY}. Say where the skills are: skills=, directories= or registries=.'
        warnings.warn(message, UserWarning, stacklevel=3)
    return [DEFAULT_DIRECTORY]
