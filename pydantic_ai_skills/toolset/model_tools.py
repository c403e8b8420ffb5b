"""The tools for the model. They look up what it asks for among the skills it may see."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Generic

import anyio.to_thread
from pydantic import Field
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.catalog.merge import Catalog
from pydantic_ai_skills.catalog.search import SkillSearch, wait_here
from pydantic_ai_skills.types.skill import DepsT, Skill

from . import results
from .actions import ResourceArguments, ScriptArguments, SkillActions
from .durable import as_step
from .skill_toolsets import known_names

MAX_FOUND = 100
"""How many results a model may ask a search for."""


class ModelTools(Generic[DepsT]):
    """The tools, each a method of the same name, whose docstring is what the model reads about the tool."""

    def __init__(self, actions: SkillActions[DepsT], search: SkillSearch) -> None:
        self.actions = actions
        self.library = actions.library
        self.history = actions.history
        self.search = search

    async def list_skills(self, ctx: RunContext[DepsT], page: int = 1) -> dict[str, Any] | str:
        """List all skills."""
        skills = self.library.listed(await self.library.visible(ctx), ctx).catalog.skills.values()
        return await anyio.to_thread.run_sync(results.list_page, skills, page)

    async def search_skills(
        self, ctx: RunContext[DepsT], query: str, limit: Annotated[int, Field(ge=1, le=MAX_FOUND)] = 10
    ) -> dict[str, str] | str:
        """Find skills for a task.

        Args:
            query: A few words about the task.
        """
        visible = self.library.listed(await self.library.visible(ctx), ctx).catalog.skills
        every = self.library.look().catalog.skills

        async def find() -> dict[str, str] | str:
            try:
                skills = await anyio.to_thread.run_sync(self.search.find, query, every, visible, limit, wait_here)
            except ValueError as error:
                raise ToolFailed(str(error)) from error
            return results.found(skills, query)

        return await as_step(f'{self.history.toolset_id}__search_skills', find)

    async def load_skill(self, ctx: RunContext[DepsT], skill_name: str) -> Any:
        """Load a skill's instructions and file names. Do this before using it."""
        skill = await self._find(skill_name, ctx)
        if self.library.is_deferred(skill, ctx):
            await self.history.check_loaded(skill, ctx)
            return results.already_loaded(skill)
        done = await self.actions.load(ctx, skill)
        if done.event.repeated:
            return done.value
        # Few skills have tools.
        made = (
            self.actions.typed.names(skill)
            if skill.tools or skill.tool_specs or skill.known_files is None or skill.imports
            else []
        )
        made += await known_names(skill, ctx) if skill.toolsets else []
        tools = self.history.names_seen(made, ctx)
        return ToolReturn(done.value, metadata=self.history.mark_of(skill, done.value), tools=tools or None)

    async def read_skill_resource(
        self, ctx: RunContext[DepsT], skill_name: str, resource_name: str, args: ResourceArguments = None
    ) -> Any:
        """Read a file or another resource of a loaded skill, or a file that a script wrote.

        Args:
            args: Its parameters, or {"page": 2} of a long text.
        """
        skill = await self._find_loaded(skill_name, ctx)
        return await self.actions.read(ctx, skill, resource_name, args)

    async def run_skill_script(
        self, ctx: RunContext[DepsT], skill_name: str, script_name: str, args: ScriptArguments = None
    ) -> Any:
        """Run a script of a loaded skill. All scripts of a conversation start in the same folder.

        Args:
            args: Options by name, positional arguments under "_", standard input under "_stdin":
                {"_": ["in.pdf"], "limit": 5}. Or a list, or JSON text.
        """
        skill = await self._find_loaded(skill_name, ctx)
        return await self.actions.run(ctx, skill, script_name, args)

    async def _find(self, name: str, ctx: RunContext[DepsT]) -> Skill[Any]:
        """Find a skill that the run may see."""
        catalog = (await self.library.visible(ctx)).catalog
        skill = catalog.skills.get(name) or catalog.get(name)
        # A person may have loaded one that the model does not see.
        skill = skill or next((loaded for loaded in await self.history.loaded(ctx) if loaded.name == name), None)
        return skill or await anyio.to_thread.run_sync(catalog.find, name, partial(self.close_to, catalog))

    async def _find_loaded(self, name: str, ctx: RunContext[DepsT]) -> Skill[Any]:
        """Find a skill whose files the run may use; where skills are on demand, it must be loaded."""
        skill = await self._find(name, ctx)
        if self.library.is_on_demand:
            await self.history.check_loaded(skill, ctx)
        return skill

    def close_to(self, visible: Catalog, name: str) -> Sequence[str]:
        """The visible names closest to one that no skill has."""
        return self.search.close_to(name, self.library.look().catalog.skills, visible.skills)
