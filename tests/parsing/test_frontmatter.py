"""Cutting a file at its `---` lines, and reading the first part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydantic_ai_skills.parsing.findings import Finding, Value
from pydantic_ai_skills.parsing.frontmatter import Frontmatter, Split, read_frontmatter, split
from pydantic_ai_skills.parsing.header import MAX_FRONTMATTER_BYTES

from .strategies import WILD


@pytest.mark.parametrize(
    ('data', 'source', 'body'),
    [
        (b'---\na: b\n---\nbody', 'a: b\n', b'body'),
        (b'---\na: b\n---', 'a: b\n', b''),
        (b'---\na: b\n---\n', 'a: b\n', b''),
        (b'---\n---\nbody', '', b'body'),
        (b'--- \t\na: b\n---  \nbody', 'a: b\n', b'body'),
        (b'\xef\xbb\xbf---\na: b\n---\nbody', 'a: b\n', b'body'),
        (b'---\r\na: b\r\nc: d\r\n---\r\nbody', 'a: b\nc: d\n', b'body'),
        (b'---\r\na: b\n---\nbody', 'a: b\n', b'body'),
        (b'---\na: b\r\n---\r', 'a: b\n', b''),
        (b'---\ra: b\rc: d\r---\rbody', 'a: b\nc: d\n', b'body'),
        (b'---\na: |\n  ---\nb: ----\n----\n---\nbody\n---\n', 'a: |\n  ---\nb: ----\n----\n', b'body\n---\n'),
        ('---\na: é\n---\n'.encode() + b'\xff', 'a: é\n', b'\xff'),
    ],
)
def test_a_file_is_cut_at_its_first_two_lines_of_three_hyphens(data: bytes, source: str, body: bytes):
    parts = split(data, complete=True)
    assert isinstance(parts, Split)
    assert parts.source == source
    assert parts.first_line == 2
    assert data[parts.body_start :] == body


@pytest.mark.parametrize(
    ('blank', 'first_line'), [(b'\n', 3), (b' \n\t\n\n', 5), (b'\r\n\r\n', 4), (b'\xef\xbb\xbf\n', 3), (b'\r\r', 4)]
)
def test_blank_lines_may_come_first(blank: bytes, first_line: int):
    assert split(blank + b'---\na: b\n---\n', complete=True) == Split('a: b\n', first_line, len(blank) + 13)


@pytest.mark.parametrize(
    ('data', 'code', 'line'),
    [
        (b'', 'empty-file', None),
        (b'\xef\xbb\xbf', 'empty-file', None),
        (b' \r\n\t\n', 'empty-file', None),
        (b'# Title\n---\na: b\n---\n', 'no-frontmatter', 1),
        (b'----\na: b\n---\n', 'no-frontmatter', 1),
        (b' ---\na: b\n---\n', 'no-frontmatter', 1),
        (b'--- a: b\n---\n', 'no-frontmatter', 1),
        (b'-', 'no-frontmatter', 1),
        (b'---', 'unclosed-frontmatter', None),
        (b'---\n', 'unclosed-frontmatter', None),
        (b'---\na: b\n ---\n', 'unclosed-frontmatter', None),
        (b'---\na: b\n--- x\n', 'unclosed-frontmatter', None),
        (b'---\na: b---\n', 'unclosed-frontmatter', None),
        (b'\xff\xfe-\0-\0-\0', 'not-utf8', None),
        (b'\xfe\xff\0-\0-\0-', 'not-utf8', None),
        (b'# caf\xe9', 'not-utf8', None),
        (b'---\na: b\nc: \xe9\n---\n', 'not-utf8', 3),
        (b'---\na: \xed\xa0\x80\n---\n', 'not-utf8', 2),
        (b'\x7fELF\x02\0\0', 'binary-file', None),
        (b'-\0-\0-\0\n\0', 'binary-file', None),
        (b'---\na: b\nc: \0\n---\n', 'binary-file', 3),
    ],
)
def test_a_file_without_readable_frontmatter_is_told_by_its_code(data: bytes, code: str, line: int | None):
    finding = split(data, complete=True)
    assert isinstance(finding, Finding)
    assert (finding.code, finding.line) == (code, line)


def test_frontmatter_may_fill_the_limit_and_not_a_byte_more():
    frame = len(b'---\n\n---\n')
    fits = b'---\n' + b'#' * (MAX_FRONTMATTER_BYTES - frame) + b'\n---\n'
    assert len(fits) == MAX_FRONTMATTER_BYTES
    for body in (b'', b'body'):
        assert isinstance(split(fits + body, complete=True), Split)
    assert isinstance(split(fits, complete=False), Split)
    too_large = fits.replace(b'#', b'##', 1)
    for data, complete in ((too_large, True), (too_large[:MAX_FRONTMATTER_BYTES], False)):
        finding = split(data, complete=complete)
        assert isinstance(finding, Finding)
        assert finding.code == 'frontmatter-too-large'


@pytest.mark.parametrize(
    'start',
    [b'', b'\xef', b'\xef\xbb', b'\xef\xbb\xbf', b'\n', b' ', b'-', b'\n--', b'---', b'---\r', b'---\n', b'---\na'],
)
def test_more_is_asked_for_until_the_frontmatter_is_there(start: bytes):
    assert split(start, complete=False) is None


@pytest.mark.parametrize('end', [b'\n---', b'\n---\r', b'\n--- \t', b'\n--'])
def test_more_is_asked_for_while_the_last_line_may_go_on(end: bytes):
    assert split(b'---\na: b' + end, complete=False) is None


def test_bytes_that_cannot_become_a_skill_need_no_more():
    # The last byte is the first of a character that was cut in two.
    finding = split('# Ré'.encode()[:-1], complete=False)
    assert isinstance(finding, Finding)
    assert finding.code == 'no-frontmatter'
    blank = split(b' ' * MAX_FRONTMATTER_BYTES, complete=False)
    assert isinstance(blank, Finding)
    assert blank.code == 'no-frontmatter'


@given(
    st.sampled_from(['', '\ufeff', '\n', '\r\n']),
    WILD,
    st.sampled_from(['\n', '\r\n', '\r']),
    st.sampled_from(['', 'body', '\n---\n', 'é']),
    st.integers(0, 200),
)
def test_however_much_is_read_at_first_the_parts_are_the_same(start: str, source: str, end: str, body: str, size: int):
    data = end.join((f'{start}---', source, '---', body)).encode(errors='replace')
    whole = split(data, complete=True)
    part = split(data[:size], complete=False)
    if isinstance(whole, Split) and part is not None:
        assert part == whole
    assert split(data, complete=False) in (whole, None)


@pytest.mark.parametrize('source', ['', '\n', '# only a comment\n'])
def test_frontmatter_may_hold_nothing(source: str):
    assert read_frontmatter(source) == Frontmatter({}, [])


@pytest.mark.parametrize(
    ('source', 'fields'),
    [
        ('name: on\nversion: 1.10\n', {'name': 'on', 'version': '1.10'}),
        ('name:\ton\ntags: [yes, 2024-01-01]\n', {'name': 'on', 'tags': ['yes', '2024-01-01']}),
        ('description: >-\n  one\n  two\n', {'description': 'one two'}),
    ],
)
def test_yaml_is_read_with_text_as_text(source: str, fields: dict[str, Value]):
    assert read_frontmatter(source) == Frontmatter(fields, [])


@pytest.mark.parametrize(
    ('source', 'finding'),
    [
        (
            '- a\n- b\n',
            Finding(
                'frontmatter-not-a-mapping',
                "The frontmatter is not made of 'key: value' lines: it is a list or plain text.",
                1,
            ),
        ),
        (
            'just words\n',
            Finding(
                'frontmatter-not-a-mapping',
                "The frontmatter is not made of 'key: value' lines: it is a list or plain text.",
                1,
            ),
        ),
        (
            'a: &a [b]\nc: *a\n',
            Finding('yaml-alias', "The YAML alias '*a' is not followed. Write out what it stands for.", 2),
        ),
        (
            'a: b: c\nd: &d [x]\ne: *d\nf: [*d]\n',
            Finding('yaml-alias', "The YAML alias '*d' is not followed. Write out what it stands for.", 3),
        ),
    ],
)
def test_frontmatter_that_is_not_read_is_one_finding(source: str, finding: Finding):
    assert read_frontmatter(source) == finding


def test_what_was_repaired_is_one_finding_that_names_the_keys():
    assert read_frontmatter('name: x\ndescription: Use when: always\n') == Frontmatter(
        {'name': 'x', 'description': 'Use when: always'},
        [
            Finding(
                'yaml-repaired',
                'The frontmatter is not valid YAML: mapping values are not allowed in this context. '
                "Read as plain text: 'description'. Put such values in quotes.",
                2,
            )
        ],
    )
    tabs = read_frontmatter('metadata:\n\ta: b\n')
    assert isinstance(tabs, Frontmatter)
    assert tabs.fields == {'metadata': {'a': 'b'}}
    assert tabs.findings[0].message.endswith('It was read key by key.')
