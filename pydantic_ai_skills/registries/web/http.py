"""Downloads from web servers that nobody vouches for: few redirects, each checked anew, limits of time and bytes.

Credentials go to one scheme, host and port only. Bytes are counted as they arrive, and nothing is decompressed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import BinaryIO, cast
from urllib.parse import urljoin

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError, SkillValidationError
from pydantic_ai_skills.registries.progress import FetchProgress, ProgressCallback, until_it_fails
from pydantic_ai_skills.registries.secrets import HostSecret
from pydantic_ai_skills.registries.upstream import Deadline

from .address import WebAddress, parse_web_address
from .connection import Connection, Connector, reason

logger = logging.getLogger('pydantic_ai_skills')

MAX_REDIRECTS = 5
_CHUNK_BYTES = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEX = re.compile(rb'[0-9A-Fa-f]{1,12}')
_LATER = 'Try again later.'
_HINTS = {404: 'Check the address.', 410: 'Check the address.', 429: _LATER, 500: _LATER, 502: _LATER, 503: _LATER}
"""What to do about a status."""


class HttpStatusError(SkillRegistryError):
    """A server answered with another status than those of a download."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Validators:
    """What a server said about the version of a file, sent back to ask whether it still has that version."""

    etag: str = ''
    last_modified: str = ''

    @classmethod
    def of(cls, response: HTTPResponse) -> Validators:
        """The validators in a response, without those that could not be sent back."""
        given = (response.getheader(name, '') for name in ('ETag', 'Last-Modified'))
        etag, last_modified = (
            text if len(text) <= 512 and text.isascii() and text.isprintable() else '' for text in given
        )
        return cls(etag=etag, last_modified=last_modified)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request that is answered only if the file has changed."""
        named = {'If-None-Match': self.etag, 'If-Modified-Since': '' if self.etag else self.last_modified}
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True, kw_only=True)
class Download:
    """What a server sent."""

    address: WebAddress
    """Where it was found, after redirects."""

    validators: Validators
    is_new: bool = True
    """Whether it was sent; `False` if the server still has the version that was asked about."""

    sha256: str = ''
    size: int = 0


@dataclass(frozen=True, kw_only=True)
class HttpClient:
    """Downloads files."""

    allowed: frozenset[str]
    """`'https'`, `'http'`, and `'local'` for hosts that have no public address."""

    connector: Connector = field(default_factory=Connector)
    secret: HostSecret | None = None
    """Sent to its own scheme, host and port only, wherever redirects lead."""

    progress: ProgressCallback | None = None

    @property
    def owner(self) -> str:
        """Identifies the token without giving it away; empty if there is none."""
        fingerprint = self.secret.fingerprint() if self.secret else ''
        return hashlib.sha256(fingerprint.encode()).hexdigest()[:16] if fingerprint else ''

    def fixed(self) -> HttpClient:
        """The same client with the token it has now."""
        return replace(self, secret=self.secret.fixed()) if self.secret else self

    def read(self, address: WebAddress, *, deadline: Deadline, max_bytes: int) -> tuple[bytes, Download]:
        """Download a small file into memory. See `save` for the errors."""
        body = io.BytesIO()
        download = self.save(address, body, deadline=deadline, max_bytes=max_bytes)
        return body.getvalue(), download

    def save(
        self,
        address: WebAddress,
        into: BinaryIO,
        *,
        deadline: Deadline,
        max_bytes: int,
        known: Validators | None = None,
    ) -> Download:
        """Download a file, unless the server says that it still has the version that is `known`.

        Raises:
            SkillRegistryRefusedError: The server does not accept the credential, or wants one (401, 403).
            SkillRegistryError: It cannot be reached, or does not send the file within the limits.
        """
        here = address
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._visit(here, into, deadline, max_bytes, known or Validators())
            if isinstance(answer, Download):
                return answer
            here = self._follow(here, answer)
        raise SkillRegistryError(f'{address.shown} redirects more than {MAX_REDIRECTS} times')

    def _follow(self, here: WebAddress, location: str) -> WebAddress:
        allowed = self.allowed - {'http'} if here.scheme == 'https' else self.allowed
        try:
            # A fragment is for readers of the page.
            return parse_web_address(urljoin(here.url, location).partition('#')[0], allowed)
        except (SkillValidationError, ValueError) as error:
            raise SkillRegistryError(f'{here.shown} redirects to where this does not follow. {error}') from None

    def _visit(
        self, here: WebAddress, into: BinaryIO, deadline: Deadline, max_bytes: int, known: Validators
    ) -> Download | str:
        """The file, or where the server sends the client instead."""
        try:
            with self.connector.connect(here, deadline, local='local' in self.allowed) as connection:
                self._send(connection, here, known)
                with contextlib.closing(HTTPResponse(cast(socket.socket, connection), method='GET')) as response:
                    response.begin()
                    return self._answer(response, here, into, max_bytes, known)
        except (OSError, HTTPException) as error:
            failure = (
                _explain(error) if deadline.left > 0 else f'it took longer than {deadline.seconds:g} s; see timeout='
            )
        # Raised out here: the frames of the first error hold the token.
        raise SkillRegistryError(f'{here.shown}: {failure}')

    def _send(self, connection: Connection, here: WebAddress, known: Validators) -> None:
        headers = {
            'Host': here.origin.partition('//')[2],
            'User-Agent': 'pydantic-ai-skills',
            'Accept': '*/*',
            'Accept-Encoding': 'identity',
            'Connection': 'close',
            **known.headers,
            **(self.secret.bearer(here.origin) if self.secret else {}),
        }
        lines = (f'GET {here.target} HTTP/1.1', *(f'{name}: {value}' for name, value in headers.items()), '', '')
        connection.send('\r\n'.join(lines).encode('ascii'))

    def _answer(
        self, response: HTTPResponse, here: WebAddress, into: BinaryIO, max_bytes: int, known: Validators
    ) -> Download | str:
        status, location = response.status, response.getheader('Location')
        if status in _REDIRECTS and location is not None:
            return location
        if status == HTTPStatus.NOT_MODIFIED and known.headers:
            return Download(address=here, validators=Validators.of(response), is_new=False)
        if status != HTTPStatus.OK:
            raise self._refusal(here, status)
        return self._receive(response, here, into, max_bytes)

    def _refusal(self, here: WebAddress, status: int) -> SkillRegistryError:
        known = {each.value: each.phrase for each in HTTPStatus}
        said = f'{here.shown}: the server answered {status} {known.get(status, "")}'.rstrip()
        if status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return HttpStatusError(f'{said}. {_HINTS.get(status, "")}'.rstrip(), status)
        hint = self.secret.about_refusal() if self.secret else 'Give a token as token=; at the terminal: --token-env.'
        return SkillRegistryRefusedError(f'{said}. {hint}')

    def _receive(self, response: HTTPResponse, here: WebAddress, into: BinaryIO, max_bytes: int) -> Download:
        total = response.length
        digest, size = hashlib.sha256(), 0
        report = until_it_fails(self.progress)
        for chunk in _body(response) if (total or 0) <= max_bytes else (b'',):
            size += len(chunk)
            if max(size, total or 0) > max_bytes:
                raise SkillRegistryError(f'{here.shown} sends more than {max_bytes:,} bytes; see max_bytes=')
            digest.update(chunk)
            _write(into, chunk)
            report(FetchProgress(stage='Downloading', done=size, total=total))
        if total is not None and size < total:
            raise SkillRegistryError(f'{here.shown}: the server hung up after {size:,} of {total:,} bytes')
        return Download(address=here, validators=Validators.of(response), sha256=digest.hexdigest(), size=size)


def _body(response: HTTPResponse) -> Iterator[bytes]:
    # `HTTPResponse` is not left to read the chunks: it accepts sizes below 0, and then reads without end.
    pieces = _chunks(response.fp) if response.chunked else iter(lambda: response.read1(_CHUNK_BYTES), b'')
    yield from pieces


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while size := _chunk_size(stream.readline(_CHUNK_BYTES)):
        while size:
            piece = stream.read(min(size, _CHUNK_BYTES))
            if not piece:
                raise IncompleteRead(b'')
            size -= len(piece)
            yield piece
        stream.readline(3)


def _chunk_size(line: bytes) -> int:
    number = line.partition(b';')[0].strip()
    if not _HEX.fullmatch(number):
        raise IncompleteRead(b'')
    return int(number, 16)


def _explain(error: Exception) -> str:
    """Why a server could not be asked, and the way out where one is known."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f'its certificate is not accepted: {error.verify_message}. For an authority of your own, set SSL_CERT_FILE'
        )
    if isinstance(error, TimeoutError):
        return 'the server does not answer, or stopped sending'
    if isinstance(error, IncompleteRead):
        return 'the server hung up, or broke off its answer'
    proxies = [name for name in ('https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY') if os.environ.get(name)]
    hint = f'. {proxies[0]} is set, but proxies are not used for this' if proxies else ''
    return f'the server cannot be reached, or does not speak HTTP: {reason(error)}{hint}'


def _write(into: BinaryIO, chunk: bytes) -> None:
    try:
        into.write(chunk)
    except OSError as error:  # must not be taken for an error of the connection
        raise SkillRegistryError(f'The cache cannot be written: {reason(error)}') from None
