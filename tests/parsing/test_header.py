"""The Agent Skills rules, applied to frontmatter."""

from __future__ import annotations

from typing import Any

import pytest

from pydantic_ai_skills.parsing import SkillHeader, parse_skill_text


def read(frontmatter: str, *, folder: str | None = 'pdf') -> tuple[SkillHeader | None, list[tuple[str, int | None]]]:
    header, _, problems = parse_skill_text(f'---\n{frontmatter}\n---\n', folder_name=folder)
    return header, [(problem.code, problem.line) for problem in problems]


def read_good(frontmatter: str) -> SkillHeader:
    header, problems = read(f'name: pdf\ndescription: Reads PDFs.\n{frontmatter}')
    assert header is not None
    assert problems == []
    return header


def test_every_field_of_the_specification_is_read():
    header = read_good(
        'license: Apache-2.0\n'
        'compatibility: Needs git and the internet\n'
        'allowed-tools: Bash(git:*) Read\n'
        'disable-model-invocation: true\n'
        'user-invocable: false\n'
        'metadata:\n  author: me\n  version: "1.0"\n'
    )
    assert header == SkillHeader(
        name='pdf',
        description='Reads PDFs.',
        license='Apache-2.0',
        compatibility='Needs git and the internet',
        metadata={'author': 'me', 'version': '1.0'},
        allowed_tools=('Bash(git:*)', 'Read'),
        disable_model_invocation=True,
        user_invocable=False,
    )


def test_what_is_not_given_has_a_default():
    assert read_good('') == SkillHeader(
        name='pdf',
        description='Reads PDFs.',
        license=None,
        compatibility=None,
        metadata={},
        allowed_tools=(),
        disable_model_invocation=False,
        user_invocable=True,
    )


@pytest.mark.parametrize(
    ('given', 'folder', 'name', 'codes'),
    [
        ('pdf', 'pdf', 'pdf', []),
        ('pdf', None, 'pdf', []),
        ('cafe\u0301', 'café', 'café', []),
        ('café', 'cafe\u0301', 'café', []),
        ('on', 'on', 'on', []),
        ('123', '123', '123', []),
        ('pdf', 'other', 'pdf', ['name-mismatch']),
        ('PDF Tools', 'pdf-tools', 'pdf-tools', ['name-invalid']),
        ('pdf_tools', 'other', 'pdf-tools', ['name-invalid']),
        ('-pdf--tools-', None, 'pdf-tools', ['name-invalid']),
        ('!!!', 'pdf', 'pdf', ['yaml-tag', 'name-missing']),
        ('"!!!"', 'My PDF', 'my-pdf', ['name-invalid']),
        ('[pdf]', 'pdf', 'pdf', ['name-invalid']),
        ('', 'My_PDF', 'my-pdf', ['name-missing']),
        ('" "', 'pdf', 'pdf', ['name-missing']),
        ('x' * 65, 'pdf', 'pdf', ['name-too-long']),
        ('x' * 65, 'x' * 65, 'x' * 64, ['name-too-long']),
        ('x' * 65, None, 'x' * 64, ['name-too-long']),
        ('', 'word-' * 20, '-'.join(['word'] * 13), ['name-missing']),
        ('"a ' + ' ' * 70 + 'b"', 'pdf', 'a-b', ['name-too-long']),
    ],
)
def test_a_skill_loads_under_a_usable_name(given: str, folder: str | None, name: str, codes: list[str]):
    header, problems = read(f'description: Reads PDFs.\nname: {given}', folder=folder)
    assert header is not None
    assert header.name == name
    assert problems == [(code, 3) for code in codes]


@pytest.mark.parametrize('folder', [None, '', '!!!'])
@pytest.mark.parametrize('name', ['', 'name:', 'name: "!!!"', 'name: [pdf]'])
def test_without_a_usable_name_a_skill_is_left_out(name: str, folder: str | None):
    header, problems = read(f'description: Reads PDFs.\n{name}', folder=folder)
    assert header is None
    assert problems == [('name-unusable', 3 if name else None)]


@pytest.mark.parametrize(
    ('description', 'code', 'line'),
    [
        ('', 'description-missing', None),
        ('description:', 'description-missing', 3),
        ('description: "  "', 'description-missing', 3),
        ('description: |\n\n\n', 'description-missing', 3),
        ('description: [a]', 'description-not-text', 3),
        ('description:\n  a: b', 'description-not-text', 3),
    ],
)
def test_without_a_description_a_skill_is_left_out(description: str, code: str, line: int | None):
    header, problems = read(f'name: pdf\n{description}')
    assert header is None
    assert problems == [(code, line)]


@pytest.mark.parametrize(
    ('value', 'description'),
    [
        ('123', '123'),
        ('2024-01-01', '2024-01-01'),
        ('yes', 'yes'),
        ('"  blanks around  "', 'blanks around'),
        ('|\n  one\n  two\n', 'one\ntwo'),
        ('>\n  one\n  two\n', 'one two'),
    ],
)
def test_a_description_is_text(value: str, description: str):
    header, problems = read(f'name: pdf\ndescription: {value}')
    assert header is not None
    assert header.description == description
    assert problems == []


@pytest.mark.parametrize(
    ('key', 'limit', 'code'),
    [('description', 1024, 'description-too-long'), ('compatibility', 500, 'compatibility-too-long')],
)
def test_a_text_that_is_too_long_is_kept_whole(key: str, limit: int, code: str):
    for length, codes in ((limit, []), (limit + 1, [code])):
        fields = {'name': 'pdf', 'description': 'Reads PDFs.', key: 'é' * length}
        header, problems = read('\n'.join(f'{name}: {value}' for name, value in fields.items()))
        assert header is not None
        assert getattr(header, key) == 'é' * length
        assert [found for found, _ in problems] == codes


