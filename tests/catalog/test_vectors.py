"""Finding the nearest of many vectors in two steps, compared with comparing them all."""

from __future__ import annotations

import random

import pytest

from pydantic_ai_skills.catalog.vector_store import VectorStore
from pydantic_ai_skills.catalog.vectors import EXACT_PRODUCTS, MIN_EXACT, Vector, VectorIndex, vector_of


def around(rng: random.Random, centre: list[float]) -> Vector:
    """A vector near a centre, with all centres on one side of zero as those of some models are."""
    return vector_of([1 + value + rng.gauss(0, 0.7) for value in centre])


@pytest.mark.parametrize(('dimensions', 'count'), [(4, 400), (64, 2_000), (1_536, 300)])
def test_the_nearest_are_found_as_if_all_were_compared(dimensions: int, count: int):
    rng = random.Random(dimensions)
    centres = [[rng.gauss(0, 1) for _ in range(dimensions)] for _ in range(20)]
    vectors = {f's-{number}': around(rng, rng.choice(centres)) for number in range(count)}
    index = VectorIndex()
    index.update(vectors, ())
    hits = 0
    for _ in range(10):
        wanted = around(rng, rng.choice(centres))
        best = sorted(vectors, key=lambda name: wanted.similarity(vectors[name]), reverse=True)[:5]
        hits += len({*best} & {name for name, _ in index.nearest(wanted, 5)})
    assert hits / 50 >= 0.9


def test_only_a_part_is_compared_exactly():
    assert max(MIN_EXACT, EXACT_PRODUCTS // 1_536) < 300


def test_vectors_are_added_replaced_and_removed():
    index = VectorIndex()
    north, east = vector_of([0.0, 2.0]), vector_of([0.5, 0.0])
    index.update({'a': north, 'b': east}, ())
    assert index.nearest(north, 2) == [('a', pytest.approx(1)), ('b', 0.0)]
    index.update({'b': north}, {'a'})
    assert [name for name, _ in index.nearest(north, 2)] == ['b']
    assert (len(index), index.size, index.get('a'), index.get('b')) == (1, 2, None, north)
    index.update({}, {'b'})
    assert (len(index), index.size, index.nearest(north, 2)) == (0, 0, [])


def test_vectors_with_other_dimensions_replace_all_others():
    index = VectorIndex()
    index.update({'a': vector_of([1.0, 0.0]), 'b': vector_of([0.0, 1.0])}, ())
    wide = vector_of([1.0, 0.0, 0.0])
    index.update({'c': wide}, ())
    assert (len(index), index.size) == (1, 3)
    assert index.nearest(vector_of([1.0, 0.0]), 5) == []
    assert wide.similarity(vector_of([1.0, 0.0])) == 0


def test_the_file_keeps_the_vectors_that_were_used_last(tmp_path_factory: pytest.TempPathFactory):
    file = tmp_path_factory.mktemp('vectors') / 'v.sqlite'
    store = VectorStore(file, most=2)
    vectors = {bytes([number]): vector_of([1.0, number]) for number in range(3)}
    store.save(vectors)
    assert store.load(vectors) == {key: vectors[key] for key in list(vectors)[1:]}
    assert store.problem is None
