"""A token that is sent to one host only and never shown."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from pydantic import SecretStr

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError

TokenSource = str | SecretStr | Callable[[], str | SecretStr | None]
"""A token, or a function that returns it, called each time it is needed."""

_FORGE_VARIABLES = {'GITHUB_TOKEN': 'github.com', 'GH_TOKEN': 'github.com', 'GITLAB_TOKEN': 'gitlab.com'}
"""Variables that hold a token for one host."""

_USERS = {'gitlab.com': 'oauth2', 'bitbucket.org': 'x-token-auth'}
_DEFAULT_USER = 'x-access-token'
"""The user name that goes with a token. Most servers take any."""

FINGERPRINT_ROUNDS = 50_000
"""How often a secret is hashed to identify it."""


def fingerprint_of(secret: str, purpose: str) -> str:
    """Identifies a secret that is used for a purpose. It is slow to compute, so that nobody can guess the secret."""
    salt = f'pydantic-ai-skills {purpose}'.encode()
    return hashlib.pbkdf2_hmac('sha256', secret.encode(), salt, FINGERPRINT_ROUNDS).hex()


class HostAddress(Protocol):
    """The address of something on a host, or of something local."""

    @property
    def origin(self) -> str:
        """Scheme, host and port that a token is bound to; empty for something local."""
        ...

    @property
    def host(self) -> str:
        """The host; empty for something local."""
        ...


class HostSecret:
    """A token for one host. It cannot be printed or pickled."""

    __slots__ = ('_address', '_origin', '_source', '_user', '_value', '_variable')

    def __init__(
        self, source: TokenSource, address: HostAddress, user: str | None = None, variable: str | None = None
    ) -> None:
        """Bind a token to the host of an address. `variable` is the environment variable that holds it."""
        self._source = SecretStr(source) if isinstance(source, str) else source
        self._address = address
        self._origin = address.origin
        self._user = user or _USERS.get(address.host, _DEFAULT_USER)
        self._value: str | None = None
        self._variable = variable

    def __repr__(self) -> str:
        return f'HostSecret(for {self._origin})'

    def __deepcopy__(self, memo: dict[int, Any]) -> HostSecret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError('A secret cannot be pickled: it would be written to disk.')

    def fixed(self) -> HostSecret:
        """The same secret with the value that it has now, for one operation from beginning to end."""
        return HostSecret(SecretStr(self._read() or ''), self._address, self._user, self._variable)

    def fingerprint(self) -> str:
        """Identifies user and token; empty without a token. It is slow to compute, so that nobody can guess them."""
        value = self._read()
        if not value or not self._origin.startswith('http'):
            return ''
        return fingerprint_of(value, f'{self._origin} {self._user}')

    def config(self) -> dict[str, str]:
        """Git settings that send the token to this host only."""
        self._value = value = self._read()
        if not value or not self._origin.startswith('http'):
            return {}
        return {
            # Git would send the header on to wherever a redirect leads.
            'http.followRedirects': 'false',
            f'http.{self._origin}/.extraHeader': f'Authorization: Basic {self._encode(value)}',
        }

    def bearer(self, origin: str) -> dict[str, str]:
        """The header that sends the token, if a request goes to the host that it is for."""
        self._value = value = self._read()
        return {'Authorization': f'Bearer {value}'} if value and origin == self._origin else {}

    def about_refusal(self) -> str:
        """What a person should know when the server asked for a credential."""
        if self._variable and not self._read():
            return f'The environment variable {self._variable}, which holds the token, is not set.'
        return 'The token is not set, or was not accepted.'

    def redact(self, text: str) -> str:
        """Remove the token from a text, both plain and as it is encoded in a header."""
        if self._value:
            for form in (self._value, self._encode(self._value)):
                text = text.replace(form, '***')
        return text

    def _encode(self, value: str) -> str:
        return base64.b64encode(f'{self._user}:{value}'.encode()).decode()

    def _read(self) -> str | None:
        reason = ''
        given: str | SecretStr | None = None
        try:
            given = self._source if isinstance(self._source, SecretStr) else self._source()
        except Exception as error:  # noqa: BLE001 - the developer's own function; its message may hold the secret
            reason = type(error).__name__
        if reason:  # raised out here, so that the error has no context
            raise SkillRegistryError(f'The token for {self._origin} cannot be read: the function failed with {reason}')
        value = given.get_secret_value() if isinstance(given, SecretStr) else given
        if value and not (value.isprintable() and value.isascii()):
            raise SkillRegistryError(f'The token for {self._origin} has characters that are not allowed in a token')
        return value


def env_token(variable: str, address: HostAddress) -> Callable[[], str | None]:
    """Read a token from an environment variable each time it is needed."""
    host = _FORGE_VARIABLES.get(variable, address.host)
    if address.host != host:
        other = address.host or 'a local place'
        raise SkillValidationError(f'{variable} is a token for {host}; it is not sent to {other!r}.')
    return lambda: os.environ.get(variable)


def host_secret(
    address: HostAddress, token: TokenSource | None, variable: str | None, user: str | None = None
) -> HostSecret | None:
    """The token for the host of an address, given directly or as the name of a variable; `None` without either.

    Raises:
        SkillValidationError: Both are given, or the variable holds a token for another host.
    """
    if token is not None and variable is not None:
        raise SkillValidationError('Give either token= or token_env=, not both.')
    if variable is not None:
        token = env_token(variable, address)
    return HostSecret(token, address, user, variable) if token else None
