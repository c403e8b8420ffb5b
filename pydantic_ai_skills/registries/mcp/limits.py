"""Limits how much an HTTP server may send in an answer, and which addresses the server may have."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import httpx2

from pydantic_ai_skills.registries.web.address import refusal_of
from pydantic_ai_skills.registries.web.connection import network_addresses

MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""How many bytes one answer may have: a file of 16 MiB takes 22 MiB in base64."""


class AnswerRefused(Exception):
    """What a server sent, or where it is, is not accepted."""


@dataclass(eq=False)
class Answers:
    """What is accepted from one server, and what it said about the credentials."""

    max_bytes: int = MAX_ANSWER_BYTES
    """How many bytes one answer may have."""

    local: bool = False
    """Whether the server may be on this machine or in a private network."""

    encrypted: bool = True
    """Whether the server is reached by https."""

    context: ssl.SSLContext = field(init=False, repr=False)
    """How certificates are checked. Making it reads files, so it is made before there is an event loop."""

    refused: int | None = field(default=None, init=False)
    """The status with which the server last refused the credentials: 401 or 403."""

    def __post_init__(self) -> None:
        # Without certificates to compare with, no other server is trusted.
        self.context = httpx2.create_ssl_context() if self.encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def client(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **_others: Any,
    ) -> httpx2.AsyncClient:
        """A client that keeps to the limits. The transport calls this to make one."""
        return httpx2.AsyncClient(
            transport=_HeldTransport(self),
            headers={**(headers or {}), 'Accept-Encoding': 'identity'},
            timeout=timeout or httpx2.Timeout(30.0, read=300.0),
            auth=auth,
            # A redirect within the server is followed by the transport; one to another host is not followed at all.
            follow_redirects=False,
        )


class _HeldTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, answers: Answers) -> None:
        super().__init__(verify=answers.context, trust_env=False)
        self._answers = answers

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._ask(request)
        if response.status_code in (401, 403):
            self._answers.refused = response.status_code
        if response.headers.get('content-encoding', 'identity').lower() != 'identity':
            await response.aclose()
            raise AnswerRefused('it sends compressed answers, although none were asked for')
        response.stream = _CountedStream(cast('httpx2.AsyncByteStream', response.stream), self._answers.max_bytes)
        return response

    async def _ask(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the very address that was checked, so that the name cannot lead elsewhere meanwhile."""
        url, host = request.url, request.url.host
        addresses = await checked_addresses(host, url.port or 443, local=self._answers.local)
        request.extensions = {**request.extensions, 'sni_hostname': host}
        for address in addresses[:-1]:
            request.url = url.copy_with(host=address)
            with suppress(httpx2.ConnectError):
                return await super().handle_async_request(request)
        request.url = url.copy_with(host=addresses[-1])
        return await super().handle_async_request(request)


class _CountedStream(httpx2.AsyncByteStream):
    """A stream that ends with an error when it is too long."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise AnswerRefused(f'it sends an answer of more than {self._limit:,} bytes')
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def checked_addresses(host: str, port: int, *, local: bool) -> list[str]:
    """The network addresses of a host; `local` allows those of this machine and of private networks.

    Raises:
        AnswerRefused: It may not be reached at one of them.
    """
    found = await asyncio.to_thread(network_addresses, host, port)
    for refusal in filter(None, (refusal_of(address, local=local) for address in found)):
        raise AnswerRefused(f"{refusal}. If you trust it, say so: allowed_protocols=('https', 'local')")
    return found
