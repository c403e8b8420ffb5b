"""Where every load, read and run of a skill passes, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, cast

import anyio.to_thread
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillResourceLoadError
from pydantic_ai_skills.execution import ScriptResult
from pydantic_ai_skills.execution.arguments import as_mapping
from pydantic_ai_skills.types.functions import guarded
from pydantic_ai_skills.types.lookup import pick
from pydantic_ai_skills.types.skill import DepsT, Skill, SkillScript

from . import prompt as disclosure
from .conversation import SkillsInConversation
from .library import SkillLibrary
from .recording import SkillJournal
from .script_files import WrittenFiles
from .typed_tools import TypedTools

__all__ = ('ScriptArguments', 'SkillUse')

ScriptArguments = dict[str, Any] | list[Any] | str | None
"""Arguments as a model may write them."""


class SkillUse(Generic[DepsT]):
    """Loads skills, reads their resources and runs their scripts, and tells the journal of it."""

    def __init__(
        self, library: SkillLibrary[DepsT], conversation: SkillsInConversation[DepsT], journal: SkillJournal[DepsT]
    ) -> None:
        """Remember where the skills come from, with the policy that decides which scripts run, and who is told."""
        self.library = library
        self.conversation = conversation
        self.journal = journal
        self.typed = TypedTools(self.run)
        """The typed tools of the skills."""
        self._written_files = WrittenFiles()

    async def render(self, skill: Skill[Any], *, arguments: str | None = None, framed: bool = True) -> str:
        """What the model reads of a skill that is loaded. Its typed tools are made, for the next request.

        Args:
            skill: The skill.
            arguments: What a person wrote after the skill's name.
            framed: Whether the instructions are kept apart from what is around them.

        Raises:
            SkillError: Its instructions cannot be read, or its `tools.py` cannot be imported.
        """
        # In this order: reading the instructions of a file brings what its header says of tools up to date.
        render = partial(disclosure.render_skill, skill, arguments=arguments, framed=framed)
        reading = anyio.to_thread.run_sync(render)
        what = f'instructions of skill {skill.name!r}'
        text = await guarded(reading, what=what, error=SkillResourceLoadError)
        await anyio.to_thread.run_sync(self.typed.make, skill)
        return text

    async def load(self, ctx: RunContext[DepsT], skill: Skill[Any], *, framed: bool = True) -> str:
        """Load a skill for a model: what it reads, or a short answer if it can read that already.

        Args:
            ctx: The run's context.
            skill: The skill.
            framed: Whether the instructions are kept apart from what is around them.

        Raises:
            SkillError: Its instructions cannot be read, or its `tools.py` cannot be imported.
        """

        async def render() -> tuple[str, bool]:
            text = await self.render(skill, framed=framed)
            repeated = self.conversation.history.was_sent(text, ctx)
            return disclosure.already_loaded(skill) if repeated else text, repeated

        return await self.journal.load(ctx, skill, render)

    async def read(self, ctx: RunContext[DepsT], skill: Skill[Any], resource_name: str, args: ScriptArguments) -> Any:
        """Read a resource of a skill, or a file that a script of this run wrote.

        Raises:
            SkillError: There is no such resource, or it cannot be read.
        """

        async def read(found: Callable[[str], None]) -> Any:
            written = await anyio.to_thread.run_sync(self._written_files.read, ctx, resource_name)
            if written is not None:
                found(resource_name)
                return _page(written, resource_name, args)
            files = await anyio.to_thread.run_sync(lambda: skill.files)
            resource = pick(resource_name, files.resources, files.scripts, kind='resource', skill=skill.name)
            found(resource.name)
            if resource.function is not None:
                return await resource.read(ctx, args)
            return _page(await resource.read(ctx), resource.name, args)

        return await self.journal.read(ctx, skill, read)

    async def run(
        self, ctx: RunContext[DepsT], skill: Skill[Any], script: SkillScript | str, args: Any, *, ask: bool = False
    ) -> Any:
        """Run a script of a skill, if it may be run: for `run_skill_script`, and for the tools a skill declares.

        Args:
            ctx: The run's context.
            skill: The skill.
            script: Its script, or the name of one.
            args: Arguments for it.
            ask: Whether a person has to approve it, whatever the policy says.

        Raises:
            SkillError: There is no such script, or it may not be run.
            ApprovalRequired: A person has to approve it first.
            ToolFailed: It failed, or was stopped.
        """

        async def find() -> SkillScript:
            found = script
            if isinstance(found, str):
                files = await anyio.to_thread.run_sync(lambda: skill.files)
                found = pick(found, files.scripts, files.resources, kind='script', skill=skill.name)
            await self.library.owner_of(skill).approvals.check(ctx, skill, found, args, ask=ask)
            return found

        done = await self.journal.run(ctx, skill, args, find)
        if done.event.error is not None:
            stopped = done.event.outcome == 'stopped'
            output = f'\n{disclosure.render_result(done.event.result)}' if stopped else ''
            raise ToolFailed(f'{done.event.error}{output}')
        result = done.value
        if not isinstance(result, ScriptResult):
            return result
        read_tool = self.conversation.as_seen('read_skill_resource', ctx)
        text = disclosure.render_result(result, self._written_files.keep(ctx, result), read_tool)
        if result.exit_code:
            raise ToolFailed(text)
        return ToolReturn(text, metadata=result)


def _page(value: Any, name: str, args: ScriptArguments) -> Any:
    return disclosure.page_of(value, name, _page_number(args)) if isinstance(value, str) else value


def _page_number(args: ScriptArguments) -> int:
    """The page a model asks for; anything that asks for none means the first."""
    try:
        return int(cast(Any, as_mapping(args))['page'])
    except (ValueError, TypeError, KeyError, OverflowError):
        return 1
