"""Records loads, reads and runs as durable steps, spans, logs and events.

Spans follow the GenAI conventions of OpenTelemetry: one for each call of a tool, which names the skill. Pydantic-ai
opens it; where it does not, as in a Temporal activity, it is opened here. Spans and logs contain text of skills and
scripts only on request.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeAlias, TypeVar

import anyio.to_thread
from opentelemetry.trace import INVALID_SPAN, NoOpTracer, Span, StatusCode, Tracer, get_current_span, get_tracer
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.tools import RunContext, ToolDefinition

from pydantic_ai_skills.exceptions import SkillError, SkillScriptExecutionError
from pydantic_ai_skills.execution.result import ScriptResult, SkillScriptStoppedError
from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.script import SkillScript
from pydantic_ai_skills.types.skill import DepsT, Skill

from .durable import as_step, is_in_dbos, is_replayed
from .events import EventHandler, ResourceRead, ScriptFinished, ScriptOutput, SkillEvent, SkillLoaded, streamed
from .events import EventT as HandledT
from .library import carried
from .results import text_of_value

logger = logging.getLogger('pydantic_ai_skills')

ActionEvent: TypeAlias = SkillLoaded | ResourceRead | ScriptFinished

Attributes: TypeAlias = dict[str, str | bool | int | float]

T = TypeVar('T')
EventT = TypeVar('EventT', bound='ActionEvent')

_NO_TRACER: Tracer = NoOpTracer()

_TOOLS: dict[type[ActionEvent], str] = {
    SkillLoaded: 'load_skill',
    ResourceRead: 'read_skill_resource',
    ScriptFinished: 'run_skill_script',
}
"""The tool to name for each kind of event where the context does not say which one was called."""

_OF_TOOL: ContextVar[Span] = ContextVar('_OF_TOOL', default=INVALID_SPAN)
"""The span that pydantic-ai opened for the call. A durable step opens others in it."""


@dataclass(kw_only=True, repr=False, eq=False)
class Done(Generic[T, EventT]):
    """What a durable step returns. With the event in it, a resumed workflow can report what it did before."""

    value: T
    """What the model gets."""

    event: EventT
    """What the application gets."""


@dataclass(kw_only=True, repr=False, eq=False)
class Record(Generic[EventT]):
    """A load, read or run in progress."""

    ctx: RunContext[Any]
    skill: Skill[Any]
    event_type: type[EventT]
    span: Span
    event: EventT | None = None
    started: float = field(default_factory=perf_counter)

    def name_resource(self, name: str) -> None:
        """Name the resource that is read or run, once it is known."""
        self.span.update_name(f'{_span_name(self.ctx, self.event_type)} {self.skill.name} {name}')
        self.span.set_attribute('gen_ai.skill.resource.name', name)

    def done(self, value: T, **fields: Any) -> Done[T, EventT]:
        """Finish with a value for the model, and the fields that only events of this type have."""
        self.event = self.event_type(
            skill_name=self.skill.name,
            version=_version_of(self.skill),
            source=self.skill.source,
            run_id=self.ctx.run_id,
            tool_call_id=self.ctx.tool_call_id,
            tool_name=self.ctx.tool_name,
            duration=perf_counter() - self.started,
            **fields,
        )
        return Done(value=value, event=self.event)


class EventHandlers(Generic[DepsT]):
    """The application's functions that handle events."""

    def __init__(self) -> None:
        self.functions: list[tuple[type[SkillEvent | ScriptOutput], EventHandler[DepsT, Any]]] = []
        self.others: Sequence[EventHandlers[DepsT]] = ()

    def adopt(self, others: Sequence[EventHandlers[DepsT]]) -> None:
        """Also call the functions of these handlers, including those added to them later."""
        self.others = others

    def add(self, event_type: type[HandledT], handler: EventHandler[DepsT, HandledT]) -> EventHandler[DepsT, HandledT]:
        """Call the function for each event of this type from now on; return the function, as a decorator does."""
        self.functions.append((event_type, handler))
        return handler

    def hear(self, event_type: type[SkillEvent | ScriptOutput]) -> bool:
        """Whether a function is called for events of this type."""
        own = any(issubclass(event_type, each) for each, _ in self.functions)
        return own or any(other.hear(event_type) for other in self.others)

    async def tell(self, ctx: RunContext[DepsT], event: SkillEvent | ScriptOutput) -> None:
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


