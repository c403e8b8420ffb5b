"""Finds skills in folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from .directory import SkillsDirectory
    from .standard import AGENTS_FOLDER

__all__ = ('AGENTS_FOLDER', 'SkillsDirectory')

__getattr__ = import_lazily(__name__, {'.directory': ('SkillsDirectory',), '.standard': ('AGENTS_FOLDER',)})
