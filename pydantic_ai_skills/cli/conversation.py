"""A conversation at the terminal, for `chat`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model, infer_model
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

import pydantic_ai_skills as api

from .command import INTERRUPTED, OPERATION_FAILED, SUCCESS
from .event_loop import event_loop
from .formats import result_text
from .offline import HELP, offline_model
from .output import Failure, Output
from .run_files import CONVERSATION, RunFiles, show_files
from .script_call import ask

LEAVING = 'Leave with: exit, an empty line or Ctrl-D. Ctrl-C stops what is running.'

SHOWN_LINES = 20
"""How many lines of a tool's result the terminal shows; the model gets all of them."""


def model_named(name: str | None) -> Model:
    """The model of this name; without one, a stand-in that needs no network."""
    try:
        return infer_model(name) if name else offline_model()
    except (UserError, ImportError, ValueError) as error:
        raise Failure(str(error)) from None


@dataclass
class Conversation:
    """Sends messages to the agent and shows what happens."""

    agent: Agent[Any, Any]
    toolset: api.SkillsToolset[Any]
    out: Output
    runner: asyncio.Runner
    yes: bool
    """Whether to approve every call."""

    output: Path | None
    """Where to write the files that scripts make, if not to the current folder."""

    write: bool
    """Whether scripts may replace files, and make hidden ones."""

    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    given: set[str] = field(default_factory=set[str])
    """The files that were copied for the scripts."""

    @classmethod
    @contextmanager
    def open(cls, model: Model, toolset: api.SkillsToolset[Any], out: Output, **options: Any) -> Generator[Self]:
        """A conversation of an agent that has these skills."""
        agent = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests], retries=2)
        # One event loop for the whole conversation: a model's connections belong to it. Input is read outside of it,
        # where an interrupt ends the waiting.
        with toolset, event_loop() as runner:
            yield cls(agent, toolset, out, runner, **options)

    def introduce(self, *, offline: bool) -> None:
        """Say what can be typed."""
        if not self.out.as_json:
            self.out.note(HELP if offline else 'Type a message.')
            self.out.note(LEAVING)

    def go_on(self) -> int:
        """Talk until the person leaves."""
        status = SUCCESS
        while (text := self._listen()) and text not in ('exit', 'quit'):
            try:
                status = self.say(text)
            except KeyboardInterrupt:
                status = INTERRUPTED
                self.out.note(('stopped: ', 'yellow'), 'the conversation continues without this message.')
        return status

    def _listen(self) -> str:
        if sys.stdin.isatty() and not self.out.as_json:
            self.out.errors.print('> ', end='', style='bold blue')
        return sys.stdin.readline().strip()

    def say(self, text: str) -> int:
        """Send a message with the files that it names, and show what happens."""
        files = RunFiles(here=Path.cwd())
        files.choose_mentioned(text, known=self.given)
        files.bring_in(self.toolset)
        self.given |= set(files.copied)
        status = self._answer(text)
        made = files.bring_out(self.toolset, self.output or files.here, write=self.write)
        if not self.out.as_json:
            show_files(self.out, files, made, self.output)
        return status

    def _answer(self, text: str | None) -> int:
        results: DeferredToolResults | None = None
        while True:
            try:
                output = self.runner.run(self._run(text, results))
            except BrokenPipeError:
                raise  # nobody reads any more
            except Exception as error:  # noqa: BLE001 - whatever the library of a provider raises
                self.out.fail(f'{type(error).__name__}: {error}')
                return OPERATION_FAILED
            if not isinstance(output, DeferredToolRequests):
                return SUCCESS
            results = ask(self.out, output, self.yes)
            text = None

    async def _run(self, text: str | None, results: DeferredToolResults | None) -> Any:
        shown = len(self.messages)
        async with self.agent.iter(
            text, message_history=self.messages, deferred_tool_results=results, conversation_id=CONVERSATION
        ) as run:
            async for _ in run:
                for message in run.all_messages()[shown:]:
                    self._show(message)
                    shown += 1
        assert run.result is not None
        self.messages = run.result.all_messages()
        return run.result.output

    def _show(self, message: ModelMessage) -> None:
        for event in _events(message):
            if self.out.as_json:
                self.out.data(event, indent=None)
            else:
                self._write(event)

    def _write(self, event: dict[str, Any]) -> None:
        out = self.out
        if event['kind'] == 'text':
            out.markdown(event['text'])
        elif event['kind'] == 'call':
            args = ', '.join(f'{name}={value!r}' for name, value in event['args'].items())
            out.line(('→ ', 'yellow'), f'{event["tool"]}({args})')
        else:
            lines = event['result'].strip().splitlines()
            cut = [f'… {len(lines) - SHOWN_LINES} more lines'] if len(lines) > SHOWN_LINES else []
            out.block('\n'.join(f'  {line}' for line in (*lines[:SHOWN_LINES], *cut)), 'dim')


def _events(message: ModelMessage) -> Iterator[dict[str, Any]]:
    """What to show of a message."""
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            yield {
                'kind': 'result',
                'tool': part.tool_name,
                'outcome': part.outcome,
                'result': _readable(result_text(part)),
            }
        elif isinstance(part, ToolCallPart):
            yield {'kind': 'call', 'tool': part.tool_name, 'args': part.args_as_dict()}
        elif isinstance(part, TextPart):
            yield {'kind': 'text', 'text': part.content}


def _readable(text: str) -> str:
    """JSON with one item per line; other text unchanged."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
