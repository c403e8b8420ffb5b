"""Descriptions that a model can hardly tell apart."""

from __future__ import annotations

import pytest

from pydantic_ai_skills import SkillOverlap, find_overlaps
from pydantic_ai_skills.catalog.overlaps import THRESHOLD

REST = {'haiku': 'Write short poems.', 'deploy': 'Roll out containers to clusters.', 'mail': 'Answer letters.'}


@pytest.mark.parametrize(
    ('one', 'other', 'overlap'),
    [
        ('Merge PDF pages.', 'Merge PDF pages.', True),
        ('Merge PDF pages.', 'Merging pages of PDFs: use this skill when the user asks for it.', True),
        ('Merge, split and rotate PDF pages.', 'Rotate, merge or split pages of PDF files.', True),
        ('Merge PDF pages.', 'Split PDF pages.', False),
        ('Convert PDF to text.', 'Convert DOCX to text.', False),
        ('Use it for it.', 'Use it for it.', False),
        ('', '', False),
    ],
)
def test_it_is_told_which_overlap(one: str, other: str, overlap: bool):
    found = find_overlaps({'a': one, 'b': other, **REST})
    assert [each.names for each in found] == ([('a', 'b')] if overlap else [])


def test_one_that_says_far_more_is_not_similar_even_if_it_shares_the_rarest_word():
    common = {name: f'{name} archive letters, invoices, reports' for name in ('north', 'south', 'east')}
    assert (
        find_overlaps({'a': 'Zebra.', 'b': 'Zebra: archive letters, invoices, reports', **common}, threshold=0.7) == []
    )


def test_what_tells_them_apart_is_told():
    (found,) = find_overlaps(
        {'a': 'Merge, split and rotate PDF pages.', 'b': 'Merge, split and rotate pages of PDF files.', **REST}
    )
    assert found == SkillOverlap(
        names=('a', 'b'),
        similarity=found.similarity,
        shared=('merge', 'pages', 'pdf', 'rotate', 'split'),
        apart={'a': (), 'b': ('files',)},
    )
    assert THRESHOLD <= found.similarity < 1


def test_skills_that_their_names_tell_apart_do_not_overlap():
    text = 'Check, translate, sort and archive {} of the company with all attachments.'
    told = {'invoice-check': text.format('invoices'), 'contract-check': text.format('contracts')}
    assert find_overlaps({**told, **REST}) == []
    assert [
        each.names for each in find_overlaps({'a': told['invoice-check'], 'b': told['contract-check'], **REST})
    ] == [('a', 'b')]


def test_all_that_say_the_same_are_one_overlap():
    (found,) = find_overlaps({**dict.fromkeys('cab', 'Merge PDF pages.'), **REST})
    assert (found.names, found.similarity) == (('a', 'b', 'c'), 1)


def test_the_most_similar_come_first_and_the_threshold_can_be_chosen():
    descriptions = {
        'a': 'Merge PDF pages in order.',
        'b': 'Merge PDF pages in order.',
        'c': 'Merge PDF pages by size.',
        **REST,
    }
    assert [each.names for each in find_overlaps(descriptions)] == [('a', 'b')]
    assert [each.names for each in find_overlaps(descriptions, threshold=0.3)] == [('a', 'b'), ('a', 'c')]


def test_of_many_with_the_same_words_each_is_compared_with_few():
    # With this threshold, all that are compared overlap.
    count = 1_000
    descriptions = {f'n{"x" * number}': f'Does job {number} with a list of things.' for number in range(count)}
    found = find_overlaps(descriptions, threshold=0.01)
    assert 0 < len(found) < count * count / 4
