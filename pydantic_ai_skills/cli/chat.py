"""`chat`: talk to an agent that has the skills."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model, infer_model
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from typer import Argument, Option

from .command import OPERATION_FAILED, SUCCESS, command
from .offline import HELP, offline_model
from .output import Failure, Output
from .run import ask, result_text
from .skills import ChosenSkills

SHOWN_LINES = 20
"""How many lines of a tool's result the terminal shows; the model gets all of them."""


@command
def chat(
    out: Output,
    message: Annotated[
        list[str] | None, Argument(metavar='MESSAGE', help='What to say. Without it, you are prompted.')
    ] = None,
    model: Annotated[
        str | None, Option('--model', '-m', metavar='MODEL', help='A model, such as openai:gpt-5.2.')
    ] = None,
    yes: Annotated[bool, Option('--yes', '-y', help='Approve scripts, if the policy asks.')] = False,
    *,
    chosen: ChosenSkills,
) -> int:
    """Talk to an agent that has the skills.

    It shows each call and its result. Without --model nothing is sent anywhere: a simple offline stand-in answers.
    Fetched scripts run in the sandbox.
    """
    agent = Agent(
        named_model(model) if model else offline_model(),
        toolsets=[chosen.open()],
        output_type=[str, DeferredToolRequests],
        retries=2,
    )
    # One event loop for the whole conversation: a model's connections belong to it. Input is read outside of it, where
    # an interrupt ends the waiting.
    with asyncio.Runner() as runner:
        conversation = Conversation(agent, out, runner, yes)
        if message:
            return conversation.say(' '.join(message))
        if not out.as_json:
            out.note(HELP if model is None else 'Type a message. An empty line ends the conversation.')
        return conversation.go_on()


def named_model(name: str) -> Model:
    """The model of a name."""
    try:
        return infer_model(name)
    except (UserError, ImportError, ValueError) as error:
        raise Failure(str(error)) from None


@dataclass
class Conversation:
    """Sends messages to the agent and shows what happens."""

    agent: Agent[Any, Any]
    out: Output
    runner: asyncio.Runner
    yes: bool
    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])

    def go_on(self) -> int:
        """Talk until an empty line."""
        status = SUCCESS
        while text := self._listen():
            status = self.say(text)
        return status

    def _listen(self) -> str:
        if sys.stdin.isatty() and not self.out.as_json:
            self.out.errors.print('> ', end='', style='bold blue')
        return sys.stdin.readline().strip()

    def say(self, text: str | None) -> int:
        """Send a message and show what happens."""
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
        async with self.agent.iter(text, message_history=self.messages, deferred_tool_results=results) as run:
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
    """JSON with one item a line; other text unchanged."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
