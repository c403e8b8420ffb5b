"""A `SKILL.md` from its bytes or its text."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.parsing import (
    MAX_FRONTMATTER_BYTES,
    ParsedHead,
    ParsedSkill,
    SkillHeader,
    decode_body,
    find_headings,
    parse_head,
    parse_skill_text,
)
from pydantic_ai_skills.parsing.skill_md import MAX_HEADINGS_BYTES
from pydantic_ai_skills.problems import SkillProblem

from .strategies import WILD

SKILL = '---\nname: pdf\ndescription: Reads PDFs.\n---\n\n# PDF\n\nRead it.\n'
HEADER = SkillHeader(name='pdf', description='Reads PDFs.')


def test_a_skill_is_its_header_and_its_body():
    assert parse_skill_text(SKILL) == ParsedSkill(HEADER, '# PDF\n\nRead it.', ())


def test_a_byte_order_mark_and_windows_line_ends_change_nothing():
    assert parse_skill_text('\ufeff' + SKILL.replace('\n', '\r\n')) == parse_skill_text(SKILL)


@pytest.mark.parametrize(
    ('text', 'body'),
    [
        ('', ''),
        ('\n\n', ''),
        ('\n \t\n  indented\n\n', '  indented'),
        ('a\r\nb\rc  \n', 'a\nb\nc'),
        ('a\n---\nb', 'a\n---\nb'),
        ('é 技能', 'é 技能'),
    ],
)
def test_the_body_has_no_blank_lines_around_it(text: str, body: str):
    text = f'---\nname: pdf\ndescription: Liest é.\n---\n{text}'
    assert parse_skill_text(text).body == body
    assert decode_body(text.encode()) == body


def test_a_file_that_lost_its_frontmatter_is_all_body():
    assert decode_body(b'\xef\xbb\xbf# PDF\n') == '# PDF'
    assert parse_skill_text('# PDF\n').body == '# PDF'


def test_a_body_that_is_not_utf_8_is_refused_when_it_is_read():
    data = SKILL.encode() + b'caf\xe9\n'
    assert parse_head(data, path='SKILL.md', folder_name='pdf', complete=True).header == HEADER
    with pytest.raises(SkillValidationError, match='Byte 0xe9 in line 9 is not UTF-8. Save the file as UTF-8.'):
        decode_body(data)


def test_a_text_that_cannot_be_written_as_utf_8_is_left_out():
    message = "The character '\\ud800' cannot be written as UTF-8. Remove it."
    found = SkillProblem(path='x', code='not-utf8', severity='error', message=message, line=2)
    assert parse_skill_text('---\nname: \ud800', path='x') == ParsedSkill(None, '', (found,))


def test_the_head_is_enough_to_know_a_skill():
    data = SKILL.encode()
    start = data.index(b'\n# PDF')
    for size in range(start, len(data)):
        head = parse_head(data[:size], path='SKILL.md', folder_name='pdf', complete=False)
        assert head == ParsedHead(header=HEADER, body_start=start)
    for size in range(start):
        assert parse_head(data[:size], path='SKILL.md', folder_name='pdf', complete=False).needs_more


def test_a_character_of_the_body_may_be_cut_in_two():
    data = SKILL.encode() + 'é'.encode()
    assert parse_head(data[:-1], path='SKILL.md', folder_name='pdf', complete=False).header == HEADER


def test_problems_name_the_file_and_its_line():
    data = b'\n\n---\nname: PDF\ndescription: Use when: asked\n---\n'
    head = parse_head(data, path='skills/pdf/SKILL.md', folder_name='pdf', complete=True)
    assert head.header == SkillHeader(name='pdf', description='Use when: asked')
    assert head.body_start == len(data)
    assert {problem.path for problem in head.problems} == {'skills/pdf/SKILL.md'}
    assert [(problem.code, problem.line) for problem in head.problems] == [
        ('frontmatter-not-first', 3),
        ('yaml-repaired', 5),
        ('name-invalid', 4),
    ]


def test_a_problem_reads_as_one_line():
    (problem,) = parse_skill_text('---\nname: PDF\ndescription: Reads.\n---', path='pdf/SKILL.md').problems
    assert str(problem) == (
        "pdf/SKILL.md:2: warning [name-invalid] 'PDF' is not a skill name: its letters are not all lower-case. "
        "Use 'pdf'. The skill is loaded as 'pdf'."
    )


@pytest.mark.parametrize(
    ('text', 'code', 'line'),
    [
        ('', 'empty-file', None),
        ('# PDF', 'no-frontmatter', 1),
        ('---\nname: pdf', 'unclosed-frontmatter', None),
        ('---\nname: a\0\n---', 'binary-file', 2),
        ('---\n' + '#' * MAX_FRONTMATTER_BYTES + '\n---', 'frontmatter-too-large', None),
        ('---\nname: pdf\ndescription: ' + '[' * 33 + '\n---', 'frontmatter-too-deep', 3),
        ('---\nname: &n pdf\ndescription: *n\n---', 'yaml-alias', 3),
        ('---\n- pdf\n---', 'frontmatter-not-a-mapping', 2),
        ('---\nname: pdf\n---', 'description-missing', None),
    ],
)
def test_what_cannot_be_loaded_is_one_error(text: str, code: str, line: int | None):
    header, _, problems = parse_skill_text(text, folder_name='pdf')
    assert header is None
    assert [(problem.code, problem.severity, problem.line) for problem in problems] == [(code, 'error', line)]


@pytest.mark.parametrize(
    'frontmatter',
    ['name: {0}', '{0}: a\n{0}: b', 'a: !{0} b', 'a: &{0} b\nc: *{0}', 'a: *{0}', '{0}: [', 'name: a\n{0}: ]\n{0}b: ]'],
)
def test_a_message_does_not_grow_with_the_text_it_is_about(frontmatter: str):
    source = frontmatter.format('x' * 1000)
    problems = parse_skill_text(f'---\ndescription: x\n{source}\n---\n', folder_name='a').problems
    assert problems
    assert max(len(problem.message) for problem in problems) < 400


def test_without_validation_whatever_has_a_name_and_a_description_loads_in_silence():
    text = f'---\nname: My PDF\ndescription: {"x" * 1025}\nlicense: [a]\n---\n'
    assert len(parse_skill_text(text, folder_name='pdf').problems) == 3
    header, _, problems = parse_skill_text(text, folder_name='pdf', validate=False)
    assert header == SkillHeader(name='my-pdf', description='x' * 1025, metadata={'license': ['a']})
    assert problems == ()


def test_without_validation_errors_and_repairs_are_still_told():
    repaired = parse_skill_text('---\nname: pdf\ndescription: a: b\n---', validate=False)
    assert [problem.code for problem in repaired.problems] == ['yaml-repaired']
    missing = parse_skill_text('---\nname: PDF\n---', validate=False)
    assert [problem.code for problem in missing.problems] == ['description-missing']


@given(WILD | st.text(), st.sampled_from(['---\n{}\n---\nbody', '{}', '---\n{}']), st.sampled_from(['pdf', '!', None]))
def test_a_text_gives_a_header_or_an_error_and_never_an_exception(text: str, frame: str, folder: str | None):
    header, _, problems = parse_skill_text(frame.format(text), folder_name=folder)
    assert (header is None) == any(problem.severity == 'error' for problem in problems)


@given(st.binary() | st.binary().map(b'---\n%s\n---\n'.__mod__), st.booleans())
def test_bytes_give_a_header_or_an_error_or_need_more(data: bytes, complete: bool):
    head = parse_head(data, path='SKILL.md', folder_name='pdf', complete=complete)
    errors = [problem for problem in head.problems if problem.severity == 'error']
    assert (head.header is None) == (bool(errors) or head.needs_more)
    assert not (head.needs_more and complete)


FIELDS = st.lists(
    st.sampled_from([
        'name: pdf', 'name: "pdf"', 'name: Pdf', 'name: ', 'name: other', 'description: Reads PDFs.',
        'description: "  padded  "', 'description: ', f'description: {"x" * 1025}', 'license: MIT', 'license: [MIT]',
        'license: ""', 'compatibility: git', f'compatibility: {"x" * 501}', 'compatibility: " "', 'version: 1.10',
        'metadata:\n  version: "1"', 'metadata:\n  a: [b, c]', 'metadata: x', 'metadata:', 'tags: [a, b]', 'tags:\n- a',
        'allowed-tools: Read', 'allowed_tools: [Read]', 'name: claude', 'user-invocable: no', 'disable-model-invocation: maybe',
    ]),
    unique_by=lambda line: line.partition(':')[0],
).map('\n'.join)  # fmt: skip


@settings(max_examples=500)
@given(
    FIELDS | WILD, st.sampled_from(['pdf', 'x', None]), st.sampled_from(['\n', '\r\n']), st.booleans(), st.booleans()
)
def test_the_short_way_gives_what_the_long_way_gives(
    source: str, folder: str | None, end: str, validate: bool, complete: bool
):
    data = f'---{end}{source}{end}---{end}Body.'.encode(errors='replace')

    def parse() -> ParsedHead:
        return parse_head(data, path='SKILL.md', folder_name=folder, validate=validate, complete=complete)

    short = parse()
    with patch('pydantic_ai_skills.parsing.skill_md.parse_simple', lambda data, folder_name: None):  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        assert parse() == short


def test_the_short_way_ends_where_the_frontmatter_has_to_end():
    for size in range(MAX_FRONTMATTER_BYTES - 60, MAX_FRONTMATTER_BYTES - 20):
        data = f'---\nname: pdf\ndescription: x\n{"#" * size}\n---\n'.encode()
        fitting = len(data) <= MAX_FRONTMATTER_BYTES
        plain = data.replace(b'#', b'\n')
        for text in (data, plain):
            head = parse_head(text + b'Body.', path='SKILL.md', folder_name='pdf', complete=True)
            assert (head.header is not None) == fitting


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
