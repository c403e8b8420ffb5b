"""Typed events for the application: skills loaded, resources read, scripts finished."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeAlias

import anyio.to_thread
from pydantic_ai.messages import CapabilityEvent
from pydantic_ai.tools import RunContext
from typing_extensions import TypeVar as TypeVarWithDefault

from pydantic_ai_skills.execution.base import ScriptResult
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.skill import DepsT

logger = logging.getLogger('pydantic_ai_skills')

EventT = TypeVarWithDefault('EventT', bound='SkillEvent', default='SkillEvent')

EventHandler: TypeAlias = Callable[[RunContext[DepsT], EventT], Awaitable[None] | None]
"""A function of the run's context and the event, sync or async."""


@dataclass(kw_only=True, repr=False)
class SkillEvent(CapabilityEvent, namespace='skills', abstract=True):
    """Something was done with a skill: the base of the events below. Subscribe to it to get all of them."""

    skill_name: str
    """The skill."""

    version: str | None = None
    """The version in its metadata, if there is one."""

    source: SkillProvenance | None = None
    """Where it was fetched from, with the commit; `None` if it was not fetched."""

    run_id: str | None = None
    """The agent run in which it happened."""

    duration: float
    """Seconds it took."""


@dataclass(kw_only=True, repr=False)
class SkillLoaded(SkillEvent):
    """The model was given the instructions of a skill."""

    bytes: int
    """The size of the text it was given."""

    repeated: bool = False
    """Whether the model already had the instructions and was only told so."""


@dataclass(kw_only=True, repr=False)
class ResourceRead(SkillEvent):
    """The model was given a resource of a skill, or a file that a script wrote."""

    resource_name: str
    """The resource."""

    bytes: int
    """The size of what it was given: of a long text, one page."""


@dataclass(kw_only=True, repr=False)
class ScriptFinished(SkillEvent):
    """A script of a skill ended, successfully or not, or could not be started."""

    script_name: str
    """The script."""

    outcome: Literal['success', 'failed', 'stopped']
    """Whether it succeeded, failed, or was stopped because it exceeded a limit."""

    result: ScriptResult
    """Output, exit code, duration and files. If there was no process, because the script is a Python function or could
    not be started, the exit code is 0 or 1, and the output is what the model is told."""

    error: str | None = None
    """What the model is told about a script that was stopped, could not be started, or is a function that failed."""


class EventHandlers(Generic[DepsT]):
    """The application's functions that handle events."""

    def __init__(self) -> None:
        self.functions: list[tuple[type[SkillEvent], EventHandler[DepsT, Any]]] = []
        self.others: Sequence[EventHandlers[DepsT]] = ()

    def adopt(self, others: Sequence[EventHandlers[DepsT]]) -> None:
        """Also call the functions of these handlers, including those added to them later."""
        self.others = others

    def add(self, event_type: type[EventT], handler: EventHandler[DepsT, EventT]) -> EventHandler[DepsT, EventT]:
        """Call the function for each event of this type from now on; return the function, as a decorator does."""
        self.functions.append((event_type, handler))
        return handler

    async def tell(self, ctx: RunContext[DepsT], event: SkillEvent) -> None:
        """Call the functions for an event, one after another. A failure is logged and does not stop the others."""
        for event_type, handler in tuple(self.functions):
            if not isinstance(event, event_type):
                continue
            try:
                told = handler(ctx, event)
                if inspect.isawaitable(told):
                    await told
            except Exception as failure:  # noqa: BLE001 - the border between the application's code and the run
                log = partial(logger.error, 'A handler of %s failed', type(event).__name__, exc_info=failure)
                # A log handler reads source files for the traceback, so not on the event loop.
                await anyio.to_thread.run_sync(log)
        for other in self.others:
            await other.tell(ctx, event)
