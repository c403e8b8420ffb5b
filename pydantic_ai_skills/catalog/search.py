"""Finding skills among many: the rankers, and what holds for all of them.

A ranker is built when the first search is made, and told what has changed before later ones. Nothing here is for the
event loop: searches are made in a worker thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.parsing.rules import spellings
from pydantic_ai_skills.types.skill import Skill

if TYPE_CHECKING:
    from .fulltext import FullTextRanker

__all__ = ('SkillRanker', 'SkillSearch', 'wait_here')

MAX_QUERY_CHARS = 2_000
"""How much of a query is looked at."""

MAX_CLOSE = 5
"""How many names are told to be close to one that does not exist."""

Skills = Mapping[str, Skill[Any]]
Wait = Callable[[Coroutine[Any, Any, Any]], Any]
T = TypeVar('T')


class SkillRanker(Protocol):
    """Finds the skills that fit a query.

    Its methods are called in worker threads, so they may take their time. They may be `async` as well: then they run on
    the event loop of the agent.

    Bring one of your own for another kind of search, such as with embeddings:

    ```python
    from pydantic_ai_skills import Skill, SkillsToolset


    class ByLength:
        def __init__(self) -> None:
            self.lengths: dict[str, int] = {}

        def update(self, changed, removed):
            for name in removed:
                del self.lengths[name]
            self.lengths |= {skill.name: len(skill.description) for skill in changed}

        def rank(self, query, limit):
            return sorted(self.lengths, key=self.lengths.__getitem__)[:limit]


    skills = [Skill('long', 'A long description.', ''), Skill('short', 'Short.', '')]
    toolset = SkillsToolset(skills=skills, ranker=ByLength())
    print([skill.name for skill in toolset.search('anything')])
    #> ['short', 'long']
    ```
    """

    def update(self, changed: Sequence[Skill[Any]], removed: Collection[str]) -> Awaitable[None] | None:
        """Take in skills that are new or have changed, and forget others by name. Never called twice at once."""
        ...

    def rank(self, query: str, limit: int) -> Awaitable[Iterable[str]] | Iterable[str]:
        """The names of the skills that fit a query, best first, at most `limit`. May be called many times at once."""
        ...


class SkillSearch:
    """The searches of one toolset."""

    def __init__(self, ranker: SkillRanker | None) -> None:
        self._given = ranker
        self._full_text: FullTextRanker | None = None
        self._known: dict[int, Skills] = {}
        self._lock = threading.Lock()

    def find(
        self, query: str, skills: Skills, visible: Skills, limit: int, wait_for: Wait = asyncio.run
    ) -> list[Skill[Any]]:
        """The visible ones of all skills that fit a query, best first; one whose very name the query is comes first.

        Args:
            query: What to look for.
            skills: All skills.
            visible: Those that may be found.
            limit: How many to return at most.
            wait_for: Runs what an async ranker returns.

        Raises:
            ValueError: The query is empty, or the limit is not at least 1.
            SkillError: The ranker failed.
        """
        query = query.strip()[:MAX_QUERY_CHARS]
        if not query or limit < 1:
            raise ValueError('A search needs at least one word, and a limit of at least 1.')
        try:
            ranker = self._given or self._text_ranker()
            self._bring_up_to_date(ranker, skills, wait_for)
            exact = [name for name in spellings(query) if name in visible][:1]
            names = [*exact, *_visible_names(ranker, query, visible, limit, wait_for)]
        except SkillError:
            raise
        except Exception as error:  # the border to a ranker that somebody else has written
            raise SkillError(f'The search failed with {type(error).__name__}: {error}') from error
        return [visible[name] for name in dict.fromkeys(names)][:limit]

    def close_to(self, name: str, skills: Skills, visible: Skills) -> Sequence[str]:
        """The names of visible skills that a name which does not exist may stand for, the closest first."""
        try:
            ranker = self._text_ranker()
        except SkillError:
            return []
        self._bring_up_to_date(ranker, skills)
        return [other for other in ranker.close_to(name[:MAX_QUERY_CHARS]) if other in visible][:MAX_CLOSE]

    def _text_ranker(self) -> FullTextRanker:
        from .fulltext import FullTextRanker  # brings in SQLite, which few agents need

        with self._lock:
            if self._full_text is None:
                self._full_text = FullTextRanker()
            return self._full_text

    def _bring_up_to_date(self, ranker: SkillRanker, skills: Skills, wait_for: Wait = asyncio.run) -> None:
        """Tell a ranker what has changed since it was told last."""
        with self._lock:
            known = self._known.get(id(ranker), {})
            if known is not skills:
                changed = [skill for name, skill in skills.items() if known.get(name) is not skill]
                removed = known.keys() - skills.keys()
                if changed or removed:
                    _settle(ranker.update(changed, removed), wait_for)
                self._known[id(ranker)] = skills


def _visible_names(ranker: SkillRanker, query: str, visible: Skills, limit: int, wait_for: Wait) -> list[str]:
    """As many names as are asked for: where some of those that fit may not be seen, more are asked for."""
    asked = limit
    while True:
        ranked = list(_settle(ranker.rank(query, asked), wait_for))
        names = [name for name in ranked if name in visible]
        if len(names) >= limit or len(ranked) < asked:
            return names
        asked *= 10


def wait_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the event loop from which this worker thread was started."""
    import anyio.from_thread  # in a worker thread, and only for rankers that are async

    return anyio.from_thread.run(_wait, coroutine)


def _settle(given: Awaitable[T] | T, wait_for: Wait) -> T:
    """What was given, or what it gives when it is waited for."""
    return wait_for(_wait(cast(Awaitable[T], given))) if isinstance(given, Awaitable) else cast(T, given)


async def _wait(given: Awaitable[T]) -> T:
    return await given
