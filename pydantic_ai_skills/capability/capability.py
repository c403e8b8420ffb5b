"""Skills as a pydantic-ai capability."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, cast

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
from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.toolset.history import DEFAULT_ID, is_in
from pydantic_ai_skills.toolset.library import may_read
from pydantic_ai_skills.toolset.options import SkillsToolsetOptions, published
from pydantic_ai_skills.toolset.results import outgoing
from pydantic_ai_skills.toolset.toolset import SkillsToolset
from pydantic_ai_skills.types.skill import DepsT, Skill

from .allowed_tools import is_approved
from .on_demand import Disclosure, OnDemandSkill, answer_without_loading, is_load, on_demand_skills
from .spec import SkillsSpec, read_spec

MAX_COMBINATIONS = 20
"""How many combinations `load()` prepares. Those made for a single run each must not pile up."""


class SkillsCapabilityOptions(SkillsToolsetOptions[DepsT], Generic[DepsT], total=False):
    """The options of `SkillsToolset`, and how the model learns about skills."""

    disclosure: Disclosure
    """`'tools'`: skills are listed in the instructions and loaded with `load_skill`.

    `'on-demand'`: each skill is a deferred capability of pydantic-ai, loaded with `load_capability`, and its
    instructions become system instructions. Skills from untrusted sources are still loaded with `load_skill`.
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
    def __init__(self, **options: Unpack[SkillsCapabilityOptions[DepsT]]) -> None:
        """Take the options of `SkillsToolset`, and how the model learns about skills.

        Args:
            **options: See `SkillsCapabilityOptions`.

        Raises:
            TypeError: An option does not exist.
            ValueError: As for `SkillsToolset`, or the disclosure is unknown.
        """
        self.options = options
        """The options that were given."""
        self.disclosure = options.get('disclosure', 'tools')
        if self.disclosure not in ('tools', 'on-demand'):
            raise ValueError(f"disclosure is 'tools' or 'on-demand', not {self.disclosure!r}.")
        for_toolset: Any = {name: value for name, value in options.items() if name != 'disclosure'}
        self.toolset = SkillsToolset[DepsT](**for_toolset)
        self.id = self.toolset.id
        self.toolset.library.on_demand = self.id if self.disclosure == 'on-demand' else None
        self.toolset.history.tells_of_lost = False
        self._made: dict[str, OnDemandSkill] = {}
        self._texts: dict[str, tuple[Skill[Any], str]] = {}
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
        combined.toolset.recorder.handlers.adopt([part.toolset.recorder.handlers for part in parts])
        for part in parts:
            part.combinations.append(combined)
        return combined

    async def load(self) -> None:
        """Read everything now: for durable engines, whose workflow code must do no I/O.

        It reads the skills, makes their typed tools, which imports their `tools.py`, and reads the instructions of the
        skills that are on demand. It does the same for the agents that combined it with others.
        """
        await self.toolset.load(tools=True)
        library = self.toolset.library
        for skill in library.deferred(library.look().catalog.skills.values(), None):
            with suppress(SkillError):  # the model is told when it loads the skill
                await OnDemandSkill(skill, toolset_id='', texts=self._texts).read()
        for combined in tuple(self.combinations):
            await combined.load()

    def get_toolset(self) -> SkillsToolset[DepsT]:
        """The toolset, which brings its own instructions."""
        return self.toolset

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
            if skill.model_settings and not self.toolset.library.is_deferred(skill, ctx):
                settings |= skill.model_settings
        return settings

    async def before_model_request(
        self, ctx: RunContext[DepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Load the skills that a person invoked, and tell the model which ones history processing removed."""
        for skill in await self.toolset.history.loaded(ctx):
            # A skill found since the run began is not among its capabilities.
            is_waiting = skill.name in ctx.capabilities and skill.name not in ctx.active_capability_ids
            if is_waiting and self.toolset.library.is_deferred(skill, ctx):
                ctx.load_capability(skill.name)
        note = await self.toolset.history.lost(ctx, request_context.messages)
        if note is not None and not is_in(note, request_context.messages):
            ctx.enqueue(note)
        return request_context

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[DepsT], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Approve the calls that a loaded and trusted skill allows."""
        skills = await self.toolset.history.loaded(ctx)
        # Code of skills is never allowed by skills. The metadata tell a run of it, also one of another toolset.
        added = self.toolset.tools.keys() - self.toolset.library.settings.tools  # the developer's
        own = {name for name, tool in ctx.tools.items() if tool.toolset_id == self.toolset.id and name not in added}
        own |= {
            call.tool_name for call in requests.approvals if 'digest' in requests.metadata.get(call.tool_call_id, {})
        }
        approved = [call for call in requests.approvals if is_approved(call, skills, own_tools=own)]
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
        """Make invalid arguments of a load a tool failure, which uses up no retry."""
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
        # Nothing can be read in the code of a Temporal workflow; `load()` read it before.
        if deferred is not None and deferred.texts is self._texts and may_read():
            await self._prepare(ctx, deferred.skill, again=answer is not None)
        return await handler(args) if answer is None else answer

    async def _prepare(self, ctx: RunContext[DepsT], skill: Skill[Any], *, again: bool) -> None:
        try:
            if again:
                # If the other call that loads it fails, so does this one.
                await self.toolset.actions.prepare(skill, framed=False)
            else:
                self._texts[skill.name] = skill, await self.toolset.actions.load(ctx, skill, framed=False)
        except SkillError as error:
            raise ToolFailed(outgoing(str(error))) from error
