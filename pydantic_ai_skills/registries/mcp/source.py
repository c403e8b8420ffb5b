"""Reads the files of skills from their server and verifies them; copies a whole skill for its scripts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.registries.manifest import FileSink
from pydantic_ai_skills.registries.secrets import HostSecret
from pydantic_ai_skills.registries.store import Entry, SourceStore

from .connection import Connection
from .kept import KeptFiles, is_file
from .listing import MAX_BYTES, SKILL_FILE, ListedFile, ListedSkill, Listing
from .requests import FileRefused, NoSkills, list_folder, list_skills, read_file

MAX_SHOWN = 300
"""How many characters of an error of the server are shown."""


@dataclass(eq=False)
class ServerFiles:
    """What one server has, asked with one credential."""

    url: str
    connection: Connection
    kept: KeptFiles
    timeout: float
    offline: bool
    prefer_kept: bool
    """Whether a file that was kept is not read again, because a lock file pins it."""

    refused: Callable[[], int | None]
    """The status with which the server last refused the credentials, if it did."""

    secret: HostSecret | None = None
    _copies: dict[str, Entry] = field(default_factory=dict[str, Entry])

    def list(self) -> Listing:
        """The skills that the server has now."""
        self.connection.forget_changes()
        return self._ask(partial(list_skills, place=self.url), 'its list of skills')

    def read(self, file: ListedFile, *, kept_first: bool = False) -> bytes:
        """The content of a file: from the server, or what was kept of it if the server cannot be reached.

        Raises:
            SkillRegistryRefusedError: The server does not accept the credentials.
            SkillRegistryError: It has no such file, or not the one that it listed.
        """
        kept = self.kept.read(file) if kept_first or self.prefer_kept or self.offline else None
        if kept is not None:
            return kept
        try:
            data = self._ask(partial(read_file, uri=file.uri, limit=file.size), file.uri)
        except FileRefused as error:
            raise SkillRegistryError(f'{file.uri} of {self.url} is not the file that is listed: {error}') from None
        except SkillRegistryRefusedError:
            raise
        except SkillRegistryError:
            if (kept := self.kept.read(file)) is None:
                raise
            return kept
        if not is_file(data, file):
            what = 'size' if len(data) != file.size else 'digest'
            raise SkillRegistryError(
                f'{file.uri} of {self.url} is not the file that is listed: its {what} is another one. It has changed '
                'since, or the server does not tell the truth; it is not used'
            )
        self.kept.keep(file, data)
        return data

    def read_unlisted(self, uri: str) -> bytes:
        """The content of a file without a digest."""
        try:
            return self._ask(partial(read_file, uri=uri, limit=MAX_BYTES), uri)
        except FileRefused as error:
            raise SkillRegistryError(f'{uri} of {self.url} cannot be used: {error}') from None

    def list_folder(self, skill: ListedSkill) -> dict[str, str]:
        """The files of a skill without a list: their URIs by their path in it."""
        return self._ask(partial(list_folder, skill=skill), skill.folder)

    # --- Copies ---------------------------------------------------------------------------------------------------

    def copy_path(self, skill: ListedSkill) -> Path:
        """The folder that a copy of the whole skill has, or will have."""
        store = self._store_of(skill)
        return store.folder / _revision(skill) / store.name / skill.folder_name

    def copy(self, skill: ListedSkill) -> Path:
        """A copy of the whole skill, every file of it verified: fetched if there is none, and compared if there is.

        Raises:
            SkillRegistryError: A file cannot be read, is not the listed one, or has a name that cannot be used here.
        """
        assert skill.content_hash is not None
        pins = {skill.folder_name: skill.content_hash}
        entry = self._store_of(skill).ensure(
            _revision(skill), partial(self._fill, skill), patience=self.timeout, pins=pins
        )
        if entry.manifest.skills.get(skill.folder_name) != skill.content_hash:
            raise SkillRegistryError(f'{skill.uri} has files whose names cannot be used on this machine')
        self._copies[skill.uri] = entry
        return entry.root / skill.folder_name

    def fetch(self, skills: Iterable[ListedSkill], on_file: Callable[[int], None]) -> dict[str, str]:
        """Keep every file of skills; return why some could not be fetched, by the URI of the skill."""
        failures: dict[str, str] = {}
        done = 0
        for skill in skills:
            try:
                for file in (skill.files or {}).values():
                    self.read(file, kept_first=True)
                    done += 1
                    on_file(done)
            except SkillRegistryRefusedError:
                raise
            except SkillRegistryError as error:
                failures[skill.uri] = str(error)
        return failures

    def _fill(self, skill: ListedSkill, sink: FileSink) -> list[str]:
        for path, file in (skill.files or {}).items():
            data = self.read(file, kept_first=True)
            sink.write(f'{skill.folder_name}/{path}', file.digest, data, executable=False)
        return []

    def _store_of(self, skill: ListedSkill) -> SourceStore:
        """A part of the store for each skill, so that each keeps its latest versions."""
        return self.kept.store.part(skill.uri)

    # --- Requests -------------------------------------------------------------------------------------------------

    def _ask(self, work: Callable[[Any], Any], what: str) -> Any:
        if self.offline:
            raise SkillRegistryError(f'{what} of {self.url} is not in the cache, and offline=True')
        try:
            return self.connection.call(work, self.timeout)
        except FileRefused:
            raise
        except TimeoutError:
            reason = f'{self.url} did not answer within {self.timeout:g} seconds'
        except NoSkills as error:
            reason = f'{self.url} cannot be used: {error}'
        except Exception as error:  # noqa: BLE001 - the border to the client and to what its transports raise
            status = self.refused() or _status(error)
            reason = f'{self.url} answered {what} with: {self._shown(error)}'
            if status in (401, 403):
                # The next request uses the credentials that are current then.
                self.connection.close()
                self.connection.note_change()
                about = f' {self.secret.about_refusal()}' if self.secret else ' Give a token with token= or token_env=.'
                raise SkillRegistryRefusedError(f'{self.url} refused access ({status}).{about}') from None
        raise SkillRegistryError(reason)

    def _shown(self, error: Exception) -> str:
        text = ' '.join(f'{error}'.split()) or type(error).__name__
        return (self.secret.redact(text) if self.secret else text)[:MAX_SHOWN]


def _status(error: Exception) -> int | None:
    """The HTTP status of an error, if it has one."""
    return getattr(getattr(error, 'response', None), 'status_code', None)


def _revision(skill: ListedSkill) -> str:
    return hashlib.sha256(f'{skill.uri}\0{skill.content_hash}'.encode()).hexdigest()


def skill_file(skill: ListedSkill) -> ListedFile | None:
    """The listed `SKILL.md` of a skill."""
    return None if skill.files is None else skill.files[SKILL_FILE]
