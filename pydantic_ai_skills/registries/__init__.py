"""Registries: sources that fetch skills, and wrappers around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills._lazy import import_lazily

from .base import SkillRegistry

if TYPE_CHECKING:
    from .cached import CachedRegistry
    from .combined import CombinedRegistry
    from .filtered import FilteredRegistry
    from .git.progress import GitProgress
    from .git.registry import GitCloneOptions, GitSkillsRegistry
    from .packages.modules.describe import describe
    from .packages.registry import PackageSkillsRegistry, SkillPackage, list_package_skills
    from .prefixed import PrefixedRegistry
    from .renamed import RenamedRegistry
    from .wrapper import WrapperRegistry

__all__ = (
    'CachedRegistry',
    'CombinedRegistry',
    'FilteredRegistry',
    'GitCloneOptions',
    'GitProgress',
    'GitSkillsRegistry',
    'PackageSkillsRegistry',
    'PrefixedRegistry',
    'RenamedRegistry',
    'SkillPackage',
    'SkillRegistry',
    'WrapperRegistry',
    'describe',
    'list_package_skills',
)

__getattr__ = import_lazily(
    __name__,
    {
        '.cached': ('CachedRegistry',),
        '.combined': ('CombinedRegistry',),
        '.filtered': ('FilteredRegistry',),
        '.git': ('GitCloneOptions', 'GitProgress', 'GitSkillsRegistry'),
        '.packages': ('PackageSkillsRegistry', 'SkillPackage', 'describe', 'list_package_skills'),
        '.prefixed': ('PrefixedRegistry',),
        '.renamed': ('RenamedRegistry',),
        '.wrapper': ('WrapperRegistry',),
    },
)
