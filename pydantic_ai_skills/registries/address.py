"""Parses the address of any source, and opens the registry for it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.user_dirs import expand_home

from .git.address import github_url, is_local_path, split_address

if TYPE_CHECKING:
    from .source import SourceRegistry

_ARCHIVE = re.compile(r'(?P<url>[^#]+\.(?:zip|tar\.gz|tgz|skill))(?:[@#](?P<ref>(?:sha256[:=])?[0-9a-fA-F]{64}))?')
_OBJECTS = re.compile(r'(?:s3|s3a|gs|gcs|az|azure|abfs|abfss|adl|memory)://.+', re.DOTALL)
_SITE = re.compile(r'https?://[^/?#@]+(?:/|/\.well-known(?:/.*)?)?')
_GIT_SCHEME = re.compile(r'(?:https?|ssh|file|git\+\w+)://.+')
_SCP = re.compile(r'[^/\s:@]+@[^/\s:@]+:.+')


class SourceAddress(NamedTuple):
    """What an address means."""

    kind: str
    """The kind of source, one of `KINDS`."""

    url: str
    ref: str | None = None
    """The branch, tag, commit or digest that it names."""

    path: str = ''
    """The folder in the source that it names."""

    @property
    def is_local(self) -> bool:
        """Whether it is a path on this machine."""
        return self.kind != 'mcp' and is_local_path(self.url)


class SourceKind(NamedTuple):
    """A kind of source. A new one is a file with its registry and a row in `KINDS`."""

    registry: str
    """The registry as `module:class`, imported from this package when it is needed."""

    forms: tuple[str, ...]
    """What its addresses look like, for error messages."""

    parse: Callable[[str], SourceAddress | None]
    """Parses an address of this kind; returns `None` for any other text."""

    settings: frozenset[str] = frozenset()
    """The settings it takes in `pyproject.toml` and agent specs, besides those of all sources."""

    ref: str = 'ref'
    """The parameter of the registry that takes the `ref`."""


# --- What each kind looks like ------------------------------------------------------------------------------------


def _git(text: str) -> SourceAddress | None:
    url, ref, path = split_address(text)
    # A `helper::address` would make git run a program. It counts as git here, so that the registry can refuse it.
    is_one = '::' in url or _GIT_SCHEME.fullmatch(url) or _SCP.fullmatch(url) or github_url(url) or _is_path(url)
    return SourceAddress('git', url, ref, path) if is_one else None


def _archive(text: str) -> SourceAddress | None:
    match = _ARCHIVE.fullmatch(text)
    if match is None or ('://' in text and not text.startswith(('https://', 'http://'))):
        return None
    ref = match['ref'] and f'sha256:{match["ref"].lower().removeprefix("sha256").lstrip(":=")}'
    return SourceAddress('archive', match['url'], ref)


def _folder(text: str) -> SourceAddress | None:
    path = expand_home(text)
    is_repository = (path / '.git').exists() or ((path / 'HEAD').is_file() and (path / 'objects').is_dir())
    return SourceAddress('folder', text) if path.is_dir() and not is_repository else None


def _well_known(text: str) -> SourceAddress | None:
    return SourceAddress('well-known', text) if _SITE.fullmatch(text) else None


def _objects(text: str) -> SourceAddress | None:
    return SourceAddress('objects', text) if _OBJECTS.fullmatch(text) else None


def _only_with_prefix(text: str) -> None:
    """Such addresses look like those of another kind, so they begin with the kind and a plus sign."""


KINDS = {
    'folder': SourceKind('folder:FolderSkillsRegistry', ('./folder',), _folder, frozenset({'path'})),
    'archive': SourceKind(
        'archive:ArchiveSkillsRegistry',
        ('https://host/skills.zip', 'https://host/skills.tar.gz@sha256:…', './pdf.skill'),
        _archive,
        frozenset({'ref', 'path', 'token_env'}),
        ref='digest',
    ),
    'objects': SourceKind(
        'objects:ObjectStoreSkillsRegistry',
        ('s3://bucket/prefix', 'gs://bucket/prefix', 'az://container/prefix'),
        _objects,
        frozenset({'path'}),
    ),
    'well-known': SourceKind(
        'well_known:WellKnownSkillsRegistry', ('https://site',), _well_known, frozenset({'token_env'})
    ),
    'mcp': SourceKind(
        'mcp:MCPSkillsRegistry',
        ('mcp+https://host/mcp', 'mcp+COMMAND ARGUMENTS'),
        _only_with_prefix,
        frozenset({'token_env'}),
    ),
    'marketplace': SourceKind(
        'marketplace:MarketplaceSkillsRegistry',
        ('marketplace+OWNER/REPOSITORY', 'marketplace+URL'),
        _only_with_prefix,
        frozenset({'ref', 'plugins', 'token_env'}),
    ),
    'git': SourceKind(
        'git.registry:GitSkillsRegistry',
        ('OWNER/REPOSITORY[@REF]', 'https://host/repository.git[@REF]', 'https://github.com/…/tree/REF/FOLDER'),
        _git,
        frozenset({'ref', 'path', 'token_env', 'ssh_key_file'}),
    ),
}
"""All kinds of sources, in the order in which an address is tried."""


def parse_source(text: str) -> SourceAddress:
    """The parts of an address. A kind and a plus sign in front, as in `git+https://host/skills`, set its kind.

    Raises:
        SkillValidationError: The address has no known form; the message lists those that are known.
    """
    kind, plus, rest = text.partition('+')
    if plus and kind in KINDS:
        if kind == 'mcp':
            return SourceAddress(kind, rest)
        url, ref, path = split_address(rest)
        return (KINDS[kind].parse(rest) or SourceAddress(kind, url, ref, path))._replace(kind=kind)
    for each in KINDS.values() if text.strip() else ():
        if address := each.parse(text):
            return address
    raise SkillValidationError(f'{text!r} is not an address of skills. {_known_forms()}')


def open_registry(address: str | os.PathLike[str], **options: Any) -> SourceRegistry:
    """The registry for an address, which may be any that the command `pydantic-ai-skills add` takes.

    ```python {test="skip"}
    from pydantic_ai_skills import SkillsToolset, open_registry

    toolset = SkillsToolset(registries=[open_registry('anthropics/skills'), open_registry('s3://acme/skills')])
    ```

    Args:
        address: Where the skills are, such as `'owner/repository@v1'`, `'https://site'`, `'https://host/skills.zip'`,
            `'s3://bucket/skills'`, `'mcp+https://host/mcp'` or `'./folder'`.
        **options: Options of the registry, such as `path`, `trusted`, `locked` and the others of `FetchOptions`.

    Raises:
        ImportError: A package that this kind of source needs is not installed.
        SkillValidationError: The address is not known here, or an option is invalid.
    """
    found = parse_source(os.fspath(address))
    if found.is_local:
        # Whoever names a folder allows it.
        protocols = options.get('allowed_protocols', ('https', 'ssh'))
        options['allowed_protocols'] = (*protocols, 'file')
    named = {'ref': found.ref, 'path': found.path}
    return open_source(found.kind, found.url, **{**{name: value for name, value in named.items() if value}, **options})


def open_source(kind: str, url: Any, **settings: Any) -> SourceRegistry:
    """The registry of a source of a known kind. `settings` are those of `pyproject.toml`, and options of the registry.

    Raises:
        ImportError: A package that this kind of source needs is not installed.
        SkillValidationError: A setting is invalid, or not one of this kind.
    """
    source = KINDS[kind]
    module, _, name = source.registry.partition(':')
    make = getattr(import_module(f'.{module}', __package__), name)
    if 'ref' in settings:
        settings[source.ref] = settings.pop('ref')
    return cast('SourceRegistry', make(url, **settings))


def origin_of(url: str) -> str:
    """The scheme, host and port of an address, to which a token may be bound; empty if it is not on the web."""
    parts = urlsplit(url)
    return f'{parts.scheme}://{parts.netloc}' if parts.scheme in ('https', 'http') else ''


def _is_path(text: str) -> bool:
    return text.startswith(('~', '/')) or not {'.', '..'}.isdisjoint(text.split('/')) or expand_home(text).exists()


def _known_forms() -> str:
    return f'Known forms: {"; ".join(form for kind in KINDS.values() for form in kind.forms)}.'
