"""Cases 28, 33, 44 and 53 for object stores and folders: where credentials go, endless answers, odd keys, bad locks."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from pydantic_ai_skills import FolderSkillsRegistry
from tests.folders import skill_md, write_skill
from tests.registries.asked import messages, names
from tests.registries.buckets import SECRET, Buckets, BucketServer, answering

from .conftest import Scoreboard

GIGABYTE = 1024**3
MEGABYTE = 1024**2


@pytest.fixture
def server() -> Iterator[BucketServer]:
    server = BucketServer()
    server.put({'skills/pdf/SKILL.md': skill_md('pdf'), 'skills/pdf/forms.md': '# Forms\n'})
    yield server
    server.stop()


@pytest.fixture
def registry(server: BucketServer, tmp_path: Path) -> Buckets:
    return Buckets(server, tmp_path / 'cache')


def test_28_a_redirect_to_another_host_takes_no_credentials_along(registry: Buckets, server: BucketServer):
    other = BucketServer()
    try:
        server.fault = answering(307, {'Location': f'{other.url}/{other.bucket}?list-type=2'})
        assert names(registry()) == []
        assert other.lists, 'the redirect was not followed'
        assert not [sent for sent in other.headers if 'HTTP_AUTHORIZATION' in sent or SECRET in repr(sent)]
    finally:
        other.stop()


def test_28_an_error_that_echoes_credentials_is_not_repeated(registry: Buckets, server: BucketServer):
    def echo(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        body = f'<Error><AWSAccessKeyId>AKIDEXAMPLE</AWSAccessKeyId>{SECRET}</Error>'.encode()
        start_response('400 Bad Request', [('Content-Length', str(len(body)))])
        return [body]

    server.fault = echo
    assert messages(registry()) == f's3://{server.bucket}/skills answered with HTTP 400.'


def test_53_an_object_of_a_gigabyte_that_was_listed_as_small_is_not_read(
    registry: Buckets, server: BucketServer, scoreboard: Scoreboard
):
    sent = [0]

    def lie(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes] | None:
        if 'list-type' in environ['QUERY_STRING']:
            return None
        _, headers, _ = server.ask(environ)
        start_response('200 OK', [*headers, ('Content-Length', str(GIGABYTE))])
        return stream()

    def stream() -> Iterator[bytes]:
        while sent[0] < GIGABYTE:
            sent[0] += 65536
            yield b'x' * 65536

    server.fault = lie
    assert 'is no longer what was listed' in messages(registry())
    assert sent[0] < 64 * MEGABYTE
    scoreboard.record(53, 'object of 1 GB listed as small', f'{sent[0] / MEGABYTE:.1f} MB sent', '64 MB')


def test_53_a_rest_that_is_longer_than_was_asked_for_is_not_read(
    registry: Buckets, server: BucketServer, scoreboard: Scoreboard
):
    sent = [0]
    ranges: list[str] = []

    def lie(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes] | None:
        if 'list-type' in environ['QUERY_STRING']:
            return None
        asked = environ.pop('HTTP_RANGE', None)
        status, headers, body = server.ask(environ)
        if asked is None:  # hang up after three bytes, so that the rest is asked for
            start_response(status, [*headers, ('Content-Length', str(len(body))), ('Connection', 'close')])
            return [body[:3]]
        ranges.append(asked)
        about = ('Content-Range', f'bytes 3-{len(body) - 1}/{len(body)}')
        start_response('206 Partial Content', [*headers, about, ('Content-Length', str(GIGABYTE))])
        return stream()

    def stream() -> Iterator[bytes]:
        while sent[0] < GIGABYTE:
            sent[0] += 65536
            yield b'x' * 65536

    server.fault = lie
    assert 'is no longer what was listed' in messages(registry())
    assert ranges
    assert sent[0] < 64 * MEGABYTE
    scoreboard.record(53, 'rest of an object of 1 GB', f'{sent[0] / MEGABYTE:.1f} MB sent', '64 MB')


def test_53_a_listing_without_an_end_is_left(registry: Buckets, server: BucketServer, scoreboard: Scoreboard):
    pages = [0]

    def page(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        pages[0] += 1
        keys = ''.join(
            f'<Contents><Key>skills/a/{pages[0]}-{number}</Key><LastModified>2026-11-01T00:00:00.000Z</LastModified>'
            f'<ETag>"x"</ETag><Size>1</Size></Contents>'
            for number in range(1000)
        )
        head = '<IsTruncated>true</IsTruncated><NextContinuationToken>more</NextContinuationToken>'
        body = f'<ListBucketResult>{head}{keys}</ListBucketResult>'.encode()
        start_response('200 OK', [('Content-Length', str(len(body)))])
        return [body]

    server.fault = page
    assert 'has too many or too long keys: at most 200,000' in messages(registry(timeout=60))
    assert pages[0] <= 210
    scoreboard.record(53, 'listing without an end', f'{pages[0]} pages', '210 pages')


@pytest.mark.parametrize(
    'key', ['skills/../../escape/SKILL.md', 'skills//double/SKILL.md', 'skills/./dot/SKILL.md', 'skills/pdf/../../x.md']
)
def test_33_a_key_that_leads_elsewhere_spoils_no_copy_that_is_there(registry: Buckets, server: BucketServer, key: str):
    fetched = registry()
    assert names(fetched) == ['pdf']
    server.put({key: skill_md('escape')})
    fetched.refresh()
    assert names(fetched) == ['pdf']
    assert 'key that is not a path' in messages(fetched)
    assert not list(registry.cache.rglob('escape'))


@pytest.mark.parametrize('name', ['.git/config', 'x' * 300 + '.md', 'pdf.md/inner.md'])
def test_33_names_that_cannot_be_stored_are_left_out(registry: Buckets, server: BucketServer, name: str):
    server.put({'skills/pdf/pdf.md': 'A file, and a folder.', f'skills/pdf/{name}': 'odd'})
    fetched = registry()
    assert names(fetched) == ['pdf']
    assert not list(registry.cache.rglob('config'))


def test_33_a_server_that_hangs_up_leaves_the_last_good_copy(registry: Buckets, server: BucketServer):
    fetched = registry(timeout=10)
    assert names(fetched) == ['pdf']
    server.put({'skills/pdf/forms.md': '# New forms\n'})

    def hang_up(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes] | None:
        if 'list-type' in environ['QUERY_STRING']:
            return None
        status, headers, body = server.ask(environ)
        start_response(status, [*headers, ('Content-Length', str(len(body))), ('Connection', 'close')])
        return [body[:3]]

    server.fault = hang_up
    fetched.refresh()
    assert names(fetched) == ['pdf']
    assert [problem.code for problem in fetched.find().problems] == ['source-failed']
    (skill,) = fetched.find().skills
    assert skill.path is not None
    assert Path(skill.path, 'forms.md').read_text() == '# Forms\n'


@pytest.mark.parametrize('commit', ['../../../outside', '', 'main', '..', '/tmp/x', 'f' * 63])
def test_44_a_lock_file_cannot_name_a_folder_of_the_cache(tmp_path: Path, commit: str):
    folder = write_skill(tmp_path / 'skills/pdf').parent
    options: dict[str, Any] = {'cache_dir': tmp_path / 'cache', 'lock_file': tmp_path / 'skills.lock'}
    before = FolderSkillsRegistry(folder, **options)
    before.lock()
    lock = tmp_path / 'skills.lock'
    lock.write_text(lock.read_text().replace(before.commit or '', commit))
    locked = FolderSkillsRegistry(folder, locked=True, **options)
    assert names(locked) == []
    assert f'The lock file says {commit!r}, which is no revision of' in messages(locked)
    assert not (tmp_path / 'outside').exists()


def test_33_a_folder_with_pipes_links_and_sockets_is_read_without_waiting(tmp_path: Path):
    outside = write_skill(tmp_path / 'outside/secret', files={'key.md': SECRET})
    folder = write_skill(tmp_path / 'skills/pdf').parent
    os.mkfifo(folder / 'pdf' / 'pipe.md')
    (folder / 'pdf' / 'link.md').symlink_to(outside / 'key.md')
    (folder / 'pdf' / 'inner').symlink_to(outside)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / 'pdf' / 'sock.md'))
        registry = FolderSkillsRegistry(folder, cache_dir=tmp_path / 'cache')
        assert names(registry) == ['pdf']
    assert len(registry.find().problems) == 4
    assert not [path for path in (tmp_path / 'cache').rglob('*') if path.is_file() and SECRET in path.read_text()]


def test_33_a_file_that_is_swapped_for_a_link_while_it_is_copied_brings_nothing_from_outside(tmp_path: Path):
    secret = tmp_path / 'secret.md'
    secret.write_text(SECRET)
    folder = write_skill(tmp_path / 'skills/pdf', files={'notes.md': 'Mine.'}).parent
    place, stop = folder / 'pdf' / 'notes.md', threading.Event()

    def swap() -> None:
        while not stop.is_set():
            place.unlink(missing_ok=True)
            place.symlink_to(secret)
            place.unlink()
            place.write_text('Mine.')

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        registry = FolderSkillsRegistry(folder, cache_dir=tmp_path / 'cache')
        for _ in range(200):
            registry.refresh()
    finally:
        stop.set()
        swapping.join()
    assert not [path for path in (tmp_path / 'cache').rglob('notes.md') if SECRET in path.read_text()]
