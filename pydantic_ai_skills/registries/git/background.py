"""Refreshing while nobody waits for it."""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

__all__ = ('keep_fresh',)


class _Refreshable(Protocol):
    def refresh(self) -> object: ...


def keep_fresh(registry: _Refreshable, interval: float, stop: threading.Event) -> None:
    """Refresh a registry again and again, until it is told to stop or nobody has the registry any more."""
    held = weakref.ref(registry)

    def work() -> None:
        while not stop.wait(interval):
            registry = held()
            if registry is None:
                return
            registry.refresh()
            del registry

    threading.Thread(target=work, name='pydantic-ai-skills-refresh', daemon=True).start()
