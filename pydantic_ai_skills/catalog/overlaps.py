"""Finds descriptions that overlap so much that a model cannot tell their skills apart.

The similarity of two descriptions is the weight of the words they share, divided by the weight of all their words;
rare words weigh more. Two skills can be told apart, however much else they share, if each has a word of its own that is
also in its name, such as `pdf-merge` and `docx-merge`. Only descriptions that share one of their rarest words are
compared, so that ten thousand take a few seconds at most.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .vocabulary import FILLER_WORDS, stem, words_of

THRESHOLD = 0.6
"""The least similarity at which two descriptions overlap."""

MAX_WORDS = 200
"""How many words of a description are compared."""

MAX_SHARING = 50
"""How many others with the same rare word a description is compared with."""

_EMPTY_WORDS = FILLER_WORDS | frozenset(
    words_of(
        'after also ask asked asking asks before but etc handle handles if include includes including invoke load '
        'mention mentioned mentions must no not one only other others request requests such task tasks than then they '
        'trigger triggers user users various whenever work works working',
        most=100,
    )
)
"""Words of a description that do not say what it is about."""


@dataclass(frozen=True, kw_only=True)
class SkillOverlap:
    """Skills whose descriptions are hard to tell apart."""

    names: tuple[str, ...]
    """The names of the skills: two, or all that have the same words."""

    similarity: float
    """How much of their words they share, from 0 to 1; rare words count more."""

    shared: tuple[str, ...]
    """The words they share, the rarest first."""

    apart: Mapping[str, tuple[str, ...]]
    """For each name, the words that only this skill has: what a model can tell it apart by."""


def find_overlaps(descriptions: Mapping[str, str], *, threshold: float = THRESHOLD) -> list[SkillOverlap]:
    """Find skills whose descriptions a model can hardly tell apart, the most similar first.

    ```python
    from pydantic_ai_skills import find_overlaps

    descriptions = {
        'pdf-tools': 'Work with PDF documents: merge, split and rotate pages.',
        'pdf-pages': 'Merge, split and rotate the pages of PDF documents.',
        'haiku': 'Write short poems.',
    }
    for overlap in find_overlaps(descriptions):
        print(overlap.names, overlap.apart)
        #> ('pdf-pages', 'pdf-tools') {'pdf-pages': (), 'pdf-tools': ()}
    ```

    Args:
        descriptions: The descriptions by the names of the skills.
        threshold: The least similarity at which they overlap, from 0 to 1.
    """
    words = {name: _words(text) for name, text in sorted(descriptions.items())}
    same: dict[frozenset[str], list[str]] = {}
    for name, stems in words.items():
        if stems:
            same.setdefault(frozenset(stems), []).append(name)
    weigher = _Weights(words.values())
    alike = [(names, 1.0) for names in same.values() if len(names) > 1]
    near = [(names, similarity) for names, similarity in _near(same, weigher, threshold) if not _tell(names, words)]
    overlaps = [_overlap(names, similarity, words, weigher) for names, similarity in (*alike, *near)]
    return sorted(overlaps, key=lambda overlap: (-overlap.similarity, overlap.names))


def _words(text: str) -> dict[str, str]:
    """The words of a text that say something, by their stems."""
    words = [word for word in words_of(text, MAX_WORDS) if word not in _EMPTY_WORDS]
    return {stem(word): word for word in reversed(words)}


def _tell(names: list[str], words: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether each of two skills has a word of its own that is in its name too."""
    one, other = names
    own = ((one, words[one].keys() - words[other].keys()), (other, words[other].keys() - words[one].keys()))
    return all(stems & set(map(stem, words_of(name, MAX_WORDS))) for name, stems in own)


class _Weights:
    """How much each word counts: the fewer descriptions have it, the more."""

    def __init__(self, descriptions: Iterable[Mapping[str, str]]) -> None:
        texts = list(descriptions)
        self._counts = Counter(word for stems in texts for word in stems)
        self._weights = {word: math.log(1 + len(texts) / count) for word, count in self._counts.items()}

    def of(self, words: Iterable[str]) -> float:
        return sum(map(self._weights.__getitem__, words))

    def rarest_first(self, words: Iterable[str]) -> list[str]:
        return sorted(words, key=lambda word: (self._counts[word], word))

    def prefix(self, words: frozenset[str], threshold: float) -> Iterator[str]:
        """The rarest words; the others weigh too little to reach the threshold.

        A description that is similar enough shares one of these words, and has it among its own rarest words too.
        """
        left = total = self.of(words)
        for word in self.rarest_first(words):
            if left < threshold * total:
                return
            yield word
            left -= self._weights[word]


def _near(
    same: Mapping[frozenset[str], list[str]], weigher: _Weights, threshold: float
) -> Iterator[tuple[list[str], float]]:
    """Pairs of names whose words are nearly the same; one name for each set of words."""
    having: dict[str, list[frozenset[str]]] = {}
    totals = {words: weigher.of(words) for words in same}
    for words, (name, *_) in same.items():
        total = totals[words]
        compared: set[frozenset[str]] = set()
        for word in weigher.prefix(words, threshold):
            sharing = having.setdefault(word, [])
            compared.update(sharing[-MAX_SHARING:])
            sharing.append(words)
        for other in compared:
            # However much they share, one that says far more than the other is not similar.
            if threshold * max(total, totals[other]) <= min(total, totals[other]):
                shared = weigher.of(words & other)
                similarity = shared / (total + totals[other] - shared)
                if similarity >= threshold:
                    yield sorted((name, same[other][0])), similarity


def _overlap(
    names: list[str], similarity: float, words: Mapping[str, Mapping[str, str]], weigher: _Weights
) -> SkillOverlap:
    shared = set(words[names[0]]).intersection(*(words[name] for name in names))
    own = {name: weigher.rarest_first(words[name].keys() - shared) for name in names}
    return SkillOverlap(
        names=tuple(names),
        similarity=round(similarity, 2),
        shared=tuple(words[names[0]][word] for word in weigher.rarest_first(shared)),
        apart={name: tuple(words[name][word] for word in stems) for name, stems in own.items()},
    )
