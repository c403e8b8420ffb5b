"""The tools that the model has for skills: what it asks for is looked up among what it may see, then passed on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Generic

import anyio.to_thread
from pydantic import Field
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.catalog.merge import Catalog
from pydantic_ai_skills.catalog.search import SkillSearch, wait_here
from pydantic_ai_skills.types.skill import DepsT, Skill

from . import prompt as disclosure
from .actions import ScriptArguments, SkillUse
from .conversation import SkillsInConversation
from .durable import as_step
from .library import SkillLibrary

__all__ = ('ModelTools',)

MAX_FOUND = 100
"""How many skills a model may ask a search for."""


class ModelTools(Generic[DepsT]):
    """The tools by the names of its methods. What they say of themselves is for the model."""

    def __init__(
        self,
        toolset_id: str,
        *,
        library: SkillLibrary[DepsT],
        conversation: SkillsInConversation[DepsT],
        use: SkillUse[DepsT],
        search: SkillSearch,
    ) -> None:
        """Remember where skills come from, which are loaded, where every use passes, and what finds them by words."""
        self.library = library
        self.conversation = conversation
        self.use = use
        self.search = search
        self._toolset_id = toolset_id

    async def list_skills(self, ctx: RunContext[DepsT], page: int = 1) -> dict[str, Any] | str:
        """List the available skills with their descriptions.

        Args:
            page: Which page, where there are too many for one.
        """
        skills = self.library.listed(await self.library.visible(ctx)).catalog.skills.values()
        return await anyio.to_thread.run_sync(disclosure.list_page, skills, page)

    async def search_skills(
        self, ctx: RunContext[DepsT], query: str, limit: Annotated[int, Field(ge=1, le=MAX_FOUND)] = 10
    ) -> dict[str, str] | str:
        """Find skills for a task. The result has their names and descriptions, the best first.

        Args:
            query: What the task is about, in a few words.
            limit: How many skills to get at most.
        """
        visible = self.library.listed(await self.library.visible(ctx)).catalog.skills
        every = self.library.look().catalog.skills

        async def find() -> dict[str, str] | str:
            try:
                skills = await anyio.to_thread.run_sync(self.search.find, query, every, visible, limit, wait_here)
            except ValueError as error:
                raise ToolFailed(str(error)) from error
            return disclosure.found(skills, query)

        return await as_step(f'{self._toolset_id}__search_skills', find)

    async def load_skill(self, ctx: RunContext[DepsT], skill_name: str) -> str:
        """Load a skill: its instructions, and the names of its resources and scripts. Do this before using the skill.

        Args:
            skill_name: The name of the skill, as listed.
        """
        skill = await self._find(skill_name, ctx)
        if self.library.is_deferred(skill):
            self.conversation.check_loaded(skill, ctx)
            return disclosure.already_loaded(skill)
        return await self.use.load(ctx, skill)

    async def read_skill_resource(
        self, ctx: RunContext[DepsT], skill_name: str, resource_name: str, args: ScriptArguments = None
    ) -> Any:
        """Read a resource of a skill, such as a reference document.

        Args:
            skill_name: The name of the skill.
            resource_name: The name of the resource, as listed by the loaded skill.
            args: Arguments, if the resource has parameters; {"page": 2} for the next page of a long text.
        """
        skill = await self._find(skill_name, ctx)
        self.conversation.check_loaded(skill, ctx)
        return await self.use.read(ctx, skill, resource_name, args)

    async def run_skill_script(
        self, ctx: RunContext[DepsT], skill_name: str, script_name: str, args: ScriptArguments = None
    ) -> Any:
        """Run a script of a skill and get what it prints.

        Args:
            skill_name: The name of the skill.
            script_name: The name of the script, as listed by the loaded skill.
            args: For a script with parameters, an object with a value for each. For a script file, an object gives
                flags ({"verbose": true, "limit": 5} is --verbose --limit 5) and positional arguments under "_"
                ({"_": ["in.pdf", "out.pdf"]}), text for standard input under "_stdin"; a list is passed on as it is.
        """
        skill = await self._find(skill_name, ctx)
        self.conversation.check_loaded(skill, ctx)
        return await self.use.run(ctx, skill, script_name, args)

    async def _find(self, name: str, ctx: RunContext[DepsT]) -> Skill[Any]:
        """The skill of this name that the run of `ctx` may see."""
        catalog = (await self.library.visible(ctx)).catalog
        skill = catalog.get(name) or next((s for s in self.conversation.loaded(ctx) if s.name == name), None)
        close_to = partial(self.close_to, catalog)
        return skill or await anyio.to_thread.run_sync(catalog.find, name, close_to)

    def close_to(self, visible: Catalog, name: str) -> Sequence[str]:
        """The names closest to one that no skill has, out of those that may be seen."""
        return self.search.close_to(name, self.library.look().catalog.skills, visible.skills)
