"""Skills as a pydantic-ai capability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from .capability import SkillsCapability

__all__ = ('SkillsCapability',)

__getattr__ = import_lazily(__name__, {'.capability': ('SkillsCapability',)})
