"""Skills as a pydantic-ai capability."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast
from weakref import WeakValueDictionary

from pydantic import ValidationError
from pydantic_ai.capabilities import (
    AbstractCapability,
    CapabilityOrdering,
    CombinedCapability,
    PrefixTools,
    ProcessHistory,
)
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDefinition

from pydantic_ai_skills.catalog.search import SkillRanker
from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.directory.standard import Trust
from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.execution import ScriptDecision, ScriptPolicy, SkillScriptExecutor
from pydantic_ai_skills.registries.base import SkillRegistry
from pydantic_ai_skills.toolset.durable import may_read
from pydantic_ai_skills.toolset.library import SkillFilter
from pydantic_ai_skills.toolset.lost import is_told
from pydantic_ai_skills.toolset.toolset import DEFAULT_CATALOG_BUDGET, DEFAULT_ID, AutoReload, SkillsToolset
from pydantic_ai_skills.toolset.view import SearchTool
from pydantic_ai_skills.types.skill import DepsT, Skill

from .allowed_tools import is_approved
from .on_demand import Disclosure, OnDemandSkill, answer_without_loading, is_load, on_demand_skills
from .spec import (
    DirectorySpec,
    ExecutorSpec,
    GitSpec,
    PolicySpec,
    check_settings,
    read_directories,
    read_executor,
    read_policy,
    read_registries,
)

__all__ = ('SkillsCapability',)


@dataclass(init=False)
class SkillsCapability(AbstractCapability[DepsT]):
    """Skills as a capability: the toolset with its instructions, for `Agent(capabilities=[...])` and agent specs.

    ```python {test="skip"}
    from pydantic_ai import Agent

    from pydantic_ai_skills import SkillsCapability

    agent = Agent('openai:gpt-5.2', capabilities=[SkillsCapability(directories=['./skills'])])
    ```
    """

    id: str | None = DEFAULT_ID
    """Two capabilities of the same id on one agent are combined into one."""

    toolset: SkillsToolset[DepsT]
    """The toolset it provides: its skills, problems, decorator and reload."""

    disclosure: Disclosure
    """How the model learns of skills."""

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
        disclosure: Disclosure = 'tools',
    ) -> None:
        """Take the parameters of `SkillsToolset`, which say what they mean, and how the model learns of skills.

        Args:
            skills: This and the parameters that follow are those of `SkillsToolset`.
            directories: …
            registries: …
            validate: …
            max_depth: …
            id: …
            instruction_template: …
            exclude_tools: …
            auto_reload: …
            catalog_budget: …
            disk_index: …
            pinned: …
            search_tool: …
            ranker: …
            skill_filter: …
            script_executor: …
            script_policy: …
            trust: …
            disclosure: `'tools'`: skills are listed in the instructions and loaded with `load_skill`. `'on-demand'`:
                each skill is a deferred capability of pydantic-ai, loaded with `load_capability`; its instructions are
                then in the words of the system. Skills from sources that are not trusted stay on the tools.

        Raises:
            ValueError: As for `SkillsToolset`, or there is no such disclosure.
        """
        self.stated = _stated(locals())
        """The parameters that are not left at their defaults."""
        if disclosure not in ('tools', 'on-demand'):
            raise ValueError(f"disclosure is 'tools' or 'on-demand', not {disclosure!r}.")
        self.id = id or DEFAULT_ID
        self.disclosure = disclosure
        self.toolset = SkillsToolset[DepsT](
            skills=skills,
            directories=directories,
            registries=registries,
            validate=validate,
            max_depth=max_depth,
            id=id,
            instruction_template=instruction_template,
            exclude_tools=exclude_tools,
            auto_reload=auto_reload,
            catalog_budget=catalog_budget,
            disk_index=disk_index,
            pinned=pinned,
            search_tool=search_tool,
            ranker=ranker,
            skill_filter=skill_filter,
            script_executor=script_executor,
            script_policy=script_policy,
            trust=trust,
        )
        self.toolset.library.on_demand = self.id if disclosure == 'on-demand' else None
        self.toolset.conversation.tells_of_lost = False
        self._catalog_budget = catalog_budget
        self._made: dict[str, OnDemandSkill] = {}
        self._texts: dict[str, tuple[Skill[Any], str]] = {}
        self.combined_into: WeakValueDictionary[int, SkillsCapability[DepsT]] = WeakValueDictionary()
        """What agents have made of it and others of the same id, as long as somebody uses it."""

    @classmethod
    def from_spec(
        cls,
        *,
        directories: str | list[str | DirectorySpec] | None = None,
        registries: str | list[str | GitSpec] | None = None,
        validate: bool = True,
        max_depth: int | None = 3,
        id: str | None = None,
        instruction_template: str | None = None,
        exclude_tools: list[str] | None = None,
        auto_reload: AutoReload = False,
        catalog_budget: int | None = DEFAULT_CATALOG_BUDGET,
        disk_index: bool | str = False,
        pinned: list[str] | None = None,
        search_tool: SearchTool = 'auto',
        script_executor: ExecutorSpec | None = None,
        script_policy: ScriptDecision | PolicySpec | None = None,
        trust: list[str] | None = None,
        disclosure: Disclosure = 'tools',
    ) -> SkillsCapability[Any]:
        """Make it from what an agent spec says. Paths are relative to the working directory.

        Args:
            directories: `standard`, or paths, or mappings with a `path` and the settings of `SkillsDirectory`.
            registries: URLs of git repositories, or mappings with such a URL as `git`, the settings of
                `GitSkillsRegistry`, and `only`, `prefix` and `rename`.
            validate: As for `SkillsToolset`, and so are those not described here.
            max_depth: How deep below a directory to look.
            id: What identifies the toolset.
            instruction_template: The text around the list of skills.
            exclude_tools: Names of tools not to offer.
            auto_reload: Whether to look for changed files before each run.
            catalog_budget: How many characters the instructions may take.
            disk_index: Whether directories keep what they find on disk, or in which file.
            pinned: Names of skills that are listed whole, whatever the budget.
            search_tool: Whether to offer `search_skills`.
            script_executor: `local`, `bubblewrap` or `workspace`, or a mapping of one of them to its settings. It runs
                the scripts of all directories and registries that name no other.
            script_policy: `allow`, `ask` or `deny`, or a mapping with the settings of `PathPolicy`.
            trust: With `directories: standard`, the folders of the projects whose skills are used.
            disclosure: `tools` or `on-demand`.

        Raises:
            SkillValidationError: A setting is not one there is, or its value does not fit.
        """
        settings = check_settings(
            validate=validate,
            max_depth=max_depth,
            id=id,
            instruction_template=instruction_template,
            exclude_tools=exclude_tools,
            auto_reload=auto_reload,
            catalog_budget=catalog_budget,
            disk_index=disk_index,
            pinned=pinned or [],
            search_tool=search_tool,
            trust=trust,
            disclosure=disclosure,
        )
        executor = read_executor(script_executor)
        of_directories = {key: settings[key] for key in ('validate', 'max_depth', 'disk_index')}
        return cls(
            directories=read_directories(directories, executor=executor, **of_directories),
            registries=read_registries(registries, executor=executor),
            script_executor=executor,
            script_policy=read_policy(script_policy),
            **settings,
        )

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[DepsT]]) -> AbstractCapability[DepsT]:
        """One capability with the sources of all: one catalogue, and each skill with the policy it had.

        Of other settings that more than one of them states, the last counts.

        Args:
            capabilities: Those of the same id on one agent, in their order.
        """
        parts = cast(Sequence[SkillsCapability[DepsT]], capabilities)
        stated: dict[str, Any] = {}
        for part in parts:
            stated |= part.stated
        sources: dict[str, Any] = {'skills': [], 'directories': None, 'registries': None, 'trust': None}
        combined = cls(**stated | sources)
        combined.toolset.library.adopt([part.toolset.library for part in parts])
        combined.toolset.journal.handlers.adopt([part.toolset.journal.handlers for part in parts])
        for part in parts:
            part.combined_into[id(combined)] = combined
        return combined

    async def load(self) -> None:
        """Read all there is to read now: for durable engines, whose workflow code must do no I/O.

        It reads the skills, makes their typed tools, which imports their `tools.py`, and reads the instructions of
        those that are on demand. An agent that has combined it with others is made ready too.
        """
        await self.toolset.load(tools=True)
        library = self.toolset.library
        for skill in filter(library.is_deferred, library.look().catalog.skills.values()):
            with suppress(SkillError):  # the model is told when it loads the skill
                await OnDemandSkill(skill, toolset_id='', texts=self._texts).read()
        for combined in tuple(self.combined_into.values()):
            await combined.load()

    def get_toolset(self) -> SkillsToolset[DepsT]:
        """The toolset, which brings its own instructions."""
        return self.toolset

    def prefix_tools(self, prefix: str) -> PrefixTools[DepsT]:
        """A capability with the same skills, whose tools have names that begin with `prefix`."""
        if self.disclosure == 'tools':
            return super().prefix_tools(prefix)
        # With an id of its own: this one brings its own into the run, beside those of its skills.
        return PrefixTools(wrapped=self, prefix=prefix, id=f'{self.id}-{prefix}')

    def get_ordering(self) -> CapabilityOrdering | None:
        """Inside of what processes the history, to see what is left of it."""
        return CapabilityOrdering(wrapped_by=[ProcessHistory])

    def get_model_settings(self) -> Callable[[RunContext[DepsT]], ModelSettings]:
        """The settings of the skills that are loaded, the last one's last."""
        return self._model_settings

    def _model_settings(self, ctx: RunContext[DepsT]) -> ModelSettings:
        settings = ModelSettings()
        for skill in self.toolset.loaded_skills(ctx):
            # One that is deferred brings its own.
            if skill.model_settings and not self.toolset.library.is_deferred(skill):
                settings |= skill.model_settings
        return settings

    async def before_model_request(
        self, ctx: RunContext[DepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Load the skills that a person invoked, and tell of those that history processing took away."""
        for skill in self.toolset.loaded_skills(ctx):
            # What has been found since the run began is no capability of it.
            is_waiting = skill.name in ctx.capabilities and skill.name not in ctx.active_capability_ids
            if is_waiting and self.toolset.library.is_deferred(skill):
                ctx.load_capability(skill.name)
        note = self.toolset.conversation.lost(ctx, request_context.messages)
        if note is not None and not is_told(note, request_context.messages):
            ctx.enqueue(note)
        return request_context

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[DepsT], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Approve the calls that a loaded skill has approved beforehand, if it is trusted."""
        skills = self.toolset.loaded_skills(ctx)
        run_tool = self.toolset.conversation.history.tool_names(ctx)['run_skill_script']
        approved = [call for call in requests.approvals if is_approved(call, skills, run_tool=run_tool)]
        if not approved:
            return None
        return DeferredToolResults(
            approvals={call.tool_call_id: True for call in approved},
            metadata={call.tool_call_id: requests.metadata.get(call.tool_call_id, {}) for call in approved},
        )

    # --- On demand ------------------------------------------------------------------------------------------------

    async def for_run(self, ctx: RunContext[DepsT]) -> AbstractCapability[DepsT]:
        """With `disclosure='on-demand'`, the skills that the run may see, each a deferred capability of its own."""
        if self.disclosure == 'tools':
            return self
        await self.toolset.for_run(ctx)
        if ctx.agent is not None:
            ctx.agent.root_capability.apply(self._note_id)
        skills = filter(self.toolset.library.is_deferred, await self.toolset.visible_skills(ctx))
        deferred = on_demand_skills(
            skills, self._made, self._texts, toolset_id=self.toolset.id or DEFAULT_ID, budget=self._catalog_budget
        )
        return CombinedCapability([self, *deferred]) if deferred else self

    def _note_id(self, other: AbstractCapability[Any]) -> None:
        if other.id is not None:
            self.toolset.library.taken_ids.add(other.id)

    async def wrap_tool_validate(
        self, ctx: RunContext[DepsT], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> dict[str, Any]:
        """A load whose arguments do not fit costs the run nothing."""
        if self.disclosure == 'tools' or not is_load(tool_def):
            return await handler(args)
        try:
            return await handler(args)
        except ValidationError as error:
            message = 'The arguments do not fit. It takes: id (string), the name of what to load.'
            raise ToolFailed(message) from error

    async def wrap_tool_execute(
        self,
        ctx: RunContext[DepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Any,
    ) -> Any:
        """Make ready a skill that is loaded, and keep a load that is refused from ending the run."""
        if not is_load(tool_def):
            return await handler(args)
        name: str = args['id']
        found = ctx.capabilities.get(name)
        deferred = found if isinstance(found, OnDemandSkill) and found.toolset_id == self.toolset.id else None
        if deferred is not None and not self.toolset.library.named([name], ctx):
            # One that is given to a run takes the place of the agent's, whose skills pydantic-ai lists all the same.
            raise ToolFailed(f'The skill {name!r} is not there in this run.')
        if self.disclosure == 'tools':
            return await handler(args)
        answer = answer_without_loading(ctx, name)
        # In the code of a Temporal workflow nothing can be read; `load()` has done it before.
        if deferred is not None and deferred.texts is self._texts and may_read():
            try:
                await self._make_ready(ctx, deferred.skill, again=answer is not None)
            except SkillError as error:
                raise ToolFailed(str(error)) from error
        return await handler(args) if answer is None else answer

    async def _make_ready(self, ctx: RunContext[DepsT], skill: Skill[Any], *, again: bool) -> None:
        if again:
            # It is not loaded if the other call that does so has failed.
            await self.toolset.use.render(skill, framed=False)
        else:
            self._texts[skill.name] = skill, await self.toolset.use.load(ctx, skill, framed=False)


def _stated(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a capability that are not left at their defaults."""
    parameters = inspect.signature(SkillsCapability.__init__).parameters.values()
    stated = (parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)
    return {option.name: given[option.name] for option in stated if given[option.name] != option.default}
