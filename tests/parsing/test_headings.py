"""The headings of instructions."""

from __future__ import annotations

import pytest

from pydantic_ai_skills.parsing.headings import MAX_HEADINGS_BYTES, find_headings


@pytest.mark.parametrize(
    ('body', 'headings'),
    [
        ('', ''),
        ('Text # not\n  # nor this', ''),
        ('No heading.', ''),
        ('# One\n\nText.\n\n## Two ##\n### Three', 'One\nTwo\nThree'),
        ('Text\n# After text\r\n#\tTab', 'After text\nTab'),
        ('#hashtag\n#!shebang\n####### seven\n#\n# \n', ''),
        ('# Before\n```bash\n# comment\n```\n# After', 'Before\nAfter'),
        ('~~~\n# comment\n```\n# comment\n~~~\n# After', 'After'),
        ('```\n# comment\n```\n```\n# comment\n```\n# After', 'After'),
        ('# Before\n```\n# never closed', 'Before'),
        ('# Über 漢字', 'Über 漢字'),
    ],
)
def test_headings_are_found(body: str, headings: str):
    assert find_headings(body.encode()) == headings


def test_only_so_much_of_them_is_kept():
    many = find_headings('\n'.join(f'# Heading {number}' for number in range(1000)).encode())
    assert many.startswith('Heading 0\nHeading 1\n')
    assert len(many) <= MAX_HEADINGS_BYTES
    assert len(find_headings(b'# ' + 'é'.encode() * 10_000)) == MAX_HEADINGS_BYTES // 2


def test_half_a_character_at_the_end_is_left_out():
    assert find_headings(b'# caf\xc3') == 'caf'
