"""Skills of plugins: from marketplaces, or from a repository that is a plugin."""

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from .registry import MarketplaceSkillsRegistry

__all__ = ('MarketplaceSkillsRegistry',)

__getattr__ = import_lazily(__name__, {'.registry': ('MarketplaceSkillsRegistry',)})
