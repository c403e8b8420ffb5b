"""Full-text search over skills, with SQLite in memory.

All work that grows with the number of skills happens inside SQLite, in few calls that release the GIL, so that an event
loop in another thread goes on.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple, cast

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.parsing.skill_names import MAX_NAME_LENGTH
from pydantic_ai_skills.types.skill import Skill

from .vocabulary import FILLER_WORDS, Vocabulary, normalize, words_of

MAX_QUERY_WORDS = 24
"""How many words of a query are used."""

MAX_INDEXED_CHARS = 2_000
"""How many characters of a skill's description, tags and headings are indexed."""

MAX_RANKED = 2_000
"""About how many skills one query ranks: those with its rarest words. Frequent words only add to the rank."""

MAX_COMPARED = 50
"""How many names are compared with a name that does not exist."""

_SCHEMA = """
CREATE TABLE skills (id INTEGER PRIMARY KEY, name TEXT UNIQUE, words, tags, description, headings);
CREATE VIRTUAL TABLE texts USING fts5(
    words, tags, description, headings, content='skills', content_rowid='id', tokenize='unicode61'
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(texts, row);
"""

_IS_EMPTY = 'SELECT NOT EXISTS (SELECT 1 FROM skills)'
_KEEP = 'INSERT INTO skills(name, words, tags, description, headings) VALUES (?, ?, ?, ?, ?)'
_DROP = 'DELETE FROM skills WHERE name = ?'
_INDEX_ALL = "INSERT INTO texts(texts) VALUES ('rebuild')"
_INDEX = """
INSERT INTO texts(rowid, words, tags, description, headings)
SELECT id, words, tags, description, headings FROM skills WHERE name = ?
"""
_FORGET = """
INSERT INTO texts(texts, rowid, words, tags, description, headings)
SELECT 'delete', id, words, tags, description, headings FROM skills WHERE name = ?
"""
# Everything in one row, because each row takes the GIL. Names hold no spaces.
_WORDS = "SELECT group_concat(term || ' ' || doc, char(10)) FROM vocabulary"
_RANK = """
SELECT group_concat(name, ' ') FROM (
    SELECT skills.name FROM texts JOIN skills ON skills.id = texts.rowid
    WHERE texts MATCH ? ORDER BY round(bm25(texts, 8.0, 4.0, 2.0, 1.0), 6), skills.name LIMIT ?
)
"""

_FIELDS = {'words': 'name', 'tags': 'tags', 'description': 'description', 'headings': 'headings'}
"""The columns of the index, and what people call them."""


class PromptWord(NamedTuple):
    """A word of a request, and the skills it finds."""

    word: str
    """The word."""

    means: tuple[str, ...]
    """The words of skills that it finds: itself, other forms, or what it may be a misspelling of."""

    skills: int
    """How many skills have one of them. The fewer, the more the word counts."""

    found_in: Mapping[str, tuple[str, ...]]
    """Where some of the skills have it, by skill: in `name`, `tags`, `description` or `headings`."""


