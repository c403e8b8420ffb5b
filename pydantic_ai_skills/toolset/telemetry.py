"""Spans and log records of what is done with skills: who, from where, how much, how long; content only on request."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from opentelemetry.trace import (
    INVALID_SPAN,
    NoOpTracer,
    Span,
    StatusCode,
    Tracer,
    get_current_span,
    get_tracer,
)
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import Skill

from .durable import carried
from .events import ResourceRead, ScriptFinished, SkillLoaded

__all__ = (
    'Happened',
    'about_event',
    'about_problem',
    'about_skill',
    'finish',
    'log',
    'span',
    'tool_span',
    'version_of',
)

logger = logging.getLogger('pydantic_ai_skills')

Happened: TypeAlias = SkillLoaded | ResourceRead | ScriptFinished

Attributes: TypeAlias = dict[str, str | bool | int | float]

_NO_TRACER: Tracer = NoOpTracer()


# --- Attributes ---------------------------------------------------------------------------------------------------
# Names of OpenTelemetry's conventions where there are any (`gen_ai.*`, `process.*`, `error.*`), `skill.*` elsewhere.


def about_skill(skill: Skill[Any]) -> Attributes:
    """Which skill it is, and exactly which version of it."""
    source = skill.source
    kind = source.kind if source else 'directory' if skill.path else 'python'
    attributes: Attributes = {'gen_ai.skill.name': skill.name, 'skill.source': kind}
    if source is not None:
        attributes['gen_ai.skill.source.uri'] = source.url
        if source.commit is not None:
            attributes['skill.commit'] = source.commit
    elif skill.path is not None:
        attributes['gen_ai.skill.source.uri'] = Path(skill.path).absolute().as_uri()
    version = version_of(skill)
    return attributes if version is None else {**attributes, 'skill.version': version}


def version_of(skill: Skill[Any]) -> str | None:
    """What the skill's metadata say about its version."""
    version = skill.metadata.get('version')
    return None if version is None else str(version)


def about_event(event: Happened) -> Attributes:
    """What is known once it has happened."""
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
    """What is wrong with a skill or a source."""
    return {
        'skill.problem.code': problem.code,
        'skill.problem.severity': problem.severity,
        'skill.problem.path': problem.path,
    }


# --- Spans --------------------------------------------------------------------------------------------------------


def tool_span(ctx: RunContext[Any]) -> Span:
    """The span pydantic-ai has opened for the tool call, where it records one and it is within reach."""
    tracer: Tracer = carried(ctx, 'tracer', _NO_TRACER)
    return INVALID_SPAN if isinstance(tracer, NoOpTracer) else get_current_span()


@contextmanager
def span(ctx: RunContext[Any], name: str, attributes: Attributes) -> Generator[Span]:
    """A span of the run's tracer around what is done. An error gets its type told, and its text on request only."""
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


def finish(opened: Span, event: Happened, *, content: bool) -> None:
    """Add to a span what is known once it has happened."""
    opened.set_attributes(about_event(event))
    if isinstance(event, ScriptFinished):
        if event.outcome != 'success':
            opened.set_status(StatusCode.ERROR)
        if content:
            opened.set_attributes({'skill.stdout': event.result.stdout, 'skill.stderr': event.result.stderr})


def _tracer(ctx: RunContext[Any]) -> Tracer:
    """The run's tracer. It is not carried to an activity of Temporal: there, the one of whoever records a span."""
    tracer: Tracer | None = carried(ctx, 'tracer', None)
    if tracer is not None:
        return tracer
    return get_tracer('pydantic-ai-skills') if get_current_span().is_recording() else _NO_TRACER


# --- Log records --------------------------------------------------------------------------------------------------


def log(skill: Skill[Any], event: Happened) -> None:
    """Write a record with the attributes of the span as fields."""
    if isinstance(event, SkillLoaded):
        what = 'Loaded skill %r', event.skill_name
    elif isinstance(event, ResourceRead):
        what = 'Read resource %r of skill %r', event.resource_name, event.skill_name
    else:
        what = 'Ran script %r of skill %r: %s', event.script_name, event.skill_name, event.outcome
    logger.info(*what, extra={**about_skill(skill), **about_event(event)})
