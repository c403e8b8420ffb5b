"""Searching by meaning: how long ten thousand vectors take, and whether the nearest of them are found."""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from operator import mul
from pathlib import Path
from typing import Any

from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, EmbeddingSettings
from pydantic_ai.embeddings.result import EmbedInputType

from pydantic_ai_skills import EmbeddingRanker, Skill, find_overlaps
from pydantic_ai_skills.catalog.embedding import DEPTH
from pydantic_ai_skills.catalog.vectors import Vector, VectorIndex, vector_of

from .figure import ROUNDS, Figure, best_of

COUNT = 10_000
SIZES = (384, 1_536, 3_072)
"""Dimensions of common models."""

JUDGED = 1_536
QUERIES = 20
BEST = 5


class Clusters(EmbeddingModel):
    """Gives each text a direction of its own near one of two hundred, as texts about the same things have."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.random = random.Random(dimensions)
        self.centres = [[self.random.gauss(0.5, 1) for _ in range(dimensions)] for _ in range(200)]

    @property
    def model_name(self) -> str:
        return f'clusters-{len(self.centres[0])}'

    @property
    def system(self) -> str:
        return 'benchmarks'

    def direction(self) -> list[float]:
        centre = self.random.choice(self.centres)
        return [
            value + (noise - 128) / 80 for value, noise in zip(centre, self.random.randbytes(len(centre)), strict=True)
        ]

    async def embed(
        self, inputs: str | Sequence[str], *, input_type: EmbedInputType, settings: EmbeddingSettings | None = None
    ) -> EmbeddingResult:
        texts, _ = self.prepare_embed(inputs, settings)
        return EmbeddingResult(
            [self.direction() for _ in texts],
            inputs=texts,
            input_type=input_type,
            model_name=self.model_name,
            provider_name=self.system,
        )


def bare(vectors: dict[str, Vector], wanted: Vector) -> list[str]:
    """Compare all vectors, in a loop."""
    scores = {name: sum(map(mul, wanted.values, vector.values)) / vector.norm for name, vector in vectors.items()}
    return sorted(scores, key=scores.__getitem__, reverse=True)[:BEST]


def nearest(size: int) -> Iterator[Figure]:
    model = Clusters(size)
    vectors = {f's-{number}': vector_of(model.direction()) for number in range(COUNT)}
    index = VectorIndex()
    index.update(vectors, ())
    queries = [vector_of(model.direction()) for _ in range(QUERIES)]
    fast, slow = best_of(lambda: index.nearest(queries[0], DEPTH), lambda: bare(vectors, queries[0]), rounds=ROUNDS)
    what = f'nearest of {COUNT:,} vectors, {size:,} dimensions'
    yield Figure(
        what=what,
        measured=fast,
        unit='ms',
        judged_by='ratio',
        limit=0.05,
        baseline=slow,
        baseline_is='compare them all in a loop',
    )
    if size == JUDGED:
        yield Figure(what=f'{what}, in time', measured=fast, unit='ms', limit=10)
    hits = sum(len({*bare(vectors, wanted)} & {name for name, _ in index.nearest(wanted, BEST)}) for wanted in queries)
    yield Figure(
        what=f'share of the {BEST} nearest found, {size:,} dimensions',
        measured=hits / QUERIES / BEST,
        unit='',
        limit=0.9,
        at_least=True,
    )


async def searches(file: Path) -> list[Figure]:
    """A whole search, words included, and a start with the vectors on disk."""
    skills = [Skill[Any](f'task-{number}', f'Does task {number} of a list.', '') for number in range(COUNT)]
    await EmbeddingRanker(Clusters(JUDGED), disk_index=file).update(skills, ())
    ranker = EmbeddingRanker(Clusters(JUDGED), disk_index=file)
    start = time.perf_counter()
    await ranker.update(skills, ())
    again = (time.perf_counter() - start) * 1000
    taken: list[float] = []
    for number in range(QUERIES):
        start = time.perf_counter()
        await ranker.rank(f'task {number}', 10)
        taken.append((time.perf_counter() - start) * 1000)
    return [
        Figure(what=f'index of {COUNT:,} skills with vectors on disk', measured=again, unit='ms'),
        Figure(
            what=f'search by meaning and words in {COUNT:,}, median',
            measured=statistics.median(taken),
            unit='ms',
        ),
    ]


def overlaps() -> Iterator[Figure]:
    rng = random.Random(7)
    words = [''.join(rng.choices('abcdefghijklmnoprstuvwz', k=6)) for _ in range(5_000)]
    weights = [1 / (place + 1) for place in range(len(words))]
    some = {f's-{number}': ' '.join(rng.choices(words, weights, k=25)) for number in range(COUNT)}
    part = dict(list(some.items())[: COUNT // 4])
    whole, quarter = (best_of(lambda given=given: find_overlaps(given), rounds=3)[0] for given in (some, part))
    yield Figure(
        what=f'overlaps among {COUNT:,} descriptions',
        measured=whole,
        unit='ms',
        judged_by='ratio',
        limit=12,
        baseline=quarter,
        baseline_is=f'among {COUNT // 4:,}; comparing all pairs would be 16 times as much',
    )


def figures() -> Iterator[Figure]:
    for size in SIZES:
        yield from nearest(size)
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(searches(Path(folder) / 'vectors.sqlite'))
    yield from overlaps()
