"""A secret with an address: it is shown to nobody and goes to one host only."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from typing import Any, NoReturn

from pydantic import SecretStr

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError

from .address import GitAddress

__all__ = ('HostSecret', 'TokenSource', 'env_token')

TokenSource = str | SecretStr | Callable[[], str | SecretStr | None]
"""A token, or a function that is called for it each time it is needed."""

_FORGE_VARIABLES = {'GITHUB_TOKEN': 'github.com', 'GH_TOKEN': 'github.com', 'GITLAB_TOKEN': 'gitlab.com'}
"""Variables that hold a token for one place, whatever else runs in the same environment."""

_USERS = {'gitlab.com': 'oauth2', 'bitbucket.org': 'x-token-auth'}
_DEFAULT_USER = 'x-access-token'
"""The user name that goes with a token. Most servers take any."""


class HostSecret:
    """A token that is given to one host. It cannot be printed or pickled."""

    __slots__ = ('_origin', '_source', '_user', '_value')

    def __init__(self, source: TokenSource, address: GitAddress, user: str | None) -> None:
        """Bind a token to the host of an address."""
        self._source = SecretStr(source) if isinstance(source, str) else source
        self._origin = address.origin
        self._user = user or _USERS.get(address.host, _DEFAULT_USER)
        self._value: str | None = None

    def __repr__(self) -> str:
        return f'HostSecret(for {self._origin})'

    def __deepcopy__(self, memo: dict[int, Any]) -> HostSecret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError('A secret cannot be pickled: it would be written to disk.')

    def config(self) -> dict[str, str]:
        """The settings that make git send the token to this host and to no other.

        Raises:
            SkillRegistryError: The token cannot be had, or is none.
        """
        self._value = value = self._read()
        if not value or not self._origin.startswith('http'):
            return {}
        return {
            # No redirect is followed, because git sends the header on to wherever it leads.
            'http.followRedirects': 'false',
            f'http.{self._origin}/.extraHeader': f'Authorization: Basic {self._encode(value)}',
        }

    def redact(self, text: str) -> str:
        """A text without the token that was used last, in whichever form it may be there."""
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
        except Exception as error:  # noqa: BLE001 - the developer's own function; what it says may hold the secret
            reason = type(error).__name__
        if reason:
            raise SkillRegistryError(f'The token for {self._origin} cannot be had: the function failed with {reason}')
        value = given.get_secret_value() if isinstance(given, SecretStr) else given
        if value and not (value.isprintable() and value.isascii()):
            raise SkillRegistryError(f'The token for {self._origin} has characters that no token has')
        return value


def env_token(variable: str, address: GitAddress) -> Callable[[], str | None]:
    """A token that is read from an environment variable each time it is needed.

    Raises:
        SkillValidationError: The variable holds a token for another host.
    """
    host = _FORGE_VARIABLES.get(variable, address.host)
    if address.host != host:
        message = f'{variable} is a token for {host}; it is not sent to {address.host or "a local repository"!r}.'
        raise SkillValidationError(message)
    return lambda: os.environ.get(variable)