class FullTextRanker:
    """Finds skills by the words of their names, tags, descriptions and headings.

    Other forms, prefixes and misspellings of a word are found too. It is safe to use from several threads.
    """

    def __init__(self) -> None:
        """Create an empty index in memory. Raises `SkillError` if SQLite was built without full-text search."""
        self._lock = threading.Lock()
        self._database = sqlite3.connect(':memory:', check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._database.close)  # Python 3.13 warns of a connection left open
        self._vocabulary = Vocabulary()
        try:
            self._database.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            raise SkillError(f'Skills cannot be searched: SQLite here has no FTS5 ({error}).') from error

    def __reduce__(self) -> tuple[type[FullTextRanker], tuple[()]]:
        # A database in memory cannot be copied; an empty one is filled by the next search.
        return FullTextRanker, ()

    def update(self, changed: Sequence[Skill[Any]], removed: Collection[str]) -> None:
        """Index new and changed skills, and forget the removed names."""
        # All or nothing: a failed update is rolled back.
        with self._lock, self._database as database:
            database.execute('BEGIN')
            ((was_empty,),) = database.execute(_IS_EMPTY)
            gone = [(name,) for name in (*removed, *(() if was_empty else (skill.name for skill in changed)))]
            database.executemany(_FORGET, gone)
            database.executemany(_DROP, gone)
            database.executemany(_KEEP, map(_row, changed))
            if was_empty:
                database.execute(_INDEX_ALL)
            else:
                database.executemany(_INDEX, [(skill.name,) for skill in changed])
            self._vocabulary = Vocabulary(self._counted_words())

    def rank(self, query: str, limit: int) -> Sequence[str]:
        """The names of the skills that fit a query, best first, at most `limit`."""
        with self._lock:
            expression = self._expression(self._telling_words(query))
            return self._names(expression, limit) if expression else []

    def explain(self, query: str, names: Collection[str]) -> list[PromptWord]:
        """The words of a query that `rank` uses, each with what it finds in the skills of these names."""
        with self._lock:
            return [self._explain(word, names) for word in self._telling_words(query)]

    def _explain(self, word: str, names: Collection[str]) -> PromptWord:
        means = self._vocabulary.meant_by(word)
        expression = _any_of(means)
        every: set[str] = set()
        found: dict[str, list[str]] = {}
        for column, field in _FIELDS.items():
            having = set(self._names(f'{column} : ({expression})', -1)) if means else set[str]()
            every |= having
            for name in having.intersection(names):
                found.setdefault(name, []).append(field)
        return PromptWord(word, tuple(means), len(every), {name: tuple(fields) for name, fields in found.items()})

    def close_to(self, name: str) -> Sequence[str]:
        """The names that share a word with a name that does not exist, the most similar first."""
        with self._lock:
            expression = self._expression(self._words_of(name))
            names = self._names(f'words : ({expression})', MAX_COMPARED) if expression else []
        matcher = SequenceMatcher(b=name.lower()[:MAX_NAME_LENGTH], autojunk=False)
        return sorted(names, key=lambda other: -_similarity(matcher, other))

    def _words_of(self, query: str) -> list[str]:
        return words_of(query, MAX_QUERY_WORDS, is_known=self._vocabulary.knows)

    def _telling_words(self, query: str) -> list[str]:
        """The words that say what a query is about; all of them if none does."""
        words = self._words_of(query)
        return [word for word in words if word not in FILLER_WORDS] or words

    def _names(self, expression: str, limit: int) -> list[str]:
        ((names,),) = self._database.execute(_RANK, (expression, limit))
        return names.split(' ') if names else []

    def _counted_words(self) -> Iterator[tuple[str, int]]:
        ((text,),) = self._database.execute(_WORDS)
        for line in (text or '').splitlines():
            word, _, count = line.rpartition(' ')
            yield word, int(count)

    def _expression(self, words: Iterable[str]) -> str:
        """The FTS5 expression: any form of any word. The rare words choose the skills, frequent ones only rank them."""
        groups = [group for word in words if (group := self._vocabulary.meant_by(word))]
        if not groups:
            return ''
        counted = sorted((sum(map(self._vocabulary.count, group)), group) for group in groups)
        total = 0
        choosing: list[str] = []
        others: list[str] = []
        for count, group in counted:
            total += count
            (others if choosing and total > MAX_RANKED else choosing).append(_any_of(group))
        choice = ' OR '.join(choosing)
        return f'({choice}) OR (({choice}) AND ({" OR ".join(others)}))' if others else choice


def _any_of(words: Iterable[str]) -> str:
    return ' OR '.join(f'"{word}"' for word in words)


def _similarity(matcher: SequenceMatcher[str], name: str) -> float:
    matcher.set_seq1(name)
    return matcher.ratio()


def _row(skill: Skill[Any]) -> tuple[str, str, str, str, str]:
    texts = (skill.name, ' '.join(tags_of(skill)), skill.description, skill.headings)
    words, tags, description, headings = (normalize(text[:MAX_INDEXED_CHARS]) for text in texts)
    return skill.name, words, tags, description, headings


def tags_of(skill: Skill[Any]) -> list[str]:
    """The tags and categories in a skill's metadata."""
    tags: list[str] = []
    for key in ('tags', 'keywords', 'category', 'categories'):
        value = skill.metadata.get(key)
        tags += [str(tag) for tag in cast(list[Any], value)] if isinstance(value, list) else [str(value or '')]
    return tags