@pytest.mark.parametrize(
    ('value', 'tools'),
    [
        ('Read', ('Read',)),
        ('Read Write', ('Read', 'Write')),
        ('Read, Write,Edit', ('Read', 'Write', 'Edit')),
        ('Bash(git:*) Bash(git add *), Read', ('Bash(git:*)', 'Bash(git add *)', 'Read')),
        ('Bash(echo $(date), x) Read', ('Bash(echo $(date), x)', 'Read')),
        ('[Read, "Bash(git add *)"]', ('Read', 'Bash(git add *)')),
        ('[Bash(ls, pwd), Read]', ('Bash(ls, pwd)', 'Read')),
        ('\n  - Read\n  - mcp__db__query', ('Read', 'mcp__db__query')),
        ('Bash(git Read', ('Bash(git', 'Read')),
        ('Bash) Read', ('Bash)', 'Read')),
        ('', ()),
        ('[]', ()),
        ('" , "', ()),
    ],
)
@pytest.mark.parametrize('key', ['allowed-tools', 'allowed_tools'])
def test_allowed_tools_may_be_separated_by_blanks_or_commas_or_be_a_list(key: str, value: str, tools: tuple[str, ...]):
    header = read_good(f'{key}: {value}')
    assert header.allowed_tools == tools
    assert header.metadata == {}


def test_of_two_spellings_of_allowed_tools_the_specified_one_counts():
    header = read_good('allowed_tools: Write\nallowed-tools: Read')
    assert (header.allowed_tools, header.metadata) == (('Read',), {'allowed_tools': 'Write'})


@pytest.mark.parametrize(
    ('name', 'codes'),
    [
        ('claude-helper', ['name-reserved']),
        ('for-anthropic', ['name-reserved']),
        ('claude-of-anthropic', ['name-reserved', 'name-reserved']),
        ('Claude', ['name-invalid', 'name-reserved']),
        ('claudette', []),
        ('philanthropic-work', []),
    ],
)
def test_a_reserved_word_in_a_name_is_a_problem(name: str, codes: list[str]):
    for folder in (None, name):
        header, problems = read(f'name: {name}\ndescription: Helps.', folder=folder)
        assert header is not None
        assert problems == [(code, 2) for code in codes]


@pytest.mark.parametrize('key', ['disable-model-invocation', 'user-invocable'])
@pytest.mark.parametrize(
    ('value', 'flag'),
    [
        ('true', True),
        ('True', True),
        ('yes', True),
        ('on', True),
        ('1', True),
        ('false', False),
        ('NO', False),
        ('', False),
    ],
)
def test_a_flag_may_be_written_in_every_way_yaml_knows(key: str, value: str, flag: bool):
    assert getattr(read_good(f'{key}: {value}'), key.replace('-', '_')) is flag


@pytest.mark.parametrize(
    ('key', 'value', 'kept'),
    [
        ('license', '[MIT]', ['MIT']),
        ('compatibility', '{os: linux}', {'os': 'linux'}),
        ('allowed-tools', '{Read: x}', {'Read': 'x'}),
        ('allowed-tools', '[Read, [Write]]', ['Read', ['Write']]),
        ('allowed_tools', '{Read: x}', {'Read': 'x'}),
        ('disable-model-invocation', 'maybe', 'maybe'),
        ('user-invocable', '[true]', ['true']),
        ('metadata', 'words', 'words'),
        ('metadata', '[a, b]', ['a', 'b']),
    ],
)
def test_a_field_of_the_wrong_type_is_kept_in_the_metadata(key: str, value: str, kept: Any):
    header, problems = read(f'name: pdf\ndescription: Reads PDFs.\n{key}: {value}')
    assert header == SkillHeader(name='pdf', description='Reads PDFs.', metadata={key: kept})
    assert problems == [('field-type', 4)]


@pytest.mark.parametrize(
    ('frontmatter', 'metadata'),
    [
        ('version: 1.10\ntags: [a, b]\nhooks: {start: {run: x}}', {'version': '1.10', 'tags': ['a', 'b'], 'hooks': {'start': {'run': 'x'}}}),
        ('metadata:\n  a: {b: [1, 2024-01-01]}', {'a': {'b': ['1', '2024-01-01']}}),
        ('metadata:\nauthor: me', {'author': 'me'}),
        ('metadata: {author: me}\nversion: "1"', {'author': 'me', 'version': '1'}),
        ('metadata: {metadata: x}', {'metadata': 'x'}),
        ('metadata: {name: other}', {'name': 'other'}),
        ('metadata: {version: 1}\nversion: 1', {'version': '1'}),
        ('metadata: {version: 1}\nversion: 2', {'version': '1', 'frontmatter.version': '2'}),
        ('metadata: {v: 1, frontmatter.v: 2}\nv: 3', {'v': '1', 'frontmatter.v': '2', 'frontmatter.frontmatter.v': '3'}),
    ],
)  # fmt: skip
def test_all_other_keys_are_kept_in_the_metadata(frontmatter: str, metadata: dict[str, Any]):
    assert read_good(frontmatter).metadata == metadata


def test_each_problem_is_told_with_the_line_of_its_key():
    header, problems = read(f'compatibility: {"x" * 501}\nname: PDF\ndescription: >\n  {"x" * 1025}\nuser-invocable: x')
    assert header is not None
    assert problems == [
        ('name-invalid', 3),
        ('description-too-long', 4),
        ('compatibility-too-long', 2),
        ('field-type', 6),
    ]
