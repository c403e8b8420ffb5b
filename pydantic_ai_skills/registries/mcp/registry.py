"""Skills of an MCP server: listed at once, read and verified when they are used."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError, SkillValidationError
from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir, is_cache_named
from pydantic_ai_skills.parsing.skill_names import shorten_skill_name
from pydantic_ai_skills.problems import problem
from pydantic_ai_skills.registries.fetch_options import FetchOptions, FetchSettings
from pydantic_ai_skills.registries.progress import FetchProgress, until_it_fails
from pydantic_ai_skills.registries.secrets import HostSecret, TokenSource, fingerprint_of, host_secret
from pydantic_ai_skills.registries.source import SourceRegistry
from pydantic_ai_skills.registries.store import SourceStore
from pydantic_ai_skills.types.found_skills import FoundSkills

from .address import MCPAddress, parse_server

if TYPE_CHECKING:
    from fastmcp import Client

    from .connection import Connection
    from .limits import Answers
    from .look import Look
    from .source import ServerFiles

RETRY_SECONDS = 30.0
"""How long after a failure a server is left alone, unless a reload asks for it."""

_NOT_COPIED = frozenset({'_connection', '_answers', '_last', '_fresh_until', '_is_failing', '_owner_connected'})


class MCPSkillsRegistry(SourceRegistry):
    """Skills of a server that has the skills extension of the Model Context Protocol (SEP-2640).

    The server is asked for its list when skills are needed. A file is read when it is used, and has to have the digest
    and the size that the list gives it. Nothing takes the name of another skill: see `name`.

    ```python {test="skip"}
    from pydantic_ai_skills import MCPSkillsRegistry, SkillsToolset

    toolset = SkillsToolset(registries=[MCPSkillsRegistry('https://skills.example.com/mcp')])
    ```
    """

    kind = 'mcp'

    _connection: Connection | None = None
    _answers: Answers | None = None
    _last: Look | None = None
    _fresh_until: float = math.inf
    _is_failing: bool = False
    _owner_connected: str = ''

    def __init__(
        self,
        server: str | Sequence[str] | Any,
        *,
        token: TokenSource | None = None,
        token_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        **options: Unpack[FetchOptions],
    ) -> None:
        """Remember a server; it is connected to on first use.

        Args:
            server: An https URL, a command such as `'npx -y @acme/skills'` or a list of its words, an `MCPToolset`, or
                a server object in this process. A command is run with the rights of this process.
            token: A bearer token for a URL, or a function that returns one. It is sent to no other host.
            token_env: An environment variable that holds the token, read each time it is needed.
            headers: More headers for a URL. They are kept as secret as the token.
            env: Variables for the process of a command, which gets few others.
            name: What to put before the name of a skill if another skill has that name; by default what the server
                calls itself.
            **options: The options of all registries that fetch, except `target_dir`; see `FetchOptions`. `max_depth`
                and `signers` have no effect: files are read when they are used, so no skill is `'signed'`.

        Raises:
            ImportError: fastmcp is not installed.
            SkillValidationError: The server or an option is invalid or not allowed.
        """
        settings = FetchSettings.of(self, options)
        if settings.target_dir is not None:
            raise SkillValidationError('MCPSkillsRegistry has no target_dir: files are read when they are used.')
        self._address = parse_server(server, settings.allowed_protocols, env)
        self._secret = host_secret(self._address, token, token_env)
        # A traceback may show the values of variables.
        del token
        if (self._secret or headers) and not self._address.origin:
            raise SkillValidationError('token, token_env and headers are for a server with a URL.')
        if find_spec('fastmcp') is None or find_spec('mcp') is None:
            raise ImportError("MCPSkillsRegistry needs fastmcp: pip install 'pydantic-ai-skills[mcp]'.")
        self._headers = dict(headers or {})
        self._name = None if name is None else shorten_skill_name(name)
        self._settings = settings
        self.url = self._address.url
        self.only, self.trusted = settings.only, settings.trusted
        self.locked, self.lock_file, self.require = settings.locked, settings.lock_file, settings.require
        self.script_executor = settings.script_executor

    def __getstate__(self) -> dict[str, Any]:
        # A copy has a connection of its own.
        return {name: value for name, value in super().__getstate__().items() if name not in _NOT_COPIED}

    @property
    def commit(self) -> str | None:
        """SHA-256 of what the server lists; `None` before the first look."""
        return self._last.commit if self._last else None

    @property
    def others(self) -> frozenset[str]:
        """The folders of the skills that `only` leaves out; none before the first look."""
        return self._last.others if self._last else frozenset()

    @property
    def is_stale(self) -> bool:
        """Whether the server has said that its list has changed, or the time has passed after which to ask again."""
        if self._found is None or self._settings.offline:
            return False
        changed = self._connection is not None and self._connection.has_changed and not self._is_failing
        return changed or time.monotonic() >= self._fresh_until

    def remote_commit(self) -> str:
        """Ask the server for its list, without keeping anything.

        Raises:
            SkillRegistryError: It cannot be asked.
        """
        return self._server().list().commit

    def fetch_all(self) -> FoundSkills:
        """Fetch every file of the skills into the cache, so that a start with `offline=True` has them all.

        A skill that cannot be fetched is reported as a problem beside those of `find`.
        """
        found = self.find()
        if self._last is None:
            return found
        skills = [skill.listed for skill in self._last.skills]
        total = sum(len(skill.files or ()) for skill in skills)

        tell = until_it_fails(self._settings.progress)
        failures = self._last.server.fetch(
            skills, lambda done: tell(FetchProgress(stage='Reading files', done=done, total=total))
        )
        return found._replace(
            problems=(*found.problems, *(problem('source-failed', uri, why) for uri, why in failures.items()))
        )

    def close(self) -> None:
        """Disconnect from the server. What was found stays; the next question connects again."""
        if self._connection is not None:
            self._connection.close()

    def _look(self) -> FoundSkills:
        from .look import look

        try:
            server = self._server()
            lock = self.locked_source() if self.locked else None
            self._last = look(self, server, lock, validate=self._settings.validate, name=self._name, last=self._last)
        except SkillRegistryError as error:
            if isinstance(error, SkillRegistryRefusedError):
                self._last = None
            self._is_failing, self._fresh_until = True, time.monotonic() + RETRY_SECONDS
            raise
        self._is_failing = self._last.failure is not None
        self._fresh_until = time.monotonic() + self._ttl(self._last)
        return self._last.found

    def _ttl(self, seen: Look) -> float:
        """Seconds until the server is to be asked again."""
        if seen.failure is not None:
            return RETRY_SECONDS
        limits = (seen.ttl, self._settings.refresh_interval)
        return min((limit for limit in limits if limit is not None), default=math.inf)

    def _server(self) -> ServerFiles:
        """The server with the credentials it is asked with now."""
        from .kept import KeptFiles
        from .source import ServerFiles

        settings, secret = self._settings, self._secret and self._secret.fixed()
        owner = self._owner(secret)
        store = SourceStore(
            settings.cache_dir or default_cache_dir(),
            kind=self.kind,
            url=self.url,
            selection='',
            name='files',
            shared=settings.cache_dir is not None or is_cache_named(),
        ).owned_by(owner)
        return ServerFiles(
            url=self.url,
            connection=self._connected(secret, owner),
            kept=KeptFiles(store, settings.max_bytes),
            timeout=settings.timeout,
            offline=settings.offline,
            prefer_kept=self.locked,
            refused=lambda: self._answers.refused if self._answers else None,
            secret=secret,
        )

    def _owner(self, secret: HostSecret | None) -> str:
        """Identifies the credentials without giving them away; empty if there are none."""
        token = secret.fingerprint() if secret else ''
        if not self._headers:
            return token
        return fingerprint_of(json.dumps(sorted(self._headers.items())), f'{self._address.origin} {token}')

    def _connected(self, secret: HostSecret | None, owner: str) -> Connection:
        """The connection that was made with these credentials, or a new one."""
        if self._connection is None or self._owner_connected != owner:
            from .connection import Connection
            from .limits import MAX_ANSWER_BYTES, Answers

            self.close()
            limit = min(MAX_ANSWER_BYTES, self._settings.max_bytes)
            encrypted = self._address.origin.startswith('https:')
            self._answers = Answers(limit, 'local' in self._settings.allowed_protocols, encrypted)
            token = secret.bearer(self._address.origin) if secret else {}
            headers = {**self._headers, **token}
            self._connection = Connection(_ClientMaker(self._address, self._answers, headers, self._settings.timeout))
            self._owner_connected = owner
        return self._connection


class _ClientMaker:
    """Makes clients for a server. It does not keep the registry, which may be collected."""

    def __init__(self, address: MCPAddress, answers: Answers, headers: Mapping[str, str], timeout: float) -> None:
        self._address, self._answers, self._headers, self._timeout = address, answers, headers, timeout

    def __call__(self) -> Client[Any]:
        from fastmcp import Client
        from fastmcp.skills import SkillsClientExtension

        self._answers.refused = None
        return Client(
            self._address.transport(self._answers, self._headers),
            extensions=[SkillsClientExtension()],
            log_handler=_ignore,
            timeout=self._timeout,
            init_timeout=self._timeout,
        )


async def _ignore(_message: object) -> None:
    """Ignore what a server logs: it is a stranger's text."""
