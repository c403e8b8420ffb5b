"""Whole conversations with a scripted model that records everything it receives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import AbstractToolset
from pydantic_core import to_jsonable_python

Call = tuple[str, Any]
"""A tool and its arguments, as an object or as the JSON text a provider may send."""

UNSEEN = {
    'conversation_id',
    'instructions',
    'metadata',
    'model_id',
    'model_name',
    'provider_details',
    'run_id',
    'timestamp',
    'tool_call_id',
    'tool_kind',
    'usage',
}
"""Fields that differ from run to run or are not sent, and the instructions, which are recorded on their own."""


@dataclass(kw_only=True)
class ScriptedModel:
    """Makes the given tool calls one after another, then answers `done`."""

    calls: Sequence[Call]
    """The tool calls, one per request."""

    call_id: str = 'call'
    """The prefix of its call ids."""

    instructions: list[str | None] = field(default_factory=list[str | None])
    """The instructions of each request."""

    tools: list[list[str]] = field(default_factory=list[list[str]])
    """The names of the tools of each request."""

    definitions: dict[str, Any] = field(default_factory=dict[str, Any])
    """The tools of the last request as the provider receives them."""

    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    """The messages of the last request."""

    saved: list[ModelMessage] = field(default_factory=list[ModelMessage])
    """The whole conversation after `converse`, saved and loaded again."""

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self._respond, model_name='scripted')

    @property
    def streaming_model(self) -> FunctionModel:
        """The same model for streamed runs."""
        return FunctionModel(self._respond, stream_function=self._stream, model_name='scripted')

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        for part in self._respond(messages, info).parts:
            if isinstance(part, ToolCallPart):
                args, call_id = part.args_as_json_str(), part.tool_call_id
                yield {0: DeltaToolCall(name=part.tool_name, json_args=args, tool_call_id=call_id)}
            elif isinstance(part, TextPart):
                yield part.content

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.instructions.append(info.instructions)
        self.tools.append([tool.name for tool in info.function_tools])
        self.definitions = {
            tool.name: {'description': tool.description, 'parameters': tool.parameters_json_schema}
            for tool in info.function_tools
        }
        self.messages = messages
        step = len(self.instructions) - 1
        if step < len(self.calls):
            name, args = self.calls[step]
            return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f'{self.call_id}-{step + 1}')])
        return ModelResponse(parts=[TextPart('done')])

    @property
    def received(self) -> list[dict[str, Any]]:
        """Every message of the last request, without the fields that differ from run to run."""
        return [_stable(message) for message in to_jsonable_python(self.messages)]

    @property
    def results(self) -> list[tuple[str, str, Any]]:
        """Tool, outcome and content of each tool result so far."""
        return [
            (part['tool_name'], part['outcome'], part['content'])
            for message in to_jsonable_python(self.messages)
            for part in message['parts']
            if part['part_kind'] == 'tool-return'
        ]


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {
            key: _stable(field) for key, field in fields.items() if key not in UNSEEN and field not in (None, {}, [])
        }
    return [_stable(item) for item in cast(list[Any], value)] if isinstance(value, list) else value


async def converse(
    skills: AbstractToolset[Any] | AbstractCapability[Any],
    *calls: Call,
    prompt: str = 'Go.',
    deps: Any = None,
    history: Sequence[ModelMessage] = (),
    **options: Any,
) -> ScriptedModel:
    """Run an agent with these skills whose model makes these calls; return the model with all it received.

    The options are those of `Agent.run`.
    """
    script = ScriptedModel(calls=calls)
    brought: Any = {'capabilities' if isinstance(skills, AbstractCapability) else 'toolsets': [skills]}
    result = await Agent[Any, str](script.model, **brought).run(prompt, deps=deps, message_history=history, **options)
    assert result.output == 'done'
    script.saved = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    return script
