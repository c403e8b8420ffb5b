"""Searches a catalog with a ranker.

The first search builds the index; later ones tell the ranker what has changed since. Searches block, so they run in a
worker thread, not on the event loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.filesystem.locks import ThreadLock
from pydantic_ai_skills.parsing.skill_names import spellings
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import Skill

if TYPE_CHECKING:
    from .fulltext import FullTextRanker, PromptWord

MAX_QUERY_CHARS = 2_000
"""The rest of a longer query is ignored."""

MAX_CLOSE = 5
"""How many names to suggest for one that does not exist."""

Skills = Mapping[str, Skill[Any]]
Wait = Callable[[Coroutine[Any, Any, Any]], Any]
T = TypeVar('T')


class SkillRanker(Protocol):
    """Finds the skills that fit a query.

    Plain methods run in worker threads, so they may block; `async` methods run on the agent's event loop.

    `EmbeddingRanker` searches with embeddings. Write your own ranker for another kind of search.

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
        """Index new and changed skills, and forget the removed names. Never called twice at once."""
        ...

    def rank(self, query: str, limit: int) -> Awaitable[Iterable[str]] | Iterable[str]:
        """The names of at most `limit` skills that fit a query, best first. May be called concurrently."""
        ...


RankerT = TypeVar('RankerT', bound=SkillRanker)


class Ranking(NamedTuple):
    """How a search ranks skills."""

    names: tuple[str, ...]
    """The names, best first, as the search gives them."""

    by_words: tuple[str, ...]
    """The names by words alone, best first."""

    words: tuple[PromptWord, ...]
    """The words of the query that count, and where they are found."""

    similarities: Mapping[str, float]
    """How similar in meaning each skill is, if the ranker compares meanings."""


class SkillSearch:
    """Searches the catalog of one toolset."""

    def __init__(self, ranker: SkillRanker | None) -> None:
        self._given = None if ranker is None else Index(ranker)
        self._full_text: Index[FullTextRanker] | None = None
        self._lock = ThreadLock()

    def __getstate__(self) -> dict[str, Any]:
        # A copy makes the full-text index itself.
        return {**vars(self), '_full_text': None}

    @property
    def problems(self) -> list[SkillProblem]:
        """The problems of the ranker, if it reports any, as an `EmbeddingRanker` does."""
        return list(getattr(self._given.ranker, 'problems', ())) if self._given else []

    def prepare(self, skills: Skills, wait_for: Wait | None = None) -> None:
        """Build the index now, or tell the ranker what has changed, so that the next search need not."""
        (self._given or self._full_text_index()).update(skills, wait_for)

    def find(
        self, query: str, skills: Skills, visible: Skills, limit: int, wait_for: Wait | None = None
    ) -> list[Skill[Any]]:
        """At most `limit` of the visible skills, best first; a skill whose name is the query comes before all others.

        All `skills` of the catalog are indexed. `wait_for` runs the coroutines of an async ranker; without it, they run
        on an event loop of their own.

        Raises:
            ValueError: The query is empty, or the limit is less than 1.
            SkillError: The ranker failed.
        """
        query = query.strip()[:MAX_QUERY_CHARS]
        if not query or limit < 1:
            raise ValueError('A search needs at least one word, and a limit of at least 1.')
        try:
            self.prepare(skills, wait_for)
            index = self._given or self._full_text_index()
            exact = [name for name in spellings(query) if name in visible][:1]
            names = [*exact, *index.rank(query, visible, limit, wait_for)]
        except SkillError:
            raise
        except Exception as error:  # a ranker may be the developer's own code
            raise SkillError(f'The search failed with {type(error).__name__}: {error}') from error
        return [visible[name] for name in dict.fromkeys(names)][:limit]

    def explain(self, query: str, skills: Skills, visible: Skills, limit: int, wait_for: Wait | None = None) -> Ranking:
        """How the visible skills are ranked for a query, and by which words. The errors are those of `find`."""
        ranked = tuple(skill.name for skill in self.find(query, skills, visible, limit, wait_for))
        query = query.strip()[:MAX_QUERY_CHARS]
        index = self._full_text_index()
        index.update(skills)
        by_words = tuple(index.rank(query, visible, limit, None)[:limit])
        compare: Any = getattr(self._given.ranker, 'similarities', None) if self._given else None
        similarities: dict[str, float] = _settle(compare(query, visible), wait_for) if compare else {}
        return Ranking(ranked, by_words, tuple(index.ranker.explain(query, visible)), similarities)

    def close_to(self, name: str, skills: Skills, visible: Skills) -> Sequence[str]:
        """Names of visible skills that are close to a name that does not exist, the closest first."""
        try:
            index = self._full_text_index()
        except SkillError:
            return []
        index.update(skills)
        return [other for other in index.ranker.close_to(name[:MAX_QUERY_CHARS]) if other in visible][:MAX_CLOSE]

    def _full_text_index(self) -> Index[FullTextRanker]:
        from .fulltext import FullTextRanker  # imports SQLite, which few agents need

        with self._lock:
            if self._full_text is None:
                self._full_text = Index(FullTextRanker())
            return self._full_text


class Index(Generic[RankerT]):
    """A ranker and the skills it knows."""

    def __init__(self, ranker: RankerT) -> None:
        self.ranker = ranker
        self._known: Skills = {}
        self._assignments = Skill.assignments
        self._lock = ThreadLock()

    def __getstate__(self) -> dict[str, Any]:
        # A copy of a ranker may know nothing: it is given all skills again.
        return {**vars(self), '_known': {}}

    def update(self, skills: Skills, wait_for: Wait | None = None) -> None:
        """Tell the ranker which skills have changed since the last update."""
        with self._lock:
            known = self._known
            if known is not skills:
                # After an assignment to any field, each skill may say something else than before.
                assigned, self._assignments = self._assignments != Skill.assignments, Skill.assignments
                changed = [skill for name, skill in skills.items() if assigned or known.get(name) is not skill]
                removed = known.keys() - skills.keys()
                if changed or removed:
                    _settle(self.ranker.update(changed, removed), wait_for)
                self._known = skills

    def rank(self, query: str, visible: Skills, limit: int, wait_for: Wait | None) -> list[str]:
        """Names of visible skills that fit a query. As hidden ones may fit better, the ranker may be asked for more."""
        asked = limit
        while True:
            ranked = list(_settle(self.ranker.rank(query, asked), wait_for))
            names = [name for name in ranked if name in visible]
            if len(names) >= limit or len(ranked) < asked:
                return names
            asked *= 10


class _OwnLoop:
    """An event loop in a thread of its own, for searches outside of an event loop.

    It is kept, because the clients of providers keep connections that belong to the loop they were opened on.
    """

    def __init__(self) -> None:
        self._lock = ThreadLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for its result."""
        with self._lock:
            if self._loop is None or self._process != os.getpid():  # a fork has no threads of its parent
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=self._loop.run_forever, daemon=True, name='skills-search').start()
            waiting = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return waiting.result()


_own_loop = _OwnLoop()


def wait_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the event loop from which this worker thread was started."""
    import anyio.from_thread  # only needed for async rankers

    return anyio.from_thread.run(_wait, coroutine)


def _settle(given: Awaitable[T] | T, wait_for: Wait | None) -> T:
    """The value itself, or the result of awaiting it."""
    wait = wait_for or _own_loop.run
    return wait(_wait(cast(Awaitable[T], given))) if isinstance(given, Awaitable) else cast(T, given)


async def _wait(given: Awaitable[T]) -> T:
    return await given
