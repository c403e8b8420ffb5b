"""Reports the progress of a fetch to the developer's callback."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

logger = logging.getLogger('pydantic_ai_skills')


@dataclass(frozen=True, kw_only=True)
class FetchProgress:
    """How far a fetch is."""

    stage: str
    """What is going on, such as `'Receiving objects'`."""

    done: int
    """How many objects, files or bytes are through this stage."""

    total: int | None
    """How many there are, once that is known."""


ProgressCallback = Callable[[FetchProgress], None]


def until_it_fails(callback: ProgressCallback | None) -> ProgressCallback:
    """A function that calls the developer's callback, if there is one, until the callback fails."""
    waiting = [callback] if callback else []

    def tell(progress: FetchProgress) -> None:
        for call in list(waiting):
            try:
                call(progress)
            except Exception:  # the developer's own function
                logger.exception('The progress callback failed and is not called again.')
                waiting.clear()

    return tell
