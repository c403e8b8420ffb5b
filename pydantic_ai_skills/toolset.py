"""Skills as a pydantic-ai toolset: an instruction part that lists them, and four tools to use them."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, overload

import anyio.to_thread
from pydantic import TypeAdapter
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import InstructionPart, ModelRequest, ToolReturn, ToolReturnPart
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool

from pydantic_ai_skills import disclosure
from pydantic_ai_skills.approvals import ScriptApprovals
from pydantic_ai_skills.callables import as_mapping
from pydantic_ai_skills.catalog import Catalog, load_catalog, merge
from pydantic_ai_skills.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.execution import ScriptPolicy, ScriptResult, SkillScriptExecutor, SkillScriptStoppedError
from pydantic_ai_skills.forgiving import forgiving_tool
from pydantic_ai_skills.names import pick
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.registries.base import SkillRegistry
from pydantic_ai_skills.types import DepsT, Skill, SkillResource, SkillScript, SkillWrapper
from pydantic_ai_skills.view import View, ViewSettings, attachments
from pydantic_ai_skills.written import WrittenFiles

__all__ = ('SkillsToolset',)

logger = logging.getLogger('pydantic_ai_skills')

DEFAULT_DIRECTORY = './skills'
DEFAULT_CATALOG_BUDGET = 8_000
"""Characters the instructions may take by default."""

DEFAULT_ID = 'skills'
"""Instructions of a toolset with an id stay in the cached prefix; a change of them is appended to the conversation."""

SkillFilter = Callable[[RunContext[DepsT], Skill[DepsT]], bool]
"""Whether a skill exists for a run."""

ScriptArguments = dict[str, Any] | list[Any] | str | None

_PAGE = TypeAdapter(dict[Literal['page'], int])


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
        directories: Sequence[str | Path | SkillsDirectory] | None = None,
        registries: Sequence[SkillRegistry] | None = None,
        validate: bool = True,
        max_depth: int | None = 3,
        id: str | None = None,
        instruction_template: str | None = None,
        exclude_tools: Collection[str] | None = None,
        auto_reload: bool = False,
        catalog_budget: int | None = DEFAULT_CATALOG_BUDGET,
        skill_filter: SkillFilter[DepsT] | None = None,
        script_executor: SkillScriptExecutor | None = None,
        script_policy: ScriptPolicy | None = None,
    ) -> None:
        """Remember where the skills are; they are read on first use, or by `await toolset.load()`.

        Args:
            skills: Skills written in Python. They win over all others.
            directories: Directories of skills; a later one wins over an earlier one. When no source at all is given,
                `./skills`.
            registries: Other sources; an earlier one wins over a later one, and directories win over all of them.
            validate: Whether to apply the Agent Skills rules to directories that are given as paths.
            max_depth: How deep below such a directory to look; `None` for no limit.
            id: What identifies the toolset within its agent; `'skills'` by default. Two on one agent need two ids.
            instruction_template: The text around the list of skills; contains `{skills_list}`.
            exclude_tools: Names of tools not to offer.
            auto_reload: Whether to look for changed files in the directories before each run.
            catalog_budget: How many characters the instructions may take; `None` for no limit. Where the list of skills
                is longer, descriptions are shortened, then left out, then the list is cut and says so.
            skill_filter: Called with the run's context and a skill; a skill for which it is false does not exist for
                that run, neither in the instructions nor for any tool.
            script_executor: What runs the scripts of directories that are given as paths; a `LocalSkillScriptExecutor`
                when not given.
            script_policy: Whether a script is run: `'allow'`, `'ask'` (a person approves each call), `'deny'`, or a
                function of `(ctx, skill, script, args)` that returns one of them. When not given, everything runs but
                scripts from registries, which run in a sandbox or if their registry is trusted.

        Raises:
            ValueError: The template lacks `{skills_list}`, or `exclude_tools` names a tool there is not.
        """
        if instruction_template is not None and disclosure.SKILLS_LIST not in instruction_template:
            raise ValueError(
                f'instruction_template must contain {disclosure.SKILLS_LIST!r}, where the list of skills goes.'
            )
        super().__init__(id=id or DEFAULT_ID)
        self.auto_reload = auto_reload
        self._filter = skill_filter
        self._approvals = ScriptApprovals(script_policy)
        self._written_files = WrittenFiles()
        self._settings = ViewSettings(
            template=instruction_template,
            budget=catalog_budget,
            tools=_offered(exclude_tools or ()),
            always_all_tools=auto_reload,
        )
        self._written: dict[str, Skill[DepsT]] = {}
        self._directories = _as_directories(
            _default_directories()
            if skills is None and directories is None and registries is None
            else directories or (),
            validate=validate,
            max_depth=max_depth,
            script_executor=script_executor,
        )
        self._registries = list(registries or ())
        self._view: View | None = None
        self._lock = threading.RLock()
        self._tickets = count(1)
        self._asked = self._answered = 0
        self._logged: frozenset[SkillProblem] = frozenset()
        self._prepared: dict[tuple[frozenset[str], int], dict[str, ToolsetTool[DepsT]]] = {}
        for skill in skills or ():
            self._write(skill)
        for name in disclosure.TOOLS:
            if name in self._settings.tools:
                self.add_tool(forgiving_tool(getattr(self, f'_{name}'), name))

    # --- What there is --------------------------------------------------------------------------------------------

    @property
    def skills(self) -> dict[str, Skill[DepsT]]:
        """The skills by name."""
        return dict(self._loaded().catalog.skills)

    @property
    def problems(self) -> list[SkillProblem]:
        """What a person should know about the skills that were found, those that were left out, and their sources."""
        catalog = self._loaded().catalog
        listed = (skill.files.problems for skill in catalog.skills.values() if skill.is_listed)
        return [*catalog.problems, *(problem for problems in listed for problem in problems)]

    def get_skill(self, name: str) -> Skill[DepsT]:
        """The skill of this name.

        Raises:
            SkillNotFoundError: There is none.
        """
        return self._loaded().catalog.find(name)

    async def load(self) -> None:
        """Read the skills now, off the event loop, so that nothing has to be read when a run begins."""
        await anyio.to_thread.run_sync(self._loaded)

    def reload(self, *, include_registries: bool = False) -> None:
        """Look at the directories again, and at the registries if asked to. Skills added by the decorator stay.

        Args:
            include_registries: Whether to ask the registries again.
        """
        with self._lock:
            self._look(include_registries=include_registries)

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
        license: str | None = None,
        compatibility: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        resources: Sequence[SkillResource] | None = None,
        scripts: Sequence[SkillScript] | None = None,
    ) -> Callable[[Callable[[], str]], SkillWrapper[DepsT]]: ...

    def skill(self, func: Callable[[], str] | None = None, /, **options: Any) -> Any:
        """Decorator: make a skill of a function that returns its instructions.

        The skill has the function's name (`data_analyzer` becomes `data-analyzer`) and its docstring as description,
        unless others are given.

        Args:
            func: The function.
            **options: `name`, `description`, `license`, `compatibility`, `metadata`, `resources` and `scripts`.

        Raises:
            SkillValidationError: The name or the description does not follow the rules.
        """
        if func is None:
            return partial(self.skill, **options)
        wrapper = SkillWrapper[DepsT](func, **options)
        self._write(wrapper)
        return wrapper

    def _write(self, skill: Skill[DepsT]) -> None:
        if skill.name in self._written:
            warnings.warn(
                f'The skill {skill.name!r} is defined twice; the later one is used.', UserWarning, stacklevel=3
            )
        with self._lock:
            self._written[skill.name] = skill
            if self._view is not None:
                catalog = self._view.catalog
                self._show(merge(self._written.values(), catalog.directories, catalog.registries))

    # --- For pydantic-ai ------------------------------------------------------------------------------------------

    async def for_run(self, ctx: RunContext[DepsT]) -> AbstractToolset[DepsT]:
        """With `auto_reload`, pick up what has changed in the directories before the run begins."""
        if self.auto_reload:
            ticket = self._asked = next(self._tickets)
            await anyio.to_thread.run_sync(self._reload_since, ticket)
        return self

    async def get_instructions(self, ctx: RunContext[DepsT]) -> InstructionPart | list[InstructionPart] | None:  # pyright: ignore[reportIncompatibleMethodOverride] - one part, as AbstractToolset allows
        """The part that lists the skills, `None` without skills; and what `@toolset.instructions` added, if any."""
        part = (await self._current(ctx)).instructions
        added = await super().get_instructions(ctx)
        return part if added is None else [part, *added] if part else added

    async def get_tools(self, ctx: RunContext[DepsT]) -> dict[str, ToolsetTool[DepsT]]:
        """The tools that can do something with the skills there are."""
        view = await self._current(ctx)
        if len(self.tools) > len(self._settings.tools):
            # A developer has added tools, which pydantic-ai prepares anew for each request.
            unused = self._settings.tools - view.tools
            return {name: tool for name, tool in (await super().get_tools(ctx)).items() if name not in unused}
        key = view.tools, ctx.max_retries
        if key not in self._prepared:
            # With the toolset's id, which pydantic-ai would otherwise put into a copy of each for each request.
            definitions = (
                replace(self.tools[name].tool_def, toolset_id=self.id) for name in self.tools if name in view.tools
            )
            self._prepared[key] = {tool.name: self.tool_for_tool_def(tool, ctx=ctx) for tool in definitions}
        return dict(self._prepared[key])

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[DepsT], tool: ToolsetTool[DepsT]
    ) -> Any:
        """Call a tool; what goes wrong with a skill is a tool failure the model can act on, not the end of the run."""
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except SkillError as error:
            raise ToolFailed(str(error)) from error

    # --- The four tools -------------------------------------------------------------------------------------------

    async def _list_skills(self, ctx: RunContext[DepsT]) -> dict[str, str]:
        """List the available skills with their descriptions."""
        skills = (await self._current(ctx)).catalog.skills.values()
        return {skill.name: disclosure.one_line(skill.description) for skill in skills}

    async def _load_skill(self, ctx: RunContext[DepsT], skill_name: str) -> str:
        """Load a skill: its instructions, and the names of its resources and scripts. Do this before using the skill.

        Args:
            skill_name: The name of the skill, as listed.
        """
        skill = (await self._current(ctx)).catalog.find(skill_name)
        text = await anyio.to_thread.run_sync(disclosure.render_skill, skill)
        return disclosure.already_loaded(skill) if _was_sent(text, ctx) else text

    async def _read_skill_resource(
        self, ctx: RunContext[DepsT], skill_name: str, resource_name: str, args: ScriptArguments = None
    ) -> Any:
        """Read a resource of a skill, such as a reference document.

        Args:
            skill_name: The name of the skill.
            resource_name: The name of the resource, as listed by the loaded skill.
            args: Arguments, if the resource has parameters; {"page": 2} for the next page of a long text.
        """
        skill = (await self._current(ctx)).catalog.find(skill_name)
        written = await anyio.to_thread.run_sync(self._written_files.read, ctx, resource_name)
        if written is not None:
            return self._page(written, resource_name, args)
        files = await anyio.to_thread.run_sync(lambda: skill.files)
        resource = pick(resource_name, files.resources, files.scripts, kind='resource', skill=skill.name)
        if resource.function is not None:
            return await resource.read(ctx, args)
        return self._page(await resource.read(ctx), resource.name, args)

    async def _run_skill_script(
        self, ctx: RunContext[DepsT], skill_name: str, script_name: str, args: ScriptArguments = None
    ) -> Any:
        """Run a script of a skill and get what it prints.

        Args:
            skill_name: The name of the skill.
            script_name: The name of the script, as listed by the loaded skill.
            args: For a script with parameters, an object with a value for each. For a script file, an object gives
                flags ({"verbose": true, "limit": 5} is --verbose --limit 5) and positional arguments under "_"
                ({"_": ["in.pdf", "out.pdf"]}), text for standard input under "_stdin"; a list is passed on as it is.
        """
        skill = (await self._current(ctx)).catalog.find(skill_name)
        files = await anyio.to_thread.run_sync(lambda: skill.files)
        script = pick(script_name, files.scripts, files.resources, kind='script', skill=skill.name)
        await self._approvals.check(ctx, skill, script, args)
        try:
            result = await script.run(ctx, args)
        except SkillScriptStoppedError as stopped:
            raise ToolFailed(f'{stopped}\n{disclosure.render_result(stopped.result)}') from stopped
        if not isinstance(result, ScriptResult):
            return result
        text = disclosure.render_result(result, self._written_files.keep(ctx, result))
        if result.exit_code:
            raise ToolFailed(text)
        return ToolReturn(text, metadata=result)

    @staticmethod
    def _page(value: Any, name: str, args: ScriptArguments) -> Any:
        return disclosure.page_of(value, name, _page_number(args)) if isinstance(value, str) else value

    # --- The view -------------------------------------------------------------------------------------------------

    def _loaded(self) -> View:
        """The view as it is; made now, with whatever reading that takes, if there is none yet."""
        view = self._view
        if view is None:
            with self._lock:
                view = self._view or self._look()
        if view.attached != attachments(self._written.values()):
            with self._lock:
                view = self._show(view.catalog)
        return view

    async def _current(self, ctx: RunContext[DepsT]) -> View:
        """What the run of `ctx` may see; made off the event loop if nothing was read yet."""
        if self._view is None:
            await self.load()
        return self._visible(self._loaded(), ctx)

    def _visible(self, view: View, ctx: RunContext[DepsT]) -> View:
        """The view without the skills that the run of `ctx` may not see."""
        if self._filter is None:
            return view
        names = tuple(name for name, skill in view.catalog.skills.items() if self._filter(ctx, skill))
        return self._settings.narrow(view, names)

    def _reload_since(self, ticket: int) -> None:
        """Reload, unless a reload that began after this was asked for has happened meanwhile."""
        with self._lock:
            if self._answered < ticket:
                asked = self._asked
                self.reload()
                self._answered = max(asked, ticket)

    def _look(self, *, include_registries: bool = False) -> View:
        """Look at the sources, and make another view if that gives another catalog. The lock is held."""
        last = self._view
        catalog = load_catalog(
            self._written.values(),
            self._directories,
            self._registries,
            last=last.catalog if last else None,
            include_registries=include_registries,
        )
        return last if last is not None and catalog is last.catalog else self._show(catalog)

    def _show(self, catalog: Catalog) -> View:
        """Make the view of a catalog and put it in place of the last one."""
        self._view = view = self._settings.view(catalog, self._written.values())
        for problem in catalog.problems:
            if problem not in self._logged:
                logger.warning('%s', problem)
        self._logged = frozenset(catalog.problems)
        return view


def _offered(excluded: Collection[str]) -> frozenset[str]:
    unknown = set(excluded) - set(disclosure.TOOLS)
    if unknown:
        raise ValueError(f'exclude_tools names {sorted(unknown)}; the tools are {list(disclosure.TOOLS)}.')
    if 'load_skill' in excluded:
        warnings.warn('Without load_skill the model sees skills that it cannot use.', UserWarning, stacklevel=3)
    return frozenset(disclosure.TOOLS) - set(excluded)


def _as_directories(
    directories: str | Path | SkillsDirectory | Sequence[str | Path | SkillsDirectory],
    *,
    validate: bool,
    max_depth: int | None,
    script_executor: SkillScriptExecutor | None,
) -> list[SkillsDirectory]:
    if isinstance(directories, (str, Path, SkillsDirectory)):
        directories = [directories]
    return [
        directory
        if isinstance(directory, SkillsDirectory)
        else SkillsDirectory(directory, validate=validate, max_depth=max_depth, script_executor=script_executor)
        for directory in directories
    ]


def _default_directories() -> list[str]:
    if not os.path.isdir(DEFAULT_DIRECTORY):
        message = f'There is no {DEFAULT_DIRECTORY}. Say where the skills are: skills=, directories= or registries=.'
        warnings.warn(message, UserWarning, stacklevel=3)
    return [DEFAULT_DIRECTORY]


def _page_number(args: ScriptArguments) -> int:
    """The page a model asks for; anything that asks for none means the first."""
    try:
        return _PAGE.validate_python(as_mapping(args))['page']
    except (ValueError, KeyError):
        return 1


def _was_sent(text: str, ctx: RunContext[Any]) -> bool:
    """Whether the model has this very text in its conversation already, as the result of a tool."""
    return any(
        isinstance(part, ToolReturnPart) and part.content == text
        for message in ctx.messages
        if isinstance(message, ModelRequest)
        for part in message.parts
    )
