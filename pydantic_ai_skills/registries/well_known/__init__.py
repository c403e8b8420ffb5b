"""Skills that websites publish at a well-known address."""

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from .registry import WellKnownSkillsRegistry

__all__ = ('WellKnownSkillsRegistry',)

__getattr__ = import_lazily(__name__, {'.registry': ('WellKnownSkillsRegistry',)})
