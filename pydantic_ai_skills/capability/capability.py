"""Skills as a pydantic-ai capability."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, cast

from pydantic import ValidationError
from pydantic_ai.capabilities import (
    AbstractCapability,
    CapabilityOrdering,
    CombinedCapability,
    PrefixTools,
    ProcessHistory,
)
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import InstructionId, InstructionPart, ToolCallPart, ToolsetInstructionSource
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset
from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.toolset.given import checked
from pydantic_ai_skills.toolset.history import DEFAULT_ID, NOTICE
from pydantic_ai_skills.toolset.library import may_read
from pydantic_ai_skills.toolset.options import SkillsToolsetOptions, published, with_places
from pydantic_ai_skills.toolset.results import outgoing
from pydantic_ai_skills.toolset.toolset import SkillsToolset
from pydantic_ai_skills.toolset.typed_tools import WAITING
from pydantic_ai_skills.types.skill import DepsT, Skill

from .allowed_tools import is_approved
from .on_demand import Disclosure, LoadedTexts, OnDemandSkill, answer_without_loading, is_load, on_demand_skills
from .spec import SkillsSpec, WorkspaceTools, read_spec

if TYPE_CHECKING:
    from pydantic_ai_skills.toolset.workspace_tools import WorkspaceToolset

MAX_COMBINATIONS = 20
"""How many combinations `load()` prepares. Those made for a single run must not pile up."""


class SkillsCapabilityOptions(SkillsToolsetOptions[DepsT], Generic[DepsT], total=False):
    """The options of `SkillsToolset`, and how the model learns about skills."""

    disclosure: Disclosure
    """`'tools'`: skills are listed in the instructions and loaded with `load_skill`.

    `'on-demand'`: each skill is a deferred capability of pydantic-ai, loaded with `load_capability`, and its
    instructions become system instructions. Skills from untrusted sources are still loaded with `load_skill`.
    """

    workspace_tools: WorkspaceTools
    """Whether the model also gets a shell and files, as in a coding agent: `run_command`, `read_file`, `write_file`,
    `edit_file` and `list_files`, in the work folder.

    With `True`, commands run in the sandbox or the workspace if there is one, or else after a person's approval, unless
    `script_policy` says otherwise. With `'allow'`, nobody is asked.
    """


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
    """How the model learns about skills."""

    @published(SkillsCapabilityOptions)
    def __init__(self, places: Any = None, /, **options: Unpack[SkillsCapabilityOptions[DepsT]]) -> None:
        """Take the options of `SkillsToolset`, and how the model learns about skills.

        Args:
            places: Short for `directories`.
            **options: See `SkillsCapabilityOptions`.

        Raises:
            TypeError: An option does not exist, or its value is of the wrong kind.
            ValueError: As for `SkillsToolset`, or the disclosure is unknown.
        """
        self.options = options = cast('SkillsCapabilityOptions[DepsT]', with_places(places, options))
        """The options that were given."""
        self.disclosure = options.get('disclosure', 'tools')
        if self.disclosure not in ('tools', 'on-demand'):
            raise ValueError(f"disclosure is 'tools' or 'on-demand', not {self.disclosure!r}.")
        with_workspace = options.get('workspace_tools', False)
        if with_workspace not in (True, False, 'allow'):
            raise ValueError(f"workspace_tools is True, False or 'allow', not {with_workspace!r}.")
        own = ('disclosure', 'skills', 'workspace_tools')
        for_toolset: Any = {name: value for name, value in options.items() if name not in own}
        if options.get('skills') is not None:
            for_toolset['skills'] = ()  # added below, when the toolset knows that it has a capability
        self.toolset = SkillsToolset[DepsT](**for_toolset)
        self.workspace_toolset: WorkspaceToolset[DepsT] | None = None
        """The toolset of the workspace tools, if they were asked for."""
        if with_workspace:
            from pydantic_ai_skills.toolset.workspace_tools import WorkspaceToolset  # only needed where asked for

            self.workspace_toolset = WorkspaceToolset(self.toolset, allow=with_workspace == 'allow')
        self.id = self.toolset.id
        self.toolset.library.on_demand = self.id if self.disclosure == 'on-demand' else None
        self.toolset.history.has_capability = True
        for skill in checked('skills', options.get('skills')) or ():
            self.toolset.add_skill(skill)
        self._made: dict[str, OnDemandSkill] = {}
        self._texts: LoadedTexts = {}
        self.combinations: deque[SkillsCapability[DepsT]] = deque(maxlen=MAX_COMBINATIONS)
        """The capabilities that agents made of this one and others of the same id, the latest last."""

    @classmethod
    @published(SkillsSpec)
    def from_spec(cls, **settings: Unpack[SkillsSpec]) -> SkillsCapability[Any]:
        """Make it from an agent spec. Paths are relative to the working directory.

        Args:
            **settings: See `SkillsSpec`.

        Raises:
            SkillValidationError: A setting does not exist, or its value is invalid.
        """
        return cls(**read_spec(settings))

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[DepsT]]) -> AbstractCapability[DepsT]:
        """Combine capabilities into one with all their sources: one catalog, in which each skill keeps its policy.

        Of the other settings, the last one given counts.

        Args:
            capabilities: The capabilities of one agent that have the same id, in order.
        """
        parts = cast(Sequence[SkillsCapability[DepsT]], capabilities)
        options: dict[str, Any] = {}
        for part in parts:
            options |= part.options
        options |= {'skills': [], 'directories': None, 'registries': None, 'trust': None}
        combined = cls(**options)
        combined.toolset.library.combine(part.toolset.library for part in parts)
        combined.toolset.actions.recorder.handlers.adopt([part.toolset.actions.recorder.handlers for part in parts])
        work_dirs = next((part for part in reversed(parts) if 'work_dir' in part.options), parts[0]).toolset
        for each in (combined, *parts):
            each.toolset.share_work_dirs(work_dirs)
        for part in parts:
            part.combinations.append(combined)
        return combined

    async def load(self) -> None:
        """Read everything now: for durable engines, whose workflow code must do no I/O.

        It reads the skills, makes their typed tools, which imports their `tools.py`, and reads the instructions of the
        skills that are on demand. It does the same for the capabilities that agents made by combining it with others.
        """
        await self.toolset.load(tools=True)
        library = self.toolset.library
        for skill in library.deferred(library.look().catalog.skills.values(), None):
            with suppress(SkillError):  # reported to the model when it loads the skill
                await OnDemandSkill(skill, toolset_id='', texts=self._texts).read(None)
        for combined in tuple(self.combinations):
            await combined.load()

    def get_toolset(self) -> AbstractToolset[DepsT]:
        """The toolset, which brings its own instructions, with the workspace tools if they were asked for."""
        if self.workspace_toolset is None:
            return self.toolset
        return CombinedToolset([self.toolset, self.workspace_toolset])

    def prefix_tools(self, prefix: str) -> PrefixTools[DepsT]:
        """A capability with the same skills, whose tools have names that begin with `prefix`."""
        if self.disclosure == 'tools':
            return super().prefix_tools(prefix)
        # The wrapper needs another id: this capability brings its own into the run, beside those of its skills.
        return PrefixTools(wrapped=self, prefix=prefix, id=f'{self.id}-{prefix}')

    def get_ordering(self) -> CapabilityOrdering | None:
        """Run after history processors, to see which messages are left."""
        return CapabilityOrdering(wrapped_by=[ProcessHistory])

    def get_model_settings(self) -> Callable[[RunContext[DepsT]], ModelSettings]:
        """The model settings of the loaded skills; the skill loaded last wins."""
        return self._model_settings

    def _model_settings(self, ctx: RunContext[DepsT]) -> ModelSettings:
        settings = ModelSettings()
        for skill in self.toolset.loaded_skills(ctx):
            # A deferred skill brings its settings itself.
            if skill.model_settings and not self.toolset.library.comes_as_capability(skill, ctx):
                settings |= skill.model_settings
        return settings

    async def before_model_request(
        self, ctx: RunContext[DepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Load the skills a person invoked, hide the tools of unloaded ones, and say which ones to load again."""
        for skill in await self.toolset.history.loaded(ctx):
            # A skill found since the run began is not among its capabilities.
            is_waiting = skill.name in ctx.capabilities and skill.name not in ctx.active_capability_ids
            if is_waiting and self.toolset.library.comes_as_capability(skill, ctx):
                ctx.load_capability(skill.name)
        notice = await self.toolset.history.notice(ctx, request_context.messages)
        if notice is not None:
            request_context = _with_notice(request_context, notice, self.toolset.id or DEFAULT_ID)
        return _without_waiting_tools(request_context)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[DepsT], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Approve the calls that a loaded and trusted skill allows."""
        skills = await self.toolset.history.loaded(ctx)
        # Skills never allow code of skills. Its runs are recognized by their metadata, even in another toolset.
        added = self.toolset.tools.keys() - self.toolset.library.settings.tools  # the developer's
        own = {name for name, tool in ctx.tools.items() if tool.toolset_id == self.toolset.id and name not in added}
        in_workspace = self._workspace_tools(ctx, skills)
        asked = {
            call.tool_name for call in requests.approvals if 'digest' in requests.metadata.get(call.tool_call_id, {})
        }
        own |= asked - in_workspace.keys()
        approved = [
            call
            for call in requests.approvals
            if is_approved(call, skills, own_tools=own, workspace_tools=in_workspace)
        ]
        if not approved:
            return None
        return DeferredToolResults(
            approvals={call.tool_call_id: True for call in approved},
            metadata={call.tool_call_id: requests.metadata.get(call.tool_call_id, {}) for call in approved},
        )

    def _workspace_tools(self, ctx: RunContext[DepsT], loaded: Sequence[Skill[Any]]) -> dict[str, str]:
        """The workspace tools that skills may allow, by the names the model sees; none beside an untrusted skill."""
        if self.workspace_toolset is None or not all(skill.is_trusted for skill in loaded):
            return {}
        names, mine = self.workspace_toolset.tools, self.workspace_toolset.id
        seen = (name for name, tool in ctx.tools.items() if tool.toolset_id == mine)
        return {name: next(known for known in names if name.endswith(known)) for name in seen}

    # --- On demand ------------------------------------------------------------------------------------------------

    async def for_run(self, ctx: RunContext[DepsT]) -> AbstractCapability[DepsT]:
        """With `disclosure='on-demand'`, the skills that the run may see, each a deferred capability of its own."""
        if self.disclosure == 'tools':
            return self
        await self.toolset.for_run(ctx)
        skills = self.toolset.library.deferred(await self.toolset.visible_skills(ctx), ctx)
        deferred = on_demand_skills(
            skills,
            self._made,
            self._texts,
            toolset_id=self.toolset.id or DEFAULT_ID,
            budget=self.toolset.library.settings.budget,
        )
        return CombinedCapability([self, *deferred]) if deferred else self

    async def wrap_tool_validate(
        self, ctx: RunContext[DepsT], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> dict[str, Any]:
        """Turn invalid arguments of a load into a tool failure, which uses up no retry."""
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
        """Prepare a skill that is being loaded, and keep a refused load from ending the run."""
        if not is_load(tool_def):
            return await handler(args)
        name: str = args['id']
        deferred = ctx.capabilities.get(name)
        if not isinstance(deferred, OnDemandSkill) or deferred.toolset_id != self.toolset.id:
            deferred = None
        elif not await self.toolset.library.existing(self.toolset.library.named([name]), ctx):
            # A capability given to a run replaces the agent's, but pydantic-ai still lists the agent's skills.
            raise ToolFailed(f'The skill {name!r} does not exist in this run.')
        if self.disclosure == 'tools':
            return await handler(args)
        answer = answer_without_loading(ctx, name)
        if deferred is not None and deferred.texts is self._texts:
            if may_read():
                await self._prepare(ctx, deferred, again=answer is not None)
            elif answer is None:
                # Nothing can be read in the code of a Temporal workflow; `load()` read it before.
                text = await deferred.read(ctx)
                await self.toolset.actions.recorder.tell_of_load(ctx, deferred.skill, len(text.encode()))
        return await handler(args) if answer is None else answer

    async def _prepare(self, ctx: RunContext[DepsT], deferred: OnDemandSkill, *, again: bool) -> None:
        skill = deferred.skill
        try:
            if again:
                # If the other call that loads it fails, so does this one.
                await self.toolset.actions.prepare(skill, ctx, framed=False)
            else:
                assignments = Skill.assignments
                done = await self.toolset.actions.load(ctx, skill, framed=False)
                deferred.kept[skill.name] = skill, assignments, done.value
        except SkillError as error:
            raise ToolFailed(outgoing(str(error))) from error


def _with_notice(request: ModelRequestContext, notice: str, toolset_id: str) -> ModelRequestContext:
    """The request with one more instruction part, which pydantic-ai appends to the conversation when it changes."""
    key = InstructionId(ToolsetInstructionSource(toolset_id), name=NOTICE)
    part = InstructionPart(notice, name=NOTICE, on_change='append', id=key)
    parameters = request.model_request_parameters
    parts = [*(parameters.instruction_parts or ()), part]
    return replace(request, model_request_parameters=replace(parameters, instruction_parts=parts))


def _without_waiting_tools(request: ModelRequestContext) -> ModelRequestContext:
    """The request without the tools of skills that are not loaded. The run knows them, so that it can answer a call."""
    parameters = request.model_request_parameters
    shown = [tool for tool in parameters.function_tools if tool.defer_loading or WAITING not in (tool.metadata or {})]
    if len(shown) == len(parameters.function_tools):
        return request
    return replace(request, model_request_parameters=replace(parameters, function_tools=shown))
