"""Loaded skills that history processing has taken out of a conversation: so that the model can load them again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from pydantic_ai.messages import ModelMessage, UserPromptPart

__all__ = ('LostSkills', 'is_told', 'tell')

MAX_CONVERSATIONS = 1_000
"""For how many conversations it is remembered what was loaded."""


class LostSkills:
    """Remembers which skills each conversation had, since messages that were taken out of it cannot tell."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, dict[str, None]] = OrderedDict()

    def look(self, conversation: str, loaded: Iterable[str]) -> list[str]:
        """The names of the skills that were loaded at an earlier look and are not now.

        Args:
            conversation: What identifies the conversation.
            loaded: The names of the skills that are loaded now.
        """
        now = dict.fromkeys(loaded)
        if not now and conversation not in self._seen:
            return []
        seen = self._seen.setdefault(conversation, {})
        self._seen.move_to_end(conversation)
        seen |= now
        if len(self._seen) > MAX_CONVERSATIONS:
            self._seen.popitem(last=False)
        return [name for name in seen if name not in now]


def tell(names: Sequence[str], load_tool: str) -> str:
    """What the model is told about skills that were lost."""
    listed = ', '.join(map(repr, names))
    return (
        f'These skills were loaded earlier, but their instructions are no longer in the conversation: {listed}. '
        f'Call `{load_tool}` again before you use one of them.'
    )


def is_told(note: str, messages: Sequence[ModelMessage]) -> bool:
    """Whether the model can read this note already."""
    return any(
        isinstance(part, UserPromptPart) and part.content == note for message in messages for part in message.parts
    )
