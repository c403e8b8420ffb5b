"""Tells from the messages which skills a conversation has loaded, and which of them the model can no longer read.

The messages are the only record, so a saved conversation has its skills back when any process resumes it, and no other
conversation has them. Since history processing may delete the messages that loaded a skill, the metadata of each
request note which skills were loaded by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, cast

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    CapabilityLoadDeltaPart,
    LoadCapabilityReturnPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextContent,
    ToolCallPart,
    ToolKind,
    ToolReturnPart,
    UserPromptPart,
    post_compaction_window,
)
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.types.skill import DepsT, Skill

from .recording import carried
from .results import is_skill_text, rename_tools

if TYPE_CHECKING:
    from .library import SkillLibrary

DEFAULT_ID = 'skills'
"""The instructions of a toolset with an id stay in the cached prefix; changes are appended to the conversation."""

LOAD_KIND = 'capability-load'
"""The kind of pydantic-ai's tool that loads a capability, whatever its name."""

INVOKED = 'pydantic_ai_skills.invoked'
"""Marks the text of a skill that a person loaded, in the metadata of the prompt."""

LOADED = 'pydantic_ai_skills.loaded'
"""Notes the skills that were loaded up to a request, in the metadata of its message."""


class SkillHistory(Generic[DepsT]):
    """Tells from the messages of a run which skills of a toolset are loaded, and what the model calls its tools."""

    def __init__(self, library: SkillLibrary[DepsT], toolset_id: str, tools: Iterable[str]) -> None:
        """Give each of the toolset's own tools a kind, by which messages identify it under any name."""
        self.library = library
        self.toolset_id = toolset_id
        suffix = '' if toolset_id == DEFAULT_ID else f'.{toolset_id}'
        self.kinds = {tool: ToolKind[Any, Any]('pydantic_ai_skills', f'{tool}{suffix}') for tool in tools}
        self.tells_of_lost = True
        """Whether the toolset's instructions name lost skills; a capability does it sooner and turns this off."""

    # --- Loaded skills --------------------------------------------------------------------------------------------

    async def loaded(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """The loaded skills that the model can still read, in the order they were loaded."""
        return await self.library.existing(self._found(ctx), ctx)

    def loaded_now(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """Like `loaded`, for code that cannot wait: without the skills whose filter would have to."""
        return self.library.existing_now(self._found(ctx), ctx)

    def _found(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        names = (name for name, _ in self._loads(messages_of(ctx) or ()))
        deferred = sorted(ctx.loaded_capability_ids) if self.library.on_demand is not None else ()
        return self.library.named((*names, *deferred))

    async def check_loaded(self, skill: Skill[Any], ctx: RunContext[DepsT]) -> None:
        """Raise a `ToolFailed` that says how to load a skill, unless it is loaded."""
        if messages_of(ctx) is None or skill in await self.loaded(ctx):
            return
        if self.library.is_deferred(skill, ctx):
            raise ToolFailed(_not_loaded(skill, _load_capability(ctx), 'id'))
        raise ToolFailed(_not_loaded(skill, self.tool_names(ctx)['load_skill'], 'skill_name'))

    def was_sent(self, text: str, ctx: RunContext[Any]) -> bool:
        """Whether this toolset's own `load_skill` returned this very text, and the model can still read it."""
        return any(text == sent for _, sent in self._loads(messages_of(ctx) or ()))

    def _loads(self, messages: Sequence[ModelMessage]) -> Iterator[tuple[str, object]]:
        """The names of the skills loaded in these messages, each with the result of the `load_skill` that did it."""
        kind = self.kinds['load_skill'].id
        asked: dict[str, object] = {}
        for part in _parts(messages):
            if isinstance(part, UserPromptPart):
                yield from ((name, None) for name in _invoked(part, self.toolset_id))
            elif isinstance(part, ToolCallPart) and part.tool_kind == kind:
                asked[part.tool_call_id] = part.args_as_dict().get('skill_name')
            elif isinstance(part, ToolReturnPart) and part.tool_kind == kind and is_skill_text(part.content):
                name = asked.get(part.tool_call_id)
                if isinstance(name, str):
                    yield name, part.content

    # --- Lost skills ----------------------------------------------------------------------------------------------

    def note_loaded(self, ctx: RunContext[DepsT]) -> None:
        """Note the skills loaded so far, in case history processing deletes the messages that loaded them.

        The last exchange gets the note, because processors keep it, and the first request, because many keep that too.
        The response gets it as well, since pydantic-ai drops metadata when it merges two requests. Messages of other
        runs get no notes: several conversations may begin with them.
        """
        messages = carried(ctx, 'messages', cast(Sequence[ModelMessage], ()))
        if names := self._ever_loaded(messages):
            for message in (messages[0], *messages[-2:]):
                if message.run_id == ctx.run_id:
                    add_note(message, LOADED, self.toolset_id, names)

    async def lost(self, ctx: RunContext[DepsT], messages: Sequence[ModelMessage]) -> str | None:
        """What to tell the model about skills that were loaded once and are no longer in these messages."""
        now = self.library.named(self._names(post_compaction_window(messages)))
        missing = [skill for skill in self.library.named(self._ever_loaded(messages)) if skill not in now]
        gone = await self.library.existing(missing, ctx) if missing else []
        if not gone:
            return None
        deferred = all(self.library.is_deferred(skill, ctx) for skill in gone)
        load_tool = _load_capability(ctx) if deferred else self.tool_names(ctx)['load_skill']
        return _lost([skill.name for skill in gone], load_tool)

    def _names(self, messages: Sequence[ModelMessage]) -> list[str]:
        names = [name for name, _ in self._loads(messages)]
        return names + (_loaded_capabilities(messages) if self.library.on_demand is not None else [])

    def _ever_loaded(self, messages: Sequence[ModelMessage]) -> list[str]:
        noted = notes(messages, LOADED, self.toolset_id)
        names = (str(name) for names in noted if isinstance(names, list) for name in cast(list[object], names))
        return list(dict.fromkeys((*names, *self._names(messages))))

    # --- Names of tools -------------------------------------------------------------------------------------------

    def tool_names(self, ctx: RunContext[Any]) -> dict[str, str]:
        """The names by which the model knows the toolset's own tools, keyed by their names here."""
        own = {kind.id: tool for tool, kind in self.kinds.items()}
        seen = {tool.tool_kind: name for name, tool in ctx.tools.items() if tool.tool_kind in own}
        return {tool: seen.get(kind, tool) for kind, tool in own.items()}

    def with_tool_names(self, text: str, ctx: RunContext[DepsT]) -> str:
        """This package's text with the names by which the model knows the toolset's tools."""
        renamed = [(own, seen) for own, seen in self.tool_names(ctx).items() if own != seen]
        return rename_tools(text, tuple(renamed)) if renamed else text


# --- Texts --------------------------------------------------------------------------------------------------------


def _not_loaded(skill: Skill[Any], load_tool: str, parameter: str) -> str:
    """Why a skill that is not loaded can be neither read nor run."""
    return f'The skill {skill.name!r} is not loaded. Call `{load_tool}` with {parameter} {skill.name!r} first.'


def _lost(names: Sequence[str], load_tool: str) -> str:
    """A note about loaded skills whose instructions were taken out of the conversation."""
    listed = ', '.join(map(repr, names))
    return (
        f'These skills were loaded earlier, but their instructions are no longer in the conversation: {listed}. '
        f'Call `{load_tool}` again before you use one of them.'
    )


# --- Messages -----------------------------------------------------------------------------------------------------


def messages_of(ctx: RunContext[Any]) -> Sequence[ModelMessage] | None:
    """What the model can still read; `None` in a durable unit that runs elsewhere, without the messages."""
    messages: Sequence[ModelMessage] | None = carried(ctx, 'messages', None)
    return None if messages is None else post_compaction_window(messages)


def is_in(prompt: str, messages: Iterable[ModelMessage]) -> bool:
    """Whether the messages already contain this prompt."""
    return any(isinstance(part, UserPromptPart) and part.content == prompt for part in _parts(messages))


def _parts(messages: Iterable[ModelMessage]) -> Iterator[ModelRequestPart | ModelResponsePart]:
    return (part for message in messages for part in message.parts)


def add_note(message: ModelRequest | ModelResponse, kind: str, key: str, value: Any) -> None:
    """Note a value in the metadata of a message, which are saved with the conversation and not sent to the model."""
    metadata = message.metadata or {}
    message.metadata = {**metadata, kind: {**_mapping(metadata.get(kind)), key: value}}


def notes(messages: Iterable[ModelMessage], kind: str, key: str) -> Iterator[Any]:
    """The values noted in these messages under a key, in their order."""
    for message in messages:
        noted = _mapping(_mapping(message.metadata).get(kind))
        if key in noted:
            yield noted[key]


def invoked_skills(messages: Sequence[ModelMessage], toolset_id: str) -> set[str]:
    """The names of a toolset's skills that a person brought into the conversation."""
    prompts = (part for part in _parts(messages) if isinstance(part, UserPromptPart))
    return {name for part in prompts for name in _invoked(part, toolset_id)}


def _invoked(part: UserPromptPart, toolset_id: str) -> Iterator[str]:
    for item in () if isinstance(part.content, str) else part.content:
        mark = _mapping(_mapping(item.metadata).get(INVOKED)) if isinstance(item, TextContent) else {}
        if mark.get('toolset') == toolset_id:
            yield str(mark.get('skill'))


def _mapping(value: Any) -> dict[str, Any]:
    """The value if it is a mapping, else an empty one: an application may have written anything there."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _loaded_capabilities(messages: Sequence[ModelMessage]) -> list[str]:
    """The ids of the deferred capabilities that were loaded in these messages."""
    asked: dict[str, object] = {}
    loaded: dict[object, None] = {}
    for part in _parts(messages):
        if isinstance(part, ToolCallPart) and part.tool_kind == LOAD_KIND:
            asked[part.tool_call_id] = part.args_as_dict().get('id')
        elif isinstance(part, LoadCapabilityReturnPart) and part.outcome == 'success':
            loaded[asked.get(part.tool_call_id)] = None
        elif isinstance(part, CapabilityLoadDeltaPart):
            loaded |= dict.fromkeys(part.loaded)
    return [id for id in loaded if isinstance(id, str)]


def _load_capability(ctx: RunContext[Any]) -> str:
    return ctx.tool_name_for_kind(LOAD_KIND) or 'load_capability'
