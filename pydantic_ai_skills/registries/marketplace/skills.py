"""Which folders of a plugin are its skills, and what else it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.registries.git.fetch import MAX_FILES, Fetch, TreeEntry

from .manifests import PLUGINS, AgentPlugin, MarketplaceEntry, PluginManifest

SKILLS = 'skills'
"""The folder that holds the skills of a plugin, unless its manifest names others."""

_PARTS = {
    '.app.json': 'apps',
    '.lsp.json': 'language servers',
    '.mcp.json': 'MCP servers',
    'agents': 'agents',
    'commands': 'commands',
    'hooks': 'hooks',
    'hooks.json': 'hooks',
    'mcp.json': 'MCP servers',
    'output-styles': 'output styles',
}
"""What files and folders at the top of a plugin stand for, besides skills."""


@dataclass(frozen=True, kw_only=True)
class PluginFolder:
    """What the folder of a plugin holds, by the names of its files alone."""

    path: str
    """The folder in the repository."""

    skills: frozenset[str]
    """The folders with a `SKILL.md`, relative to the folder of the plugin."""

    manifests: dict[str, TreeEntry] = field(default_factory=dict[str, TreeEntry])
    parts: frozenset[str] = frozenset()
    """What it has besides skills."""


def look_at(fetch: Fetch, paths: tuple[str, ...]) -> PluginFolder:
    """Look at the first of these folders that exists.

    Raises:
        SkillValidationError: None does.
    """
    for path in paths:
        folder = _look(fetch, path)
        if folder is not None:
            return folder
    raise SkillValidationError(f'{fetch.git.address.url} has no folder {paths[-1]!r} at {fetch.commit[:12]}.')


def _look(fetch: Fetch, path: str) -> PluginFolder | None:
    skills: set[str] = set()
    manifests: dict[str, TreeEntry] = {}
    parts: set[str] = set()
    exists = not path
    for entry in fetch.entries(path):
        inner = entry.path.removeprefix(f'{path}/' if path else '')
        if entry.path == path:
            raise SkillValidationError(f'{path!r} is a file, a link or a submodule, which is not followed.')
        exists = True
        top, _, rest = inner.partition('/')
        parts.update(filter(None, (_PARTS.get(top),)) if bool(rest) != ('.' in top) else ())
        if entry.is_file() and inner in PLUGINS:
            manifests[inner] = entry
        if entry.is_file() and f'/{inner}'[-9:].lower() == '/skill.md':
            skills.add(inner[:-9])
            if len(skills) > MAX_FILES:
                raise SkillRegistryError(f'{fetch.git.address.url} has more than {MAX_FILES:,} skills in {path!r}')
    if not exists:
        return None
    return PluginFolder(path=path, skills=frozenset(skills), manifests=manifests, parts=frozenset(parts))


def choose(
    folder: PluginFolder, entry: MarketplaceEntry, manifest: PluginManifest | AgentPlugin | None
) -> tuple[list[str], list[str]]:
    """The folders of a plugin's skills, and the folders that are named and hold none."""
    if isinstance(manifest, AgentPlugin):
        return sorted(_children(folder, SKILLS)), []
    named = [*entry.skills, *(manifest.skills if manifest and entry.strict else ())]
    chosen: set[str] = set()
    empty: list[str] = []
    for path in named:
        found = {path} & folder.skills or set(_children(folder, path))
        chosen |= found
        empty += [] if found else [path]
    if not entry.skills:
        # Folders that the plugin names are added to its skills folder; those that the marketplace names replace it.
        chosen.update(_children(folder, SKILLS))
    if not chosen and not named and '' in folder.skills:
        chosen.add('')
    return sorted(chosen), empty


def _children(folder: PluginFolder, path: str) -> Iterator[str]:
    """The skills right below a folder."""
    inside = f'{path}/' if path else ''
    return (each for each in folder.skills if each.startswith(inside) and each and '/' not in each[len(inside) :])


def files_of(fetch: Fetch, folder: PluginFolder, skills: list[str]) -> list[TreeEntry]:
    """The files of these skills, with their paths relative to the folder of the plugin.

    Raises:
        SkillRegistryError: There are too many.
    """
    wanted = set(skills)
    start = len(folder.path) + 1 if folder.path else 0
    chosen: list[TreeEntry] = []
    for entry in fetch.entries(folder.path) if wanted else ():
        inner = entry.path[start:]
        if _is_inside(inner, wanted):
            chosen.append(entry._replace(path=inner))
        if len(chosen) > fetch.max_files:
            limit = f'more than {fetch.max_files:,} files in its skills'
            raise SkillRegistryError(f'{fetch.git.address.url} has {limit} in {folder.path!r}')
    return chosen


def _is_inside(path: str, folders: set[str]) -> bool:
    while path:
        path = path.rpartition('/')[0]
        if path in folders:
            return True
    return False
