"""A registry that is asked less often."""

from __future__ import annotations

import time
from datetime import timedelta

from pydantic_ai_skills.types.found_skills import FoundSkills

from .base import SkillRegistry
from .wrapper import WrapperRegistry


class CachedRegistry(WrapperRegistry):
    """Lets a registry fetch again only when its last answer is too old."""

    def __init__(self, wrapped: SkillRegistry, *, ttl: float | timedelta | None = None) -> None:
        """Remember the registry and how old its skills may be.

        Args:
            wrapped: The registry.
            ttl: Seconds; `None` for no limit.

        Raises:
            ValueError: `ttl` is negative.
        """
        super().__init__(wrapped)
        self.ttl = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
        if self.ttl is not None and self.ttl < 0:
            raise ValueError(f'ttl must be 0 or more seconds, or None for no limit, not {self.ttl}.')
        self._asked_at: float | None = None

    def __repr__(self) -> str:
        return f'{self.wrapped!r}.cached(ttl={self.ttl})'

    def change(self, found: FoundSkills) -> FoundSkills:
        """Return what was found."""
        return found

    @property
    def is_stale(self) -> bool:
        """Whether the wrapped registry is to be asked again, and its last answer is old enough."""
        return super().is_stale and self._is_old

    @property
    def _is_old(self) -> bool:
        return self._asked_at is not None and self.ttl is not None and time.monotonic() - self._asked_at >= self.ttl

    def find(self) -> FoundSkills:
        """The last answer of the wrapped registry, which fetches again if that is too old."""
        with self._own_lock:
            if self._asked_at is None:
                found = super().find()
            elif not self._is_old:
                return super().find()
            else:
                found = super().refresh()
            self._asked_at = time.monotonic()
            return found

    def refresh(self) -> FoundSkills:
        """The same as `find`: an answer that is not too old is not fetched again."""
        return self.find()
