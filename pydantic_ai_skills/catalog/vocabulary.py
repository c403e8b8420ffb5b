"""Finds the words of an index that a word of a query may mean: other forms, prefixes and misspellings."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

MAX_FORMS = 12
"""How many words of the index one word of a query may mean."""

MIN_PREFIX_CHARS = 2
"""A shorter word is never taken for a prefix."""

_WORD = re.compile(r'[^\W_]+')
# The `s` of `PDFs` does not end a hump.
_ENDS_OF_HUMPS = re.compile(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s\b)[a-z])')
# Scripts without spaces between words: each ideograph is indexed as a word; of Thai, Lao, Burmese and Khmer, whose
# single letters say less, each pair of letters.
_IDEOGRAPH = re.compile(
    '([\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])'
)
_UNSPACED = re.compile(
    '[\u0e01-\u0e3e\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109d\u1780-\u17d3\u17e0-\u17e9]{2,}'
)
_LEFT_OUT = frozenset(('Mn', 'Mc', 'Me', 'Cs'))

_MIN_STEM = 3
_ENDINGS = re.compile(
    # Greek words keep `ys`: analysis, analyses, analyzing, analyzer, analyze, analyst, analytics.
    r'(?P<stem>[a-z0-9]{3,60}?)(?:(?P<ys>ys[ei]s|y[zs]ing|y[zs]er|y[zs]e|yst|ytics)'
    r'|i[zs]ation|i[zs]ing|i[zs]ed|i[zs]er|i[zs]e|ation|ating|ated|ates|ator|ate|ment|ing|ion|ies|ied'
    r'|ous|ers|ors|er|or|es|ed|ly|s|e|y)'
).fullmatch


def normalize(text: str) -> str:
    """Text as it is indexed: compatibility forms unified, without combining marks and surrogates, words separated."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize('NFKD', text)
    plain = ''.join(c for c in decomposed if c < '\x80' or unicodedata.category(c) not in _LEFT_OUT)
    return _UNSPACED.sub(_pairs, _IDEOGRAPH.sub(r' \1 ', unicodedata.normalize('NFKC', plain)))


def _pairs(run: re.Match[str]) -> str:
    return f' {" ".join(map("".join, pairwise(run[0])))} '


def words_of(query: str, most: int, *, is_known: Callable[[str], bool] = lambda _: False) -> list[str]:
    """The distinct words of a query in their order, at most `most`, normalized as in the index.

    A word that is known to the index in some form stays whole, such as `GitHub`; any other is split at its humps, such
    as `mergePages`.
    """
    words: dict[str, None] = {}
    for match in _WORD.finditer(normalize(query)):
        humps = _ENDS_OF_HUMPS.split(match[0])
        whole = _small(match[0])
        words |= dict.fromkeys([whole] if len(humps) == 1 or is_known(whole) else map(_small, humps))
    return list(words)[:most]


def _small(word: str) -> str:
    """Lower case as in SQLite, which has only one sigma."""
    return word.lower().replace('\u03c2', '\u03c3')


FILLER_WORDS = frozenset(
    words_of(
        'a about an and any are as at be by can could do does for from get give have help how i in into is it its like '
        'make me my need of on or our please should so some something that the their them there these this to us use '
        'used using want was we what when where which who will with would you your skill skills',
        most=100,
    )
)
"""Words of a request that do not say what it is about."""


def stem(word: str) -> str:
    """The part that the forms of an English word share, so that `merging` finds `merge`."""
    if not word.isascii():
        return word
    while match := _ENDINGS(word):
        word = match['stem']
        if match['ys']:
            return f'{word}ys'
    is_doubled = len(word) > _MIN_STEM and word[-1] == word[-2] and word[-1] not in 'aeiou'
    return word[:-1] if is_doubled else word


class Vocabulary:
    """All words of an index, sorted, with the number of skills that have each."""

    def __init__(self, counted: Iterable[tuple[str, int]] = ()) -> None:
        self._words: list[str] = []
        self._counts = array('L')
        self._letters = array('Q')
        for word, count in counted:
            self._words.append(word)
            self._counts.append(count)
            self._letters.append(_letters(word))

    def __len__(self) -> int:
        return len(self._words)

    def count(self, word: str) -> int:
        """How many skills have a word."""
        at = bisect_left(self._words, word)
        return self._counts[at] if at < len(self._words) and self._words[at] == word else 0

    def knows(self, word: str) -> bool:
        """Whether the index has a word in some form."""
        return bool(self._same_stem(word))

    def meant_by(self, word: str) -> list[str]:
        """The words of the index that a word of a query means.

        These are the word and its other forms; if there are none, words that begin with it; else the two words it is
        made of; else those it is a misspelling of.
        """
        return (
            self._same_stem(word)
            or self._most_common(self._beginning_with(word) if len(word) >= MIN_PREFIX_CHARS else ())
            or self._halves(word)
            or self._misspelled(word)
        )

    def _same_stem(self, word: str) -> list[str]:
        root = stem(word)
        # The stem of a word need not be its beginning: `ies` gives `y`, and a doubled letter is taken once.
        near = root[: max(_MIN_STEM, len(root) - 2)] if len(word) > _MIN_STEM else word
        found = [other for other in self._beginning_with(near) if other == word or stem(other) == root]
        return self._most_common(found, first=word)

    def _beginning_with(self, prefix: str) -> Iterator[str]:
        for at in range(bisect_left(self._words, prefix), len(self._words)):
            if not self._words[at].startswith(prefix):
                return
            yield self._words[at]

    def _most_common(self, words: Iterable[str], first: str = '') -> list[str]:
        return sorted(words, key=lambda word: (word != first, -self.count(word), word))[:MAX_FORMS]

    def _halves(self, word: str) -> list[str]:
        """The two words of the index that were written as one; none if there are no such words."""
        cuts = ((word[:at], word[at:]) for at in range(2, len(word) - 1))
        halves = [(min(map(self.count, cut)), cut) for cut in cuts]
        rarer, cut = max(halves, default=(0, ()))
        return list(cut) if rarer else []

    def _misspelled(self, word: str) -> list[str]:
        """The words with the fewest mistakes between them and this one: at most one if it is short, else two."""
        if len(word) < 3 or word.isdigit():
            return []
        most = 1 if len(word) < 6 else 2
        found = [
            (distance, other)
            for other in self._similar(word, most)
            if (distance := mistakes(word, other, most)) <= most
        ]
        fewest = min(found, default=(0, ''))[0]
        return self._most_common(other for distance, other in found if distance == fewest)[:3]

    def _similar(self, word: str, most: int) -> Iterator[str]:
        """The few words worth comparing: each mistake changes at most two letters and the length by one."""
        letters, length = _letters(word), len(word)
        for other, its_letters in zip(self._words, self._letters, strict=True):
            if (letters ^ its_letters).bit_count() <= 2 * most and -most <= len(other) - length <= most:
                yield other


def mistakes(one: str, other: str, most: int) -> int:
    """How many letters are missing, added, wrong or swapped with the next; at most `most + 1`."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, its_letter in enumerate(other, 1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (letter != its_letter))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == its_letter:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, last = last, current
    return min(last[-1], most + 1)


def _letters(word: str) -> int:
    """Which letters a word has, as bits."""
    letters = 0
    for character in word:
        letters |= 1 << (ord(character) & 63)
    return letters
