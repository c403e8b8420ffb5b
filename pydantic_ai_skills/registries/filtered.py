"""A registry with some of another one's skills."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.skill import Skill

from .base import SkillRegistry
from .wrapper import WrapperRegistry

ResultT = TypeVar('ResultT')

SkillPredicate = Callable[[Skill[Any]], bool | Awaitable[bool]]
"""Whether a skill is wanted; a sync or async function."""


class FilteredRegistry(WrapperRegistry):
    """The skills of a registry for which a predicate is true."""

    def __init__(self, wrapped: SkillRegistry, predicate: SkillPredicate) -> None:
        """Remember the registry and the predicate.

        The predicate is called off the event loop; an async one is awaited in an event loop of its own.
        """
        super().__init__(wrapped)
        self.predicate = predicate

    def __repr__(self) -> str:
        return f'{self.wrapped!r}.filtered({getattr(self.predicate, "__name__", "…")})'

    def change(self, found: FoundSkills) -> FoundSkills:
        """Keep the skills for which the predicate is true."""
        kept: list[Skill[Any]] = []
        rest = iter(found.skills)
        for skill in rest:
            answer = self.predicate(skill)
            if inspect.isawaitable(answer):
                kept += _run_apart(self._keep(skill, answer, rest))
            elif answer:
                kept.append(skill)
        return found._replace(skills=tuple(kept))

    async def _keep(self, skill: Skill[Any], answer: Awaitable[bool], rest: Iterator[Skill[Any]]) -> list[Skill[Any]]:
        """Await the first answer and ask about the rest, all in one event loop."""
        kept = [skill] if await answer else []
        for skill in rest:
            wanted = self.predicate(skill)
            if await wanted if inspect.isawaitable(wanted) else wanted:
                kept.append(skill)
        return kept


def _run_apart(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run async code from sync code, whether or not an event loop is running.

    The application's event loop is not used: its thread may be waiting for this one.
    """
    done: Future[ResultT] = Future()

    def run() -> None:
        try:
            done.set_result(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - raised again by `result`
            done.set_exception(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), name='pydantic-ai-skills-predicate')
    thread.start()
    return done.result()
