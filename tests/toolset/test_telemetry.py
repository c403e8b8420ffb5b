from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings

from pydantic_ai_skills import (
    LocalSkillScriptExecutor,
    ScriptFinished,
    Skill,
    SkillProvenance,
    SkillRegistry,
    SkillsCapability,
    SkillsDirectory,
    SkillsToolset,
)
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

LOAD: Call = ('load_skill', {'skill_name': 'alpha'})
READ: Call = ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'notes'})
GOOD: Call = ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'good', 'args': ['sesame']})
BAD: Call = ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'bad'})
SLOW: Call = ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'slow'})

SECRETS = 'instructions-4711', 'notes-4711', 'stdout-4711', 'stderr-4711', 'sesame', 'description-4711'
"""What is content: it must not be in a trace or a log unless that was asked for."""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    write_skill(
        tmp_path / 'skills/alpha',
        'Does description-4711.',
        body='instructions-4711',
        files={
            'notes.md': 'notes-4711',
            'scripts/good.py': 'print("stdout-4711")',
            'scripts/bad.py': 'import sys; sys.exit("stderr-4711")',
            'scripts/slow.py': 'import time; print("stdout-4711", flush=True); time.sleep(60)',
        },
    )
    skill_md = tmp_path / 'skills/alpha/SKILL.md'
    skill_md.write_text(skill_md.read_text().replace('\n---\n', '\nversion: 1.10\n---\n'))
    return tmp_path / 'skills'


@dataclass
class Trace:
    """Spans as they are exported."""

    include_content: bool = False
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)

    def __post_init__(self) -> None:
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    async def run(self, toolset: SkillsToolset[Any], *calls: Call) -> ScriptedModel:
        script = ScriptedModel(calls=calls)
        settings = InstrumentationSettings(tracer_provider=self.provider, include_content=self.include_content)
        await Agent(script.model, toolsets=[toolset], capabilities=[Instrumentation(settings)]).run('Go.')
        return script

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    @property
    def tools(self) -> list[ReadableSpan]:
        """The spans of tool calls, which have no spans in them."""
        tools = [span for span in self.spans if span.name.startswith('execute_tool')]
        assert not [span for span in self.spans if span.parent in [tool.context for tool in tools]]
        return tools


VARIES: dict[str, Callable[[Any], bool]] = {
    'skill.duration': lambda value: 0 < value < 10,
    'skill.bytes': lambda value: value > 60,
}
"""Values that depend on the machine and the place of the test, and what they must be to be left out of a snapshot."""


