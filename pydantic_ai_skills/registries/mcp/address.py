"""Which server skills come from, and how it is reached."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.registries.web.address import parse_web_address

if TYPE_CHECKING:
    from fastmcp.client.transports import ClientTransport

    from .limits import Answers

_URL = re.compile(r'(https?)://', re.IGNORECASE)
_OTHER_SCHEME = re.compile(r'[a-z][a-z0-9+.-]*://', re.IGNORECASE)
_FORMS = (
    "an https URL, a command such as 'npx -y @acme/skills' or a list of its words, an MCPToolset, or a server object"
)


@dataclass(frozen=True, kw_only=True)
class MCPAddress:
    """A server, and what identifies it in the cache and in the lock file."""

    url: str
    """The URL, the command, or the name of a server in this process. It holds no credentials."""

    host: str = ''
    """The host of a URL."""

    origin: str = ''
    """Scheme, host and port of a URL, to which a token is bound."""

    given: Any = field(repr=False)
    """What the developer gave: the URL, the words of a command, or an object."""

    env: Mapping[str, str] | None = field(default=None, repr=False)
    """Variables for the process of a command."""

    def transport(self, answers: Answers, headers: Mapping[str, str]) -> ClientTransport | Any:
        """What a client connects with: a new one each time, unless the developer made it."""
        if self.origin:
            return _http(self.url, answers, headers)
        given: object = self.given
        return _stdio(cast('tuple[str, ...]', given), self.env) if isinstance(given, tuple) else _own(given)


def parse_server(server: Any, allowed: frozenset[str], env: Mapping[str, str] | None = None) -> MCPAddress:
    """Parse what a developer, a project or the command line named as a server.

    Raises:
        SkillValidationError: It is not a server, or may not be reached in this way.
    """
    if isinstance(server, str):
        text = server.strip().removeprefix('mcp+')
        if _URL.match(text):
            return _parse_url(text, allowed)
        if not text or _OTHER_SCHEME.match(text):
            raise SkillValidationError(f'{server!r} is not an MCP server. Give {_FORMS}.')
        return _command(_words(text), env)
    if isinstance(server, Sequence) and not isinstance(server, bytes):
        words = cast('Sequence[object]', server)
        if not words or not all(isinstance(word, str) and '\0' not in word for word in words):
            raise SkillValidationError(f'{server!r} is not a command. Give {_FORMS}.')
        return _command(tuple(map(str, words)), env)
    if server is None or isinstance(server, bytes | int | float):
        raise SkillValidationError(f'{server!r} is not an MCP server. Give {_FORMS}.')
    return MCPAddress(url=_name_of(server), given=server)


def _parse_url(text: str, allowed: frozenset[str]) -> MCPAddress:
    address = parse_web_address(text.partition('#')[0], allowed)
    return MCPAddress(url=address.url, host=address.host, origin=address.origin, given=text)


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise SkillValidationError(f'{text!r} is not a command: {error}.') from None


def _command(words: tuple[str, ...], env: Mapping[str, str] | None) -> MCPAddress:
    return MCPAddress(url=shlex.join(words), given=words, env=dict(env) if env else None)


def _name_of(server: Any) -> str:
    """What identifies a server that was given as an object."""
    transport = _transport_of(server)
    if isinstance(url := getattr(transport, 'url', None), str):
        parts = urlsplit(url)
        return parts._replace(netloc=parts.netloc.rpartition('@')[2]).geturl()
    if isinstance(command := getattr(transport, 'command', None), str):
        return shlex.join([command, *getattr(transport, 'args', ())])
    named = getattr(transport, 'server', server)
    return f'mcp:{getattr(named, "name", None) or type(named).__name__}'


def _transport_of(server: Any) -> Any:
    """The transport of an `MCPToolset` or of a client. Anything else is a transport, or something to make one from."""
    return getattr(getattr(server, 'client', server), 'transport', server)


def _own(server: Any) -> Any:
    """The developer's transport. One with a process is copied, because its pipes belong to one event loop."""
    from fastmcp.client.transports import StdioTransport

    transport = _transport_of(server)
    if isinstance(transport, StdioTransport):
        return StdioTransport(
            transport.command, list(transport.args), env=transport.env, cwd=transport.cwd, keep_alive=False
        )
    return transport


def _stdio(words: tuple[str, ...], env: Mapping[str, str] | None) -> ClientTransport:
    import os
    from pathlib import Path

    from fastmcp.client.transports import StdioTransport

    command, *arguments = words
    log = Path(os.devnull)  # what a server logs would be mixed with what the application prints
    return StdioTransport(command, arguments, env=dict(env) if env else None, keep_alive=False, log_file=log)


def _http(url: str, answers: Answers, headers: Mapping[str, str]) -> ClientTransport:
    from fastmcp.client.transports import StreamableHttpTransport

    return StreamableHttpTransport(
        url, headers=dict(headers), httpx_client_factory=answers.client, max_sse_event_size=answers.max_bytes
    )
