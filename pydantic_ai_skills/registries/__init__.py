"""Registries: sources that fetch skills, and wrappers around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from .address import open_registry
    from .archive.registry import ArchiveSkillsRegistry
    from .base import SkillRegistry
    from .cached import CachedRegistry
    from .combined import CombinedRegistry
    from .fetch_options import FetchOptions, FetchSettings
    from .fetched import FetchedRegistry
    from .filtered import FilteredRegistry
    from .folder import FolderSkillsRegistry
    from .git.progress import GitProgress
    from .git.registry import GitCloneOptions, GitSkillsRegistry
    from .manifest import FileSink
    from .marketplace.registry import MarketplaceSkillsRegistry
    from .mcp.registry import MCPSkillsRegistry
    from .objects.registry import ObjectStoreSkillsRegistry
    from .packages.modules.describe import describe
    from .packages.registry import PackageSkillsRegistry, SkillPackage, list_package_skills
    from .prefixed import PrefixedRegistry
    from .progress import FetchProgress
    from .renamed import RenamedRegistry
    from .source import SourceRegistry
    from .upstream import FetchSession, Upstream
    from .well_known.registry import WellKnownSkillsRegistry
    from .wrapper import WrapperRegistry

__all__ = (
    'ArchiveSkillsRegistry',
    'CachedRegistry',
    'CombinedRegistry',
    'FetchOptions',
    'FetchProgress',
    'FetchSession',
    'FetchSettings',
    'FetchedRegistry',
    'FileSink',
    'FilteredRegistry',
    'FolderSkillsRegistry',
    'GitCloneOptions',
    'GitProgress',
    'GitSkillsRegistry',
    'MCPSkillsRegistry',
    'MarketplaceSkillsRegistry',
    'ObjectStoreSkillsRegistry',
    'PackageSkillsRegistry',
    'PrefixedRegistry',
    'RenamedRegistry',
    'SkillPackage',
    'SkillRegistry',
    'SourceRegistry',
    'Upstream',
    'WellKnownSkillsRegistry',
    'WrapperRegistry',
    'describe',
    'list_package_skills',
    'open_registry',
)

__getattr__ = import_lazily(
    __name__,
    {
        '.address': ('open_registry',),
        '.archive': ('ArchiveSkillsRegistry',),
        '.base': ('SkillRegistry',),
        '.cached': ('CachedRegistry',),
        '.combined': ('CombinedRegistry',),
        '.fetch_options': ('FetchOptions', 'FetchSettings'),
        '.fetched': ('FetchedRegistry',),
        '.filtered': ('FilteredRegistry',),
        '.folder': ('FolderSkillsRegistry',),
        '.git': ('GitCloneOptions', 'GitProgress', 'GitSkillsRegistry'),
        '.manifest': ('FileSink',),
        '.marketplace': ('MarketplaceSkillsRegistry',),
        '.objects': ('ObjectStoreSkillsRegistry',),
        '.mcp': ('MCPSkillsRegistry',),
        '.packages': ('PackageSkillsRegistry', 'SkillPackage', 'describe', 'list_package_skills'),
        '.prefixed': ('PrefixedRegistry',),
        '.progress': ('FetchProgress',),
        '.renamed': ('RenamedRegistry',),
        '.source': ('SourceRegistry',),
        '.upstream': ('FetchSession', 'Upstream'),
        '.well_known': ('WellKnownSkillsRegistry',),
        '.wrapper': ('WrapperRegistry',),
    },
)
