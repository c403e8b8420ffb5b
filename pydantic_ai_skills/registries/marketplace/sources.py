"""Where the plugins of a marketplace are, and which of these places may be reached.

A marketplace is a stranger's text: the addresses in it may not use more than the developer allowed, and the
marketplace's token goes to no other host.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.registries.git.address import GitAddress, check_path, check_ref, github_url, parse_address
from pydantic_ai_skills.registries.git.process import Git
from pydantic_ai_skills.registries.manifest import is_revision
from pydantic_ai_skills.registries.web.address import refusal_of

from .manifests import Marketplace, MarketplaceEntry

_PORTS = {'http': '80', 'https': '443'}


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Which repositories plugins may be in, and how git is called for them."""

    marketplace: Git
    """How git is called for the marketplace."""

    allowed: frozenset[str]
    """The protocols for repositories on other hosts."""

    def parse(self, url: str) -> GitAddress:
        """Parse the address of a plugin's repository.

        Raises:
            SkillValidationError: It is not one, or may not be reached.
        """
        own = self.marketplace.address
        url = github_url(url) or url
        address = parse_address(url, self.allowed | {own.protocol})
        return address if address.origin == own.origin else parse_address(url, self.allowed)

    def git(self, address: GitAddress | None) -> Git:
        """How to call git for the repository of a plugin; `None` is that of the marketplace.

        Raises:
            SkillRegistryError: It is on this machine or in a private network, which was not allowed.
        """
        own = self.marketplace
        if address is None or address.origin == own.address.origin:
            return replace(own, address=address or own.address)
        options = own.options
        if 'local' not in self.allowed and (public := _public_addresses(address)):
            # The name must not lead elsewhere when git looks it up.
            options = replace(options, config={'http.curloptResolve': f'{address.host}:{_port(address)}:{public}'})
        return Git(address=address, allowed=self.allowed - {'local'}, options=options, max_bytes=own.max_bytes)


@dataclass(frozen=True, kw_only=True)
class PluginSource:
    """Where a plugin is."""

    address: GitAddress | None
    """The repository; `None` for the one of the marketplace."""

    paths: tuple[str, ...] = ('',)
    """Its folder there: the first of these that exists."""

    ref: str | None = None
    """The branch or tag; `None` for the default branch."""

    sha: str | None = None
    """The commit, if the marketplace names one."""

    @property
    def url(self) -> str:
        """The address of the repository; empty for the one of the marketplace."""
        return self.address.url if self.address else ''


def read_source(entry: MarketplaceEntry, marketplace: Marketplace, reach: Reach) -> PluginSource:
    """Where the plugin of an entry is.

    Raises:
        SkillValidationError: The entry does not say, or names what may not be reached.
    """
    given = entry.source
    if isinstance(given, str):
        return PluginSource(address=None, paths=_local_paths(given, marketplace))
    kind = given.get('source')
    if kind == 'local':
        return PluginSource(address=None, paths=(check_path(_text(given, 'path')),))
    if kind not in ('github', 'url', 'git-subdir'):
        known = "a path, 'github', 'url', 'git-subdir' and 'local'"
        raise SkillValidationError(f'Its source {str(kind)[:80]!r} is not supported; {known} are.')
    path = _text(given, 'path') if kind == 'git-subdir' else given.get('path') or ''
    if not isinstance(path, str):
        raise SkillValidationError("The 'path' of its source is not a text.")
    address = _github(given) if kind == 'github' else reach.parse(_text(given, 'url'))
    return PluginSource(address=address, paths=(check_path(path),), ref=_ref(given), sha=_sha(given))


def _local_paths(path: str, marketplace: Marketplace) -> tuple[str, ...]:
    inside = check_path(path)
    root = check_path(marketplace.metadata.pluginRoot)
    # With a root, some publishers write paths from there and others from the top of the repository.
    return tuple(dict.fromkeys((f'{root}/{inside}'.strip('/'), inside)))


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise SkillValidationError(f'Its source has no {key!r}.')
    return value


def _github(given: Mapping[str, Any]) -> GitAddress:
    url = github_url(_text(given, 'repo'))
    if url is None:
        raise SkillValidationError("The 'repo' of its source is not of the form 'owner/repository'.")
    return parse_address(url, {'https'})


def _ref(given: Mapping[str, Any]) -> str | None:
    ref = given.get('ref')
    if ref is not None and not isinstance(ref, str):
        raise SkillValidationError("The 'ref' of its source is not a text.")
    return check_ref(ref)


def _sha(given: Mapping[str, Any]) -> str | None:
    sha = given.get('sha')
    if sha is None:
        ref = given.get('ref')
        return ref if is_revision(ref) else None
    # One that is cut short would leave open which commit is meant.
    if not isinstance(sha, str) or not is_revision(sha.lower()):
        raise SkillValidationError("The 'sha' of its source is not a full commit.")
    return sha.lower()


def _port(address: GitAddress) -> str:
    given = re.search(r':(\d+)$', address.origin)
    return given[1] if given else _PORTS.get(address.protocol, '')


def _public_addresses(address: GitAddress) -> str:
    """The network addresses of the host, which must all be public; empty if there is no name, or it is not found."""
    if not address.host:
        return ''
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(address.host, None)}
    except OSError:
        return ''  # git says it better, or a proxy knows the name
    refusals = filter(None, (refusal_of(each, local=False) for each in sorted(found)))
    if why := next(refusals, None):
        raise SkillRegistryError(
            f"{address.url} is refused: {why}. If that is intended, say so: allowed_protocols=('https', 'local')"
        )
    if found == {address.host}:
        return ''
    return ','.join(f'[{each}]' if ':' in each else each for each in sorted(found))
