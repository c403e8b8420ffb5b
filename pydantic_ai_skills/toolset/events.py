"""Typed events for the application: skills loaded, resources read, scripts finished."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import CapabilityEvent, CustomEvent
from pydantic_ai.tools import RunContext
from typing_extensions import TypeVar as TypeVarWithDefault

from pydantic_ai_skills.execution.result import ScriptResult
from pydantic_ai_skills.execution.streaming import StreamName
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.script import SkillScript
from pydantic_ai_skills.types.skill import DepsT

if TYPE_CHECKING:
    from .recording import EventHandlers

logger = logging.getLogger('pydantic_ai_skills')

EventT = TypeVarWithDefault('EventT', bound='SkillEvent | ScriptOutput', default='SkillEvent')

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
    """The size of what it was given; for a long text, that of one page."""


@dataclass(kw_only=True, repr=False)
class ScriptFinished(SkillEvent):
    """A script of a skill, or one of its tools in Python, ended, successfully or not, or could not be started."""

    script_name: str
    """The script, or the name the skill has for its tool."""

    outcome: Literal['success', 'failed', 'stopped']
    """Whether it succeeded, failed, or was stopped because it exceeded a limit."""

    result: ScriptResult
    """Output, exit code, duration and files. If there was no process, because the script is a Python function or could
    not be started, the exit code is 0 or 1, and the output is the text for the model."""

    error: str | None = None
    """The text for the model about a script that was stopped, could not be started, or is a function that failed."""


@dataclass(kw_only=True, repr=False)
class SkillActivity(CustomEvent, name='skill_activity'):
    """What `send_to_ui` sends to a user interface: which skill was used and how it went, without any content.

    AG-UI front ends get it as a custom event, front ends of the Vercel AI SDK as a data part.
    """

    activity: Literal['loaded', 'read', 'ran']
    """What was done."""

    skill_name: str
    """The skill."""

    item: str | None = None
    """The resource that was read, or the script that was run."""

    outcome: Literal['success', 'failed', 'stopped'] = 'success'
    """How a script ended."""

    duration: float
    """Seconds it took."""


async def send_to_ui(ctx: RunContext[Any], event: SkillEvent) -> None:
    """Send a skill event to the user interface, through the AG-UI or Vercel AI adapter of pydantic-ai.

    With a `SkillsCapability`, register it on the agent: `agent.on_event(SkillEvent)(send_to_ui)`. With a toolset alone,
    register it there: `toolset.on(SkillEvent)(send_to_ui)`.
    """
    about: dict[str, Any] = {'activity': 'loaded'}
    if isinstance(event, ResourceRead):
        about = {'activity': 'read', 'item': event.resource_name}
    elif isinstance(event, ScriptFinished):
        about = {'activity': 'ran', 'item': event.script_name, 'outcome': event.outcome}
    await ctx.emit(SkillActivity(skill_name=event.skill_name, duration=event.duration, **about))


# --- Output while it is printed -----------------------------------------------------------------------------------


@dataclass(kw_only=True, repr=False)
class ScriptOutput(CapabilityEvent, namespace='skills'):
    """A piece of what a script or a command prints, while it runs, without secrets.

    Subscribe to it separately: it is not a `SkillEvent`, of which there is one for each action. Only processes on this
    machine stream their output, at most `MAX_STREAMED_CHARS` of it in each run of a script.
    """

    skill_name: str | None
    """The skill; `workspace-tools` for a command of the model."""

    script_name: str
    """The script, or `run_command`."""

    stream: StreamName
    """Whether it was printed to standard output or to standard error."""

    text: str
    """What was printed since the last event."""

    run_id: str | None = None
    """The agent run in which it happened."""


MAX_STREAMED_CHARS = 1_000_000
"""How much of a run's output is streamed while it is printed. The result has the beginning and the end in any case."""

STREAM_INTERVAL = 0.05
"""Seconds between two events with output."""


@asynccontextmanager
async def streamed(
    handlers: EventHandlers[DepsT], ctx: RunContext[DepsT], script: SkillScript, *, emits: bool
) -> AsyncGenerator[SkillScript]:
    """The script, with its output sent to the handlers while it runs, and to the run's event stream if `emits`."""
    if not emits and not handlers.hear(ScriptOutput):
        yield script
        return
    printed, over, room = deque[tuple[StreamName, str]](), anyio.Event(), MAX_STREAMED_CHARS
    failure: Exception | None = None

    def hear(name: StreamName, text: str) -> None:
        nonlocal room
        if room > 0:
            printed.append((name, text[:room]))
            room -= len(text)

    async def tell() -> None:
        while not over.is_set():
            with anyio.move_on_after(STREAM_INTERVAL):
                await over.wait()
            while printed:
                event = _joined(printed, script, ctx.run_id)
                await handlers.tell(ctx, event)
                if emits:
                    with suppress(UserError):  # there is no event stream in a Temporal activity
                        await ctx.emit(event)

    async with anyio.create_task_group() as group:
        group.start_soon(tell)
        try:
            yield script.told_to(hear)
        except Exception as error:  # noqa: BLE001 - raised below, not in a group of errors
            failure = error
        over.set()
    if failure is not None:
        raise failure


def _joined(printed: deque[tuple[StreamName, str]], script: SkillScript, run_id: str | None) -> ScriptOutput:
    """The next event: the pieces at the beginning that were printed to the same stream."""
    name, text = printed.popleft()
    while printed and printed[0][0] == name:
        text += printed.popleft()[1]
    return ScriptOutput(skill_name=script.skill_name, script_name=script.name, stream=name, text=text, run_id=run_id)
