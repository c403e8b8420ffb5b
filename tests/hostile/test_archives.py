"""Cases 28, 33 and 53 for archives and websites: tokens, servers that misbehave, bombs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import ArchiveSkillsRegistry, SkillRegistryError, WellKnownSkillsRegistry
from pydantic_ai_skills.registries.archive.unpack import look_through
from pydantic_ai_skills.registries.upstream import Deadline
from tests.folders import skill_md
from tests.registries.hostile_archives import FINE, LEFT_OUT, REFUSED
from tests.registries.web_server import WebServer, drip, make_tar, make_zip, raw, redirect, skill_files, stall

from .conftest import Scoreboard, Stopwatch

TOKEN = 'tok_1234567890abcdefTOKEN'
ENDLESS = b'x' * 65_536
MEGABYTE = 1024 * 1024

MEASURED = """
import json, re, sys, time
from pathlib import Path
from pydantic_ai_skills import ArchiveSkillsRegistry, WellKnownSkillsRegistry

def peak():
    return int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) * 1024

def registry(address):
    options = dict(cache_dir='cache', allowed_protocols=('http', 'local'), timeout=60)
    if address.startswith('site '):
        return WellKnownSkillsRegistry(address[5:], **options)
    return ArchiveSkillsRegistry(address if '://' in address else Path(address), **options)

addresses = json.loads(sys.stdin.read())
registry(addresses[0]).find()
before, slowest, used = peak(), 0, 0
for address in addresses[1:]:
    started = time.process_time()
    found = registry(address).find()
    slowest = max(slowest, time.process_time() - started)
    used += len(found.skills)
