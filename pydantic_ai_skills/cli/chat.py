"""`chat`: talk to an agent that has the skills, and see what it does with them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelRequest, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model, infer_model
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from .offline import HELP, offline_model
from .options import DONE, FAILED, DirectoryOption, JsonOption, PackagesOption, StandardOption, command, open_toolset
from .output import Failure, Output
from .run import ask, told

__all__ = ('chat',)

SHOWN_LINES = 20
"""A longer result of a tool is cut here on the terminal; the model gets all of it."""


@command
def chat(
    message: Annotated[
        list[str] | None, typer.Argument(metavar='MESSAGE', help='What to say. Without it, you are asked.')
    ] = None,
    model: Annotated[
        str | None,
        typer.Option('--model', '-m', metavar='MODEL', help='A model, such as openai:gpt-5.2; without it, none.'),
    ] = None,
    yes: Annotated[bool, typer.Option('--yes', '-y', help='Approve scripts, if the policy asks.')] = False,
    directory: DirectoryOption = None,
    standard: StandardOption = False,
    packages: PackagesOption = False,
    as_json: JsonOption = False,
) -> int:
    """Talk to an agent that has the skills.

    What it calls, and what it gets, is shown. Without --model nothing is sent anywhere: a stand-in that cannot
    think uses the tools as a model would. Scripts that were fetched run in the sandbox.
    """
    out = Output(as_json=as_json)
    toolset = open_toolset(directory, standard=standard, packages=packages)
    agent = Agent(_model(model), toolsets=[toolset], output_type=[str, DeferredToolRequests], retries=2)
    # One event loop for all that is said: the connections of a model belong to it. People are asked outside of it,
    # where an interrupt ends the waiting.
    with asyncio.Runner() as runner:
        conversation = Conversation(agent, out, runner, yes=yes)
        if message:
            return conversation.say(' '.join(message))
        if not as_json:
            out.note(HELP if model is None else 'Say something. An empty line ends it.')
        return conversation.go_on()


def _model(name: str | None) -> Model:
    try:
        return infer_model(name) if name else offline_model()
    except (UserError, ImportError, ValueError) as error:
        raise Failure(str(error)) from None


class Conversation:
    """What was said so far."""

    def __init__(self, agent: Agent[Any, Any], out: Output, runner: asyncio.Runner, *, yes: bool) -> None:
        self._agent = agent
        self._runner = runner
        self._out = out
        self._yes = yes
        self._messages: list[ModelMessage] = []

    def go_on(self) -> int:
        """Talk until there is nothing more to say."""
        status = DONE
        while text := self._listen():
            status = self.say(text)
        return status

    def _listen(self) -> str:
        if sys.stdin.isatty() and not self._out.as_json:
            self._out.errors.print('> ', end='', style='bold blue')
        return sys.stdin.readline().strip()

    def say(self, text: str | None) -> int:
        """Say something, and show what comes of it."""
        results: DeferredToolResults | None = None
        while True:
            try:
                output = self._runner.run(self._run(text, results))
            except BrokenPipeError:
                raise  # nobody reads on
            except Exception as error:  # noqa: BLE001 - whatever the library of a provider raises
                self._out.fail(f'{type(error).__name__}: {error}')
                return FAILED
            if not isinstance(output, DeferredToolRequests):
                return DONE
            results = ask(self._out, output, self._yes)
            text = None

    async def _run(self, text: str | None, results: DeferredToolResults | None) -> Any:
        shown = len(self._messages)
        async with self._agent.iter(text, message_history=self._messages, deferred_tool_results=results) as run:
            async for _ in run:
                for message in run.all_messages()[shown:]:
                    self._show(message)
                    shown += 1
        assert run.result is not None
        self._messages = run.result.all_messages()
        return run.result.output

    def _show(self, message: ModelMessage) -> None:
        for event in _events(message):
            if self._out.as_json:
                self._out.data(event, indent=None)
            else:
                self._write(event)

    def _write(self, event: dict[str, Any]) -> None:
        out = self._out
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
    """What there is to show about a message."""
    for part in message.parts:
        if isinstance(part, ToolReturnPart) and isinstance(message, ModelRequest):
            yield {
                'kind': 'result',
                'tool': part.tool_name,
                'outcome': part.outcome,
                'result': _readable(told(part)),
            }
        elif isinstance(part, ToolCallPart):
            yield {'kind': 'call', 'tool': part.tool_name, 'args': part.args_as_dict()}
        elif isinstance(part, TextPart):
            yield {'kind': 'text', 'text': part.content}


def _readable(text: str) -> str:
    """JSON with a line for each item; other text as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