class Recorder(Generic[DepsT]):
    """Opens a record around each load, read and run, and makes a durable step of it under DBOS.

    Handlers are called within the step, so once for each event. The event stream of the run gets its events from
    outside the step, so again each time a workflow is resumed.
    """

    def __init__(self, toolset_id: str) -> None:
        self._toolset_id = toolset_id
        self.handlers = EventHandlers[DepsT]()
        """The application's handlers of events."""

    @asynccontextmanager
    async def load(self, ctx: RunContext[DepsT], skill: Skill[DepsT]) -> AsyncGenerator[Record[SkillLoaded]]:
        """Record the load of a skill."""
        async with self._record(ctx, skill, SkillLoaded) as record:
            record.span.update_name(f'{_span_name(ctx, SkillLoaded)} {skill.name}')
            if carried(ctx, 'trace_include_content', default=False):
                record.span.set_attribute('gen_ai.skill.description', skill.description)
            yield record

    def read(self, ctx: RunContext[DepsT], skill: Skill[DepsT]) -> AbstractAsyncContextManager[Record[ResourceRead]]:
        """Record the reading of a resource."""
        return self._record(ctx, skill, ResourceRead)

    def run(self, ctx: RunContext[DepsT], skill: Skill[DepsT]) -> AbstractAsyncContextManager[Record[ScriptFinished]]:
        """Record the run of a script, or the call of a tool in Python."""
        return self._record(ctx, skill, ScriptFinished)

    def streamed(self, ctx: RunContext[DepsT], script: SkillScript) -> AbstractAsyncContextManager[SkillScript]:
        """The script, with its output sent as `ScriptOutput` events while it runs, if anybody may get them."""
        tool = carried(ctx, 'tools', dict[str, ToolDefinition]()).get(ctx.tool_name or '')
        # Only a tool of a capability has an event stream, and not inside a step of DBOS.
        emits = tool is not None and tool.capability_id is not None and not is_in_dbos()
        if emits or self.handlers.functions or self.handlers.others:
            return streamed(self.handlers, ctx, script, emits=emits)
        return nullcontext(script)

    @asynccontextmanager
    async def _record(
        self, ctx: RunContext[DepsT], skill: Skill[DepsT], event_type: type[EventT]
    ) -> AsyncGenerator[Record[EventT]]:
        with _span(ctx, _span_name(ctx, event_type), _about_skill(skill)) as span:
            record = Record(ctx=ctx, skill=skill, event_type=event_type, span=span)
            yield record
            assert record.event is not None
            _finish(span, record.event, content=carried(ctx, 'trace_include_content', default=False))
        _log(skill, record.event)
        if self.handlers.functions or self.handlers.others:
            await self.handlers.tell(ctx, record.event)

    async def step(
        self,
        ctx: RunContext[DepsT],
        skill: Skill[DepsT],
        tool: str | None,
        work: Callable[[], Awaitable[Done[T, EventT]]],
    ) -> Done[T, EventT]:
        """Do recorded work as one durable step, and pass its event to the tool's span and the run's event stream."""
        token = _OF_TOOL.set(_tool_span(ctx))
        try:
            # Only DBOS has to be asked for a step.
            is_step = tool is not None and 'dbos' in sys.modules
            done = await (as_step(f'{self._toolset_id}__{tool}', work) if is_step else work())
            _OF_TOOL.get().set_attributes({**_about_skill(skill), **_about_event(done.event)})
        except (SkillError, ToolFailed) as failure:
            _OF_TOOL.get().set_attributes({**_about_skill(skill), 'error.type': type(failure).__qualname__})
            raise
        finally:
            _OF_TOOL.reset(token)
        await self.emit(ctx, done.event)
        return done

    async def tell_of_load(self, ctx: RunContext[DepsT], skill: Skill[Any], size: int) -> None:
        """Report a load in the code of a Temporal workflow to the event stream, the log and the tool's span.

        Handlers are not called: they may do I/O, which a workflow must not.
        """
        event = Record(ctx=ctx, skill=skill, event_type=SkillLoaded, span=INVALID_SPAN).done(None, bytes=size).event
        _tool_span(ctx).set_attributes({**_about_skill(skill), **_about_event(event)})
        if not is_replayed():
            _log(skill, event)
        await self.emit(ctx, event)

    async def emit(self, ctx: RunContext[DepsT], event: ActionEvent) -> None:
        """Pass an event to the run's event stream."""
        # There is no event stream where the toolset is used without its capability, or in a Temporal activity.
        with suppress(UserError):
            await ctx.emit(event)


