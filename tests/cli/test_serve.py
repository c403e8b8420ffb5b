from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pydantic_ai_skills import MCPSkillsRegistry
from tests.cli.conftest import Cli
from tests.folders import write_skill

SERVE = [sys.executable, '-m', 'pydantic_ai_skills', 'serve']


@contextmanager
def listening(*arguments: str, port: int) -> Generator[list[str]]:
    """Start the server and wait until it answers; end it as a person does, and then tell what it said."""
    said: list[str] = []
    with subprocess.Popen([*SERVE, *arguments], stderr=subprocess.PIPE, text=True) as server:
        while True:
            try:
                socket.create_connection(('127.0.0.1', port), 1).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.05)
        try:
            yield said
        finally:
            server.send_signal(signal.SIGINT)
            said.append(server.communicate(timeout=30)[1])
            assert server.returncode == 0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(('127.0.0.1', 0))
        return found.getsockname()[1]


def read_back(registry: MCPSkillsRegistry) -> dict[str, str]:
    try:
        return {skill.name: skill.content for skill in registry.find().skills}
    finally:
        registry.close()


def test_a_project_is_served_over_standard_input_and_output(here: Path, tmp_path: Path):
    write_skill(here / 'skills' / 'pdf', body='Read it.')
    env = {name: os.environ[name] for name in ('HOME', 'PYDANTIC_AI_SKILLS_CACHE_DIR')}
    registry = MCPSkillsRegistry(SERVE, cache_dir=tmp_path / 'other', timeout=60, env=env)
    assert read_back(registry) == {'pdf': 'Read it.'}


@pytest.mark.parametrize(('host', 'note'), [('', ''), ('0.0.0.0:', 'open: whoever can reach 0.0.0.0:')])
def test_a_folder_is_served_over_http(tmp_path: Path, host: str, note: str):
    write_skill(tmp_path / 'skills' / 'pdf', body='Read it.')
    port = free_port()
    with listening('-d', str(tmp_path / 'skills'), '--http', f'{host}{port}', '--name', 'Acme', port=port) as said:
        url = f'http://127.0.0.1:{port}/mcp'
        registry = MCPSkillsRegistry(url, cache_dir=tmp_path / 'cache', allowed_protocols=['http', 'local'])
        assert read_back(registry) == {'pdf': 'Read it.'}
    assert 'Serving skills on http://' in said[0]
    assert note in said[0]


@pytest.mark.parametrize('place', ['x', 'localhost:', 'localhost:99999', '[::1]:0', '-1'])
def test_a_place_that_is_none_is_refused(cli: Cli, here: Path, place: str):
    done = cli('serve', f'--http={place}')
    assert (done.status, done.out) == (2, '')
    assert 'is not a port, or a host and a port' in done.err


def test_an_address_that_is_taken_is_a_failure(here: Path, tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [*SERVE, '--http', f'localhost:{port}']
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert 'address already in use' in done.stderr


def test_an_untrusted_checkout_says_how_to_trust_it(untrusted: Path, tmp_path: Path):
    write_skill(untrusted / 'skills' / 'pdf', body='Read it.')
    env = {name: os.environ[name] for name in ('HOME', 'PYDANTIC_AI_SKILLS_CACHE_DIR')}
    done = subprocess.run(SERVE, input='', capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, '')
    assert f'To trust it, run: pydantic-ai-skills trust {untrusted}' in done.stderr
    registry = MCPSkillsRegistry(SERVE, cache_dir=tmp_path / 'other', timeout=60, env=env)
    assert read_back(registry) == {'pdf': 'Read it.'}


def test_the_extra_is_named_where_it_is_missing(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, 'pydantic_ai_skills.toolset.mcp_server', raising=False)
    monkeypatch.setitem(sys.modules, 'mcp_types', None)
    done = cli('serve')
    assert (done.status, done.out) == (3, '')
    assert "pip install 'pydantic-ai-skills[mcp]'" in done.err
