"""Everything that is not a local folder: sources that fetch skills, and wrappers around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills._lazy import import_lazily

from .base import SkillRegistry

if TYPE_CHECKING:
    from .cached import CachedRegistry
    from .combined import CombinedRegistry
    from .filtered import FilteredRegistry
    from .git.registry import GitCloneOptions, GitProgress, GitSkillsRegistry
    from .packages.registry import PackageSkillsRegistry, SkillPackage
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
)

__getattr__ = import_lazily(
    __name__,
    {
        'CachedRegistry': f'{__name__}.cached',
        'CombinedRegistry': f'{__name__}.combined',
        'FilteredRegistry': f'{__name__}.filtered',
        'GitCloneOptions': f'{__name__}.git',
        'GitProgress': f'{__name__}.git',
        'GitSkillsRegistry': f'{__name__}.git',
        'PackageSkillsRegistry': f'{__name__}.packages',
        'PrefixedRegistry': f'{__name__}.prefixed',
        'RenamedRegistry': f'{__name__}.renamed',
        'SkillPackage': f'{__name__}.packages',
        'WrapperRegistry': f'{__name__}.wrapper',
    },
)
