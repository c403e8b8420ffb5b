"""Doing something with a skill, and telling of it: a step, a span, a log record, an event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, TypeVar

from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.messages import BinaryContent, ToolReturnPart
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.execution.base import ScriptResult, SkillScriptStoppedError
from pydantic_ai_skills.types.skill import DepsT, Skill, SkillScript

from . import telemetry
from .durable import as_step, carried
from .events import EventHandlers, ResourceRead, ScriptFinished, SkillLoaded

__all__ = ('SkillJournal',)

T = TypeVar('T')
EventT = TypeVar('EventT', bound=telemetry.Happened)


@dataclass(kw_only=True, repr=False, eq=False)
class Done(Generic[T, EventT]):
    """What came of it. A step records both, so that a workflow that is resumed tells of it as it did before."""

    value: T
    """What the model gets."""

    event: EventT
    """What the application gets."""


class SkillJournal(Generic[DepsT]):
    """Does what the tools do with skills, and tells traces, logs and the application of it.

    What reads or runs something is one step under an engine that wants one. Handlers are called in the step, so once
    for what happened once; the event stream of the run gets its events from outside, each time the workflow is resumed.
    """

    def __init__(self, toolset_id: str) -> None:
        self._toolset_id = toolset_id
        self.handlers = EventHandlers[DepsT]()
        """Who is told."""

    async def load(
        self, ctx: RunContext[DepsT], skill: Skill[DepsT], render: Callable[[], Awaitable[tuple[str, bool]]]
    ) -> str:
        """Load a skill.

        Args:
            ctx: The run's context.
            skill: The skill.
            render: Gives what the model is told, and whether it knew it already.
        """

        async def work() -> Done[str, SkillLoaded]:
            attributes = telemetry.about_skill(skill)
            with telemetry.span(ctx, f'load skill {skill.name}', attributes) as span:
                if content := carried(ctx, 'trace_include_content', default=False):
                    span.set_attribute('gen_ai.skill.description', skill.description)
                started = perf_counter()
                text, repeated = await render()
                facts = _facts(ctx, skill, started)
                event = SkillLoaded(**facts, bytes=len(text.encode()), repeated=repeated)
                telemetry.finish(span, event, content=content)
            return await self._tell(ctx, skill, text, event)

        return (await self._step(ctx, skill, 'load_skill', work)).value

    async def read(
        self, ctx: RunContext[DepsT], skill: Skill[DepsT], read: Callable[[Callable[[str], None]], Awaitable[Any]]
    ) -> Any:
        """Read a resource.

        Args:
            ctx: The run's context.
            skill: The skill.
            read: Gives what the model gets. It is given what it tells the full name of the resource before it reads it.
        """

        async def work() -> Done[Any, ResourceRead]:
            full_name = ''

            def found(name: str) -> None:
                nonlocal full_name
                full_name = name
                span.update_name(f'read resource {name}')
                span.set_attribute('gen_ai.skill.resource.name', name)

            with telemetry.span(ctx, f'read resource of {skill.name}', telemetry.about_skill(skill)) as span:
                started = perf_counter()
                value = await read(found)
                facts = _facts(ctx, skill, started)
                event = ResourceRead(**facts, resource_name=full_name, bytes=_size(value))
                telemetry.finish(span, event, content=False)
            return await self._tell(ctx, skill, value, event)

        return (await self._step(ctx, skill, 'read_skill_resource', work)).value

    async def run(
        self,
        ctx: RunContext[DepsT],
        skill: Skill[DepsT],
        args: Any,
        find: Callable[[], Awaitable[SkillScript]],
    ) -> Done[Any, ScriptFinished]:
        """Run a script. One that fails is an event like any other, not an exception.

        Args:
            ctx: The run's context.
            skill: The skill.
            args: The arguments.
            find: Gives the script, if it may be run.
        """

        async def work() -> Done[Any, ScriptFinished]:
            script = await find()
            attributes = {**telemetry.about_skill(skill), 'gen_ai.skill.resource.name': script.name}
            with telemetry.span(ctx, f'run script {script.name}', attributes) as span:
                started = perf_counter()
                value, ending = await _run(script, ctx, args)
                event = ScriptFinished(**_facts(ctx, skill, started), script_name=script.name, **ending)
                telemetry.finish(span, event, content=carried(ctx, 'trace_include_content', default=False))
            return await self._tell(ctx, skill, value, event)

        return await self._step(ctx, skill, 'run_skill_script', work)

    async def _step(
        self,
        ctx: RunContext[DepsT],
        skill: Skill[DepsT],
        tool: str,
        work: Callable[[], Awaitable[Done[T, EventT]]],
    ) -> Done[T, EventT]:
        tool_span = telemetry.tool_span(ctx)
        tool_span.set_attributes(telemetry.about_skill(skill))
        try:
            done = await as_step(f'{self._toolset_id}__{tool}', work)
        except (SkillError, ToolFailed) as failure:
            tool_span.set_attribute('error.type', type(failure).__qualname__)
            raise
        tool_span.set_attributes(telemetry.about_event(done.event))
        # There is no stream to tell where the toolset is used without its capability, or in an activity of Temporal.
        with suppress(UserError):
            await ctx.emit(done.event)
        return done

    async def _tell(self, ctx: RunContext[DepsT], skill: Skill[DepsT], value: T, event: EventT) -> Done[T, EventT]:
        telemetry.log(skill, event)
        await self.handlers.tell(ctx, event)
        return Done(value=value, event=event)


def _facts(ctx: RunContext[Any], skill: Skill[Any], started: float) -> dict[str, Any]:
    """What every event tells."""
    return {
        'skill_name': skill.name,
        'version': telemetry.version_of(skill),
        'source': skill.source,
        'run_id': ctx.run_id,
        'tool_call_id': ctx.tool_call_id,
        'tool_name': ctx.tool_name,
        'duration': perf_counter() - started,
    }


async def _run(script: SkillScript, ctx: RunContext[Any], args: Any) -> tuple[Any, dict[str, Any]]:
    """What the script gave, and how it ended."""
    started = perf_counter()

    def result_of(exit_code: int, stdout: str = '', stderr: str = '') -> ScriptResult:
        return ScriptResult(exit_code=exit_code, stdout=stdout, stderr=stderr, duration=perf_counter() - started)

    try:
        value = await script.run(ctx, args)
    except SkillScriptStoppedError as stopped:
        return None, {'outcome': 'stopped', 'result': stopped.result, 'error': str(stopped)}
    except (SkillError, ToolFailed) as failure:
        return None, {'outcome': 'failed', 'result': result_of(1, stderr=str(failure)), 'error': str(failure)}
    if isinstance(value, ScriptResult):
        return value, {'outcome': 'failed' if value.exit_code else 'success', 'result': value}
    return value, {'outcome': 'success', 'result': result_of(0, stdout=_text(value))}


def _text(value: Any) -> str:
    """What the model reads when it is sent this as the result of a tool."""
    if value is None or isinstance(value, str):
        return value or ''
    try:
        return ToolReturnPart('', value, '').model_response_str()
    except ValueError:
        return repr(value)


def _size(value: Any) -> int:
    return len(value.data) if isinstance(value, BinaryContent) else len(_text(value).encode())
