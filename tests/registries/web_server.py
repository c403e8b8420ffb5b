"""A real web server with files and bad habits, and archives made by hand."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import ssl
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.folders import skill_md
from tests.registries.repositories import Request

Answer = Callable[['Handler'], None]
"""Answers a request in its own way."""


@dataclass
class WebServer:
    """A server for files in memory."""

    files: dict[str, bytes | Answer] = field(default_factory=dict[str, bytes | Answer])
    """What it has, by path."""

    requests: list[Request] = field(default_factory=list[Request])
    token: str | None = None
    """The token that it asks for."""
    has_etags: bool = True
    status: int | None = None
    """What it answers to everything."""
    certificate: Path | None = None
    """A file with a certificate and its key, for TLS."""
    released: threading.Event = field(default_factory=threading.Event)
    """Set when the server stops, so that answers which stall come to an end."""

    def __post_init__(self) -> None:
        self.http = ThreadingHTTPServer(('127.0.0.1', 0), type('Handler', (Handler,), {'owner': self}))
        self.http.daemon_threads = True
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True)
        self.thread.start()

    @property
    def port(self) -> int:
        return self.http.server_address[1]

    @property
    def url(self) -> str:
        return f'{"https" if self.certificate else "http"}://127.0.0.1:{self.port}'

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for."""
        return [request.path for request in self.requests]

    def publish(self, skills: Mapping[str, bytes | str], **changes: Mapping[str, Any]) -> None:
        """Offer an index of version 0.2.0: a `SKILL.md` as text, or an archive; `changes` are made to its entries."""
        entries: list[dict[str, Any]] = []
        for name, content in skills.items():
            data = content.encode() if isinstance(content, str) else content
            path = f'{name}/SKILL.md' if isinstance(content, str) else f'{name}.zip'
            self.files[f'/.well-known/agent-skills/{path}'] = data
            kind = 'skill-md' if isinstance(content, str) else 'archive'
            entry = {'name': name, 'type': kind, 'description': 'x', 'url': path, 'digest': f'sha256:{sha256(data)}'}
            entries.append({**entry, **changes.get(name.replace('-', '_'), {})})
        self.index({'$schema': 'https://schemas.agentskills.io/discovery/0.2.0/schema.json', 'skills': entries})

    def index(self, index: object, place: str = 'agent-skills') -> None:
        self.files[f'/.well-known/{place}/index.json'] = json.dumps(index).encode()

    def stop(self) -> None:
        if self.thread.is_alive():
            self.released.set()
            self.http.shutdown()
            self.http.server_close()
            self.thread.join()


class Handler(BaseHTTPRequestHandler):
    owner: WebServer
    protocol_version = 'HTTP/1.1'

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # the client has seen enough
            super().handle()

    def do_GET(self) -> None:
        owner = self.owner
        owner.requests.append(Request(self.path, dict(self.headers.items())))
        self.close_connection = True
        answer = owner.files.get(self.path)
        if owner.status is not None:
            self.say(owner.status)
        elif owner.token is not None and self.headers.get('Authorization') != f'Bearer {owner.token}':
            self.say(401)
        elif answer is None:
            self.say(404)
        elif isinstance(answer, bytes):
            self.send(answer)
        else:
            answer(self)

    def send(self, data: bytes) -> None:
        etag = f'"{sha256(data)[:16]}"'
        if self.owner.has_etags and self.headers.get('If-None-Match') == etag:
            self.say(304)
        else:
            self.say(200, data, **({'ETag': etag} if self.owner.has_etags else {}))

    def say(self, status: int, data: bytes = b'', **headers: str) -> None:
        self.send_response(status)
        for name, value in {'Content-Length': str(len(data)), **headers}.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        self.wfile.write(data)


# --- Answers ------------------------------------------------------------------------------------------------------


def redirect(location: str, status: int = 302) -> Answer:
    return lambda handler: handler.say(status, Location=location)


def stall(handler: Handler) -> None:
    """Take the request and say nothing."""
    handler.owner.released.wait()


def raw(data: bytes, *, repeat: bytes = b'') -> Answer:
    """Send exactly these bytes, and then others for as long as somebody listens."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(data)
        while repeat:
            handler.wfile.write(repeat)

    return answer


def drip(data: bytes) -> Answer:
    """Send a byte now and then."""

    def answer(handler: Handler) -> None:
        for byte in data:
            handler.wfile.write(bytes([byte]))
            if handler.owner.released.wait(0.05):
                return

    return answer


# --- Content ------------------------------------------------------------------------------------------------------


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def skill_files(*names: str, folder: str = '') -> dict[str, str]:
    """The files of skills, each with a script."""
    start = f'{folder}/' if folder else ''
    files = {f'{start}{name}/SKILL.md': skill_md(name) for name in names}
    return {**files, **{f'{start}{name}/scripts/run.py': f'print("{name}")\n' for name in names}}


def make_zip(files: Mapping[str, str | bytes], *, executable: tuple[str, ...] = ()) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            info = zipfile.ZipInfo(path)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o104755 if path in executable else 0o100644) << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def make_tar(files: Mapping[str, str | bytes], *others: tarfile.TarInfo, executable: tuple[str, ...] = ()) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode='w') as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            content = data.encode() if isinstance(data, str) else data
            info.size, info.mode = len(content), 0o4755 if path in executable else 0o644
            archive.addfile(info, io.BytesIO(content))
        for info in others:
            archive.addfile(info)
    return gzip.compress(buffer.getvalue(), mtime=0)  # the same files are the same bytes, at any time


def make_certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that is its own authority, with its key."""
    file = folder / 'server.pem'
    command = [
        'openssl',
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-days',
        '2',
    ]
    command += [
        '-subj',
        '/CN=tests',
        '-addext',
        'subjectAltName=IP:127.0.0.1',
        '-keyout',
        file,
        '-out',
        folder / 'cert.pem',
    ]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + (folder / 'cert.pem').read_bytes())
    return file
