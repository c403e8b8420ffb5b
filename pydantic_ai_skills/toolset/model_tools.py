"""The tools for the model. They look up what it asks for among the skills it may see."""

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

from . import results
from .actions import ScriptArguments, SkillActions
from .durable import as_step

MAX_FOUND = 100
"""How many results a model may ask a search for."""


class ModelTools(Generic[DepsT]):
    """Each method is a tool of its name; its docstring is what the model reads about it."""

    def __init__(self, actions: SkillActions[DepsT], search: SkillSearch) -> None:
        self.actions = actions
        self.library = actions.library
        self.history = actions.history
        self.search = search

    async def list_skills(self, ctx: RunContext[DepsT], page: int = 1) -> dict[str, Any] | str:
        """List the available skills with their descriptions.

        Args:
            page: Which page, where there are too many for one.
        """
        skills = self.library.listed(await self.library.visible(ctx), ctx).catalog.skills.values()
        return await anyio.to_thread.run_sync(results.list_page, skills, page)

    async def search_skills(
        self, ctx: RunContext[DepsT], query: str, limit: Annotated[int, Field(ge=1, le=MAX_FOUND)] = 10
    ) -> dict[str, str] | str:
        """Find skills for a task. The result has their names and descriptions, the best first.

        Args:
            query: What the task is about, in a few words.
            limit: How many skills to get at most.
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

    async def load_skill(self, ctx: RunContext[DepsT], skill_name: str) -> str:
        """Load a skill: its instructions, and the names of its resources and scripts. Do this before using the skill.

        Args:
            skill_name: The name of the skill, as listed.
        """
        skill = await self._find(skill_name, ctx)
        if self.library.is_deferred(skill, ctx):
            await self.history.check_loaded(skill, ctx)
            return results.already_loaded(skill)
        return await self.actions.load(ctx, skill)

    async def read_skill_resource(
        self, ctx: RunContext[DepsT], skill_name: str, resource_name: str, args: ScriptArguments = None
    ) -> Any:
        """Read a resource of a skill, such as a reference document.

        Args:
            skill_name: The name of the skill.
            resource_name: The name of the resource, as listed by the loaded skill.
            args: Arguments, if the resource has parameters; {"page": 2} for the next page of a long text.
        """
        skill = await self._find_loaded(skill_name, ctx)
        return await self.actions.read(ctx, skill, resource_name, args)

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
        if self.library.on_demand is not None:
            await self.history.check_loaded(skill, ctx)
        return skill

    def close_to(self, visible: Catalog, name: str) -> Sequence[str]:
        """The visible names closest to one that no skill has."""
        return self.search.close_to(name, self.library.look().catalog.skills, visible.skills)
