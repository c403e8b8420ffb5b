"""A registry that is asked less often."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

from pydantic_ai_skills.types.skill import FoundSkills

from .base import SkillRegistry
from .wrapper import WrapperRegistry

__all__ = ('CachedRegistry',)


class CachedRegistry(WrapperRegistry):
    """A registry that lets another one fetch only when what it gave last is too old."""

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
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f'{self.wrapped!r}.cached(ttl={self.ttl})'

    def change(self, found: FoundSkills) -> FoundSkills:
        """Give on what was found."""
        return found

    def find(self) -> FoundSkills:
        """What the wrapped registry gave last; it fetches again if that is too old."""
        with self._lock:
            if self._asked_at is None:
                found = super().find()
            elif self.ttl is None or time.monotonic() - self._asked_at < self.ttl:
                return super().find()
            else:
                found = super().refresh()
            self._asked_at = time.monotonic()
            return found

    def refresh(self) -> FoundSkills:
        """Like `find`: what is not too old is not fetched again."""
        return self.find()
