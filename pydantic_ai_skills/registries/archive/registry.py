"""Skills from archives: a file on this machine, or one on a web server."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import local_path
from pydantic_ai_skills.registries.fetch_options import FetchOptions, FetchSettings, absolute
from pydantic_ai_skills.registries.fetched import FetchedRegistry
from pydantic_ai_skills.registries.git.address import check_path
from pydantic_ai_skills.registries.lockfile import REVIEW
from pydantic_ai_skills.registries.manifest import FileSink, is_revision
from pydantic_ai_skills.registries.secrets import TokenSource, host_secret
from pydantic_ai_skills.registries.upstream import Deadline, FetchSession, Upstream
from pydantic_ai_skills.registries.web.address import WebAddress, check_query, folder_name, parse_web_address
from pydantic_ai_skills.registries.web.http import HttpClient, Validators

from .entry import ArchiveError
from .unpack import Archive, look_through, skills_in

_CHUNK_BYTES = 256 * 1024
_VALIDATORS = 'validators'
"""The name of the note with what the server said about the version that was downloaded last."""


class ArchiveSkillsRegistry(FetchedRegistry):
    """Skills from a `.zip`, `.tar.gz`, `.tgz` or `.skill` archive.

    Nothing is fetched until the skills are needed. The revision is the SHA-256 of the archive. With a `digest`, a
    cached archive needs no network at all; without one, the server is asked whether it has another version.

    ```python {test="skip"}
    from pydantic_ai_skills import ArchiveSkillsRegistry, SkillsToolset

    registry = ArchiveSkillsRegistry('https://skills.acme.example/office.zip')
    toolset = SkillsToolset(registries=[registry])
    ```
    """

    kind = 'archive'

    def __init__(
        self,
        address: str | os.PathLike[str],
        *,
        digest: str | None = None,
        path: str = '',
        token: TokenSource | None = None,
        token_env: str | None = None,
        **options: Unpack[FetchOptions],
    ) -> None:
        """Remember an archive; it is fetched on first use.

        Args:
            address: Its `https` URL, without user or password; or its path on this machine, as a `Path`, or as a
                string if `allowed_protocols` has `'file'`.
            digest: The SHA-256 that the archive must have, as `sha256:…` or as its 64 hexadecimal digits.
            path: The folder in it to look for skills in. A folder that holds everything, as in the archives of code
                hosts, need not be named.
            token: A token for the host of the URL, or a function that returns one. It is sent to no other host.
            token_env: An environment variable that holds the token, read each time it is needed.
            **options: The options of all registries that fetch; see `FetchOptions`.

        Raises:
            SkillValidationError: The address, digest, path or an option is invalid or not allowed.
        """
        settings = FetchSettings.of(self, options)
        path = check_path(path)
        file = _local_file(address, settings.allowed_protocols)
        web = None if file else check_query(parse_web_address(os.fspath(address), settings.allowed_protocols))
        if file and (token or token_env):
            raise SkillValidationError('A token is for an https address; a file on this machine needs none.')
        secret = host_secret(web, token, token_env) if web else None
        # A traceback may show the values of variables.
        del token
        upstream = ArchiveUpstream(
            url=web.url if web else f'file://{file}',
            ref=None if digest is None else check_digest(digest),
            file=file,
            web=web,
            client=HttpClient(allowed=settings.allowed_protocols, secret=secret, progress=settings.progress),
            path=path,
            max_depth=settings.max_depth,
            max_bytes=settings.max_bytes,
        )
        name = web.name if web else folder_name(file.name if file else '')
        self._fetch_from(upstream, settings, path=path, selection=repr((path, settings.max_depth)), name=name)


@dataclass(kw_only=True)
class ArchiveUpstream(Upstream):
    """An archive, and the folder in it that is wanted. A copy made by `fixed` keeps what it learns on its visit."""

    url: str
    ref: str | None
    file: Path | None
    """Where it is, if it is on this machine."""

    web: WebAddress | None
    client: HttpClient
    path: str
    max_depth: int | None
    max_bytes: int
    now: str | None = None
    """The revision it has, once it has been asked for."""

    downloaded: Path | None = None
    """The file with that revision, if it was downloaded on this visit."""

    @property
    def owner(self) -> str:
        """Identifies the token."""
        return self.client.owner

    def fixed(self) -> ArchiveUpstream:
        """The same archive with the token it has now, for one visit."""
        return replace(self, client=self.client.fixed(), now=None, downloaded=None)

    def ask(self, session: FetchSession) -> str:
        """The SHA-256 of the archive, which is downloaded unless the server says that it has no other version."""
        if self.file is not None:
            self.now = _digest(self.file, self.max_bytes)
            return self.now
        noted = session.store.noted(_VALIDATORS)
        known = Validators(etag=noted.get('etag', ''), last_modified=noted.get('last_modified', ''))
        return self._download(session, known, noted.get('revision', ''))

    def fetch(self, revision: str, sink: FileSink, session: FetchSession) -> list[str]:
        """Unpack the files of the skills, if the archive still is the wanted one."""
        was = self.now
        if self.downloaded is None and was in (None, revision):
            self._get(session)
        if self.downloaded is None or self.now != revision:
            raise SkillRegistryError(self._about_another(revision, was))
        with open(self.downloaded, 'rb') as file:
            try:
                wanted = WantedSkills(path=self.path, max_depth=self.max_depth, max_bytes=self.max_bytes)
                return wanted.unpack(file, revision, sink, session.deadline)
            except ArchiveError as error:
                raise SkillRegistryError(f'{self.url} {error}') from None

    def _get(self, session: FetchSession) -> None:
        if self.file is None:
            self._download(session)
            return
        self.downloaded = session.new_folder() / 'archive'
        with open(self.downloaded, 'xb') as into:
            self.now = _digest(self.file, self.max_bytes, into)

    def _download(self, session: FetchSession, known: Validators | None = None, last: str = '') -> str:
        """Download it, unless the server says that it still has the `last` revision, and return the revision."""
        assert self.web is not None
        place = session.new_folder() / 'archive'
        with open(place, 'xb') as into:
            got = self.client.save(
                self.web,
                into,
                deadline=session.deadline,
                max_bytes=self.max_bytes,
                known=known if is_revision(last) else None,
            )
        self.now = got.sha256 if got.is_new else last
        if got.is_new:
            self.downloaded = place
            facts = {'etag': got.validators.etag, 'last_modified': got.validators.last_modified}
            session.store.note(_VALIDATORS, {**facts, 'revision': got.sha256})
        return self.now

    def _about_another(self, revision: str, was: str | None) -> str:
        if self.pinned:
            return f'{self.url} has the digest sha256:{self.now}, not sha256:{revision}, so it is not unpacked'
        if was == revision:
            return f'{self.url} changed while it was fetched. It is asked again at the next reload'
        return f'{self.url} is sha256:{self.now} now, and sha256:{revision} is not in the cache any more. {REVIEW}'


@dataclass(frozen=True, kw_only=True)
class WantedSkills:
    """Which skills of an archive are unpacked."""

    path: str
    max_depth: int | None
    max_bytes: int

    def unpack(self, file: BinaryIO, blob: str, sink: FileSink, deadline: Deadline) -> list[str]:
        """Unpack their files into a sink, and return what was left out of them."""
        archive = look_through(file, max_bytes=self.max_bytes, deadline=deadline)
        start = _superfluous(archive, self.path)
        is_wanted = skills_in(
            [path.removeprefix(start) for path in archive.files], below=self.path, max_depth=self.max_depth
        )
        if self.path and not any(is_wanted(path.removeprefix(start)) for path in archive.files):
            raise ArchiveError(f'has no skills in {self.path!r} (found 0 SKILL.md)')

        def place(path: str) -> str | None:
            there = path.removeprefix(start)
            return there if is_wanted(there) else None

        return archive.unpack(file, sink, place, blob=blob, deadline=deadline)


def check_digest(digest: str) -> str:
    """The hexadecimal digits of a SHA-256 that is given as `sha256:…` or as its digits."""
    digits = digest.lower().removeprefix('sha256:')
    if not re.fullmatch('[0-9a-f]{64}', digits):
        raise SkillValidationError(f'{digest[:80]!r} is not a SHA-256: `sha256:` and 64 hexadecimal digits.')
    return digits


def _local_file(address: str | os.PathLike[str], allowed: Collection[str]) -> Path | None:
    """The file on this machine that an address names; `None` for one on the web."""
    text = os.fspath(address)
    if isinstance(address, str):
        if '://' in text and not text.startswith('file://'):
            return None
        if 'file' not in allowed:
            raise SkillValidationError(
                f"{text!r} is a file on this machine, and 'file' is not among the allowed protocols "
                f"{sorted(allowed)}. Pass it as a Path, or say allowed_protocols=('file',); at the terminal: "
                '--allow file.'
            )
    return absolute(local_path(text) if text.startswith('file://') else text)


def _digest(path: Path, max_bytes: int, into: BinaryIO | None = None) -> str:
    """The SHA-256 of a regular file, which is copied to `into` at the same time if that is given."""
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, 'rb', opener=_open_at_once) as file:
            while piece := file.read(_CHUNK_BYTES):
                size += len(piece)
                if size > max_bytes:
                    raise SkillRegistryError(f'{str(path)!r} has more than {max_bytes:,} bytes; see max_bytes=')
                digest.update(piece)
                if into is not None:
                    into.write(piece)
    except OSError as error:
        raise SkillRegistryError(f'{str(path)!r} cannot be read or copied: {error.strerror}') from None
    return digest.hexdigest()


def _open_at_once(path: str, flags: int) -> int:
    """Open a regular file. A pipe is refused, without waiting for somebody to write to it."""
    descriptor = os.open(path, flags | getattr(os, 'O_NONBLOCK', 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, 'it is not a regular file', path)


def _superfluous(archive: Archive, path: str) -> str:
    """The folder that holds everything, with a slash, if it is neither a skill nor named by `path`; otherwise empty."""
    top = archive.top
    return '' if not top or archive.has_skill_in(top) or f'{path}/'.startswith(f'{top}/') else f'{top}/'
