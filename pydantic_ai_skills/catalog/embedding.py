"""Finds skills by what a request means, with embeddings of any provider, and by its words."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from anyio import CapacityLimiter, create_task_group, fail_after, to_thread
from anyio.lowlevel import RunVar
from pydantic_ai.embeddings import (
    Embedder,
    EmbeddingModel,
    EmbeddingSettings,
    KnownEmbeddingModelName,
    infer_embedding_model,
)

from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.skill import Skill

from .fulltext import MAX_INDEXED_CHARS, FullTextRanker, tags_of
from .vector_store import VectorStore
from .vectors import Vector, VectorIndex, vector_of

T = TypeVar('T')
_NUMBERS = count()

logger = logging.getLogger('pydantic_ai_skills')

MAX_BATCH = 96
"""How many texts are embedded with one request: the smallest limit of pydantic-ai's providers."""

MAX_REQUESTS = 4
"""How many requests are made at once."""

MAX_QUERIES = 256
"""How many queries keep their vector in memory."""

DEPTH = 30
"""How many skills are taken from each ranking, at least, before both are fused."""

RANK_OFFSET = 10
"""Added to each place before its reciprocal is taken: the larger, the more both rankings have to agree."""

MAX_ERROR_CHARS = 300
"""How much of a provider's error is shown."""


