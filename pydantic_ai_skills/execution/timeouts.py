"""Another time limit for an executor, whoever made it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

from .base import SkillScriptExecutor
from .limits import ScriptLimits
from .policy import is_sandbox

if TYPE_CHECKING:
    from pydantic_ai_skills.types.skill import SkillScript

__all__ = ('with_timeout',)


def with_timeout(executor: SkillScriptExecutor, seconds: float, *, may_extend: bool) -> SkillScriptExecutor:
    """The executor with another time limit.

    Args:
        executor: What runs a script.
        seconds: How long the script may run.
        may_extend: Whether that may be longer than the executor allows by itself.
    """
    limits = getattr(executor, 'limits', None)
    if not isinstance(limits, ScriptLimits):
        return _TimeLimited(executor, seconds)
    limited: Any = copy(executor)
    limited.limits = replace(limits, wall_time=seconds if may_extend else min(seconds, limits.wall_time))
    return limited


class _TimeLimited:
    """An executor that has no limits of its own, cancelled when its time is up."""

    def __init__(self, inner: SkillScriptExecutor, seconds: float) -> None:
        self.sandboxed = is_sandbox(inner)
        self._inner = inner
        self._seconds = seconds

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
        try:
            with anyio.fail_after(self._seconds):
                return await self._inner.run(script, args, ctx)
        except TimeoutError:
            message = f'The script {script.name!r} was stopped: it did not end within {self._seconds:g} s.'
            raise SkillScriptExecutionError(message) from None
