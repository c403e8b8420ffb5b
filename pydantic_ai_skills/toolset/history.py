"""Works out from the messages which skills a conversation has loaded, and which the model can no longer read.

The messages are the only record, so a saved conversation has its skills back when any process resumes it, and no other
conversation has them. The metadata of a tool return says which skill it loaded. Because history processing may delete
that message, the metadata of later messages notes which skills were loaded by then. Cutting off the end of a
conversation, to continue from an earlier point, cuts off these notes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any, Generic, NamedTuple, cast

import anyio.to_thread
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    InstructionPart,
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

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.types.skill import DepsT, Skill

from .library import SkillLibrary, carried, may_read
from .prompt import View
from .results import rename_tools

DEFAULT_ID = 'skills'
"""The default id. Because of its id, a toolset's instructions stay in the cached prefix and changes are appended."""

LOAD_KIND = 'capability-load'
"""The kind of pydantic-ai's tool that loads a capability, whatever its name."""

LOAD = 'pydantic_ai_skills.load'
"""Marks the text of a skill that the model loaded, in the metadata of the tool return."""

MIN_TEXT_LEFT = 0.9
"""With less than this share of its text left, a skill is no longer loaded: history processing has cut it."""

INVOKED = 'pydantic_ai_skills.invoked'
"""Marks the text of a skill that a person loaded, in the metadata of the prompt."""

LOADED = 'pydantic_ai_skills.loaded'
"""Notes the skills that were loaded up to a request, in the metadata of its message."""


NOTICE = 'notice'
"""The name of the instruction part about skills that the model should load again."""


class Load(NamedTuple):
    """A load of a skill that the model can still read."""

    name: str
    """The skill's name; as the model asked for it, if a hook dropped the metadata."""

    text: str = ''
    """The result of `load_skill`; empty if a person loaded the skill."""

    digest: object = None
    """Identifies the instructions that were loaded."""


