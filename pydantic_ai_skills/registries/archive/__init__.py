"""Skills in archives: zip and tar files, here or on the web."""

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from .registry import ArchiveSkillsRegistry

__all__ = ('ArchiveSkillsRegistry',)

__getattr__ = import_lazily(__name__, {'.registry': ('ArchiveSkillsRegistry',)})
