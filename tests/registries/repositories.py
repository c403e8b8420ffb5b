"""Real repositories, and a real server for them: git's own `http-backend` behind a small one that can misbehave."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pydantic_ai_skills.registries import GitSkillsRegistry
from tests.folders import write_skill

ENVIRONMENT = {
    'PATH': os.environ['PATH'],
    'GIT_CONFIG_GLOBAL': os.devnull,
    'GIT_CONFIG_NOSYSTEM': '1',
    'GIT_AUTHOR_NAME': 'A',
    'GIT_AUTHOR_EMAIL': 'a@example.com',
    'GIT_COMMITTER_NAME': 'A',
    'GIT_COMMITTER_EMAIL': 'a@example.com',
}


@dataclass(frozen=True)
class Repository:
    """A repository with a work tree."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> Repository:
        path.mkdir(parents=True)
        repository = cls(path)
        repository.git('init', '--quiet', '--initial-branch=main')
        for setting in ('allowFilter', 'allowAnySHA1InWant'):
            repository.git('config', f'uploadpack.{setting}', 'true')
        return repository

    def git(self, *arguments: str, stdin: str | None = None) -> str:
        command = ['git', '-C', str(self.path), *arguments]
        done = subprocess.run(command, env=ENVIRONMENT, input=stdin, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def skill(self, name: str, description: str = 'Does things.', **options: Any) -> Path:
        return write_skill(self.path / 'skills' / name, description, **options)

    def commit(self, message: str = 'change') -> str:
        self.git('add', '--all')
        self.git('commit', '--quiet', '--allow-empty', '--message', message)
        return self.head

    @property
    def head(self) -> str:
        return self.git('rev-parse', 'HEAD')


@dataclass
class Request:
    """What a server was sent."""

    path: str
    headers: dict[str, str]


@dataclass
class GitServer:
    """A server for the repositories below a folder, and its bad habits."""

    root: Path
    requests: list[Request] = field(default_factory=list[Request])
    sent: int = 0
    password: str | None = None
    """What it asks for, as `user:password`."""
    redirect: str | None = None
    """Where it sends everybody."""
    redirects_posts_only: bool = False
    stalls: bool = False
    """Whether it takes requests and says nothing."""
    stalls_after: int | None = None
    """After how many bytes of an answer it says nothing more."""
    dies_after: int | None = None
    """After how many bytes of an answer it hangs up."""
    released: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        handler = type('Handler', (_Handler,), {'owner': self})
        self.http = ThreadingHTTPServer(('127.0.0.1', 0), handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self.http.server_address[1]}'

    def stop(self) -> None:
        if self.thread.is_alive():
            self.released.set()
            self.http.shutdown()
            self.http.server_close()
            self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    owner: GitServer
    protocol_version = 'HTTP/1.1'

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        owner = self.owner
        owner.requests.append(Request(self.path, dict(self.headers.items())))
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        if owner.stalls:
            owner.released.wait()
            self.close_connection = True
        elif owner.redirect is not None and (self.command == 'POST' or not owner.redirects_posts_only):
            self.plain(302, {'Location': owner.redirect + self.path})
        elif owner.password is not None and self.headers.get('Authorization') != basic(owner.password):
            self.plain(401, {'WWW-Authenticate': 'Basic realm="git"'})
        else:
            self.backend(body)

    def plain(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def backend(self, body: bytes) -> None:
        path, _, query = self.path.partition('?')
        environment = {
            'PATH': os.environ['PATH'],
            'GIT_PROJECT_ROOT': str(self.owner.root),
            'GIT_HTTP_EXPORT_ALL': '1',
            'GIT_CONFIG_GLOBAL': os.devnull,
            'REQUEST_METHOD': self.command,
            'PATH_INFO': path,
            'QUERY_STRING': query,
            'CONTENT_TYPE': self.headers.get('Content-Type', ''),
            'CONTENT_LENGTH': str(len(body)),
            'HTTP_CONTENT_ENCODING': self.headers.get('Content-Encoding', ''),
            'GIT_PROTOCOL': self.headers.get('Git-Protocol', ''),
        }
        output = subprocess.run(['git', 'http-backend'], env=environment, input=body, capture_output=True).stdout
        head, _, content = output.partition(b'\r\n\r\n')
        headers = dict(line.split(': ', 1) for line in head.decode().split('\r\n'))
        self.send_response(int(headers.pop('Status', '200').split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        cut = self.owner.dies_after if self.owner.dies_after is not None else self.owner.stalls_after
        is_pack = self.command == 'POST' and b'command=fetch' in body
        self.wfile.write(content[:cut] if is_pack else content)
        self.owner.sent += len(content)
        if is_pack and cut is not None:
            if self.owner.stalls_after is not None:
                self.wfile.flush()
                self.owner.released.wait()
            self.close_connection = True


class Registries:
    """Makes registries of the repository `acme` of a server, with one cache."""

    def __init__(self, server: GitServer, cache: Path) -> None:
        self.server = server
        self.cache = cache

    def __call__(self, **options: Any) -> GitSkillsRegistry:
        given: dict[str, Any] = {'allowed_protocols': ('http',), 'cache_dir': self.cache, 'timeout': 20, **options}
        return GitSkillsRegistry(f'{self.server.url}/acme', **given)


def basic(credentials: str) -> str:
    return f'Basic {base64.b64encode(credentials.encode()).decode()}'
