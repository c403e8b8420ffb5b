"""Connections to web servers, whose every step ends before a deadline.

A host is looked up once, and the connection goes to the very address that was checked. Proxies of the environment are
not used: a proxy would look the host up again, and may reach what this machine must not.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.registries.upstream import Deadline

from .address import WebAddress, refusal_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STALL_SECONDS = 20.0
"""How long a server may send nothing."""

_BUFFER_BYTES = 64 * 1024

Resolver = Callable[[str, int], list[str]]
"""Looks up the network addresses of a host and port."""


def network_addresses(host: str, port: int) -> list[str]:
    """Ask the system for the network addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Connection:
    """A socket whose every step ends before the deadline. It has what `HTTPResponse` needs of one."""

    def __init__(self, plain: socket.socket, patience: Callable[[], float]) -> None:
        self._plain = plain
        self._patience = patience

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self._plain.settimeout(self._patience())
        self._plain.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What the server sends, as a file."""
        return io.BufferedReader(_Stream(self._plain, self._patience), _BUFFER_BYTES)


class _Stream(io.RawIOBase):
    def __init__(self, plain: socket.socket, patience: Callable[[], float]) -> None:
        self._plain = plain
        self._patience = patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        self._plain.settimeout(self._patience())
        return self._plain.recv_into(buffer)


@dataclass(frozen=True, kw_only=True)
class Connector:
    """Connects to hosts."""

    stall_seconds: float = STALL_SECONDS
    resolve: Resolver = network_addresses

    @contextlib.contextmanager
    def connect(self, here: WebAddress, deadline: Deadline, *, local: bool) -> Generator[Connection]:
        """Connect to a host; `local` allows one that has no public address.

        Raises:
            OSError: It does not answer.
            SkillRegistryError: It may not be asked, or there is no time left.
        """

        def patience() -> float:
            return min(self.stall_seconds, _time_left(here, deadline))

        addresses = self._addresses(here, deadline, local=local)
        with _reach(addresses, here.port, patience) as plain:
            if here.scheme == 'http':
                yield Connection(plain, patience)
                return
            plain.settimeout(patience())
            with ssl.create_default_context().wrap_socket(plain, server_hostname=here.host) as encrypted:
                yield Connection(encrypted, patience)

    def _addresses(self, here: WebAddress, deadline: Deadline, *, local: bool) -> list[str]:
        """The network addresses of the host, if it may be reached at all of them."""
        found: list[str] = []
        failures: list[str] = []

        def look() -> None:
            try:
                found.extend(self.resolve(here.host, here.port))
            except (OSError, UnicodeError) as error:
                failures.append(f'{here.host!r} cannot be looked up: {reason(error)}')

        # The system's own function knows no time limit.
        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        thread.join(_time_left(here, deadline))
        if thread.is_alive():
            raise SkillRegistryError(f'{here.shown}: {here.host!r} cannot be looked up in time')
        refusals = (refusal_of(address, local=local) for address in found)
        way_out = "If you trust it, say so: allowed_protocols=('local', …); at the terminal: --allow local"
        failures += [f'{here.host!r} is not asked: {why}. {way_out}' for why in refusals if why]
        if failures:
            raise SkillRegistryError(f'{here.shown}: {failures[0]}')
        return found


def _reach(addresses: list[str], port: int, patience: Callable[[], float]) -> socket.socket:
    """Connect to the first address that answers."""
    failure = OSError('no address')
    for left in range(len(addresses), 0, -1):
        try:
            return socket.create_connection((addresses[-left], port), timeout=patience() / left)
        except OSError as error:
            failure = error
    raise failure


def _time_left(here: WebAddress, deadline: Deadline) -> float:
    if deadline.left <= 0:
        raise SkillRegistryError(f'{here.shown}: it took longer than {deadline.seconds:g} s; see timeout=')
    return deadline.left


def reason(error: Exception) -> str:
    """What went wrong, in the words of the system."""
    said: Any = getattr(error, 'strerror', None)
    return said if isinstance(said, str) else type(error).__name__
