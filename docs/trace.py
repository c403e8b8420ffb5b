"""Trace an agent that uses a skill, and draw the trace: `python docs/trace.py docs/images`. Needs no network.

The model is a stand-in that takes 40 ms for each answer; everything else is real.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from pydantic_ai_skills import SkillsCapability

SKILLS = Path(__file__).parent.parent / 'examples/skills'
SHOWN = {'skill.version': 'version', 'skill.bytes': 'bytes', 'process.exit.code': 'exit code'}
"""Attributes written beside the bars, and what they are called there."""

SKILL = {'skill_name': 'unit-converter'}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ('load_skill', SKILL),
    ('read_skill_resource', {**SKILL, 'resource_name': 'references/units.md'}),
    ('run_skill_script', {**SKILL, 'script_name': 'convert', 'args': {'_': ['26.2', 'mi', 'kg']}}),
    ('run_skill_script', {**SKILL, 'script_name': 'convert', 'args': {'_': ['26.2', 'mi', 'km']}}),
]

WIDTH, ROW, NAMES, BARS = 960, 26, 470, 190
COLOURS = {'invoke_agent': '#6b7280', 'chat': '#2563eb'}
OURS, FAILED = '#059669', '#dc2626'
PALETTES = {'trace.svg': ('#ffffff', '#111827', '#4b5563'), 'trace-dark.svg': ('#1e2129', '#e5e7eb', '#9ca3af')}
"""The files, and the colours of each: paper, names, and what is written beside the bars."""


async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Make the calls one after another, one of which fails."""
    await asyncio.sleep(0.04)
    done = sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
    if done < len(CALLS):
        return ModelResponse(parts=[ToolCallPart(*CALLS[done])])
    return ModelResponse(parts=[TextPart('A marathon is 42.16 km.')])


async def trace() -> Sequence[ReadableSpan]:
    """The spans of one run, in the order in which they began."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = InstrumentationSettings(tracer_provider=provider, include_content=False)
    skills = SkillsCapability(directories=[SKILLS])
    await skills.toolset.load()
    agent = Agent(
        FunctionModel(answer, model_name='stand-in'), name='assistant', capabilities=[skills, Instrumentation(settings)]
    )
    for _ in range(2):  # the first run imports what the second, which is shown, finds there
        exporter.clear()
        await agent.run('A marathon is 26.2 miles. How many kilometres is that?')
    return sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)


def draw(spans: Sequence[ReadableSpan], file: str = 'trace.svg') -> str:
    """A picture with a row for each span: its name, when it began and ended, and some of its attributes."""
    begin, end = spans[0].start_time or 0, max(span.end_time or 0 for span in spans)
    height = ROW * len(spans) + 20
    paper, *inks = PALETTES[file]
    rows = '\n'.join(
        row for index, span in enumerate(spans) for row in _row(span, index, spans, begin, end - begin, *inks)
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">
<title>The trace of an agent run that loads a skill, reads a resource and runs a script twice</title>
<rect width="{WIDTH}" height="{height}" rx="6" fill="{paper}"/>
{rows}
</svg>
"""


def _row(
    span: ReadableSpan, index: int, spans: Sequence[ReadableSpan], begin: int, total: int, ink: str, faint: str
) -> Iterator[str]:
    start, end = (span.start_time or 0) - begin, (span.end_time or 0) - begin
    y, x, width = 10 + index * ROW, NAMES + start * BARS / total, max(2.0, (end - start) * BARS / total)
    attributes = span.attributes or {}
    ours = 'gen_ai.skill.name' in attributes
    colour = OURS if ours else COLOURS[span.name.split()[0]]
    if span.status.status_code.name == 'ERROR':
        colour = FAILED
    told = [f'{(end - start) / 1e6:.1f} ms']
    if ours:
        told += [f'{word} {attributes[name]}' for name, word in SHOWN.items() if name in attributes]
    yield f'<text x="{12 + 18 * _depth(span, spans)}" y="{y + 17}" fill="{ink}">{escape(span.name)}</text>'
    yield f'<rect x="{x:.1f}" y="{y + 5}" width="{width:.1f}" height="16" rx="3" fill="{colour}"/>'
    yield f'<text x="{NAMES + BARS + 14}" y="{y + 17}" fill="{faint}" font-size="12">{escape(", ".join(told))}</text>'


def _depth(span: ReadableSpan, spans: Sequence[ReadableSpan]) -> int:
    parents = [other for other in spans if span.parent and other.context and other.context == span.parent]
    return 1 + _depth(parents[0], spans) if parents else 0


if __name__ == '__main__':
    run = asyncio.run(trace())
    for name in PALETTES:
        Path(sys.argv[1], name).write_text(draw(run, name), 'utf-8')
