"""How a store is reached: its options and credentials, which are never shown, and what its errors mean."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.registries.secrets import fingerprint_of

from .address import VARIABLES

if TYPE_CHECKING:
    from obstore.store import ObjectStore

MAX_RETRIES = 2
"""How often a request is repeated when the server is busy or hangs up."""

_CREDENTIAL = re.compile('KEY|SECRET|TOKEN|SAS|CREDENTIAL|ACCOUNT|ROLE|CLIENT|IDENTITY|ENDPOINT|PASSWORD')
"""Matches the environment variables of a store that identify the user or the endpoint."""

_NOT_CREDENTIALS = ('bucket', 'client_options', 'config', 'container_name', 'region', 'retry_config')

_STATUS = re.compile(r'non-2xx status code: (\d{3})')
_KEY = re.compile(r'Path "([^"]*)"')
_REASONS = {
    'ConnectionRefused': 'cannot be reached: the connection was refused',
    'dns error': 'cannot be reached: its host is not known',
    'BadScheme': "is reached over http://. If you trust that, say so: allowed_protocols=('http',)",
    'kind: Timeout': 'did not answer in time',
    'kind: Connect': 'cannot be reached',
}
"""What errors of obstore mean, by a part of their text, which is long and may hold secrets."""


class StoreAccess:
    """A store, or the options to open it with. They are never shown, and never pickled: they may be credentials."""

    __slots__ = ('_allow_http', '_options', '_store', '_url', 'timeout')

    def __init__(
        self, url: str, options: Mapping[str, Any], store: ObjectStore | None, *, timeout: float, allow_http: bool
    ) -> None:
        """Remember the address of a store and the options to open it with, or a store that is open."""
        self._url = url
        self._options = dict(options)
        self._store = store
        self.timeout = timeout
        self._allow_http = allow_http

    def __repr__(self) -> str:
        return f'StoreAccess({self._url!r})'

    def __deepcopy__(self, memo: dict[int, Any]) -> StoreAccess:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._options or self._store is not None:
            raise TypeError(
                'A registry with store_options or with a store cannot be pickled: its credentials would be written to '
                'disk. Let the store read them from its environment.'
            )
        again = partial(StoreAccess, timeout=self.timeout, allow_http=self._allow_http)
        return again, (self._url, {}, None)

    def open(self) -> ObjectStore:
        """The store, with the credentials that its environment has now.

        Raises:
            SkillRegistryError: The options do not fit it.
        """
        if self._store is not None:
            return self._store
        from obstore.exceptions import BaseError
        from obstore.store import from_url

        client = {'timeout': timedelta(seconds=self.timeout), 'allow_http': self._allow_http}
        options: dict[str, Any] = {'retry_config': {'max_retries': MAX_RETRIES}, **self._options}
        options['client_options'] = {**client, **options.get('client_options', {})}
        try:
            return from_url(self._url, **options)
        except (BaseError, TypeError, ValueError) as error:
            raise self.explain(error) from None

    def owner(self) -> str:
        """Identifies the credentials and the endpoint, without giving them away; empty if there are none."""
        said = self._credentials()
        if not said:
            return ''
        text = json.dumps(said, sort_keys=True, default=lambda value: type(value).__qualname__)
        return fingerprint_of(text, self._url)

    def explain(self, error: Exception) -> SkillRegistryError:
        """What an error of obstore means, without what may be a secret."""
        text = str(error)
        status = _STATUS.search(text)
        if status is not None and status[1] in ('401', '403'):
            way_out = 'Check the credentials in the environment of the store or in store_options='
            return SkillRegistryRefusedError(f'{self._url} refused the credentials (HTTP {status[1]}). {way_out}')
        if status is not None:
            what = 'object' if isinstance(error, FileNotFoundError) else 'bucket'
            missing = f': there is no such {what}' if status[1] == '404' else ''
            return SkillRegistryError(f'{self._url} answered with HTTP {status[1]}{missing}')
        if type(error).__name__ == 'InvalidPathError' and (key := _KEY.search(text)):
            return SkillRegistryError(f'{self._url} has a key that is not a path: {key[1]!r}. Delete or rename it')
        what = next((reason for sign, reason in _REASONS.items() if sign in text), None)
        return SkillRegistryError(f'{self._url} {what or self._hide(text)}')

    def _hide(self, text: str) -> str:
        """The first line of a text, without addresses and credentials."""
        words = text.partition('\n')[0].split()
        line = ' '.join('…' if '://' in word else word for word in words)
        for value in filter(None, map(str, self._credentials().values())):
            line = line.replace(value, '***')
        return f'cannot be used: {line[:200]}'

    def _credentials(self) -> dict[str, Any]:
        """Everything in the options and the environment that identifies the user or the endpoint."""
        prefix = VARIABLES.get(self._url.partition(':')[0], ())
        said: dict[str, Any] = {
            name: value for name, value in os.environ.items() if name.startswith(prefix) and _CREDENTIAL.search(name)
        }
        given = self._options if self._store is None else getattr(self._store, 'config', {})
        given = {**given, **given.get('config', {})}
        return said | {name: value for name, value in given.items() if name not in _NOT_CREDENTIALS}
