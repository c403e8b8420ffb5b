"""Skills of plugins: from marketplaces, or from a repository that is a plugin."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from typing_extensions import Unpack

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.registries.checkout import FoundDirectory
from pydantic_ai_skills.registries.fetch_options import FetchOptions, FetchSettings
from pydantic_ai_skills.registries.fetched import FetchedRegistry
from pydantic_ai_skills.registries.git.address import check_ref, parse_address
from pydantic_ai_skills.registries.git.options import GitCloneOptions, check_options
from pydantic_ai_skills.registries.git.process import Git
from pydantic_ai_skills.registries.lockfile import LockedSource
from pydantic_ai_skills.registries.secrets import TokenSource, host_secret

from .folders import PluginFolders
from .manifests import usable_name
from .names import offered_names
from .upstream import MarketplaceUpstream


class MarketplaceSkillsRegistry(FetchedRegistry):
    """Skills of the plugins that a marketplace lists, or of a repository that is a plugin.

    Nothing is fetched until the skills are needed. Then the list of plugins is read, and only the files of their skills
    are fetched, from the repositories where the plugins are. Nothing else of a plugin is used: no commands, hooks or
    MCP servers.

    ```python {test="skip"}
    from pydantic_ai_skills import MarketplaceSkillsRegistry, SkillsToolset

    registry = MarketplaceSkillsRegistry('anthropics/skills', plugins=['document-skills'])
    toolset = SkillsToolset(registries=[registry])
    ```
    """

    kind = 'marketplace'

    plugins: tuple[str, ...] | None = None
    """The names of the wanted plugins; `None` for all."""

    def __init__(
        self,
        address: str | os.PathLike[str],
        *,
        plugins: str | Collection[str] | None = None,
        ref: str | None = None,
        token: TokenSource | None = None,
        token_env: str | None = None,
        **options: Unpack[FetchOptions],
    ) -> None:
        """Remember a marketplace; it is fetched on first use.

        Args:
            address: The URL of its git repository, without user or password, or `owner/repository` for one on GitHub.
            plugins: The names of the plugins whose skills to offer; all of them when not given.
            ref: A branch, a tag or a full commit of that repository; the default branch when not given.
            token: A token for the host of an `https` URL, or a function that returns one. Plugins on the same host are
                fetched with it. It is sent to no other host.
            token_env: An environment variable that holds the token, read each time it is needed. `GITHUB_TOKEN` is for
                `github.com` only.
            **options: The options of all registries that fetch; see `FetchOptions`. Repositories of plugins on other
                hosts are reached by `https` only, unless `allowed_protocols` is given, and not in private networks,
                unless that has `'local'`.

        Raises:
            SkillValidationError: The address, ref, a name or an option is invalid or not allowed.
        """
        settings = FetchSettings.of(self, options)
        repository = parse_address(address, settings.allowed_protocols - {'local'})
        secret = host_secret(repository, token, token_env, None)
        # A traceback may show the values of variables.
        del token
        self.plugins = _names(plugins)
        git = Git(
            address=repository,
            allowed=settings.allowed_protocols - {'local'},
            secret=secret,
            options=check_options(GitCloneOptions(), allow_unsafe=False),
            max_bytes=settings.max_bytes,
        )
        # The developer named the marketplace, and strangers name the repositories of plugins.
        allowed = settings.allowed_protocols if 'allowed_protocols' in options else frozenset({'https'})
        upstream = MarketplaceUpstream(
            git=git, ref=check_ref(ref), plugins=self.plugins, allowed=allowed, progress=settings.progress
        )
        selection = repr((self.plugins, sorted(allowed)))
        self._fetch_from(upstream, settings, selection=selection, name=repository.name)

    def locked_source(self) -> LockedSource:
        """What the lock file says about this marketplace and the skills of the wanted plugins."""
        source = super().locked_source()
        if self.plugins is None:
            return source
        return source.without({folder for folder in source.skills if folder.partition('/')[0] not in self.plugins})

    def _open(self, folder: Path) -> FoundDirectory:
        return PluginFolders(folder, self._directories())

    @staticmethod
    def _offered_names(names: Mapping[str, str]) -> Mapping[str, str]:
        return offered_names(names)


def _names(plugins: str | Collection[str] | None) -> tuple[str, ...] | None:
    if plugins is None:
        return None
    names = tuple(dict.fromkeys([plugins] if isinstance(plugins, str) else plugins))
    for name in names:
        try:
            usable_name(name)
        except ValueError as error:
            raise SkillValidationError(f'plugins has {name!r}: {error}.') from None
    return names
