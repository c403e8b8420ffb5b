"""What the examples use in place of a model, so that they need no key and no network.

It makes the calls it is given, one after another, and answers from what came back. Set MODEL to talk to a real one:
`MODEL=openai:gpt-5.2 python examples/quick_start.py`
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

Call = tuple[str, dict[str, Any]]
"""A tool and its arguments."""

UNKNOWN = 'No model is set, and the offline stand-in only knows the examples.'


def model(calls: Sequence[Call] | Callable[[str], Sequence[Call]], answer: str = '{}') -> Model | str:
    """The model that MODEL names, else one that makes these calls for each question.

    Args:
        calls: The calls, or a function that chooses them by what the user said.
        answer: What it says at last, with the last result in place of `{}`.
    """

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        question, results = '', list[str]()
        for part in (part for message in messages for part in message.parts):
            if isinstance(part, TextPart):
                question, results = '', []  # it has answered; what follows is another question
            elif isinstance(part, UserPromptPart):
                question = question or str(part.content)
            elif isinstance(part, ToolReturnPart):
                results.append(part.content if isinstance(part.content, str) else part.model_response_str())
        steps = calls(question) if callable(calls) else calls
        if len(results) < len(steps):
            return ModelResponse(parts=[ToolCallPart(*steps[len(results)])])
        result = re.sub('</?[a-z_]+>|It wrote files.*', '', results[-1]).strip() if results else UNKNOWN
        return ModelResponse(parts=[TextPart(answer.replace('{}', result))])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        for part in respond(messages, info).parts:
            if isinstance(part, ToolCallPart):
                yield {0: DeltaToolCall(part.tool_name, json.dumps(part.args), tool_call_id=part.tool_call_id)}
            elif isinstance(part, TextPart):
                for word in re.findall(r'\S+\s*', part.content):
                    yield word

    return os.environ.get('MODEL') or FunctionModel(respond, stream_function=stream, model_name='offline')