class SkillHistory(Generic[DepsT]):
    """Works out which skills of a toolset a run has loaded, and by which names the model knows its tools."""

    def __init__(self, library: SkillLibrary[DepsT], toolset_id: str, tools: Iterable[str]) -> None:
        """Give each of the toolset's own tools a kind, by which messages identify it under any name."""
        self.library = library
        self.toolset_id = toolset_id
        suffix = '' if toolset_id == DEFAULT_ID else f'.{toolset_id}'
        self.kinds = {tool: ToolKind[Any, Any]('pydantic_ai_skills', f'{tool}{suffix}') for tool in tools}
        self.has_capability = False
        """Whether a capability sees each request: it reports lost skills, and holds back tools of unloaded ones."""
        self._digests: dict[str, tuple[Skill[Any], str | None]] = {}

    # --- Loaded skills --------------------------------------------------------------------------------------------

    async def loaded(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """The loaded skills that the model can still read, in the order they were loaded."""
        return await self.library.existing(self._found(ctx), ctx)

    def loaded_now(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        """Like `loaded`, for code that cannot wait: without the skills whose filter has to wait for something."""
        return self.library.existing_now(self._found(ctx), ctx)

    def _found(self, ctx: RunContext[DepsT]) -> list[Skill[DepsT]]:
        names = (load.name for load in self._loads(messages_of(ctx) or ()))
        deferred = sorted(ctx.loaded_capability_ids) if self.library.on_demand is not None else ()
        return self.library.named((*names, *deferred))

    async def check_loaded(self, skill: Skill[Any], ctx: RunContext[DepsT]) -> None:
        """Raise a `ToolFailed` that says how to load a skill, unless it is loaded."""
        if messages_of(ctx) is not None and all(skill is not loaded for loaded in await self.loaded(ctx)):
            raise self.not_loaded(skill, ctx)

    def not_loaded(self, skill: Skill[Any], ctx: RunContext[DepsT]) -> ToolFailed:
        """The failure for a model that uses a skill without having loaded it."""
        if self.library.is_deferred(skill, ctx):
            return ToolFailed(_not_loaded(skill, _load_capability(ctx), 'id'))
        return ToolFailed(_not_loaded(skill, self.tool_names(ctx)['load_skill'], 'skill_name'))

    def was_sent(self, text: str, ctx: RunContext[Any]) -> bool:
        """Whether this toolset's own `load_skill` returned this very text, and the model can still read it."""
        return any(text in load.text for load in self._loads(messages_of(ctx) or ()))

    def is_being_sent(self, skill: Skill[Any], ctx: RunContext[Any]) -> bool:
        """Whether an earlier call in the same response loads this skill too."""
        if carried(ctx, 'tool_call_approved', default=False):
            return False  # the other one may have been denied
        messages = carried(ctx, 'messages', cast(Sequence[ModelMessage], ()))
        response = next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)
        calls = (part for part in (response.parts if response else ()) if isinstance(part, ToolCallPart))
        loads = (call for call in calls if call.tool_kind == self.kinds['load_skill'].id)
        first = next((call for call in loads if self._means(call, skill)), None)
        return first is not None and first.tool_call_id != ctx.tool_call_id

    def worded(self, view: View, ctx: RunContext[Any]) -> InstructionPart | None:
        """The part that lists the skills of a view, naming the tools of the run as the model knows them."""
        library = self.library
        part = library.settings.instructions(view, self.tools_there(ctx)) if ctx.tools else view.instructions
        if part is None:
            return None
        # With a filter, the list differs between runs, and only the instructions before it are the same.
        return replace(part, content=self.with_tool_names(part.content, ctx), dynamic=library.has_filter)

    def _means(self, call: ToolCallPart, skill: Skill[Any]) -> bool:
        return any(named is skill for named in self.library.named([str(_skill_of(call))]))

    def mark_of(self, skill: Skill[Any], text: str) -> dict[str, Any]:
        """The metadata of the tool return that loads a skill."""
        mark = {'skill': skill.name, 'toolset': self.toolset_id, 'chars': len(text), 'digest': self._digest(skill)}
        return {LOAD: mark}

    def _loads(self, messages: Sequence[ModelMessage]) -> Iterator[Load]:
        """The loads in these messages, in their order."""
        kind = self.kinds['load_skill'].id
        asked: dict[str, object] = {}
        for part in _parts(messages):
            if isinstance(part, UserPromptPart):
                yield from map(Load, _invoked(part, self.toolset_id))
            elif isinstance(part, ToolCallPart) and part.tool_kind == kind:
                asked[part.tool_call_id] = _skill_of(part)
            elif isinstance(part, ToolReturnPart) and part.tool_kind == kind:
                load = _load_of(part, asked.get(part.tool_call_id))
                if load is not None:
                    yield load

    # --- Lost skills ----------------------------------------------------------------------------------------------

    def note_loaded(self, ctx: RunContext[DepsT]) -> None:
        """Note the skills loaded so far, in case history processing deletes the messages that loaded them.

        The last exchange gets the note, because processors keep it: the response as well as the request, since
        pydantic-ai drops metadata when it merges two requests. Messages of other runs get no notes: several
        conversations may begin with them.
        """
        messages = carried(ctx, 'messages', cast(Sequence[ModelMessage], ()))
        if names := self._ever_loaded(messages):
            for message in messages[-2:]:
                if message.run_id == ctx.run_id:
                    add_note(message, LOADED, self.toolset_id, names)

    async def notice(self, ctx: RunContext[DepsT], messages: Sequence[ModelMessage]) -> str | None:
        """What to tell the model about skills that these messages no longer hold, or hold in an old version."""
        told = (await self._lost(ctx, messages), await self._changed(ctx, messages))
        return ' '.join(filter(None, told)) or None

    async def _lost(self, ctx: RunContext[DepsT], messages: Sequence[ModelMessage]) -> str | None:
        now = self.library.named(self._names(post_compaction_window(messages)))
        missing = [skill for skill in self.library.named(self._ever_loaded(messages)) if skill not in now]
        gone = await self.library.existing(missing, ctx) if missing else []
        if not gone:
            return None
        deferred = all(self.library.is_deferred(skill, ctx) for skill in gone)
        load_tool = _load_capability(ctx) if deferred else self.tool_names(ctx)['load_skill']
        return _no_longer_there([skill.name for skill in gone], load_tool)

    async def _changed(self, ctx: RunContext[DepsT], messages: Sequence[ModelMessage]) -> str | None:
        read = {load.name: load.digest for load in self._loads(post_compaction_window(messages)) if load.digest}
        loaded = await self.library.existing(self.library.named(read), ctx) if read else []
        changed = [skill.name for skill in loaded if await self._now(skill) not in (None, read.get(skill.name))]
        return _changed_since(changed, self.tool_names(ctx)['load_skill']) if changed else None

    async def _now(self, skill: Skill[Any]) -> str | None:
        """The digest of the instructions as they are now. A file is read once for each version that a reload finds."""
        known, digest = self._digests.get(skill.name, (None, None))
        if known is not skill and may_read():
            digest = await anyio.to_thread.run_sync(self._digest, skill)
        return digest

    def _digest(self, skill: Skill[Any]) -> str | None:
        """Identifies the instructions of a skill's folder, wherever the folder is; `None` for others."""
        digest = None
        if skill.path is not None:
            with suppress(SkillError):  # the model is told when it loads the skill
                text = skill.content.replace(skill.path, '')
                digest = sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]
        self._digests[skill.name] = skill, digest
        return digest

    def _names(self, messages: Sequence[ModelMessage]) -> list[str]:
        names = [load.name for load in self._loads(messages)]
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

    def tools_there(self, ctx: RunContext[Any]) -> frozenset[str]:
        """Those of the toolset's own tools that the model can call."""
        seen = {tool.tool_kind for tool in ctx.tools.values() if ctx.is_tool_available(tool)}
        return frozenset(tool for tool, kind in self.kinds.items() if kind.id in seen)

    def names_seen(self, names: Iterable[str], ctx: RunContext[Any]) -> list[str]:
        """The names by which the model knows tools of skills: with the prefix that `load_skill` has for it."""
        prefix = self.tool_names(ctx)['load_skill'].removesuffix('load_skill')
        return [f'{prefix}{name}' for name in names]

    def with_tool_names(self, text: str, ctx: RunContext[DepsT]) -> str:
        """This package's text with the names by which the model knows the toolset's tools."""
        renamed = [(own, seen) for own, seen in self.tool_names(ctx).items() if own != seen]
        return rename_tools(text, tuple(renamed)) if renamed else text


