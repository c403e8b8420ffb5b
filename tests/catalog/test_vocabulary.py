"""Which words of an index a word of a query may mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydantic_ai_skills.catalog.vocabulary import MAX_FORMS, Vocabulary, mistakes, normalize, stem, words_of

WORDS = {
    'analysis': 2, 'code': 9, 'container': 3, 'convert': 5, 'data': 40, 'database': 3, 'dataset': 2, 'deploy': 4,
    'deployment': 3, 'form': 2, 'forms': 6, 'kubernetes': 4, 'map': 1, 'merge': 4, 'merging': 1, 'pdf': 8, 'queries': 1,
    'query': 3, 'review': 7, 'running': 2, '1234': 1,
}  # fmt: skip


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary(sorted(WORDS.items()))


@pytest.mark.parametrize(
    ('word', 'meant'),
    [
        pytest.param('pdf', ['pdf'], id='the word itself'),
        pytest.param('form', ['form', 'forms'], id='and its other forms'),
        pytest.param('forms', ['forms', 'form'], id='the word itself first'),
        pytest.param('merger', ['merge', 'merging'], id='forms of a word that is not there'),
        pytest.param('querying', ['query', 'queries'], id='with another ending'),
        pytest.param('analyze', ['analysis'], id='of a Greek word'),
        pytest.param('run', ['running'], id='with a doubled letter'),
        pytest.param('deploys', ['deploy', 'deployment'], id='the more frequent first'),
        pytest.param('dat', ['data', 'database', 'dataset'], id='beginnings'),
        pytest.param('kuber', ['kubernetes'], id='one beginning'),
        pytest.param('codereview', ['code', 'review'], id='two words written as one'),
        pytest.param('kuberntes', ['kubernetes'], id='a letter missing'),
        pytest.param('kubernnetes', ['kubernetes'], id='a letter too many'),
        pytest.param('kubernates', ['kubernetes'], id='a wrong letter'),
        pytest.param('kuebrnetes', ['kubernetes'], id='two letters swapped'),
        pytest.param('kuberntees', ['kubernetes'], id='two letters swapped at the end'),
        pytest.param('kubrntes', ['kubernetes'], id='two mistakes in a long word'),
        pytest.param('pfd', ['pdf'], id='swapped in a short word'),
        pytest.param('mop', ['map'], id='wrong in a short word'),
        pytest.param('xpxdxf', [], id='too many mistakes'),
        pytest.param('px', [], id='too short for a mistake'),
        pytest.param('1243', [], id='a number is not mistyped'),
        pytest.param('z', [], id='nothing'),
    ],
)
def test_what_a_word_means(vocabulary: Vocabulary, word: str, meant: list[str]):
    assert vocabulary.meant_by(word) == meant


def test_an_empty_vocabulary_knows_nothing():
    assert [Vocabulary().meant_by(word) for word in ('a', 'word', 'twowords')] == [[], [], []]


def test_one_word_stands_for_a_few_at_most():
    vocabulary = Vocabulary([(f'word{number:03}', number) for number in range(100)])
    assert vocabulary.meant_by('wor') == [f'word{number:03}' for number in range(99, 99 - MAX_FORMS, -1)]


def test_words_are_counted(vocabulary: Vocabulary):
    assert (vocabulary.count('data'), vocabulary.count('dat'), vocabulary.count('zzz')) == (40, 0, 0)
    assert len(vocabulary) == len(WORDS)


@pytest.mark.parametrize(
    ('one', 'other'),
    [
        ('merging', 'merge'),
        ('forms', 'form'),
        ('converters', 'converting'),
        ('summaries', 'summary'),
        ('documentation', 'documents'),
        ('organization', 'organize'),
        ('validation', 'validates'),
        ('generator', 'generating'),
        ('anonymous', 'anonymize'),
        ('stopped', 'stop'),
        ('analytics', 'analyzer'),
        ('schéma', 'schéma'),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str):
    assert stem(one) == stem(other)


@pytest.mark.parametrize('word', ['is', 'css', 'sing', 'use', 'yes'])
def test_short_words_keep_enough_to_be_told_apart(word: str):
    assert len(stem(word)) >= min(3, len(word))


@pytest.mark.parametrize(
    ('query', 'words'),
    [
        ('Fill in PDF forms!', ['fill', 'in', 'pdf', 'forms']),
        ('pdf-forms my_skill', ['pdf', 'forms', 'my', 'skill']),
        ('readPDFFile', ['read', 'pdf', 'file']),
        ('mergePDFs', ['merge', 'pdfs']),
        ('twice twice', ['twice']),
        ('Überprüfung café', ['uberprufung', 'cafe']),
        ('处理文档', ['处', '理', '文', '档']),
        ('人々𠮷𠮟る', ['人', '々', '𠮷', '𠮟', 'る']),
        ('เอกสาร PDF', ['เอ', 'อก', 'กส', 'สา', 'าร', 'pdf']),
        ('ไฟล์pdf', ['ไฟ', 'ฟล', 'pdf']),
        ('ນ້ຳ', ['ນາ']),
        ('စာတမ်း။', ['စတ', 'တမ']),
        ('ឯកសារ', ['ឯក', 'កស', 'សរ']),
        ('ก', ['ก']),
        ('हिन्दी', ['हनद']),
        ('ΛΌΓΟΣ λόγος', ['λογοσ']),
        ('\ufb01le', ['file']),
        ('"OR" NEAR(a b) * ^', ['or', 'near', 'a', 'b']),
        ('!?', []),
    ],
)
def test_the_words_of_a_query(query: str, words: list[str]):
    assert words_of(query, 10) == words


def test_of_a_long_query_the_first_words_are_looked_at():
    assert words_of('a b c d', 2) == ['a', 'b']


def test_plain_text_is_indexed_as_it_is():
    assert normalize('Plain TEXT.') == 'Plain TEXT.'


def reference(one: str, other: str) -> int:
    """The same count, by its definition."""
    if not one or not other:
        return len(one) + len(other)
    costs = [
        reference(one[1:], other) + 1,
        reference(one, other[1:]) + 1,
        reference(one[1:], other[1:]) + (one[0] != other[0]),
    ]
    if len(one) > 1 and len(other) > 1 and one[0] == other[1] and one[1] == other[0]:
        costs.append(reference(one[2:], other[2:]) + 1)
    return min(costs)


@given(st.text('abc', max_size=6), st.text('abc', max_size=6), st.integers(0, 6))
def test_mistakes_are_counted_up_to_the_most(one: str, other: str, most: int):
    assert mistakes(one, other, most) == min(reference(one, other), most + 1)


@given(st.data())
def test_any_one_mistake_in_a_word_is_forgiven(data: st.DataObject):
    word = data.draw(st.sampled_from([word for word in WORDS if len(word) >= 4 and not word.isdigit()]))
    at = data.draw(st.integers(0, len(word) - 1))
    letter = data.draw(st.sampled_from('qxzj'))
    mistyped = data.draw(
        st.sampled_from([
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
        ])
    )  # fmt: skip
    vocabulary = Vocabulary([(word, 1)])
    assert vocabulary.meant_by(mistyped) == [word]