def ours(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """The attributes that tell of skills, in the order of their names, without what varies."""
    told = 'gen_ai.skill.', 'skill.', 'process.', 'error.'
    found = {key: value for key, value in sorted((attributes or {}).items()) if key.startswith(told)}
    if str(found.get('gen_ai.skill.source.uri')).startswith('file:///'):
        found['gen_ai.skill.source.uri'] = 'file:///…' + found['gen_ai.skill.source.uri'][-13:]
    return {key: ... if key in VARIES and VARIES[key](value) else value for key, value in found.items()}


ALPHA = {
    'gen_ai.skill.name': 'alpha',
    'gen_ai.skill.source.uri': 'file:///…/skills/alpha',
    'skill.source': 'directory',
    'skill.version': '1.10',
}
"""Identifies the skill on every span."""


async def test_the_span_of_the_tool_tells_which_skill_and_how_it_went(library: Path):
    trace = Trace()
    toolset = SkillsToolset(directories=[library], script_executor=LocalSkillScriptExecutor(timeout=6))
    await trace.run(toolset, LOAD, READ, GOOD, BAD, SLOW)
    told: list[tuple[str, str, dict[str, Any]]] = []
    for tool in trace.tools:
        attributes = ours(tool.attributes)
        assert attributes.items() >= ALPHA.items()
        own = {key: value for key, value in attributes.items() if key not in ALPHA}
        told.append((tool.name, tool.status.status_code.name, own))
    assert told == snapshot(
        [
            (
                'execute_tool load_skill alpha',
                'UNSET',
                {'skill.bytes': ..., 'skill.duration': ..., 'skill.repeated': False},
            ),
            (
                'execute_tool read_skill_resource alpha notes.md',
                'UNSET',
                {'gen_ai.skill.resource.name': 'notes.md', 'skill.bytes': 10, 'skill.duration': ...},
            ),
            (
                'execute_tool run_skill_script alpha scripts/good.py',
                'UNSET',
                {
                    'gen_ai.skill.resource.name': 'scripts/good.py',
                    'process.exit.code': 0,
                    'skill.bytes': 12,
                    'skill.duration': ...,
                    'skill.outcome': 'success',
                },
            ),
            (
                'execute_tool run_skill_script alpha scripts/bad.py',
                'ERROR',
                {
                    'error.type': '1',
                    'gen_ai.skill.resource.name': 'scripts/bad.py',
                    'process.exit.code': 1,
                    'skill.bytes': 12,
                    'skill.duration': ...,
                    'skill.outcome': 'failed',
                },
            ),
            (
                'execute_tool run_skill_script alpha scripts/slow.py',
                'ERROR',
                {
                    'error.type': 'timeout',
                    'gen_ai.skill.resource.name': 'scripts/slow.py',
                    'process.exit.code': 137,
                    'skill.bytes': 12,
                    'skill.duration': ...,
                    'skill.outcome': 'stopped',
                },
            ),
        ]
    )


@pytest.mark.parametrize('include_content', [False, True])
async def test_content_is_in_the_trace_only_on_request(
    library: Path, include_content: bool, caplog: pytest.LogCaptureFixture
):
    trace = Trace(include_content=include_content)
    toolset = SkillsToolset(directories=[library], script_executor=LocalSkillScriptExecutor(timeout=6))
    caplog.set_level(logging.DEBUG, 'pydantic_ai_skills')
    await trace.run(toolset, LOAD, READ, GOOD, BAD, SLOW)
    exported = ''.join(span.to_json() for span in trace.spans)
    assert {secret for secret in SECRETS if secret in exported} == (set(SECRETS) if include_content else set())
    load, *_, slow = trace.tools
    told = (load.attributes or {}).get('gen_ai.skill.description'), (slow.attributes or {}).get('skill.stdout')
    assert told == (('Does description-4711.', 'stdout-4711\n') if include_content else (None, None))
    assert not [secret for secret in SECRETS if secret in ''.join(str(vars(record)) for record in caplog.records)]


class Remote(SkillRegistry):
    """Skills of a directory, as if they had been fetched."""

    def __init__(self, library: Path) -> None:
        self._library = library

    def get_skills(self) -> list[Skill[Any]]:
        skills = list(SkillsDirectory(self._library).get_skills().values())
        for skill in skills:
            skill.source = SkillProvenance(kind='git', url='https://example.com/skills', commit='c0ffee', trusted=True)
        return skills


async def test_the_source_is_told_to_the_commit(library: Path):
    trace = Trace()
    alpha = Skill[Any]('alpha', 'Does things.', 'Do it.', metadata={'version': 2})
    await trace.run(SkillsToolset(registries=[Remote(library)]), LOAD)
    await trace.run(SkillsToolset(skills=[alpha]), LOAD)
    await trace.run(SkillsToolset(skills=[Skill[Any]('alpha', 'Does things.', 'Do it.')]), LOAD)
    told = [ours(tool.attributes) for tool in trace.tools]
    assert told == snapshot(
        [
            {
                'gen_ai.skill.name': 'alpha',
                'gen_ai.skill.source.uri': 'https://example.com/skills',
                'skill.bytes': ...,
                'skill.commit': 'c0ffee',
                'skill.duration': ...,
                'skill.repeated': False,
                'skill.source': 'git',
                'skill.version': '1.10',
            },
            {
                'gen_ai.skill.name': 'alpha',
                'skill.bytes': ...,
                'skill.duration': ...,
                'skill.repeated': False,
                'skill.source': 'python',
                'skill.version': '2',
            },
            {
                'gen_ai.skill.name': 'alpha',
                'skill.bytes': ...,
                'skill.duration': ...,
                'skill.repeated': False,
                'skill.source': 'python',
            },
        ]
    )


async def test_what_goes_wrong_has_a_type_and_no_text(library: Path):
    trace = Trace()
    missing: Call = ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'sesame'})
    unknown: Call = ('load_skill', {'skill_name': 'sesame'})
    await trace.run(SkillsToolset(directories=[library]), missing, unknown)
    read, load = trace.tools
    assert (read.name, read.status.status_code.name) == ('execute_tool read_skill_resource', 'ERROR')
    assert (load.name, load.status.status_code.name) == ('execute_tool load_skill', 'ERROR')
    assert ours(read.attributes)['gen_ai.skill.name'] == 'alpha'
    assert ours(read.attributes)['error.type'] == 'SkillResourceNotFoundError'
    assert 'sesame' not in read.to_json() + load.to_json()


async def test_a_resource_that_cannot_be_read_is_named():
    skill = Skill('alpha', 'Does it.', 'Do it.')

    @skill.resource
    def notes() -> str:
        raise ValueError('sesame')

    trace = Trace()
    await trace.run(SkillsToolset(skills=[skill]), READ)
    (tool,) = trace.tools
    assert (tool.name, tool.status.status_code.name) == ('execute_tool read_skill_resource alpha notes', 'ERROR')
    assert ours(tool.attributes) == {
        'gen_ai.skill.name': 'alpha',
        'gen_ai.skill.resource.name': 'notes',
        'skill.source': 'python',
        'error.type': 'SkillResourceLoadError',
    }
    assert 'sesame' not in tool.to_json()


