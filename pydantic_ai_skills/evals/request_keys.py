"""Identifies a request to a model by its content, so that a recording finds its answer again on any machine.

Times, ids and folders differ from run to run, so they are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from pydantic_ai.messages import BaseToolCallPart, BaseToolReturnPart, ModelMessage, ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_core import to_jsonable_python

from .folder_names import FolderNames

_CHANGING = re.compile(
    r'(?P<time>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?)|'
    r'(?P<id>\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b)'
)


def request_key(messages: Sequence[ModelMessage], parameters: ModelRequestParameters, folders: FolderNames) -> str:
    """A short text that is the same for the same request.

    Args:
        messages: The conversation so far.
        parameters: The tools and instructions.
        folders: The folders of this machine that the conversation may name.
    """
    parts = [part for message in messages for part in _parts(message)]
    given = [part.content for part in parameters.instruction_parts or ()]
    tools = [[tool.name, tool.description] for tool in (*parameters.function_tools, *parameters.output_tools)]
    content = folders.hide([parts, given, sorted(tools, key=str)])
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    text = _CHANGING.sub(lambda found: f'<{found.lastgroup}>', text)
    return sha256(text.encode('utf-8', 'replace')).hexdigest()[:24]


def _parts(message: ModelMessage) -> Iterator[Any]:
    """The parts of a message that the model is sent, without ids and times."""
    if isinstance(message, ModelRequest) and message.instructions:
        yield ['instructions', message.instructions]
    for part in message.parts:
        if isinstance(part, BaseToolCallPart):
            yield [part.part_kind, part.tool_name, to_jsonable_python(part.args_as_dict())]
        elif isinstance(part, BaseToolReturnPart):
            yield [part.part_kind, part.tool_name, part.model_response_str()]
        else:
            yield [part.part_kind, _without_ids(to_jsonable_python(getattr(part, 'content', None)))]


def _without_ids(content: Any) -> Any:
    """The content of a prompt, without what the application has noted beside it."""
    if isinstance(content, list):
        return [_without_ids(each) for each in content]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(content, dict):
        return {key: value for key, value in content.items() if key not in ('metadata', 'timestamp', 'identifier')}  # pyright: ignore[reportUnknownVariableType]
    return content
