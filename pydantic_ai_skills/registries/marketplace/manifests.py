"""Reads the manifests of marketplaces and plugins. Nothing that they name is opened, run or fetched here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.registries.git.address import check_path

ModelT = TypeVar('ModelT', bound=BaseModel)

MAX_MANIFEST_BYTES = 2 * 1024 * 1024
"""How large a manifest may be."""

CATALOGUES = ('.claude-plugin/marketplace.json', '.agents/plugins/marketplace.json')
"""Where a repository lists plugins, in order of precedence."""

AGENT_PLUGIN = 'plugin.json'
"""The manifest of an Agent Plugin."""

PLUGINS = (AGENT_PLUGIN, '.claude-plugin/plugin.json', '.codex-plugin/plugin.json')
"""Where a plugin has its manifest, in order of precedence."""

PARTS = {
    'agents': 'agents',
    'apps': 'apps',
    'commands': 'commands',
    'hooks': 'hooks',
    'lspServers': 'language servers',
    'mcpServers': 'MCP servers',
    'outputStyles': 'output styles',
}
"""What else a manifest may name, besides skills."""

_SCHEMA = re.compile(r'https://agent-plugins\.org/schemas/1\.0\.\d{1,9}/plugin\.schema\.json')
_SCHEMAS = 'https://agent-plugins.org/schemas/'
_AGENT_PLUGIN_NAME = re.compile(r'(?!.*(?:--|\.\.))[a-z0-9.-]{1,64}')
_NAME = re.compile(r'(?!.*\.\.)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?')
"""A name that is safe as the name of a folder."""


def usable_name(name: str) -> str:
    """Check that the name of a plugin can be the name of a folder."""
    if not _NAME.fullmatch(name):
        raise ValueError('a plugin has a name of 1 to 64 letters, digits, hyphens, underscores and dots')
    return name


def _folders(given: object) -> object:
    """The folders of skills that a manifest names: one, or a list of them."""
    return [given] if isinstance(given, str) else given or ()


Folders = Annotated[tuple[Annotated[str, AfterValidator(check_path)], ...], BeforeValidator(_folders)]
"""Folders in a plugin, without `./` before them."""


class _Lenient(BaseModel):
    model_config = ConfigDict(extra='allow', frozen=True)

    @property
    def parts(self) -> list[str]:
        """What it has besides skills."""
        return [part for key, part in PARTS.items() if (self.model_extra or {}).get(key)]


class MarketplaceEntry(_Lenient):
    """A plugin as a marketplace lists it."""

    name: Annotated[str, AfterValidator(usable_name)]
    source: str | dict[str, Any]
    """Where it is: a path in the repository, or another repository."""

    strict: bool = True
    """Whether the manifest of the plugin counts. Otherwise only this entry does."""

    skills: Folders = ()


class _Metadata(_Lenient):
    pluginRoot: str = ''


class Marketplace(_Lenient):
    """A list of plugins."""

    metadata: _Metadata = _Metadata()
    renames: dict[str, Any] = {}
    """New names of plugins, by the old ones."""

    plugins: list[Any]
    """Not checked yet: one bad entry must not hide the others."""

    def renamed(self, name: str) -> str:
        """The name that a plugin has now."""
        seen: set[str] = set()
        while name not in seen and isinstance(self.renames.get(name), str):
            seen.add(name)
            name = self.renames[name]
        return name


class PluginManifest(_Lenient):
    """The manifest in `.claude-plugin` or `.codex-plugin`."""

    name: str | None = None
    skills: Folders = ()


class _Author(BaseModel):
    model_config = ConfigDict(extra='allow', strict=True)

    name: str | None = None
    email: str | None = None
    url: str | None = None


def _check_schema(url: str) -> str:
    if not _SCHEMA.fullmatch(url):
        raise ValueError(f'only version 1.0 of {_SCHEMAS} is known')
    return url


def _check_name(name: str) -> str:
    if not _AGENT_PLUGIN_NAME.fullmatch(name):
        raise ValueError("a plugin has a name of 1 to 64 of a-z, 0-9, '-' and '.', without '--' and '..'")
    return name


class AgentPlugin(BaseModel):
    """The manifest of an Agent Plugin, version 1.0. Its skills are the folders in `skills/`."""

    model_config = ConfigDict(extra='allow', strict=True)

    schema_url: Annotated[str, Field(alias='$schema'), AfterValidator(_check_schema)]
    name: Annotated[str, AfterValidator(_check_name)]
    version: str | None = None
    description: str | None = None
    author: _Author | None = None
    homepage: str | None = None
    repository: str | None = None
    license: str | None = None
    keywords: list[str] = []
    extensions: dict[str, Any] = {}

    @property
    def unknown_keys(self) -> list[str]:
        """The keys that the format does not have."""
        author = (self.author.model_extra if self.author else None) or {}
        return sorted([*(self.model_extra or {}), *(f'author.{key}' for key in author)])


def read_marketplace(data: bytes, file: str) -> Marketplace:
    """Read the list of plugins.

    Raises:
        SkillValidationError: It is not one.
    """
    return _validate(Marketplace, _load(data, file), file)


def read_entry(given: object) -> MarketplaceEntry:
    """Read one entry of the list.

    Raises:
        SkillValidationError: It is not one.
    """
    return _validate(MarketplaceEntry, given, 'the entry')


def read_plugin(data: bytes, file: str) -> PluginManifest | AgentPlugin:
    """Read the manifest of a plugin.

    Raises:
        SkillValidationError: It is not one.
    """
    return _validate(AgentPlugin if file == AGENT_PLUGIN else PluginManifest, _load(data, file), file)


def manifest_that_counts(texts: Mapping[str, bytes]) -> str:
    """The manifest of a plugin that counts. A `plugin.json` of something else counts only if there is no other."""
    names = [name for name in PLUGINS if name in texts]
    return (
        names[1] if len(names) > 1 and names[0] == AGENT_PLUGIN and not _is_agent_plugin(texts[names[0]]) else names[0]
    )


def _is_agent_plugin(data: bytes) -> bool:
    """Whether a `plugin.json` says that it is the manifest of an Agent Plugin; many other things have such a file."""
    try:
        loaded = _load(data, AGENT_PLUGIN)
    except SkillValidationError:
        return False
    schema = cast(dict[str, Any], loaded).get('$schema') if isinstance(loaded, dict) else None
    return isinstance(schema, str) and schema.startswith(_SCHEMAS)


def _load(data: bytes, file: str) -> object:
    if len(data) > MAX_MANIFEST_BYTES:
        raise SkillValidationError(f'{file} has {len(data):,} bytes; at most {MAX_MANIFEST_BYTES:,} are read.')
    try:
        # `from_json` refuses what is nested too deep.
        return from_json(data.removeprefix(b'\xef\xbb\xbf'))
    except ValueError as error:
        raise SkillValidationError(f'{file} is not JSON: {error}.') from None


def _validate(model: type[ModelT], given: object, file: str) -> ModelT:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise SkillValidationError(f'{file} is invalid: {_reasons(error.errors(include_url=False))}.') from None


def _reasons(errors: Iterable[Any]) -> str:
    """What is wrong, without the values, which may be long or hostile."""
    reasons = [f'{".".join(map(str, each["loc"][:4])) or "it"}: {each["msg"]}'[:200] for each in errors]
    return '; '.join(reasons[:3])