# --- Attributes ---------------------------------------------------------------------------------------------------
# Named by the conventions of OpenTelemetry (`gen_ai.*`, `process.*`, `error.*`), or `skill.*` where there are none.


def _about_skill(skill: Skill[Any]) -> Attributes:
    """Attributes that identify a skill and its version."""
    source = skill.source
    kind = source.kind if source else 'directory' if skill.path else 'python'
    attributes: Attributes = {'gen_ai.skill.name': skill.name, 'skill.source': kind}
    if source is not None:
        attributes['gen_ai.skill.source.uri'] = source.url
        if source.commit is not None:
            attributes['skill.commit'] = source.commit
    elif skill.path is not None:
        attributes['gen_ai.skill.source.uri'] = Path(skill.path).absolute().as_uri()
    version = _version_of(skill)
    return attributes if version is None else {**attributes, 'skill.version': version}


def _version_of(skill: Skill[Any]) -> str | None:
    """The version in the skill's metadata."""
    version = skill.metadata.get('version')
    return None if version is None else str(version)


def _about_event(event: ActionEvent) -> Attributes:
    """Attributes of a finished load, read or run."""
    attributes: Attributes = {'skill.duration': event.duration}
    if isinstance(event, SkillLoaded):
        attributes |= {'skill.bytes': event.bytes, 'skill.repeated': event.repeated}
    elif isinstance(event, ResourceRead):
        attributes |= {'gen_ai.skill.resource.name': event.resource_name, 'skill.bytes': event.bytes}
    else:
        result = event.result
        attributes |= {
            'gen_ai.skill.resource.name': event.script_name,
            'skill.bytes': len(result.stdout.encode()) + len(result.stderr.encode()),
            'skill.outcome': event.outcome,
            'process.exit.code': result.exit_code,
        }
        if event.outcome != 'success':
            attributes['error.type'] = 'timeout' if result.timed_out else str(result.exit_code)
    return attributes


# --- Spans --------------------------------------------------------------------------------------------------------


def _tool_span(ctx: RunContext[Any]) -> Span:
    """The span that pydantic-ai opened for the tool call; an invalid one where it opened none."""
    tracer: Tracer = carried(ctx, 'tracer', _NO_TRACER)
    return INVALID_SPAN if isinstance(tracer, NoOpTracer) else get_current_span()


def _span_name(ctx: RunContext[Any], event_type: type[ActionEvent]) -> str:
    return f'execute_tool {ctx.tool_name or _TOOLS[event_type]}'