class EmbeddingRanker:
    """Finds skills by meaning and by words, and fuses both rankings by the reciprocals of their places.

    The name, the description and the tags of a skill are embedded once; the result is kept on disk until they or the
    model change. The first search, or `await toolset.load(search=True)`, embeds what is new. If the provider fails,
    skills are found by their words, and there is a problem `embedding-failed`.

    ```python
    from pydantic_ai_skills import EmbeddingRanker, SkillsToolset

    ranker = EmbeddingRanker('openai:text-embedding-3-small')
    toolset = SkillsToolset(directories=['./skills'], ranker=ranker)
    ```
    """

    def __init__(
        self,
        model: EmbeddingModel | KnownEmbeddingModelName | str,
        *,
        settings: EmbeddingSettings | None = None,
        disk_index: bool | str | Path = True,
        min_similarity: float = 0.0,
        timeout: float = 30.0,
        retry_after: float = 60.0,
    ) -> None:
        """Remember the model; nothing is embedded yet.

        Args:
            model: The embedding model, or its name as `provider:model`.
            settings: Settings for the model, such as `dimensions`.
            disk_index: Whether vectors are kept on disk: `True` for a file in the user's cache folder, or the path of a
                file.
            min_similarity: Skills whose similarity to a query, from -1 to 1, is not above this are not found by
                meaning.
            timeout: Seconds one request to the provider may take.
            retry_after: Seconds after a failure of the provider before it is asked again.
        """
        self._given = model
        self._settings = settings
        self._timeout = timeout
        self._retry_after = retry_after
        self._min_similarity = min_similarity
        self._store = VectorStore(None if disk_index is True else disk_index) if disk_index else None
        self._forget()

    def _forget(self) -> None:
        # Clients of providers keep connections that belong to one event loop.
        self._embedder: RunVar[Embedder | None] = RunVar(f'embedder {next(_NUMBERS)}', None)
        self._identity = ''
        self._index = VectorIndex()
        self._texts: dict[str, str] = {}
        """The text to embed for each skill, by name."""
        self._size = 0
        """How many dimensions the provider's latest embedding had; 0 if there was none yet."""
        self._is_embedding = False
        self._queries: dict[str, Vector] = {}
        self._failed_at: float | None = None
        self._failure: SkillProblem | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy is given all skills again; their vectors are on disk.
        kept = ('_given', '_settings', '_timeout', '_retry_after', '_min_similarity', '_store')
        return {name: vars(self)[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    @cached_property
    def _words(self) -> FullTextRanker:
        return FullTextRanker()  # opens a database, so only off the event loop

    @property
    def problems(self) -> list[SkillProblem]:
        """Why skills are not found by meaning at the moment, or why their vectors are not kept."""
        found = (self._failure, self._store.problem if self._store else None)
        return [each for each in found if each is not None]

    # --- As a ranker ----------------------------------------------------------------------------------------------

    async def update(self, changed: Sequence[Skill[Any]], removed: Collection[str]) -> None:
        """Index new and changed skills, and forget the removed names."""
        await in_thread(lambda: self._words.update(changed, removed))
        texts = await in_thread(lambda: {skill.name: _text_of(skill) for skill in changed})
        self._texts = {name: text for name, text in self._texts.items() if name not in removed} | texts
        # What a skill no longer says must not find it.
        await in_thread(self._index.update, {}, {*removed, *texts})
        await self._embed_missing()

    async def rank(self, query: str, limit: int) -> list[str]:
        """The names of at most `limit` skills that fit a query, best first."""
        depth = max(limit, DEPTH)
        by_words = await in_thread(lambda: self._words.rank(query, depth))
        by_meaning = await self._nearest(query, depth)
        return fuse(by_meaning, by_words)[:limit]

    async def similarities(self, query: str, names: Iterable[str]) -> dict[str, float]:
        """How similar skills are to a query, from -1 to 1; without those that have no vector."""
        wanted = await self._vector_of_query(query)
        return {} if wanted is None else await in_thread(self._compare, wanted, names)

    def _compare(self, wanted: Vector, names: Iterable[str]) -> dict[str, float]:
        vectors = {name: vector for name in names if (vector := self._index.get(name))}
        return {name: wanted.similarity(vector) for name, vector in vectors.items()}

    async def _nearest(self, query: str, limit: int) -> list[str]:
        """The names of the skills that are most similar to a query."""
        wanted = await self._vector_of_query(query)
        if wanted is None:
            return []
        if self._index.size != self._size:  # the provider has another model under the same name
            await in_thread(self._index.update, {}, set(self._texts))
        await self._embed_missing()
        found = await in_thread(self._index.nearest, wanted, limit)
        return [name for name, similarity in found if similarity > self._min_similarity]

    # --- Embedding ------------------------------------------------------------------------------------------------

    @property
    def _may_ask(self) -> bool:
        """Whether the provider has not failed lately."""
        return self._failed_at is None or time.monotonic() - self._failed_at >= self._retry_after

    async def _embed_missing(self) -> None:
        """Give a vector to each text that has none: the one on disk, or a new one."""
        if len(self._index) == len(self._texts) or self._is_embedding or not self._may_ask:
            return
        self._is_embedding = True
        try:
            embedder = await self._open()
            await in_thread(self._load_missing)
            await self._embed_batches(embedder)
            self._note_success()
        except Exception as error:  # noqa: BLE001 - the border around a provider
            self._failed(error)
        finally:
            self._is_embedding = False

    def _missing(self) -> dict[str, str]:
        return {name: text for name, text in self._texts.items() if self._index.get(name) is None}

    def _load_missing(self) -> None:
        """Load the missing vectors that are on disk."""
        if self._store is None:
            return
        keys = {name: self._key(text) for name, text in self._missing().items()}
        kept = self._store.load(keys.values())
        fitting = {key: vector for key, vector in kept.items() if self._size in (0, len(vector.values))}
        self._index.update({name: fitting[key] for name, key in keys.items() if key in fitting}, ())

    async def _open(self) -> Embedder:
        """The embedder for this event loop. Only now are the provider's package and key needed."""
        embedder = self._embedder.get()
        if embedder is None:
            model = await in_thread(infer_embedding_model, self._given)
            settings = {**(model.settings or {}), **(self._settings or {})}
            told = sorted((name, repr(value)) for name, value in settings.items() if name != 'extra_headers')
            self._identity = repr((model.system, model.base_url, model.model_name, told))
            embedder = Embedder(model, settings=self._settings)
            self._embedder.set(embedder)
        return embedder

    async def _embed_batches(self, embedder: Embedder) -> None:
        missing = list(self._missing().items())
        batches = iter([dict(missing[start : start + MAX_BATCH]) for start in range(0, len(missing), MAX_BATCH)])

        async def work() -> None:
            for texts in batches:
                if not await self._embed(embedder, texts):
                    return

        async with create_task_group() as group:
            for _ in range(MAX_REQUESTS):
                group.start_soon(work)

    async def _embed(self, embedder: Embedder, texts: Mapping[str, str]) -> bool:
        """Embed the texts of some skills with one request; return whether that worked."""
        try:
            with fail_after(self._timeout):
                result = await embedder.embed_documents(list(texts.values()))
            pairs = zip(texts, result.embeddings, strict=True)
            vectors = await in_thread(lambda: {name: self._received(embedding) for name, embedding in pairs})
        except Exception as error:  # noqa: BLE001 - the border around a provider
            self._failed(error)
            return False
        if self._store:
            await in_thread(self._store.save, {self._key(texts[name]): vector for name, vector in vectors.items()})
        # A reload may have changed some meanwhile.
        current = {name: vector for name, vector in vectors.items() if self._texts.get(name) == texts[name]}
        await in_thread(self._index.update, current, ())
        return True

    async def _vector_of_query(self, query: str) -> Vector | None:
        """The vector of a query; `None` if the provider fails."""
        if query not in self._queries and self._may_ask:
            try:
                embedder = await self._open()
                with fail_after(self._timeout):
                    result = await embedder.embed_query(query)
                if len(self._queries) >= MAX_QUERIES:
                    self._queries.clear()
                self._queries[query] = self._received(result.embeddings[0])
                self._note_success()
            except Exception as error:  # noqa: BLE001 - the border around a provider
                self._failed(error)
        return self._queries.get(query)

    def _received(self, embedding: Sequence[float]) -> Vector:
        """The vector of an embedding that the provider has sent."""
        vector = vector_of(embedding)
        self._size = len(vector.values)
        return vector

    def _note_success(self) -> None:
        """Forget the last failure, unless texts still lack a vector because of it."""
        if len(self._index) == len(self._texts):
            self._failed_at = self._failure = None

    def _key(self, text: str) -> bytes:
        """The key under which the vector of a text is kept on disk."""
        return hashlib.sha256(f'{self._identity}\n{text}'.encode('utf-8', 'replace')).digest()

    def _failed(self, error: Exception) -> None:
        self._failed_at = time.monotonic()
        name = self._given if isinstance(self._given, str) else self._given.model_name
        what = ' '.join(str(error).split())[:MAX_ERROR_CHARS] or 'no message'
        message = f'Skills are found by their words only: embedding failed with {type(error).__name__}: {what}'
        self._failure = problem('embedding-failed', name, message)
        logger.warning('%s', self._failure)


async def in_thread(function: Callable[..., T], *args: object) -> T:
    """Run a function in a worker thread, off the event loop.

    It is not one of anyio's 40 threads: searches that wait for this one may occupy them all.
    """
    return await to_thread.run_sync(function, *args, limiter=CapacityLimiter(1))


def fuse(*rankings: Sequence[str]) -> list[str]:
    """Fuse rankings by the sums of the reciprocals of their places, best first; ties go to the earlier ranking."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, name in enumerate(ranking, 1):
            scores[name] = scores.get(name, 0) + 1 / (RANK_OFFSET + place)
    return sorted(scores, key=scores.__getitem__, reverse=True)


def _text_of(skill: Skill[Any]) -> str:
    """The text to embed for a skill."""
    tags = ', '.join(filter(None, tags_of(skill)))
    return '\n'.join(filter(None, (skill.name.replace('-', ' '), skill.description, tags)))[:MAX_INDEXED_CHARS]
