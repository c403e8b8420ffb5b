"""Records loads, reads and runs as durable steps, spans, logs and events.

Spans and logs contain text of skills and scripts only on request.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeAlias, TypeVar

from opentelemetry.trace import INVALID_SPAN, NoOpTracer, Span, StatusCode, Tracer, get_current_span, get_tracer
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.script import SkillScript
from pydantic_ai_skills.types.skill import DepsT, Skill

from .durable import as_step
from .events import EventHandlers, ResourceRead, ScriptFinished, SkillLoaded

logger = logging.getLogger('pydantic_ai_skills')

ActionEvent: TypeAlias = SkillLoaded | ResourceRead | ScriptFinished

Attributes: TypeAlias = dict[str, str | bool | int | float]

T = TypeVar('T')
EventT = TypeVar('EventT', bound='ActionEvent')

_NO_TRACER: Tracer = NoOpTracer()


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
        """Name the resource that is read, once it is known."""
        self.span.update_name(f'read resource {name}')
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


class Recorder(Generic[DepsT]):
    """Opens a record around each load, read and run, and makes a durable step of it under DBOS.

    Handlers are called within the step, so once for each event. The event stream of the run gets its events from
    outside the step, so again each time a workflow is resumed.
    """

    def __init__(self, toolset_id: str) -> None:
        self._toolset_id = toolset_id
        self.handlers = EventHandlers[DepsT]()
        """The application's handlers of events."""

    def load(self, ctx: RunContext[DepsT], skill: Skill[DepsT]) -> AbstractAsyncContextManager[Record[SkillLoaded]]:
        """Record the load of a skill."""
        content = carried(ctx, 'trace_include_content', default=False)
        attributes = {'gen_ai.skill.description': skill.description} if content else {}
        return self._record(ctx, skill, SkillLoaded, f'load skill {skill.name}', attributes)

    def read(self, ctx: RunContext[DepsT], skill: Skill[DepsT]) -> AbstractAsyncContextManager[Record[ResourceRead]]:
        """Record the reading of a resource."""
        return self._record(ctx, skill, ResourceRead, f'read resource of {skill.name}', {})

    def run(
        self, ctx: RunContext[DepsT], skill: Skill[DepsT], script: SkillScript
    ) -> AbstractAsyncContextManager[Record[ScriptFinished]]:
        """Record the run of a script."""
        attributes = {'gen_ai.skill.resource.name': script.name}
        return self._record(ctx, skill, ScriptFinished, f'run script {script.name}', attributes)

    @asynccontextmanager
    async def _record(
        self,
        ctx: RunContext[DepsT],
        skill: Skill[DepsT],
        event_type: type[EventT],
        name: str,
        attributes: dict[str, str],
    ) -> AsyncGenerator[Record[EventT]]:
        with _span(ctx, name, {**_about_skill(skill), **attributes}) as span:
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
        tool: str,
        work: Callable[[], Awaitable[Done[T, EventT]]],
    ) -> Done[T, EventT]:
        """Do recorded work as one durable step, and pass its event to the tool's span and the run's event stream."""
        tool_span = _tool_span(ctx)
        tool_span.set_attributes(_about_skill(skill))
        try:
            # Only DBOS has to be asked for a step.
            done = await (as_step(f'{self._toolset_id}__{tool}', work) if 'dbos' in sys.modules else work())
        except (SkillError, ToolFailed) as failure:
            tool_span.set_attribute('error.type', type(failure).__qualname__)
            raise
        tool_span.set_attributes(_about_event(done.event))
        # There is no event stream where the toolset is used without its capability, or in a Temporal activity.
        with suppress(UserError):
            await ctx.emit(done.event)
        return done


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


def about_problem(problem: SkillProblem) -> Attributes:
    """Attributes of a problem of a skill or a source."""
    return {
        'skill.problem.code': problem.code,
        'skill.problem.severity': problem.severity,
        'skill.problem.path': problem.path,
    }


# --- Spans --------------------------------------------------------------------------------------------------------


def _tool_span(ctx: RunContext[Any]) -> Span:
    """The span that pydantic-ai opened for the tool call; an invalid one where it opened none."""
    tracer: Tracer = carried(ctx, 'tracer', _NO_TRACER)
    return INVALID_SPAN if isinstance(tracer, NoOpTracer) else get_current_span()


@contextmanager
def _span(ctx: RunContext[Any], name: str, attributes: Attributes) -> Generator[Span]:
    """Open a span of the run's tracer. An error adds its type, and its text only on request."""
    content = carried(ctx, 'trace_include_content', default=False)
    with _tracer(ctx).start_as_current_span(
        name,
        attributes={**attributes, 'logfire.msg': name},
        record_exception=content,
        set_status_on_exception=False,
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
    """The run's tracer. Temporal activities do not get it: there, the global one, if a span is being recorded."""
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


def carried(ctx: RunContext[Any], field: str, default: T) -> T:
    """A field of the context; the default in a durable unit that runs elsewhere, to which the field is not carried."""
    try:
        return getattr(ctx, field)
    except UserError:
        return default
