"""Addresses of things on the web, and which network addresses a host may have."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.registries.fetch_options import require_protocol

MAX_URL_LENGTH = 4096

_UNPRINTABLE = re.compile(r'[\x00-\x20\x7f\\]')
_HOST = re.compile(r'[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]')
_PORTS = {'https': 443, 'http': 80}
_SECRET = re.compile(
    r'token|secret|passw|signature|credential|api-?_?key|^(?:sig|auth|key|authorization|pwd)$', re.IGNORECASE
)
"""Names of parameters in a query that hold a credential."""


@dataclass(frozen=True, kw_only=True)
class WebAddress:
    """The address of something on a web server."""

    url: str
    """The whole address, which has neither a user nor a password in it."""

    scheme: str
    host: str
    port: int
    target: str
    """The path and the query, as a request has them."""

    @property
    def origin(self) -> str:
        """Scheme, host and port, which credentials are bound to. The usual port of the scheme is left out."""
        host = f'[{self.host}]' if ':' in self.host else self.host
        return f'{self.scheme}://{host}' if self.port == _PORTS[self.scheme] else f'{self.scheme}://{host}:{self.port}'

    @property
    def shown(self) -> str:
        """The address without its query, which may hold a secret of the server that redirected to it."""
        return f'{self.origin}{self.target.partition("?")[0]}'

    @property
    def name(self) -> str:
        """What to call a folder for it: the last step of its path without the endings of archives, or the host."""
        last = unquote(self.target.partition('?')[0]).rstrip('/').rpartition('/')[2]
        return folder_name(last) or folder_name(self.host) or 'web'


def folder_name(file: str) -> str:
    """The name of a file without the endings of archives, and with plain characters only; it may be empty."""
    stem = re.sub(r'\.(?:zip|skill|tgz|tar\.gz)$', '', file, flags=re.IGNORECASE)
    return re.sub(r'[^\w.-]+', '-', stem).strip('.-')[:64]


def parse_web_address(text: str, allowed: Collection[str]) -> WebAddress:
    """Parse an `https` address, or an `http` one if that is allowed. Error messages do not repeat possible secrets.

    Raises:
        SkillValidationError: It is not such an address, or has a user, a password or a fragment in it.
    """
    if len(text) > MAX_URL_LENGTH or _UNPRINTABLE.search(text) or not text.isascii():
        raise SkillValidationError(
            f'An address on the web is plain ASCII without spaces, and at most {MAX_URL_LENGTH:,} characters long; '
            'write other characters as %20 and the like.'
        )
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ''
    except ValueError:
        raise SkillValidationError('The address cannot be parsed.') from None
    _check_scheme(parts.scheme, allowed)
    if '@' in parts.netloc or parts.fragment:
        raise SkillValidationError(
            f'The address on {host!r} has a user, a password or a fragment in it. Give a token as token=; at the '
            'terminal: --token-env.'
        )
    if not _HOST.fullmatch(f'[{host}]' if ':' in host else host) or port == 0:
        raise SkillValidationError('The address names no host.')
    return _address(parts, host, port or _PORTS[parts.scheme])


def check_query(address: WebAddress) -> WebAddress:
    """Refuse an address whose query seems to hold a credential: it would be in the lock file, and shown.

    Raises:
        SkillValidationError: It seems so.
    """
    for name, _ in parse_qsl(address.target.partition('?')[2], keep_blank_values=True):
        if _SECRET.search(name):
            raise SkillValidationError(
                f'The address on {address.host!r} has a credential in it, it seems: {name[:40]!r}. Give a token as '
                'token=; at the terminal: --token-env.'
            )
    return address


def _check_scheme(scheme: str, allowed: Collection[str]) -> None:
    if scheme not in _PORTS:
        raise SkillValidationError(f'{scheme!r} is not a way to reach a web server; https:// is.')
    require_protocol(scheme, allowed)


def _address(parts: SplitResult, host: str, port: int) -> WebAddress:
    target = f'{parts.path or "/"}?{parts.query}' if parts.query else parts.path or '/'
    given = WebAddress(url='', scheme=parts.scheme, host=host, port=port, target=target)
    return WebAddress(url=f'{given.origin}{target}', scheme=parts.scheme, host=host, port=port, target=target)


# --- Network addresses --------------------------------------------------------------------------------------------

_METADATA = frozenset(
    ipaddress.ip_address(address)
    for address in (
        *('169.254.169.254', '169.254.170.2', '169.254.170.23', '169.254.42.42', '169.254.0.23', '168.63.129.16'),
        *('100.100.100.200', '192.0.0.192', 'fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:42::42'),
    )
)
"""Where clouds hand out credentials to whoever asks from inside."""

_NOT_PUBLIC = tuple(
    IPv4Network(network)
    for network in (
        *('0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'),
        *('192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24'),
        *('203.0.113.0/24', '224.0.0.0/3'),
    )
)
_PUBLIC_6 = IPv6Network('2000::/3')
_NOT_PUBLIC_6 = tuple(map(IPv6Network, ('2001::/23', '2001:db8::/32', '3fff::/20')))
_NAT64 = (IPv6Network('64:ff9b::/96'), IPv6Network('64:ff9b:1::/48'))
_COMPATIBLE = IPv6Network('::/96')
_ISATAP = (b'\x00\x00\x5e\xfe', b'\x02\x00\x5e\xfe')


def refusal_of(address: str, *, local: bool) -> str | None:
    """Why a host may not be reached at this address, if it may not; `local` allows those that are not public."""
    ip = ipaddress.ip_address(address.partition('%')[0])
    inner = _embedded(ip)
    if not _METADATA.isdisjoint((ip, *inner)):
        return f'{address} hands out credentials of a cloud, and is never asked'
    if local or (_is_public(ip) and all(map(_is_public, inner))):
        return None
    return f'{address} is not a public address'


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _NOT_PUBLIC)
    if ip in _NAT64[0]:
        return True  # the IPv4 address that it stands for is checked as well
    return ip in _PUBLIC_6 and not any(ip in network for network in _NOT_PUBLIC_6)


def _embedded(ip: IPv4Address | IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that are embedded in an IPv6 address, in any of the known ways."""
    if isinstance(ip, IPv4Address):
        return ()
    if ip.ipv4_mapped or ip in _COMPATIBLE or any(ip in network for network in _NAT64) or ip.packed[8:12] in _ISATAP:
        return (IPv4Address(ip.packed[-4:]),)
    if ip.sixtofour:
        return (ip.sixtofour,)
    return ip.teredo or ()
