"""Skills from object stores."""

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from .registry import ObjectStoreSkillsRegistry

__all__ = ('ObjectStoreSkillsRegistry',)

__getattr__ = import_lazily(__name__, {'.registry': ('ObjectStoreSkillsRegistry',)})
