"""Downloads from a real server on this machine, which misbehaves in every way."""

from __future__ import annotations

import io
import logging
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from pydantic_ai_skills import FetchProgress, SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.registries.secrets import HostSecret
from pydantic_ai_skills.registries.upstream import Deadline
from pydantic_ai_skills.registries.web.address import parse_web_address
from pydantic_ai_skills.registries.web.connection import Connector
from pydantic_ai_skills.registries.web.http import HttpClient, HttpStatusError, Validators
from tests.registries.web_server import Handler, WebServer, drip, make_certificate, raw, redirect, sha256, stall

ALLOWED = frozenset({'http', 'https', 'local'})
TOKEN = 'tok_1234567890'


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    yield server
    server.stop()


@pytest.fixture
def other() -> Iterator[WebServer]:
    server = WebServer()
    yield server
    server.stop()


def get(url: str, *, timeout: float = 20, max_bytes: int = 1_000_000, **options: Any) -> bytes:
    given: dict[str, Any] = {'allowed': ALLOWED, **options}
    client = HttpClient(**given)
    data, got = client.read(parse_web_address(url, ALLOWED), deadline=Deadline(timeout), max_bytes=max_bytes)
    assert (got.sha256, got.size) == (sha256(data), len(data))
    return data


def secret_for(server: WebServer) -> HostSecret:
    return HostSecret(TOKEN, parse_web_address(server.url, ALLOWED))


def test_a_file_is_downloaded_as_it_is(web: WebServer):
    web.files['/a?b=c'] = b'\x1f\x8b not decompressed'
    assert get(f'{web.url}/a?b=c') == b'\x1f\x8b not decompressed'
    sent = web.requests[0].headers
    assert sent['Host'] == f'127.0.0.1:{web.port}'
    assert sent['Accept-Encoding'] == 'identity'
    assert 'Authorization' not in sent


def test_a_body_in_chunks_or_without_a_length_is_read(web: WebServer):
    web.files['/chunked'] = raw(
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\n\r\n'
    )
    web.files['/until-the-end'] = raw(b'HTTP/1.0 200 OK\r\n\r\nhello')
    assert get(f'{web.url}/chunked') == b'hello world'
    assert get(f'{web.url}/until-the-end') == b'hello'


def test_a_version_that_is_known_is_not_sent_again(web: WebServer):
    web.files['/a'] = b'first'
    address, client = parse_web_address(f'{web.url}/a', ALLOWED), HttpClient(allowed=ALLOWED)
    got = client.save(address, io.BytesIO(), deadline=Deadline(20), max_bytes=100)
    again = client.save(address, io.BytesIO(), deadline=Deadline(20), max_bytes=100, known=got.validators)
    assert (got.is_new, again.is_new) == (True, False)
    web.files['/a'] = b'second'
    assert client.save(address, io.BytesIO(), deadline=Deadline(20), max_bytes=100, known=got.validators).is_new


def test_what_a_server_says_about_a_version_is_sent_back_only_if_it_is_harmless(web: WebServer):
    address, client = parse_web_address(f'{web.url}/a', ALLOWED), HttpClient(allowed=ALLOWED)
    web.files['/a'] = lambda handler: handler.say(200, b'x', Last_Modified='Wed, 21 Oct 2026 07:28:00 GMT')
    got = client.save(address, io.BytesIO(), deadline=Deadline(20), max_bytes=100)
    assert got.validators.headers == {'If-Modified-Since': 'Wed, 21 Oct 2026 07:28:00 GMT'}
    for etag in (b'"\xff"', b'"a"\r\n folded', b'"' + b'a' * 600 + b'"'):
        web.files['/a'] = raw(b'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: ' + etag + b'\r\n\r\nx')
        assert client.save(address, io.BytesIO(), deadline=Deadline(20), max_bytes=100).validators == Validators()


# --- Limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'answer',
    [
        raw(b'HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n', repeat=b'x' * 65536),
        raw(b'HTTP/1.1 200 OK\r\n\r\n', repeat=b'x' * 65536),
        raw(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', repeat=b'1000\r\n' + b'x' * 4096 + b'\r\n'),
    ],
)
def test_more_bytes_than_allowed_are_not_read(web: WebServer, answer: Any):
    web.files['/a'] = answer
    with pytest.raises(SkillRegistryError, match=r'/a sends more than 1,000,000 bytes; see max_bytes='):
        get(f'{web.url}/a')


