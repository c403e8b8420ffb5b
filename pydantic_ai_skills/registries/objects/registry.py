"""Skills from object stores: S3, Google Cloud Storage, Azure, a folder or memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from typing_extensions import Unpack

from pydantic_ai_skills.registries.fetch_options import FetchOptions, FetchSettings, require_protocol
from pydantic_ai_skills.registries.fetched import FetchedRegistry
from pydantic_ai_skills.registries.folder import FolderUpstream
from pydantic_ai_skills.registries.git.address import check_path

from .access import StoreAccess
from .address import address_of_store, check_url, split_archive
from .archive import ArchiveObjectUpstream
from .upstream import ObjectUpstream

if TYPE_CHECKING:
    from obstore.store import ObjectStore


class ObjectStoreSkillsRegistry(FetchedRegistry):
    """Skills from an object store.

    Nothing is fetched until the skills are needed. Then the keys are listed, and only the files of skills that have
    changed since the last time are fetched, many at once, into a cache that all processes of the user share.

    ```python {test="skip"}
    from pydantic_ai_skills import ObjectStoreSkillsRegistry, SkillsToolset

    registry = ObjectStoreSkillsRegistry('s3://acme-skills/office', store_options={'region': 'eu-central-1'})
    toolset = SkillsToolset(registries=[registry])
    ```
    """

    kind = 'objects'

    def __init__(
        self,
        url: str | os.PathLike[str] | ObjectStore,
        *,
        path: str = '',
        store_options: Mapping[str, Any] | None = None,
        **options: Unpack[FetchOptions],
    ) -> None:
        """Remember a store; it is asked on first use.

        Args:
            url: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` or `file:///folder`, or an
                `obstore` store; or an archive in a bucket, such as `s3://bucket/office.zip`. A string that names a
                folder needs `allowed_protocols=('file',)`.
            path: The folder below it to look for skills in; it may be a skill itself.
            store_options: Arguments of `obstore.store.from_url`, such as `region`, `endpoint` or a credential. What is
                not given comes from environment variables, such as `AWS_ACCESS_KEY_ID`, or from the machine.
            **options: The options of all registries that fetch; see `FetchOptions`.

        Raises:
            ImportError: obstore is not installed.
            SkillValidationError: The URL, path or an option is invalid or not allowed.
        """
        settings = FetchSettings.of(self, options)
        path = check_path(path)
        if find_spec('obstore') is None:
            raise ImportError("ObjectStoreSkillsRegistry needs obstore: pip install 'pydantic-ai-skills[objects]'.")
        if isinstance(url, str) and url.startswith('file:'):
            require_protocol('file', settings.allowed_protocols)
        address, given = (check_url(url), None) if isinstance(url, str | os.PathLike) else (address_of_store(url), url)
        if address.startswith('file:'):
            # Read by our own code: a local store of obstore would follow links out of the folder.
            upstream = FolderUpstream.of(address, path, settings)
        else:
            folder, key = split_archive(address)
            allow_http = 'http' in settings.allowed_protocols
            access = StoreAccess(folder, store_options or {}, given, timeout=settings.timeout, allow_http=allow_http)
            about: dict[str, Any] = {
                'access': access,
                'max_bytes': settings.max_bytes,
                'max_depth': settings.max_depth,
                'progress': settings.progress,
            }
            if key:
                upstream = ArchiveObjectUpstream(url=address, path='', key=key, wanted=path, **about)
                selection = repr((path, settings.max_depth))
                self._fetch_from(upstream, settings, path=path, selection=selection)
                return
            upstream = ObjectUpstream(url=f'{address}/{quote(path)}' if path else address, path=path, **about)
        self._fetch_from(upstream, settings, selection=f'max_depth={settings.max_depth}')
