"""Finds the nearest of many vectors, in plain Python.

An embedding is kept as one signed byte for each of its dimensions. Comparing thousands of them exactly would take too
long, so each also has a code of about a thousand bits: whether each value is above the middle of its dimension or,
where there are few dimensions, above several steps. The codes that differ in the fewest bits from that of a query are
found first, and only those vectors are compared exactly.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from itertools import repeat
from operator import gt, mul
from typing import NamedTuple

from pydantic_ai_skills.filesystem.locks import ThreadLock

CODE_BITS = 1_024
"""How many bits a code has at least."""

MAX_SAMPLED = 256
"""How many vectors are looked at to find the middle of each dimension."""

EXACT_PRODUCTS = 80_000
"""About how many values are multiplied for one query, to compare the best vectors exactly."""

MIN_EXACT = 32
"""How many vectors are compared exactly at least."""

_LARGEST = 127
_DIGITS = bytes.maketrans(b'\0\1', b'01')


class Vector(NamedTuple):
    """The direction of an embedding."""

    values: array[int]
    """One signed byte for each dimension; the largest is 127 or -127."""

    norm: float
    """The Euclidean norm of the values."""

    def similarity(self, other: Vector) -> float:
        """The cosine of the angle between two vectors: 1 for the same direction, 0 for nothing in common."""
        norms = self.norm * other.norm
        comparable = norms and len(self.values) == len(other.values)
        return sum(map(mul, self.values, other.values)) / norms if comparable else 0.0


def vector_of(embedding: Sequence[float]) -> Vector:
    """The vector of an embedding.

    Raises:
        ValueError: It has no dimensions, or values that are not finite.
    """
    if not embedding or not all(map(math.isfinite, embedding)):
        raise ValueError('an embedding is empty, or has values that are not finite')
    scale = _LARGEST / (max(map(abs, embedding)) or 1.0)
    values = array('b', map(round, map(mul, embedding, repeat(scale))))
    return Vector(values, math.sqrt(sum(map(mul, values, values))))


class _Coded(NamedTuple):
    """All vectors at one moment, with their codes."""

    vectors: dict[str, Vector]
    codes: dict[str, int]
    steps: tuple[array[int], ...] = ()
    """The values that each dimension is compared with."""

    sampled: int = 0
    """How many vectors there were when the steps were chosen."""


class VectorIndex:
    """Vectors by name, all with the same number of dimensions. It is safe to use from several threads."""

    def __init__(self) -> None:
        self._coded = _Coded({}, {})
        self._lock = ThreadLock()

    def __len__(self) -> int:
        return len(self._coded.vectors)

    @property
    def size(self) -> int:
        """How many dimensions the vectors have; 0 without any."""
        return len(self._coded.steps[0]) if self._coded.vectors else 0

    def get(self, name: str) -> Vector | None:
        """The vector of this name, if there is one."""
        return self._coded.vectors.get(name)

    def update(self, changed: Mapping[str, Vector], removed: Collection[str]) -> None:
        """Add and replace vectors, and forget the removed names. One with other dimensions replaces all the others."""
        with self._lock:
            vectors, codes, steps, sampled = self._coded
            vectors = {name: vector for name, vector in vectors.items() if name not in removed} | dict(changed)
            size = len(next(iter((changed or vectors).values())).values) if vectors else 0
            vectors = {name: vector for name, vector in vectors.items() if len(vector.values) == size}
            if len(vectors) >= 2 * sampled or size != len(steps[0]):
                steps, sampled, codes = _steps(list(vectors.values()), size), len(vectors), {}
            # Few have changed, as a rule: the others keep their codes.
            kept = {name: code for name, code in codes.items() if name in vectors and name not in changed}
            new = {name: _code(vector, steps) for name, vector in vectors.items() if name not in kept}
            self._coded = _Coded(vectors, kept | new, steps, sampled)

    def nearest(self, wanted: Vector, limit: int) -> list[tuple[str, float]]:
        """At most `limit` names with their similarity, the most similar first."""
        vectors, codes, steps, _ = self._coded
        if not vectors or len(steps[0]) != len(wanted.values):
            return []
        names: Iterable[str] = vectors
        most = max(limit, MIN_EXACT, EXACT_PRODUCTS // len(wanted.values))
        if len(vectors) > most:
            code = _code(wanted, steps)
            distances = [(code ^ other).bit_count() for other in codes.values()]
            every = list(codes)
            names = [every[place] for place in nsmallest(most, range(len(every)), key=distances.__getitem__)]
        compared = ((name, wanted.similarity(vectors[name])) for name in names)
        return nlargest(limit, compared, key=lambda found: (found[1], found[0]))


def _steps(vectors: Sequence[Vector], size: int) -> tuple[array[int], ...]:
    """The values that divide each dimension into equally frequent parts."""
    sample = vectors[:: max(1, len(vectors) // MAX_SAMPLED)]
    columns = [sorted(column) for column in zip(*(vector.values for vector in sample), strict=True)]
    count = -(-CODE_BITS // size) if size else 1
    places = [len(sample) * step // (count + 1) for step in range(1, count + 1)]
    return tuple(array('b', (column[place] for column in columns)) for place in places)


def _code(vector: Vector, steps: tuple[array[int], ...]) -> int:
    bits = b''.join(bytes(map(gt, vector.values, step)) for step in steps)
    return int(bits.translate(_DIGITS), 2)