def test_exactly_as_many_bytes_as_allowed_are_read(web: WebServer):
    web.files['/a'] = b'x' * 100
    assert len(get(f'{web.url}/a', max_bytes=100)) == 100
    with pytest.raises(SkillRegistryError, match='more than 99 bytes'):
        get(f'{web.url}/a', max_bytes=99)


@pytest.mark.parametrize(
    'answer',
    [
        stall,
        drip(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n' + b'x' * 1000),
        raw(b'', repeat=b'HTTP/1.1 100 Continue\r\n\r\n'),
    ],
)
def test_a_server_that_stalls_is_an_error_in_time(web: WebServer, answer: Any):
    web.files['/a'] = answer
    started = time.monotonic()
    with pytest.raises(SkillRegistryError, match='took longer than 0.5 s; see timeout='):
        get(f'{web.url}/a', timeout=0.5)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ('answer', 'why'),
    [
        (raw(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel'), 'hung up, or broke off'),
        (raw(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n', repeat=b'x' * 65536), 'broke off'),
        (raw(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'), 'hung up, or broke off'),
        (raw(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhello'), 'hung up after 5 of 1,000 bytes'),
        (raw(b''), 'cannot be reached, or does not speak HTTP: RemoteDisconnected'),
        (raw(b'SSH-2.0-OpenSSH\r\n'), 'cannot be reached, or does not speak HTTP: BadStatusLine'),
        (raw(b'HTTP/1.1 200 OK\r\n' + b'X: y\r\n' * 200 + b'\r\n'), 'does not speak HTTP: HTTPException'),
    ],
)
def test_a_server_that_breaks_off_is_an_error_that_says_how(web: WebServer, answer: Any, why: str):
    web.files['/a'] = answer
    with pytest.raises(SkillRegistryError, match=why):
        get(f'{web.url}/a')


def test_a_server_that_sends_nothing_for_long_is_given_up_before_the_deadline(web: WebServer):
    web.files['/a'] = stall
    with pytest.raises(SkillRegistryError, match='does not answer, or stopped sending'):
        get(f'{web.url}/a', connector=Connector(stall_seconds=0.1))


def test_a_deadline_that_has_passed_is_an_error_before_anything_is_sent(web: WebServer):
    with pytest.raises(SkillRegistryError, match='it took longer than 0 s'):
        get(f'{web.url}/a', timeout=0)
    assert web.requests == []


def test_a_disk_that_is_full_is_not_blamed_on_the_server(web: WebServer):
    class Full(io.BytesIO):
        def write(self, data: Any, /) -> int:
            raise OSError(28, 'No space left on device')

    web.files['/a'] = b'x'
    into: BinaryIO = Full()
    client = HttpClient(allowed=ALLOWED)
    with pytest.raises(SkillRegistryError, match='^The cache cannot be written: No space left on device'):
        client.save(parse_web_address(f'{web.url}/a', ALLOWED), into, deadline=Deadline(20), max_bytes=9)


# --- Hosts --------------------------------------------------------------------------------------------------------


def test_a_host_on_this_machine_is_not_asked_unless_that_is_allowed(web: WebServer):
    web.files['/a'] = b'x'
    for host in ('127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]'):
        with pytest.raises(SkillRegistryError, match=r'is not asked: .* is not a public address.*--allow local'):
            get(f'http://{host}:{web.port}/a', allowed=frozenset({'http'}))
    assert web.requests == []
    assert get(f'http://localhost:{web.port}/a') == b'x'


def test_a_host_is_looked_up_once_and_the_connection_goes_to_that_address(web: WebServer):
    web.files['/a'] = b'x'
    asked: list[tuple[str, int]] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ['127.0.0.1']

    assert get(f'http://skills.example:{web.port}/a', connector=Connector(resolve=resolve)) == b'x'
    assert asked == [('skills.example', web.port)]
    assert web.requests[0].headers['Host'] == f'skills.example:{web.port}'


def test_one_address_that_is_not_public_is_enough_to_refuse_a_host():
    connector = Connector(resolve=lambda host, port: ['93.184.216.34', '10.0.0.1'])
    with pytest.raises(SkillRegistryError, match='10.0.0.1 is not a public address'):
        get('https://mixed.example/a', allowed=frozenset({'https'}), connector=connector)


def test_the_first_address_that_answers_is_used(web: WebServer):
    web.files['/a'] = b'x'
    connector = Connector(resolve=lambda host, port: ['::1', '127.0.0.1'])
    assert get(f'http://skills.example:{web.port}/a', connector=connector) == b'x'


def test_a_host_that_cannot_be_looked_up_is_an_error_in_time():
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, 'Name or service not known')

    with pytest.raises(SkillRegistryError, match="'nowhere.example' cannot be looked up: Name or service not known$"):
        get('https://nowhere.example/a', connector=Connector(resolve=unknown))
    with pytest.raises(SkillRegistryError, match='cannot be looked up: '):
        get(f'https://{"a" * 70}.example/a')
    with pytest.raises(SkillRegistryError, match='cannot be reached.*OSError'):
        get('https://empty.example/a', connector=Connector(resolve=lambda host, port: []))
    release = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        release.wait()
        return []

    with pytest.raises(SkillRegistryError, match="'slow.example' cannot be looked up in time"):
        get('https://slow.example/a', timeout=0.1, connector=Connector(resolve=slow))
    release.set()


def test_a_server_that_is_gone_is_an_error_that_says_that_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        url = f'http://127.0.0.1:{free.getsockname()[1]}/a'
    with pytest.raises(SkillRegistryError, match='cannot be reached, or does not speak HTTP: Connection refused$'):
        get(url)
    monkeypatch.setenv('HTTPS_PROXY', 'http://proxy.example:3128')
    with pytest.raises(SkillRegistryError, match='HTTPS_PROXY is set, but proxies are not used for this$'):
        get(url)


# --- TLS ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[WebServer]:
    server = WebServer(certificate=make_certificate(tmp_path))
    yield server
    server.stop()


def test_the_certificate_has_to_be_for_the_host_and_from_a_known_authority(
    secure: WebServer, monkeypatch: pytest.MonkeyPatch
):
    secure.files['/a'] = b'x'
    with pytest.raises(SkillRegistryError, match='its certificate is not accepted: .*set SSL_CERT_FILE$'):
        get(f'{secure.url}/a')
    monkeypatch.setenv('SSL_CERT_FILE', str(secure.certificate))
    assert get(f'{secure.url}/a') == b'x'
    connector = Connector(resolve=lambda host, port: ['127.0.0.1'])
    with pytest.raises(SkillRegistryError, match='its certificate is not accepted: Hostname mismatch'):
        get(f'https://skills.example:{secure.port}/a', connector=connector)


def test_https_never_redirects_to_http(secure: WebServer, web: WebServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('SSL_CERT_FILE', str(secure.certificate))
    secure.files['/a'] = redirect(f'{web.url}/b')
    with pytest.raises(SkillRegistryError, match="redirects to where this does not follow. 'http' is not among"):
        get(f'{secure.url}/a')
    assert web.requests == []


def test_a_server_without_tls_is_an_error(web: WebServer):
    with pytest.raises(SkillRegistryError, match='cannot be reached, or does not speak HTTP'):
        get(f'https://127.0.0.1:{web.port}/a', timeout=5)


# --- Redirects and credentials ------------------------------------------------------------------------------------


@pytest.mark.parametrize('status', [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(web: WebServer, status: int):
    web.files |= {'/a': redirect('b/c#part', status), '/b/c': b'x'}
    assert get(f'{web.url}/a') == b'x'


def test_at_most_5_redirects_are_followed(web: WebServer):
    web.files |= {f'/{number}': redirect(f'/{number + 1}') for number in range(9)} | {'/5': b'five'}
    assert get(f'{web.url}/0') == b'five'
    del web.files['/5']
    web.files['/5'] = redirect('/6')
    with pytest.raises(SkillRegistryError, match='/0 redirects more than 5 times'):
        get(f'{web.url}/0')


@pytest.mark.parametrize(
    'location',
    [
        'file:///x',
        'ftp://a.example/',
        'http://user:hunter2@a.example/',
        'http://[::1',
        'http://a\x80.example/',
        'http://[/',
    ],
)
def test_a_redirect_to_something_else_is_not_followed(web: WebServer, location: str):
    web.files['/a'] = redirect(location)
    with pytest.raises(SkillRegistryError, match='redirects to where this does not follow') as error:
        get(f'{web.url}/a')
    assert 'hunter2' not in str(error.value)


def test_a_redirect_to_a_place_that_must_not_be_asked_is_refused():
    metadata = WebServer()
    metadata.files['/a'] = redirect('http://169.254.169.254/latest/meta-data/')
    with pytest.raises(SkillRegistryError, match='hands out credentials of a cloud, and is never asked'):
        get(f'{metadata.url}/a')
    metadata.stop()


def test_a_token_goes_to_its_own_host_and_nowhere_else(web: WebServer, other: WebServer):
    other.files['/b'] = b'theirs'
    web.files |= {'/a': redirect('/same'), '/same': redirect(f'{other.url}/b')}
    assert get(f'{web.url}/a', secret=secret_for(web)) == b'theirs'
    assert [request.headers.get('Authorization') for request in web.requests] == [f'Bearer {TOKEN}'] * 2
    assert 'Authorization' not in other.requests[0].headers


def test_a_redirect_does_not_show_its_query(web: WebServer, other: WebServer):
    web.files['/a'] = redirect(f'{other.url}/b?signature=hunter2')
    with pytest.raises(SkillRegistryError, match=rf'{other.url}/b: the server answered 404') as error:
        get(f'{web.url}/a')
    assert 'hunter2' not in str(error.value)


@pytest.mark.parametrize('status', [401, 403])
def test_a_refusal_is_its_own_error(web: WebServer, status: int):
    web.status = status
    with pytest.raises(SkillRegistryRefusedError, match=rf'answered {status} \w+\. Give a token as token='):
        get(f'{web.url}/a')
    with pytest.raises(SkillRegistryRefusedError, match='The token is not set, or was not accepted') as error:
        get(f'{web.url}/a', secret=secret_for(web))
    assert TOKEN not in str(error.value)


@pytest.mark.parametrize(
    ('status', 'said'),
    [
        (404, '404 Not Found. Check the address.'),
        (500, '500 Internal Server Error. Try again later.'),
        (206, '206 Partial Content.'),
        (304, '304 Not Modified.'),
        (302, '302 Found.'),
        (599, '599.'),
    ],
)
def test_any_other_status_is_an_error_that_names_it(web: WebServer, status: int, said: str):
    web.status = status
    with pytest.raises(HttpStatusError, match=rf'/a: the server answered {said}$'):
        get(f'{web.url}/a')


def test_a_token_is_in_no_error_and_no_traceback(web: WebServer, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    for answer in (raw(b''), raw(b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'), redirect('ftp://x/'), stall):
        web.files['/a'] = answer
        with pytest.raises(SkillRegistryError) as error:
            get(f'{web.url}/a', secret=secret_for(web), timeout=2 if answer is stall else 60)
        assert web.requests.pop().headers['Authorization'] == f'Bearer {TOKEN}'
        shown = traceback.TracebackException.from_exception(error.value, capture_locals=True)
        assert TOKEN not in ''.join(shown.format())
        assert error.value.__context__ is None or TOKEN not in repr(error.value.__context__)
    assert TOKEN not in caplog.text


# --- Progress -----------------------------------------------------------------------------------------------------


def test_progress_is_told_in_bytes(web: WebServer):
    web.files['/a'] = b'x' * 200_000
    told: list[FetchProgress] = []
    get(f'{web.url}/a', progress=told.append)
    assert told[-1] == FetchProgress(stage='Downloading', done=200_000, total=200_000)
    assert [progress.done for progress in told] == sorted(progress.done for progress in told)


def test_a_callback_that_fails_is_not_called_again(web: WebServer, caplog: pytest.LogCaptureFixture):
    calls: list[FetchProgress] = []

    def fail(progress: FetchProgress) -> None:
        calls.append(progress)
        raise LookupError

    def slowly(handler: Handler) -> None:
        handler.wfile.write(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n1\r\ny\r\n0\r\n\r\n')

    web.files['/a'] = slowly
    assert get(f'{web.url}/a', progress=fail) == b'xy'
    assert len(calls) == 1
    assert 'The progress callback failed and is not called again.' in caplog.text
