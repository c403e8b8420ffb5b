"""Checks the address of a store, and finds that of a store which the developer made."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.registries.fetch_options import absolute
from pydantic_ai_skills.registries.git.address import check_path

if TYPE_CHECKING:
    from obstore.store import ObjectStore

VARIABLES = {'s3': 'AWS_', 'gs': 'GOOGLE_', 'az': 'AZURE_'}
"""The kinds of stores, by their scheme, each with the prefix of the environment variables it reads."""

ARCHIVES = ('.zip', '.skill', '.tar.gz', '.tgz')
"""How the keys of archives end."""

MEMORY = 'memory:'

_FORMS = 's3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder'
_BUCKET = re.compile(r'[A-Za-z0-9$][A-Za-z0-9._-]*')


def check_url(url: str | os.PathLike[str]) -> str:
    """Check and normalise the address of a store. Error messages do not repeat possible secrets.

    Raises:
        SkillValidationError: It is not such an address, or has credentials in it.
    """
    if not isinstance(url, str):
        return absolute(os.fspath(url)).as_uri()
    if url.startswith('file:'):
        return url
    parts = urlsplit(url)
    if parts.scheme == 'memory':
        raise SkillValidationError('A store in memory has no address. Pass the store itself, in place of the URL.')
    if parts.scheme not in VARIABLES:
        raise SkillValidationError(f'{parts.scheme!r} is not a kind of object store. Write {_FORMS}.')
    if '@' in parts.netloc or parts.query or parts.fragment:
        raise SkillValidationError(
            f'The {parts.scheme}:// URL has a user, a password, a query or a fragment in it. Credentials come from the '
            'environment of the store or from store_options=.'
        )
    if not _BUCKET.fullmatch(parts.netloc):
        raise SkillValidationError(f'The {parts.scheme}:// URL names no bucket. Write {_FORMS}.')
    check_path(unquote(parts.path).strip('/'))
    return f'{parts.scheme}://{parts.netloc}{parts.path}'.rstrip('/')


def split_archive(url: str) -> tuple[str, str]:
    """The address of the folder and the key of an archive in it; the address itself and no key for a folder."""
    folder, _, name = url.rpartition('/')
    is_archive = folder.count('/') > 1 and name.lower().endswith(ARCHIVES)
    return (folder, unquote(name)) if is_archive else (url, '')


def address_of_store(store: ObjectStore) -> str:
    """The address of a store of obstore, without credentials.

    Raises:
        SkillValidationError: It is not one, or cannot list what it has.
    """
    from obstore.store import AzureStore, GCSStore, LocalStore, MemoryStore, S3Store

    match store:
        case MemoryStore():
            return MEMORY
        case LocalStore() if store.prefix is not None:
            return absolute(store.prefix).as_uri()
        case S3Store() | GCSStore():
            scheme, place = 's3' if isinstance(store, S3Store) else 'gs', store.config.get('bucket')
        case AzureStore():
            scheme, place = 'az', store.config.get('container_name')
        case _:
            raise SkillValidationError(
                f'{type(store).__name__} is not a store that can list its skills. Pass an S3Store, GCSStore, '
                f'AzureStore, MemoryStore or a LocalStore with a prefix, or write {_FORMS}.'
            )
    return f'{scheme}://{place}{f"/{store.prefix}" if store.prefix else ""}'
