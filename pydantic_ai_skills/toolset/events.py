"""What happened with skills, as typed events for the application."""

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
from pydantic_ai_skills.types.skill import DepsT, SkillProvenance

__all__ = ('EventHandler', 'EventHandlers', 'EventT', 'ResourceRead', 'ScriptFinished', 'SkillEvent', 'SkillLoaded')

logger = logging.getLogger('pydantic_ai_skills')

EventT = TypeVarWithDefault('EventT', bound='SkillEvent', default='SkillEvent')

EventHandler: TypeAlias = Callable[[RunContext[DepsT], EventT], Awaitable[None] | None]
"""A function of the run's context and the event, sync or async."""


@dataclass(kw_only=True, repr=False)
class SkillEvent(CapabilityEvent, namespace='skills', abstract=True):
    """Something was done with a skill. Subscribe to it to hear of all the events below."""

    skill_name: str
    """The skill."""

    version: str | None = None
    """Its version, where its metadata tell one."""

    source: SkillProvenance | None = None
    """Where it was fetched from, if it was; the commit is in there."""

    run_id: str | None = None
    """The agent run in which it happened."""

    duration: float
    """Seconds it took."""


@dataclass(kw_only=True, repr=False)
class SkillLoaded(SkillEvent):
    """The model was given the instructions of a skill."""

    bytes: int
    """How much text it was given."""

    repeated: bool = False
    """Whether it had them already, so that it was only told so."""


@dataclass(kw_only=True, repr=False)
class ResourceRead(SkillEvent):
    """The model was given a resource of a skill, or a file that a script wrote."""

    resource_name: str
    """The resource."""

    bytes: int
    """How much it was given: of a long text, one page."""


@dataclass(kw_only=True, repr=False)
class ScriptFinished(SkillEvent):
    """A script of a skill has ended, well or badly, or it could not be started."""

    script_name: str
    """The script."""

    outcome: Literal['success', 'failed', 'stopped']
    """Whether it did what it should, failed, or was stopped because it used more than it may."""

    result: ScriptResult
    """All that is known of it: output, exit code, time, files. Where there was no process, because the script is a
    Python function or could not be started, the exit code is 0 or 1, and the output is what the model is told."""

    error: str | None = None
    """What the model is told about a script that was stopped, could not be started, or is a function that failed."""


class EventHandlers(Generic[DepsT]):
    """The functions of an application that want to hear of events."""

    def __init__(self) -> None:
        self._handlers: list[tuple[type[SkillEvent], EventHandler[DepsT, Any]]] = []
        self._others: Sequence[EventHandlers[DepsT]] = ()

    def adopt(self, others: Sequence[EventHandlers[DepsT]]) -> None:
        """Tell these too, with the functions that are added to them later."""
        self._others = others

    def add(self, event_type: type[EventT], handler: EventHandler[DepsT, EventT]) -> EventHandler[DepsT, EventT]:
        """Call the function for each event of this type from now on; return it, as a decorator does."""
        self._handlers.append((event_type, handler))
        return handler

    async def tell(self, ctx: RunContext[DepsT], event: SkillEvent) -> None:
        """Call the functions for an event, one after another. One that fails is logged and stops nothing."""
        for event_type, handler in tuple(self._handlers):
            if not isinstance(event, event_type):
                continue
            try:
                told = handler(ctx, event)
                if inspect.isawaitable(told):
                    await told
            except Exception as failure:  # noqa: BLE001 - the border between the application's code and the run
                message = 'A handler of %s failed'
                log = partial(logger.error, message, type(event).__name__, exc_info=failure)
                # A log handler reads source files for the traceback, so not on the event loop.
                await anyio.to_thread.run_sync(log)
        for other in self._others:
            await other.tell(ctx, event)
