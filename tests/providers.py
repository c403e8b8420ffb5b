"""Real provider models, offline: their requests are recorded and their answers scripted."""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2
from pydantic_ai import models
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tests.conversations import Call

with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # google-genai has escapes that Python warns of when it compiles them
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

PROVIDERS = ('anthropic', 'openai-responses', 'openai-chat', 'google')


@contextmanager
def recording(provider: str, calls: Sequence[Call]) -> Generator[tuple[Model, list[dict[str, Any]]]]:
    """A model that makes these calls in turn and then answers `done`, with the list of its request bodies."""
    bodies: list[dict[str, Any]] = []
    answer = {'anthropic': _anthropic, 'openai-responses': _responses, 'openai-chat': _chat, 'google': _google}[
        provider
    ]

    def handle(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        step = len(bodies) - 1
        return answer(step, calls[step] if step < len(calls) else None)

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(handle), timeout=60)
    with models.override_allow_model_requests(True):
        if provider == 'anthropic':
            yield AnthropicModel('claude-opus-4-6', provider=AnthropicProvider(api_key='x', http_client=client)), bodies
        elif provider == 'google':
            yield GoogleModel('gemini-3-pro-preview', provider=GoogleProvider(api_key='x', http_client=client)), bodies
        else:
            kind = OpenAIResponsesModel if provider == 'openai-responses' else OpenAIChatModel
            yield kind('gpt-5.2', provider=OpenAIProvider(api_key='x', http_client=client)), bodies


def _anthropic(step: int, call: Call | None) -> httpx2.Response:
    if call is None:
        block: dict[str, Any] = {'type': 'text', 'text': ''}
        delta: dict[str, Any] = {'type': 'text_delta', 'text': 'done'}
    else:
        block = {'type': 'tool_use', 'id': f'call-{step}', 'name': call[0], 'input': {}}
        delta = {'type': 'input_json_delta', 'partial_json': json.dumps(call[1])}
    usage = {'input_tokens': 1, 'output_tokens': 1}
    message: dict[str, Any] = {
        'id': 'm',
        'type': 'message',
        'role': 'assistant',
        'model': 'claude',
        'content': [],
        'usage': usage,
    }
    stop = {'stop_reason': 'end_turn' if call is None else 'tool_use', 'stop_sequence': None}
    events: list[dict[str, Any]] = [
        {'type': 'message_start', 'message': {**message, 'stop_reason': None, 'stop_sequence': None}},
        {'type': 'content_block_start', 'index': 0, 'content_block': block},
        {'type': 'content_block_delta', 'index': 0, 'delta': delta},
        {'type': 'content_block_stop', 'index': 0},
        {'type': 'message_delta', 'delta': stop, 'usage': usage},
        {'type': 'message_stop'},
    ]
    text = ''.join(f'event: {event["type"]}\ndata: {json.dumps(event)}\n\n' for event in events)
    return httpx2.Response(200, content=text, headers={'content-type': 'text/event-stream'})


def _responses(step: int, call: Call | None) -> httpx2.Response:
    if call is None:
        content: Any = [{'type': 'output_text', 'text': 'done', 'annotations': []}]
        item: dict[str, Any] = {'type': 'message', 'id': 'm', 'role': 'assistant', 'content': content}
    else:
        arguments = json.dumps(call[1])
        item = {'type': 'function_call', 'id': f'f{step}', 'call_id': f'call-{step}', 'name': call[0]}
        item['arguments'] = arguments
    response = {'id': 'r', 'object': 'response', 'created_at': 1, 'model': 'gpt', 'status': 'completed'}
    rest: dict[str, Any] = {'parallel_tool_calls': True, 'tool_choice': 'auto', 'tools': [], 'usage': None}
    return httpx2.Response(200, json={**response, **rest, 'output': [{**item, 'status': 'completed'}]})


def _google(step: int, call: Call | None) -> httpx2.Response:
    part: dict[str, Any] = {'text': 'done'}
    if call is not None:
        part = {'functionCall': {'id': f'call-{step}', 'name': call[0], 'args': call[1]}, 'thoughtSignature': 'eA=='}
    candidate = {'content': {'role': 'model', 'parts': [part]}, 'finishReason': 'STOP'}
    body: dict[str, Any] = {'candidates': [candidate], 'usageMetadata': {}, 'modelVersion': 'gemini', 'responseId': 'g'}
    return httpx2.Response(200, json=body)


def _chat(step: int, call: Call | None) -> httpx2.Response:
    message: dict[str, Any] = {'role': 'assistant', 'content': 'done' if call is None else None}
    if call is not None:
        function = {'name': call[0], 'arguments': json.dumps(call[1])}
        message['tool_calls'] = [{'id': f'call-{step}', 'type': 'function', 'function': function}]
    choice = {'index': 0, 'message': message, 'finish_reason': 'stop' if call is None else 'tool_calls'}
    body = {'id': 'c', 'object': 'chat.completion', 'created': 1, 'model': 'gpt', 'choices': [choice]}
    return httpx2.Response(200, json=body)