# --- Texts --------------------------------------------------------------------------------------------------------


def _not_loaded(skill: Skill[Any], load_tool: str, parameter: str) -> str:
    """Why a skill that is not loaded can be neither read nor run."""
    return f'The skill {skill.name!r} is not loaded. Call `{load_tool}` with {parameter} {skill.name!r} first.'


def _no_longer_there(names: Sequence[str], load_tool: str) -> str:
    """A note about loaded skills whose instructions were taken out of the conversation."""
    listed = ', '.join(map(repr, names))
    return (
        f'These skills were loaded earlier, but their instructions are no longer in the conversation: {listed}. '
        f'Call `{load_tool}` again before you use one of them.'
    )


def _changed_since(names: Sequence[str], load_tool: str) -> str:
    """A note about loaded skills whose instructions have changed."""
    return (
        f'The instructions of these skills have changed since you loaded them: {", ".join(map(repr, names))}. '
        f'Call `{load_tool}` again before you use one of them.'
    )


# --- Messages -----------------------------------------------------------------------------------------------------


def messages_of(ctx: RunContext[Any]) -> Sequence[ModelMessage] | None:
    """What the model can still read; `None` in a durable unit that runs elsewhere, without the messages."""
    messages: Sequence[ModelMessage] | None = carried(ctx, 'messages', None)
    return None if messages is None else post_compaction_window(messages)


def _skill_of(call: ToolCallPart) -> object:
    """The skill that a call of `load_skill` names."""
    return call.args_as_dict().get('skill_name')


def _load_of(part: ToolReturnPart, asked: object) -> Load | None:
    """The load that a result of `load_skill` stands for; `None` if it did not load a skill, or its text was cut.

    What a hook adds around the text does no harm. If a hook dropped the metadata, the call says which skill it was.
    """
    text = part.model_response_str()
    start, end = text.find('<skill '), text.rfind('</skill>')
    mark = _mapping(_mapping(part.metadata).get(LOAD))
    name, chars = mark.get('skill', asked), mark.get('chars', 0)
    is_whole = 0 <= start < end and isinstance(chars, int) and end - start >= MIN_TEXT_LEFT * chars - len('</skill>')
    return Load(name, text, mark.get('digest')) if is_whole and isinstance(name, str) else None


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
        elif part.part_kind == 'capability-load-delta':  # its class is missing in older versions of pydantic-ai
            loaded |= dict.fromkeys(part.loaded)
    return [id for id in loaded if isinstance(id, str)]


def _load_capability(ctx: RunContext[Any]) -> str:
    return ctx.tool_name_for_kind(LOAD_KIND) or 'load_capability'
