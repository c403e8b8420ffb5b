"""The skills of a toolset in the conversation of a run: which are loaded, which were, what the tools are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, post_compaction_window
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.types.skill import DepsT, Skill

from .history import LOAD_KIND, ToolsetHistory, loaded_capabilities, messages_of
from .library import SkillLibrary
from .lost import LostSkills, tell
from .prompt import not_loaded, rename_tools

__all__ = ('SkillsInConversation',)


class SkillsInConversation(Generic[DepsT]):
    """What the messages of a run tell about the skills of a toolset."""

    def __init__(self, library: SkillLibrary[DepsT], toolset_id: str, tools: Iterable[str]) -> None:
        """Remember where the skills come from, and the names of the toolset's own tools."""
        self.library = library
        self.history = ToolsetHistory(toolset_id, tools)
        self.tells_of_lost = True
        """Whether the toolset's instructions tell of skills that were lost; a capability tells it sooner."""
        self._lost = LostSkills()

    def loaded(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """The skills that are loaded, as far as the model can still read them, in the order of their loads."""
        names = self.history.loaded(messages_of(ctx) or ())
        deferred = sorted(ctx.loaded_capability_ids) if self.library.on_demand is not None else ()
        return self.library.named(dict.fromkeys((*names, *deferred)), ctx)

    def lost(self, ctx: RunContext[DepsT], messages: Sequence[ModelMessage]) -> str | None:
        """What to tell the model about skills that were loaded before and are not in these messages."""
        window = post_compaction_window(messages)
        names = self.history.loaded(window)
        if self.library.on_demand is not None:
            names += loaded_capabilities(window)
        loaded = (skill.name for skill in self.library.named(names, ctx))
        conversation = ctx.conversation_id or ctx.run_id or ''
        lost = self.library.named(self._lost.look(conversation, loaded), ctx)
        if not lost:
            return None
        deferred = all(map(self.library.is_deferred, lost))
        return tell([skill.name for skill in lost], _load_capability(ctx) if deferred else self._load_skill(ctx))

    def check_loaded(self, skill: Skill[Any], ctx: RunContext[DepsT]) -> None:
        """Refuse a skill that is not loaded, where skills are on demand.

        Raises:
            ToolFailed: It is not loaded. The message says how to load it.
        """
        if self.library.on_demand is None or messages_of(ctx) is None or skill in self.loaded(ctx):
            return
        if self.library.is_deferred(skill):
            raise ToolFailed(not_loaded(skill, _load_capability(ctx), 'id'))
        raise ToolFailed(not_loaded(skill, self._load_skill(ctx), 'skill_name'))

    def as_seen(self, text: str, ctx: RunContext[DepsT]) -> str:
        """Our words with the names that the model knows the toolset's tools by."""
        renamed = [(own, seen) for own, seen in self.history.tool_names(ctx).items() if own != seen]
        return rename_tools(text, tuple(renamed)) if renamed else text

    def _load_skill(self, ctx: RunContext[DepsT]) -> str:
        return self.history.tool_names(ctx)['load_skill']


def _load_capability(ctx: RunContext[Any]) -> str:
    return ctx.tool_name_for_kind(LOAD_KIND) or 'load_capability'
