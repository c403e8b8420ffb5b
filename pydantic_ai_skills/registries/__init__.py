"""Everything that is not a local folder: sources that fetch skills, and wrappers around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills.lazy import import_lazily
from pydantic_ai_skills.registries.base import SkillRegistry

if TYPE_CHECKING:
    from pydantic_ai_skills.registries.cached import CachedRegistry
    from pydantic_ai_skills.registries.combined import CombinedRegistry
    from pydantic_ai_skills.registries.filtered import FilteredRegistry
    from pydantic_ai_skills.registries.git import GitCloneOptions, GitProgress, GitSkillsRegistry
    from pydantic_ai_skills.registries.packages import PackageSkillsRegistry, SkillPackage
    from pydantic_ai_skills.registries.prefixed import PrefixedRegistry
    from pydantic_ai_skills.registries.renamed import RenamedRegistry
    from pydantic_ai_skills.registries.wrapper import WrapperRegistry

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