print(json.dumps([peak() - before, slowest, used]))
"""
"""Finds skills at addresses, after a first one that is in order: bytes that it took, the slowest, and what was used."""


def measure(addresses: list[str], cwd: Path) -> tuple[float, float, int]:
    command = [sys.executable, '-c', textwrap.dedent(MEASURED)]
    done = subprocess.run(command, cwd=cwd, input=json.dumps(addresses), capture_output=True, text=True, check=True)
    memory, slowest, used = json.loads(done.stdout)
    return memory / MEGABYTE, slowest, used


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    server.publish({'notes': skill_md('notes')})
    server.files['/good.zip'] = make_zip(skill_files('pdf'))
    yield server
    server.stop()


@pytest.mark.alone
def test_53_no_archive_takes_much_time_or_memory(tmp_path: Path, scoreboard: Scoreboard):
    places: list[str] = []
    for number, archive in enumerate((FINE[0], *REFUSED)):
        file = tmp_path / f'{number}.zip'
        file.write_bytes(archive.make())
        places.append(str(file))
    memory, slowest, used = measure(places, tmp_path)
    scoreboard.record(53, f'{len(REFUSED)} hostile archives: memory', f'{memory:.0f} MB', '64 MB')
    scoreboard.record(53, 'the slowest of them', f'{slowest:.2f} s', '5 s')
    assert (used, memory <= 64, slowest <= 5) == (0, True, True), (memory, slowest)
    assert not any(path.is_symlink() for path in (tmp_path / 'cache').rglob('*'))


@pytest.mark.alone
def test_53_no_server_takes_much_memory(web: WebServer, tmp_path: Path, scoreboard: Scoreboard):
    answers = {
        '/length.zip': raw(b'HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n', repeat=ENDLESS),
        '/endless.zip': raw(b'HTTP/1.1 200 OK\r\n\r\n', repeat=ENDLESS),
        '/chunks.zip': raw(
            b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', repeat=b'10000\r\n' + ENDLESS + b'\r\n'
        ),
        '/chunk.zip': raw(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n', repeat=ENDLESS),
        '/line.zip': raw(b'HTTP/1.1 ', repeat=ENDLESS),
        '/headers.zip': raw(b'HTTP/1.1 200 OK\r\n', repeat=b'X: ' + b'y' * 60_000 + b'\r\n'),
        '/.well-known/agent-skills/large/index.json': raw(b'HTTP/1.1 200 OK\r\n\r\n', repeat=b'[' * 65_536),
    }
    web.files |= answers
    site = f'{web.url}/.well-known/agent-skills/large/index.json'
    addresses = [
        f'{web.url}/good.zip',
        *(f'{web.url}{path}' for path in answers if path.endswith('.zip')),
        f'site {site}',
    ]
    memory, slowest, used = measure(addresses, tmp_path)
    scoreboard.record(53, f'{len(answers)} servers without end: memory', f'{memory:.0f} MB', '64 MB')
    scoreboard.record(53, 'processor time for the slowest of them', f'{slowest:.2f} s', '5 s')
    assert (used, memory <= 64, slowest <= 5) == (0, True, True), (memory, slowest)


def test_53_damaged_archives_end_in_our_own_error(scoreboard: Scoreboard):
    random.seed(53)
    whole = [archive.make() for archive in (*FINE, *LEFT_OUT)] + [
        make_tar(skill_files('a', 'b')),
        make_zip(skill_files('a')),
    ]
    tried = 3_000
    for _ in range(tried):
        data = bytearray(random.choice(whole))
        for _ in range(random.randint(1, 8)):
            data[random.randrange(len(data))] = random.randrange(256)
        cut = random.choice((None, None, random.randrange(len(data))))
        try:
            look_through(BytesIO(bytes(data[:cut])), max_bytes=MEGABYTE, deadline=Deadline(20))
        except SkillRegistryError:
            continue
    scoreboard.record(53, 'damaged archives: errors of another kind', f'0 of {tried:,}', '0')


@pytest.mark.parametrize('fault', ['gone', 'stall', 'drip', '500', 'html', 'cut off', 'redirects'])
def test_33_the_last_copy_is_used_when_a_server_fails(
    web: WebServer, tmp_path: Path, fault: str, scoreboard: Scoreboard
):
    good = web.files['/good.zip']
    assert isinstance(good, bytes)
    answers: dict[str, Any] = {
        'stall': stall,
        'drip': drip(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n' + bytes(1000)),
        '500': raw(b'HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n'),
        'html': b'<!DOCTYPE html>',
        'cut off': raw(b'HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n' + good),
        'redirects': redirect('/good.zip'),
    }
    options: dict[str, Any] = {'cache_dir': tmp_path / 'cache', 'allowed_protocols': ('http', 'local'), 'timeout': 1}
    registry, site = (
        ArchiveSkillsRegistry(f'{web.url}/good.zip', **options),
        WellKnownSkillsRegistry(web.url, **options),
    )
    assert [len(registry.find().skills), len(site.find().skills)] == [1, 1]
    if fault == 'gone':
        web.stop()
    else:
        web.files |= {'/good.zip': answers[fault], '/.well-known/agent-skills/index.json': answers[fault]}
        if fault == 'redirects':
            web.files['/.well-known/agent-skills/index.json'] = redirect('index.json')
    watch = Stopwatch(limit=2 * (1 + 1))
    for _ in watch:
        with watch:
            found = [registry.refresh(), site.refresh()]
        assert [[skill.name for skill in each.skills] for each in found] == [['pdf'], ['notes']]
        assert [[problem.code for problem in each.problems] for each in found] == [['source-failed']] * 2
    scoreboard.record(33, f'archive and site, {fault}: last copy', str(watch), '2 × (timeout + 1 s)')
    assert watch.best <= watch.limit


def test_28_a_token_is_in_no_file_no_text_and_on_no_other_host(web: WebServer, tmp_path: Path):
    other = WebServer({'/stored.zip': make_zip(skill_files('pdf'))})
    web.token = TOKEN
    web.files['/moved.zip'] = redirect(f'{other.url}/stored.zip')
    options: dict[str, Any] = {
        'cache_dir': tmp_path / 'cache',
        'allowed_protocols': ('http', 'local'),
        'lock_file': tmp_path / 'skills.lock',
        'token': TOKEN,
    }
    registries = [
        ArchiveSkillsRegistry(f'{web.url}/good.zip', **options),
        ArchiveSkillsRegistry(f'{web.url}/moved.zip', **options),
        WellKnownSkillsRegistry(web.url, **options),
    ]
    texts: list[str] = []
    for registry in registries:
        assert registry.find().skills
        registry.lock()
        texts += [repr(registry), repr(vars(registry)), str(registry.get_skills()[0].source)]
    web.token = 'another'
    for registry in registries:
        texts += [str(problem) for problem in registry.refresh().problems]
    texts += [path.read_bytes().decode('latin-1') for path in tmp_path.rglob('*') if path.is_file()]
    assert not [text for text in texts if TOKEN in text]
    assert [request.headers.get('Authorization') for request in other.requests] == [None]
    assert {request.headers.get('Authorization') for request in web.requests} == {f'Bearer {TOKEN}'}
    other.stop()


def test_38_a_site_cannot_make_this_machine_ask_others(web: WebServer, tmp_path: Path, scoreboard: Scoreboard):
    """The index and the redirects of a site name addresses of this machine, of the network, and of clouds."""
    inside = WebServer({'/secret': skill_md('secret').encode()})
    port = inside.port
    hosts = ('127.0.0.1', 'localhost', '0.0.0.0', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0x7f000001', '127.1')
    urls = [f'{scheme}://{host}:{port}/secret' for scheme in ('http', 'https') for host in hosts]
    urls += ['http://169.254.169.254/latest', 'file:///secret', f'//127.0.0.1:{port}/secret']
    entry = {'type': 'skill-md', 'description': 'x', 'digest': f'sha256:{"0" * 64}'}
    skills = [{**entry, 'name': f'skill-{number}', 'url': url} for number, url in enumerate(urls)]
    web.index({'$schema': 'https://schemas.agentskills.io/discovery/0.2.0/schema.json', 'skills': skills})
    options: dict[str, Any] = {'cache_dir': tmp_path / 'cache', 'allowed_protocols': ('http', 'local'), 'timeout': 20}
    found = WellKnownSkillsRegistry(web.url, **options).find()
    assert found.skills == ()
    assert inside.requests == []
    scoreboard.record(38, 'addresses inside that a site named: asked', f'0 of {len(urls)}', '0')
    inside.stop()
