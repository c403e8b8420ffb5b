"""Skills that websites publish below `/.well-known/`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.parsing.skill_names import check_skill_name
from pydantic_ai_skills.registries.fetch_options import FetchOptions, FetchSettings
from pydantic_ai_skills.registries.fetched import FetchedRegistry
from pydantic_ai_skills.registries.lockfile import REVIEW
from pydantic_ai_skills.registries.manifest import FileSink, PartProblem
from pydantic_ai_skills.registries.secrets import TokenSource, host_secret
from pydantic_ai_skills.registries.upstream import FetchSession, Upstream
from pydantic_ai_skills.registries.web.address import WebAddress, folder_name, parse_web_address
from pydantic_ai_skills.registries.web.http import Download, HttpClient, HttpStatusError

from .index import INDEXES, MAX_INDEX_BYTES, SkillIndex, parse_index
from .skills import ObtainedSkill, SkillDownloads


class WellKnownSkillsRegistry(FetchedRegistry):
    """Skills that a website publishes, with an index of them in `/.well-known/agent-skills/index.json`.

    An index of the older version 0.1.0, in `/.well-known/skills/index.json`, is read if there is no other.

    Nothing is fetched until the skills are needed. Then the index is read, and each skill is downloaded whose digest
    is not in the cache yet. A skill that is not what the index says is left out; the others are used.

    ```python {test="skip"}
    from pydantic_ai_skills import SkillsToolset, WellKnownSkillsRegistry

    registry = WellKnownSkillsRegistry('https://acme.example', names=['invoices', 'travel'])
    toolset = SkillsToolset(registries=[registry])
    ```
    """

    kind = 'well-known'

    def __init__(
        self,
        site: str,
        *,
        names: str | Collection[str] | None = None,
        token: TokenSource | None = None,
        token_env: str | None = None,
        **options: Unpack[FetchOptions],
    ) -> None:
        """Remember a website; it is asked on first use.

        Args:
            site: Its address, such as `https://acme.example`, or the address of an index.
            names: The skills to fetch; all of them when not given.
            token: A token for the host, or a function that returns one. It is sent to no other host.
            token_env: An environment variable that holds the token, read each time it is needed.
            **options: The options of all registries that fetch; see `FetchOptions`.

        Raises:
            SkillValidationError: The address, a name or an option is invalid or not allowed.
        """
        settings = FetchSettings.of(self, options)
        address = parse_web_address(site.rstrip('/'), settings.allowed_protocols)
        if '?' in address.target:
            raise SkillValidationError(f'The address of the site on {address.host!r} has a query in it; leave it out.')
        secret = host_secret(address, token, token_env)
        # A traceback may show the values of variables.
        del token
        upstream = WellKnownUpstream(
            site=address,
            names=None if names is None else _checked(names),
            client=HttpClient(allowed=settings.allowed_protocols, secret=secret),
            settings=settings,
        )
        self._fetch_from(upstream, settings, selection=upstream.ref or '', name=folder_name(address.host))


@dataclass(kw_only=True)
class WellKnownUpstream(Upstream):
    """A website, and the skills wanted from it. A copy made by `fixed` keeps what it gets on its visit."""

    site: WebAddress
    names: tuple[str, ...] | None
    client: HttpClient
    settings: FetchSettings
    notes: list[PartProblem] = field(default_factory=list[PartProblem])
    skills: list[ObtainedSkill] = field(default_factory=list[ObtainedSkill])
    revision: str = ''
    """The revision of these notes and skills; empty before `ask`."""

    @property
    def url(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it is never assigned
        """The address of the site."""
        return self.site.url.rstrip('/')

    @property
    def ref(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride] - it is never assigned
        """The names that were asked for, so that each choice of them is locked by itself."""
        return None if self.names is None else ', '.join(self.names)

    @property
    def pinned(self) -> None:
        """A name is never a revision, even if it looks like one."""
        return None

    @property
    def owner(self) -> str:
        """Identifies the token."""
        return self.client.owner

    def fixed(self) -> WellKnownUpstream:
        """The same site with the token it has now, for one visit."""
        return replace(self, client=self.client.fixed(), notes=[], skills=[], revision='')

    def ask(self, session: FetchSession) -> str:
        """Get all skills of the index that are wanted, and return a hash of what the index says about them.

        The hash also covers skills that cannot be downloaded; they are tried again the next time.
        """
        index, base = self._index(session)
        downloads = SkillDownloads(
            client=self.client,
            origins=frozenset({self.site.origin, base.origin}),
            session=session,
            ref=self.ref,
            max_bytes=self.settings.max_bytes,
            progress=self.settings.progress,
        )
        self.skills, failures = downloads.obtain(index.skills)
        if failures and not self.skills:
            raise SkillRegistryError(f'{self.url} gave no skill. {failures[0].part}: {failures[0].message}')
        self.notes = [*index.notes, *failures, *(skill.note for skill in self.skills if skill.note)]
        about = [*(skill.identity for skill in self.skills), *((note.code, note.part) for note in self.notes)]
        self.revision = hashlib.sha256(json.dumps(sorted(about)).encode()).hexdigest()
        return self.revision

    def fetch(self, revision: str, sink: FileSink, session: FetchSession) -> list[str]:
        """Write the skills that `ask` got, if they are those of the wanted revision."""
        if not self.revision:
            raise SkillRegistryError(f'{self.url} cannot be asked now, and {revision[:12]} is not in the cache')
        if revision != self.revision:
            now = f'{self.url} has {self.revision[:12]} now'
            raise SkillRegistryError(f'{now}, and {revision[:12]} is not in the cache any more. {REVIEW}')
        for note in self.notes:
            sink.report(note.code, note.part, note.message, is_skill=True)
        return [path for skill in self.skills for path in skill.write(sink, session.deadline)]

    def _index(self, session: FetchSession) -> tuple[SkillIndex, WebAddress]:
        """The index of the site, and where it was found."""
        if self.url.endswith('.json'):
            data, got = self._read('', session)
        else:
            try:
                data, got = self._read(INDEXES[0], session)
            except HttpStatusError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                data, got = self._read(INDEXES[1], session)
        index = parse_index(data, got.address, self.client.allowed)
        return index if self.names is None else index.only(self.names), got.address

    def _read(self, place: str, session: FetchSession) -> tuple[bytes, Download]:
        address = parse_web_address(f'{self.url}{place}', self.client.allowed)
        return self.client.read(address, deadline=session.deadline, max_bytes=MAX_INDEX_BYTES)


def _checked(names: str | Collection[str]) -> tuple[str, ...]:
    return tuple(sorted({check_skill_name(name) for name in ([names] if isinstance(names, str) else names)}))
