from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from pydantic_ai_skills import SkillResourceLoadError

from .conftest import Open
from .servers import Entry, SkillServer, Wrapped, serving, skill_md, status

HTTP: dict[str, Any] = {'allowed_protocols': ['http', 'local']}


def file_of(entry: Entry, **changes: Any) -> None:
    entry['resources'].append({**entry['resources'][0], **changes})


SPOILT: dict[str, Callable[[Entry], object]] = {
    'no uri': lambda entry: entry.pop('uri'),
    'a number': lambda entry: entry.update(uri=7),
    'a long uri': lambda entry: entry.update(uri=f'skill://{"a" * 5000}/SKILL.md'),
    'a uri with a line break': lambda entry: entry.update(uri='skill://bad\n/SKILL.md'),
    'a uri that cannot be read': lambda entry: entry.update(uri='skill://[bad/SKILL.md'),
    'a query': lambda entry: entry.update(uri='skill://bad/SKILL.md?x=/SKILL.md'),
    'no scheme': lambda entry: entry.update(uri='/bad/SKILL.md'),
    'a user': lambda entry: entry.update(uri='skill://me@bad/SKILL.md'),
    'not a SKILL.md': lambda entry: entry.update(uri='skill://bad/README.md'),
    'another name': lambda entry: entry.update(uri='skill://other/SKILL.md'),
    'traversal in its uri': lambda entry: entry.update(uri='skill://x/../bad/SKILL.md'),
    'traversal in a file': lambda entry: file_of(entry, uri='skill://bad/../../etc/x'),
    'encoded traversal': lambda entry: file_of(entry, uri='skill://bad/%2e%2e/x'),
    'an encoded slash': lambda entry: file_of(entry, uri='skill://bad/a%2f..%2f..%2fx'),
    'an encoded NUL': lambda entry: file_of(entry, uri='skill://bad/a%00b'),
    'a backslash': lambda entry: file_of(entry, uri='skill://bad/a%5cb'),
    'git': lambda entry: file_of(entry, uri='skill://bad/.git/config'),
    'a file elsewhere': lambda entry: file_of(entry, uri='skill://refunds/SKILL.md'),
    'a file on the disk': lambda entry: file_of(entry, uri='file:///bad/x'),
    'a file twice': file_of,
    'a file that is a folder': lambda entry: file_of(entry, uri='skill://bad/SKILL.md/x'),
    'no SKILL.md': lambda entry: entry.update(resources=[]),
    'no list of files': lambda entry: entry.update(resources={'a': 1}),
    'a file that is none': lambda entry: entry['resources'].append('x'),
    'a short digest': lambda entry: entry['resources'][0].update(digest='sha256:abc'),
    'another digest': lambda entry: entry['resources'][0].update(digest='md5:' + 'a' * 64),
    'a size below nothing': lambda entry: entry['resources'][0].update(size=-1),
    'a size that is a word': lambda entry: entry['resources'][0].update(size='9'),
    'a size that is true': lambda entry: entry['resources'][0].update(size=True),
    '1 GB': lambda entry: entry['resources'][0].update(size=1024**3),
    '600 files': lambda entry: [file_of(entry, uri=f'skill://bad/{number}') for number in range(600)],
    'no frontmatter': lambda entry: entry.pop('frontmatter'),
    'frontmatter of 1 MB': lambda entry: entry['frontmatter'].update(more='x' * 1_000_000),
    'nested frontmatter': lambda entry: entry['frontmatter'].update(more=nested(200)),
    'a NUL': lambda entry: entry['frontmatter'].update(description='a\0b'),
    'half a character': lambda entry: entry['frontmatter'].update(description='a\ud800b'),
    'not a number': lambda entry: entry['frontmatter'].update(more=float('nan')),
    'no description': lambda entry: entry['frontmatter'].pop('description'),
    'a name of 100 letters': lambda entry: entry['frontmatter'].update(name='a' * 100),
}


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else 'x'


@pytest.mark.parametrize('case', SPOILT)
def test_a_spoilt_entry_does_not_hide_the_others(case: str, open_server: Open) -> None:
    server = SkillServer()
    server.add('refunds')
    SPOILT[case](server.add('bad'))
    found = open_server(server).find()
    assert [skill.name for skill in found.skills] == ['refunds']
    assert [problem.severity for problem in found.problems] == ['error']


def test_an_entry_that_is_no_mapping_and_one_that_is_there_twice(open_server: Open) -> None:
    server = SkillServer()
    server.entries = ['x', server.add('refunds'), *server.entries]
    found = open_server(server).find()
    assert [skill.name for skill in found.skills] == ['refunds']
    assert ['left out' in problem.message for problem in found.problems] == [True, True]
    server.entries += ['x'] * 100
    assert 'more entries are left out' in open_server(server).find().problems[-1].message


def test_a_size_may_be_written_as_a_whole_float(open_server: Open) -> None:
    server = SkillServer()
    entry = server.add('pdf')
    entry['resources'][0]['size'] = float(entry['resources'][0]['size'])
    assert open_server(server).find().skills[0].content == 'Do it.'


@pytest.mark.parametrize('cursors', ['the same', 'new ones'])
def test_endless_pages_end(open_server: Open, cursors: str) -> None:
    server = SkillServer()
    entry = server.add('refunds')

    def page(cursor: str | None) -> dict[str, Any]:
        following = 'again' if cursors == 'the same' else f'{int(cursor or 0) + 1}'
        return {'skills': [] if cursor else [entry], 'nextCursor': following}

    server.page = page
    found = open_server(server).find()
    assert [skill.name for skill in found.skills] == ['refunds']
    assert [problem.code for problem in found.problems] == ['too-many-skills']
    assert server.lists <= 500


def test_compressed_answers_are_refused(open_server: Open) -> None:
    app = Wrapped(None)
    app.answer = status(200, (b'content-type', b'application/json'), (b'content-encoding', b'gzip'), body=b'x')
    with serving(app) as port:
        found = open_server(f'http://127.0.0.1:{port}/mcp', **HTTP).find()
        assert 'compressed answers' in found.problems[0].message


def test_an_answer_that_is_too_long_is_refused(open_server: Open) -> None:
    server = SkillServer()
    server.add('pdf', {'SKILL.md': '---\nname: pdf\ndescription: Does pdf. Use for pdf.\n---\n' + 'x' * 100_000})
    with serving(server.streamable_http_app()) as port:
        (skill,) = open_server(f'http://127.0.0.1:{port}/mcp', max_bytes=50_000, **HTTP).find().skills
        with pytest.raises(SkillResourceLoadError):
            _ = skill.content


def test_a_name_with_blanks_and_other_letters_is_read_by_its_address(open_server: Open) -> None:
    server = SkillServer()
    server.add('pdf', {'SKILL.md': skill_md('pdf'), 'references/%C3%BC%20b.md': 'Read me.', 'run%20it.py': 'print(7)'})
    (skill,) = open_server(server, trusted=True).find().skills
    assert [resource.name for resource in skill.resources] == ['references/ü b.md']
    assert anyio.run(skill.resources[0].load, None) == 'Read me.'
    assert '7' in str(anyio.run(skill.scripts[0].run, None))