@contextmanager
def _span(ctx: RunContext[Any], name: str, attributes: Attributes) -> Generator[Span]:
    """The span of the tool call, or one that is opened for it. An error adds its type, and its text only on request."""
    opened = _OF_TOOL.get()
    if opened.is_recording():
        opened.set_attributes(attributes)
        yield opened
        return
    operation, _, tool = name.partition(' ')
    of_tool: Attributes = {'gen_ai.operation.name': operation, 'gen_ai.tool.name': tool, 'logfire.msg': name}
    content = carried(ctx, 'trace_include_content', default=False)
    with _tracer(ctx).start_as_current_span(
        name, attributes={**of_tool, **attributes}, record_exception=content, set_status_on_exception=False
    ) as opened:
        try:
            yield opened
        except BaseException as error:
            opened.set_attribute('error.type', type(error).__qualname__)
            opened.set_status(StatusCode.ERROR)
            raise


def _finish(opened: Span, event: ActionEvent, *, content: bool) -> None:
    """Complete a span with what its event says."""
    opened.set_attributes(_about_event(event))
    if isinstance(event, ScriptFinished):
        if event.outcome != 'success':
            opened.set_status(StatusCode.ERROR)
        if content:
            opened.set_attributes({'skill.stdout': event.result.stdout, 'skill.stderr': event.result.stderr})


def _tracer(ctx: RunContext[Any]) -> Tracer:
    """The run's tracer. Temporal activities do not get it and use the global one, if a span is being recorded."""
    tracer: Tracer | None = carried(ctx, 'tracer', None)
    if tracer is not None:
        return tracer
    return get_tracer('pydantic-ai-skills') if get_current_span().is_recording() else _NO_TRACER


# --- Log records --------------------------------------------------------------------------------------------------


def _log(skill: Skill[Any], event: ActionEvent) -> None:
    """Write a log record with the attributes of the span as fields."""
    if isinstance(event, SkillLoaded):
        what = 'Loaded skill %r', event.skill_name
    elif isinstance(event, ResourceRead):
        what = 'Read resource %r of skill %r', event.resource_name, event.skill_name
    else:
        what = 'Ran script %r of skill %r: %s', event.script_name, event.skill_name, event.outcome
    logger.info(*what, extra={**_about_skill(skill), **_about_event(event)})


# --- How scripts end ----------------------------------------------------------------------------------------------


async def run_script(script: SkillScript, ctx: RunContext[Any], args: Any) -> tuple[Any, dict[str, Any]]:
    """Run a script; return its value and the event fields for how it ended."""
    return await ending_of(partial(_run_script, script, ctx, args))


async def _run_script(script: SkillScript, ctx: RunContext[Any], args: Any) -> Any:
    """What a script returns; the `run` of a subclass is guarded like a function."""
    if not script.has_own_run:
        return await script.run(ctx, args)
    return await guarded(script.run(ctx, args), what=f'script {script.name!r}', error=SkillScriptExecutionError)


async def ending_of(run: Callable[[], Awaitable[Any]]) -> tuple[Any, dict[str, Any]]:
    """Run a script; return its value and the event fields for how it ended. A failure is in them, and not raised."""
    started = perf_counter()
    try:
        value = await run()
    except SkillScriptStoppedError as stopped:
        return None, {'outcome': 'stopped', 'result': stopped.result, 'error': str(stopped)}
    except (SkillError, ToolFailed) as failure:
        return None, failed(failure, perf_counter() - started)
    if isinstance(value, ScriptResult):
        return value, {'outcome': 'failed' if value.exit_code else 'success', 'result': value}
    result = ScriptResult(exit_code=0, stdout=text_of_value(value), stderr='', duration=perf_counter() - started)
    return value, {'outcome': 'success', 'result': result}


def failed(failure: Exception, duration: float) -> dict[str, Any]:
    """The event fields of a script that could not be run, or of a function that failed."""
    result = ScriptResult(exit_code=1, stdout='', stderr=str(failure), duration=duration)
    return {'outcome': 'failed', 'result': result, 'error': str(failure)}
