"""What a conversation has in it: which skills were loaded, as far as the model can still read them.

All is told by the messages and nothing is remembered beside them, so a saved conversation that is resumed has its
skills back, another one does not have them, and what history processing takes away is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from pydantic_ai.messages import (
    CapabilityLoadDeltaPart,
    LoadCapabilityReturnPart,
    ModelMessage,
    TextContent,
    ToolCallPart,
    ToolKind,
    ToolReturnPart,
    UserPromptPart,
    post_compaction_window,
)
from pydantic_ai.tools import RunContext

from .durable import carried
from .prompt import is_skill_text

__all__ = (
    'INVOKED',
    'LOAD_KIND',
    'ToolsetHistory',
    'invoked_skills',
    'loaded_capabilities',
    'messages_of',
)

DEFAULT_TOOLSET_ID = 'skills'

LOAD_KIND = 'capability-load'
"""The kind of pydantic-ai's tool that loads a capability, whatever its name."""

INVOKED = 'pydantic_ai_skills.invoked'
"""What marks the text of a skill that a person loaded, in the metadata of the prompt."""


class ToolsetHistory:
    """What the messages of a run tell about the skills of one toolset."""

    def __init__(self, toolset_id: str, tools: Iterable[str]) -> None:
        """Name what the toolset's own tools are, whatever they are renamed to; pydantic-ai notes it in the messages."""
        self.toolset_id = toolset_id
        suffix = '' if toolset_id == DEFAULT_TOOLSET_ID else f'.{toolset_id}'
        self.kinds = {tool: ToolKind[Any, Any]('pydantic_ai_skills', f'{tool}{suffix}') for tool in tools}

    def loaded(self, messages: Sequence[ModelMessage]) -> list[str]:
        """The names of the skills that these messages hold: loaded by `load_skill` or invoked by a person.

        They come in the order of their first load.
        """
        return list(dict.fromkeys(name for name, _ in self._loads(messages)))

    def was_sent(self, text: str, ctx: RunContext[Any]) -> bool:
        """Whether the model has this very text in its conversation already, given by this toolset's `load_skill`.

        Where another toolset gave it, or where the messages do not tell who did, the skill does not count as loaded.
        """
        return any(text == sent for _, sent in self._loads(messages_of(ctx) or ()))

    def tool_names(self, ctx: RunContext[Any]) -> dict[str, str]:
        """What the model calls the toolset's own tools, by the names they have here."""
        own = {kind.id: tool for tool, kind in self.kinds.items()}
        seen = {tool.tool_kind: name for name, tool in ctx.tools.items() if tool.tool_kind in own}
        return {tool: seen.get(kind, tool) for kind, tool in own.items()}

    def _loads(self, messages: Sequence[ModelMessage]) -> Iterator[tuple[str, object]]:
        """The names of the skills, each with the result of `load_skill` if that was what loaded it."""
        kind = self.kinds['load_skill'].id
        asked: dict[str, object] = {}
        for message in messages:
            for part in message.parts:
                if isinstance(part, ToolCallPart) and part.tool_kind == kind:
                    asked[part.tool_call_id] = part.args_as_dict().get('skill_name')
                elif isinstance(part, ToolReturnPart) and part.tool_kind == kind and _has_skill(part):
                    name = asked.get(part.tool_call_id)
                    if isinstance(name, str):
                        yield name, part.content
                elif isinstance(part, UserPromptPart):
                    yield from ((name, None) for name in _invoked(part, self.toolset_id))


def messages_of(ctx: RunContext[Any]) -> Sequence[ModelMessage] | None:
    """What the model can still read; `None` where the messages did not come along, as in a step of a durable engine."""
    messages: Sequence[ModelMessage] | None = carried(ctx, 'messages', None)
    return None if messages is None else post_compaction_window(messages)


def loaded_capabilities(messages: Sequence[ModelMessage]) -> list[str]:
    """The ids of the deferred capabilities that were loaded in these messages."""
    asked: dict[str, object] = {}
    loaded: dict[object, None] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart) and part.tool_kind == LOAD_KIND:
                asked[part.tool_call_id] = part.args_as_dict().get('id')
            elif isinstance(part, LoadCapabilityReturnPart) and part.outcome == 'success':
                loaded[asked.get(part.tool_call_id)] = None
            elif isinstance(part, CapabilityLoadDeltaPart):
                loaded |= dict.fromkeys(part.loaded)
    return [id for id in loaded if isinstance(id, str)]


def invoked_skills(messages: Sequence[ModelMessage], toolset_id: str) -> set[str]:
    """The names of the skills of a toolset that a person brought into the conversation."""
    parts = (part for message in messages for part in message.parts if isinstance(part, UserPromptPart))
    return {name for part in parts for name in _invoked(part, toolset_id)}


def _invoked(part: UserPromptPart, toolset_id: str) -> Iterator[str]:
    if isinstance(part.content, str):
        return
    for item in part.content:
        metadata: Any = item.metadata if isinstance(item, TextContent) else None
        mark: Any = metadata.get(INVOKED) if isinstance(metadata, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if isinstance(mark, dict) and cast(dict[str, Any], mark).get('toolset') == toolset_id:
            yield str(cast(dict[str, Any], mark).get('skill'))


def _has_skill(part: ToolReturnPart) -> bool:
    """Whether the text of a skill is still in it, whole: history processing may have cut it."""
    return isinstance(part.content, str) and is_skill_text(part.content)