async def test_a_tool_in_python_is_told_like_a_script(caplog: pytest.LogCaptureFixture):
    skill = Skill[Any]('alpha', 'Does it.', 'Do it.')

    @skill.tool_plain
    def double(n: int) -> int:
        if n > 9:
            raise ValueError('sesame')
        return 2 * n

    trace = Trace()
    toolset = SkillsToolset(skills=[skill])
    events: list[ScriptFinished] = []
    toolset.on(ScriptFinished)(lambda ctx, event: events.append(event))
    caplog.set_level(logging.INFO, 'pydantic_ai_skills')
    await trace.run(toolset, LOAD, ('alpha__double', {'n': 2}), ('alpha__double', {'n': 10}))
    told = [(tool.name, tool.status.status_code.name, ours(tool.attributes)) for tool in trace.tools[1:]]
    assert told == snapshot(
        [
            (
                'execute_tool alpha__double',
                'UNSET',
                {
                    'gen_ai.skill.name': 'alpha',
                    'gen_ai.skill.resource.name': 'double',
                    'process.exit.code': 0,
                    'skill.bytes': 1,
                    'skill.duration': ...,
                    'skill.outcome': 'success',
                    'skill.source': 'python',
                },
            ),
            (
                'execute_tool alpha__double',
                'ERROR',
                {
                    'error.type': '1',
                    'gen_ai.skill.name': 'alpha',
                    'gen_ai.skill.resource.name': 'double',
                    'process.exit.code': 1,
                    'skill.bytes': 55,
                    'skill.duration': ...,
                    'skill.outcome': 'failed',
                    'skill.source': 'python',
                },
            ),
        ]
    )
    assert [(event.script_name, event.outcome, event.result.stdout) for event in events] == [
        ('double', 'success', '4'),
        ('double', 'failed', ''),
    ]
    logged = [record.getMessage() for record in caplog.records if record.levelname == 'INFO']
    assert logged[1:] == snapshot(
        ["Ran script 'double' of skill 'alpha': success", "Ran script 'double' of skill 'alpha': failed"]
    )


async def test_without_instrumentation_no_span_of_the_application_is_touched(library: Path):
    trace = Trace()
    tracer = trace.provider.get_tracer('application')
    with tracer.start_as_current_span('request'):
        await converse(SkillsToolset(directories=[library]), LOAD, GOOD)
    (request,) = trace.spans
    assert dict(request.attributes or {}) == {}


async def test_each_thing_done_is_a_log_record_with_fields(library: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, 'pydantic_ai_skills')
    await converse(SkillsCapability(directories=[library]), LOAD, READ, BAD)
    told = [(record.levelname, record.getMessage(), ours(vars(record))) for record in caplog.records]
    assert told == snapshot(
        [
            (
                'INFO',
                "Loaded skill 'alpha'",
                {
                    'gen_ai.skill.name': 'alpha',
                    'gen_ai.skill.source.uri': 'file:///…/skills/alpha',
                    'skill.bytes': ...,
                    'skill.duration': ...,
                    'skill.repeated': False,
                    'skill.source': 'directory',
                    'skill.version': '1.10',
                },
            ),
            (
                'INFO',
                "Read resource 'notes.md' of skill 'alpha'",
                {
                    'gen_ai.skill.name': 'alpha',
                    'gen_ai.skill.resource.name': 'notes.md',
                    'gen_ai.skill.source.uri': 'file:///…/skills/alpha',
                    'skill.bytes': 10,
                    'skill.duration': ...,
                    'skill.source': 'directory',
                    'skill.version': '1.10',
                },
            ),
            (
                'INFO',
                "Ran script 'scripts/bad.py' of skill 'alpha': failed",
                {
                    'error.type': '1',
                    'gen_ai.skill.name': 'alpha',
                    'gen_ai.skill.resource.name': 'scripts/bad.py',
                    'gen_ai.skill.source.uri': 'file:///…/skills/alpha',
                    'process.exit.code': 1,
                    'skill.bytes': 12,
                    'skill.duration': ...,
                    'skill.outcome': 'failed',
                    'skill.source': 'directory',
                    'skill.version': '1.10',
                },
            ),
        ]
    )


async def test_the_record_of_a_problem_has_its_code_as_a_field(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / 'broken').mkdir()
    (tmp_path / 'broken/SKILL.md').write_text('no frontmatter')
    await SkillsToolset(directories=[tmp_path]).load()
    (record,) = caplog.records
    fields = {key: value for key, value in vars(record).items() if key.startswith('skill.')}
    assert fields.pop('skill.problem.path') == str(tmp_path / 'broken/SKILL.md')
    assert fields == snapshot({'skill.problem.code': 'no-frontmatter', 'skill.problem.severity': 'error'})
