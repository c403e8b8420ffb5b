"""The toolset as a run uses it, as distinct from the one that a developer calls."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import WrapperToolset

from pydantic_ai_skills.types.skill import DepsT

ADDED: ContextVar[tuple[object, object] | None] = ContextVar('added_instructions', default=None)
"""The library and the context for which a developer asked for instructions, to add them to the request."""


class ToolsetOfRun(WrapperToolset[DepsT]):
    """A toolset in one run. It adds no instructions to a request to which the developer has added them."""

    @property
    def id(self) -> str | None:
        """The id of the toolset."""
        return self.wrapped.id

    @property
    def label(self) -> str:
        """How error messages call the toolset."""
        return self.wrapped.label

    @property
    def tool_name_conflict_hint(self) -> str:
        """What to do if another tool has the same name."""
        return self.wrapped.tool_name_conflict_hint

    async def get_instructions(self, ctx: RunContext[DepsT]) -> Any:
        """The instructions of the toolset, unless a function with `@agent.instructions` has asked for them."""
        if (
            (added := ADDED.get()) is not None
            and added[0] is getattr(self.wrapped, 'library', None)
            and added[1] is ctx
        ):
            return None
        parts = await self.wrapped.get_instructions(ctx)
        ADDED.set(None)  # this was not the developer
        return parts
