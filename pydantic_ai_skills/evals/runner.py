"""Runs a case on an agent, and works out from the events of its skills what it did."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import anyio.to_thread
from pydantic_ai import capture_run_messages
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import BaseToolCallPart, ModelMessage, ModelResponse
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage, UsageLimits
from pydantic_core import to_json

from pydantic_ai_skills.execution.work_dir import MAX_CONVERSATIONS, WorkDirs
from pydantic_ai_skills.execution.work_files import write_work_file
from pydantic_ai_skills.toolset.events import ScriptFinished, SkillEvent, SkillLoaded
from pydantic_ai_skills.toolset.library import HIDDEN

from .cases import FileSource, FolderFile
from .folder_names import FolderNames
from .recording import RUN_NOW, RunNow, told
from .run_cost import RunCost
from .runs import CaseRun, PlannedRun
from .subject import Subject, TriedModels

MAX_OUTPUT_CHARS = 100_000
"""How much of an answer is kept."""


class Seen:
    """Collects the events of a run."""

    def __init__(self) -> None:
        self._events: list[SkillEvent] = []

    def add(self, event: SkillEvent) -> None:
        """Add an event."""
        self._events.append(event)

    def loaded(self, messages: Sequence[ModelMessage]) -> tuple[str, ...]:
        """The skills that were loaded, in the order in which the model asked for them."""
        events = self._in_order(messages)
        return tuple(dict.fromkeys(event.skill_name for event in events if isinstance(event, SkillLoaded)))

    def scripts(self, messages: Sequence[ModelMessage]) -> tuple[ScriptFinished, ...]:
        """The scripts that ran, in the order in which the model asked for them."""
        return tuple(event for event in self._in_order(messages) if isinstance(event, ScriptFinished))

    def _in_order(self, messages: Sequence[ModelMessage]) -> list[SkillEvent]:
        """The events in the order of their calls: the calls of one response run at once and end in any order."""
        parts = (part for message in messages for part in message.parts)
        calls = {part.tool_call_id: number for number, part in enumerate(parts) if isinstance(part, BaseToolCallPart)}
        return sorted(self._events, key=lambda event: calls.get(event.tool_call_id or '', sys.maxsize))


class Runner:
    """Runs cases on one agent. Each run has a conversation and a work folder of its own."""

    def __init__(self, subject: Subject, models: TriedModels, *, deps: Any, limits: Mapping[str, int]) -> None:
        """Remember what is tried. `limits` holds the most requests of a `task` and a `trigger`, and `concurrency`."""
        self._agent = subject.agent
        self._toolsets = subject.toolsets
        self._models = models
        self._deps = deps
        self._limits = limits
        self._seen: dict[str, Seen] = {}
        self._prefix = f'eval-{uuid4().hex}-'
        self._work_dirs = WorkDirs(most=max(MAX_CONVERSATIONS, limits['concurrency'] + 1))

    @contextmanager
    def watching(self) -> Generator[None]:
        """Listen to the events of the toolsets, and give each run a private work folder, until the context ends."""
        before = [toolset.work_dirs for toolset in self._toolsets]
        handler = SkillEvent, self._hear
        for toolset in self._toolsets:
            toolset.actions.recorder.handlers.functions.append(handler)
            toolset.work_dirs = toolset.actions.work_dirs = self._work_dirs
        try:
            yield
        finally:
            for toolset, work_dirs in zip(self._toolsets, before, strict=True):
                toolset.actions.recorder.handlers.functions.remove(handler)
                toolset.work_dirs = toolset.actions.work_dirs = work_dirs

    def _hear(self, ctx: RunContext[Any], event: SkillEvent) -> None:
        seen = self._seen.get(ctx.conversation_id or '')
        if seen is not None:
            seen.add(event)

    async def close(self, run: CaseRun) -> None:
        """Remove the work folder of a run, once it is checked."""
        await anyio.to_thread.run_sync(self._work_dirs.close, self._conversation(run.label))

    def _conversation(self, label: str) -> str:
        return f'{self._prefix}{label}'

    async def run(self, planned: PlannedRun, number: int) -> CaseRun:
        """Run a case once. An error is part of the result."""
        label = planned.label(number)
        conversation = self._conversation(label)
        seen = self._seen[conversation] = Seen()
        work_dir = await anyio.to_thread.run_sync(lambda: self._work_dirs.now(conversation).path)
        assert work_dir is not None  # a private folder is on this machine
        folders = self._folders(work_dir)
        RUN_NOW.set(RunNow(label=label, folders=folders))
        HIDDEN.set(self._hidden(planned))
        usage, started, error = RunUsage(), perf_counter(), None
        output = ''
        with capture_run_messages() as messages:
            try:
                await anyio.to_thread.run_sync(_put, work_dir, planned.case.files)
                output = await self._answer(planned, conversation, usage)
            except UsageLimitExceeded as reached:
                # By then a query has loaded what it needs. A task should have come to an end.
                error = None if planned.kind == 'trigger' else told(reached)
            except Exception as failure:  # noqa: BLE001 - a run that fails is a result, and the others go on
                error = told(failure)
        del self._seen[conversation]
        end = await self._end(label, messages, perf_counter() - started, error and _as_text(folders.hide(error)))
        return CaseRun(
            planned=planned,
            number=number,
            output=_as_text(output[:MAX_OUTPUT_CHARS]),
            loaded=seen.loaded(messages),
            scripts=seen.scripts(messages),
            work_dir=work_dir,
            folders=folders,
            messages=messages,
            error=end['error'],
            used=RunCost(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                requests=usage.requests,
                tool_calls=usage.tool_calls,
                seconds=end['seconds'],
                cost=end['cost'],
            ),
        )

    async def _answer(self, planned: PlannedRun, conversation: str, usage: RunUsage) -> str:
        limit = self._limits['trigger' if planned.kind == 'trigger' else 'task']
        result = await self._agent.run(
            planned.case.prompt,
            model=self._models.model,
            deps=self._deps,
            conversation_id=conversation,
            usage=usage,
            usage_limits=UsageLimits(request_limit=limit),
        )
        return result.output if isinstance(result.output, str) else to_json(result.output, fallback=str).decode()

    async def _end(self, label: str, messages: Sequence[ModelMessage], seconds: float, error: str | None) -> Any:
        """How a run ended: as it did when it was recorded, if this is a replay."""
        ends = self._models.recording.ends
        if self._models.is_replay:
            return ends.get(label) or {'seconds': 0.0, 'cost': None, 'error': error}
        cost = await anyio.to_thread.run_sync(price_of, messages)
        end = {'seconds': round(seconds, 6), 'cost': cost, 'error': error}
        ends[label] = end
        return end

    def _hidden(self, planned: PlannedRun) -> frozenset[str]:
        """The skills that a run without its skill must not see: that one, or all in a case of the whole library."""
        if planned.kind != 'without_skill':
            return frozenset()
        if planned.case.skill is not None:
            return frozenset((planned.case.skill,))
        return frozenset(name for toolset in self._toolsets for name in toolset.skills)

    def _folders(self, work_dir: Path) -> FolderNames:
        skills = (skill for toolset in self._toolsets for skill in toolset.skills.values())
        folders = {skill.path: f'skill {skill.name}' for skill in skills if skill.path is not None}
        return FolderNames({**folders, str(work_dir): 'work'})


def _as_text(text: str) -> str:
    """The text without lone surrogates, which no file can hold."""
    return text.encode('utf-8', 'replace').decode()


def _put(folder: Path, files: Mapping[str, FileSource]) -> None:
    for name, source in files.items():
        if isinstance(source, Path):
            with source.open('rb') as file:
                write_work_file(folder, name, file)
        else:
            data = source.read() if isinstance(source, FolderFile) else source
            write_work_file(folder, name, data.encode() if isinstance(data, str) else data)


def price_of(messages: Sequence[ModelMessage]) -> float | None:
    """What the answers in these messages cost in US dollars; `None` if the price of one is not known."""
    answers = [message for message in messages if isinstance(message, ModelResponse)]
    try:
        return float(sum(answer.cost().total_price for answer in answers))
    except (AssertionError, LookupError, ValueError):
        return None
