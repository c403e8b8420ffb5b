"""The words of an index, and which of them a word of a query may mean: other forms, beginnings, and mistypings."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

__all__ = ('Vocabulary', 'normalize', 'stem', 'words_of')

MAX_FORMS = 12
"""How many words of the index one word of a query may stand for."""

MIN_PREFIX_CHARS = 2
"""A shorter word is never taken for the beginning of another."""

_WORD = re.compile(r'[^\W_]+')
# The last letter of `PDFs` ends no hump.
_ENDS_OF_HUMPS = re.compile(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s\b)[a-z])')
# Scripts that put no spaces between words: each ideograph is a word to the index, and of letters, which tell less, each
# pair: Thai and Lao, Burmese, Khmer.
_IDEOGRAPH = re.compile(
    '([\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])'
)
_UNSPACED = re.compile(
    '[\u0e01-\u0e3e\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109d\u1780-\u17d3\u17e0-\u17e9]{2,}'
)
_LEFT_OUT = frozenset(('Mn', 'Mc', 'Me', 'Cs'))

_SUFFIXES = (
    *((suffix, 'ys') for suffix in ('ysis', 'yses', 'yzing', 'ysing', 'yzer', 'yser', 'yze', 'yse', 'yst', 'ytics')),
    *(
        (suffix, '')
        for suffix in ('ization', 'isation', 'izing', 'ising', 'ized', 'ised', 'izer', 'iser', 'ize', 'ise')
    ),
    *((suffix, '') for suffix in ('ation', 'ating', 'ated', 'ates', 'ator', 'ate', 'ment', 'ing', 'ion', 'ies', 'ied')),
    *((suffix, '') for suffix in ('ous', 'ers', 'ors', 'er', 'or', 'es', 'ed', 'ly')),
    *((suffix, '') for suffix in ('s', 'e', 'y')),
)
_MIN_STEM = 3


def normalize(text: str) -> str:
    """Text as the index takes it: compatible letters as one, without marks or half characters, words apart."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize('NFKD', text)
    plain = ''.join(c for c in decomposed if c < '\x80' or unicodedata.category(c) not in _LEFT_OUT)
    return _UNSPACED.sub(_pairs, _IDEOGRAPH.sub(r' \1 ', unicodedata.normalize('NFKC', plain)))


def _pairs(run: re.Match[str]) -> str:
    return f' {" ".join(map("".join, pairwise(run[0])))} '


def words_of(query: str, most: int, *, is_known: Callable[[str], bool] = lambda _: False) -> list[str]:
    """The different words of a query, as they are in the index, in their order.

    Args:
        query: The query.
        most: How many words to return at most.
        is_known: Whether a word is in the index in some form: then it is one word, such as `GitHub`, and otherwise as
            many as it has humps, such as `mergePages`.
    """
    words: dict[str, None] = {}
    for match in _WORD.finditer(normalize(query)):
        humps = _ENDS_OF_HUMPS.split(match[0])
        whole = _small(match[0])
        words |= dict.fromkeys([whole] if len(humps) == 1 or is_known(whole) else map(_small, humps))
    return list(words)[:most]


def _small(word: str) -> str:
    """In the small letters of SQLite, which has one sigma."""
    return word.lower().replace('\u03c2', '\u03c3')


def stem(word: str) -> str:
    """The part that the forms of an English word have in common, so that `merging` finds `merge`."""
    if not word.isascii():
        return word
    shorter = word
    while True:
        for suffix, instead in _SUFFIXES:
            if shorter.endswith(suffix) and len(shorter) - len(suffix) >= _MIN_STEM:
                shorter = shorter[: -len(suffix)] + instead
                break
        else:
            break
        if instead:
            return shorter
    if len(shorter) > _MIN_STEM and shorter[-1] == shorter[-2] and shorter[-1] not in 'aeiou':
        shorter = shorter[:-1]
    return shorter


class Vocabulary:
    """All words of an index, sorted, with the number of skills each one is in."""

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
        """In how many skills a word is."""
        at = bisect_left(self._words, word)
        return self._counts[at] if at < len(self._words) and self._words[at] == word else 0

    def knows(self, word: str) -> bool:
        """Whether a word is there in some form."""
        return bool(self._same_stem(word))

    def meant_by(self, word: str) -> list[str]:
        """The words of the index that a word of a query stands for; none if there are none like it.

        These are the word itself and its other forms; if there are none, words that begin with it; then the two words
        it is made of; then those it is a mistyping of.
        """
        return (
            self._same_stem(word)
            or self._most_common(self._beginning_with(word) if len(word) >= MIN_PREFIX_CHARS else ())
            or self._halves(word)
            or self._mistyped(word)
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
        """The two words that were written as one, where there are such."""
        cuts = ((word[:at], word[at:]) for at in range(2, len(word) - 1))
        halves = [(min(map(self.count, cut)), cut) for cut in cuts]
        rarer, cut = max(halves, default=(0, ()))
        return list(cut) if rarer else []

    def _mistyped(self, word: str) -> list[str]:
        """The words that are the fewest mistakes away, at most one in a short word and two in a long one."""
        length = len(word)
        if length < 3 or word.isdigit():
            return []
        most = 1 if length < 6 else 2
        letters = _letters(word)
        # A mistake changes at most two letters of a word. Few words pass, so that comparing them costs little.
        close = [
            other
            for other, its_letters in zip(self._words, self._letters, strict=True)
            if (letters ^ its_letters).bit_count() <= 2 * most and -most <= len(other) - length <= most
        ]
        found = [(distance, other) for other in close if (distance := mistakes(word, other, most)) <= most]
        fewest = min((distance for distance, _ in found), default=0)
        return self._most_common(other for distance, other in found if distance == fewest)[:3]


def mistakes(one: str, other: str, most: int) -> int:
    """How many letters are missing, too many, wrong or swapped with the next one; more than `most` is `most + 1`."""
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
