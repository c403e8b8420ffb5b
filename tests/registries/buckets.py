"""A real S3 server, moto's, behind an application that counts what it is asked and can misbehave."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from moto import server as moto_server
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

from pydantic_ai_skills.registries import ObjectStoreSkillsRegistry

SECRET = 'hunter2-SECRET'

Fault = Callable[[WSGIEnvironment, StartResponse], 'Iterable[bytes] | None']
"""Answers a request in place of the server, or returns `None` to let the server answer."""


class _Quiet(WSGIRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log(self, type: str, message: str, *args: object) -> None: ...  # noqa: A002


class BucketServer:
    """An S3 server on this machine with one bucket, and its bad habits."""

    def __init__(self) -> None:
        self.bucket = f'acme-{uuid.uuid4().hex[:8]}'
        self.lists: list[str] = []
        """The query of each request for a listing."""
        self.gets: list[str] = []
        """The path of each request for an object."""
        self.headers: list[dict[str, str]] = []
        self.sent = 0
        """Bytes that faults have sent."""
        self.fault: Fault | None = None
        """What goes wrong now."""
        self.released = threading.Event()
        moto: Any = moto_server
        self._moto = moto.DomainDispatcherApplication(moto.create_backend_app)
        self._http = make_server('127.0.0.1', 0, self._answer, threaded=True, request_handler=_Quiet)
        self.url = f'http://127.0.0.1:{self._http.server_port}'
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True)
        self._thread.start()
        self._content: Any = s3_backends[DEFAULT_ACCOUNT_ID]['aws']
        self._content.create_bucket(self.bucket, 'us-east-1')

    @property
    def options(self) -> dict[str, Any]:
        """The options of a store on this server."""
        keys = {'access_key_id': 'AKIDEXAMPLE', 'secret_access_key': SECRET}
        return {'endpoint': self.url, 'region': 'us-east-1', **keys}

    def put(self, files: Mapping[str, bytes | str]) -> None:
        for key, content in files.items():
            self._content.put_object(self.bucket, key, content if isinstance(content, bytes) else content.encode())

    def delete(self, key: str) -> None:
        self._content.delete_object(self.bucket, key)

    def forget_requests(self) -> None:
        self.lists.clear()
        self.gets.clear()
        self.headers.clear()

    def stop(self) -> None:
        if self._thread.is_alive():
            self.released.set()
            self._http.shutdown()
            self._http.server_close()
            self._thread.join()

    def ask(self, environ: WSGIEnvironment) -> tuple[str, list[tuple[str, str]], bytes]:
        """What the server answers: status, headers without the length, and body."""
        said: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
            said.append((status, headers))

        body = b''.join(self._moto(environ, start))
        status, headers = said[0]
        return status, [(name, value) for name, value in headers if name.lower() != 'content-length'], body

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ['REQUEST_METHOD'] == 'GET':
            self.headers.append({name: value for name, value in environ.items() if name.startswith('HTTP_')})
            if 'list-type' in environ['QUERY_STRING']:
                self.lists.append(environ['QUERY_STRING'])
            else:
                self.gets.append(environ['PATH_INFO'].removeprefix(f'/{self.bucket}/'))
            answer = self.fault(environ, start_response) if self.fault else None
            if answer is not None:
                return answer
        return self._moto(environ, start_response)


class Buckets:
    """Makes registries of the bucket of a server, with one cache."""

    def __init__(self, server: BucketServer, cache: Path) -> None:
        self.server = server
        self.cache = cache

    def __call__(self, prefix: str = 'skills', **options: Any) -> ObjectStoreSkillsRegistry:
        given: dict[str, Any] = {
            'store_options': self.server.options,
            'allowed_protocols': ('http',),
            'cache_dir': self.cache,
            'timeout': 300,
            **options,
        }
        return ObjectStoreSkillsRegistry(f's3://{self.server.bucket}/{prefix}', **given)


def answering(status: int, headers: Mapping[str, str] | None = None) -> Fault:
    """A server that gives everybody the same answer."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response(f'{status} Sorry', [('Content-Length', '0'), *(headers or {}).items()])
        return [b'']

    return answer
