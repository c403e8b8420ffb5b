"""Skills from installed Python packages."""

from typing import TYPE_CHECKING

from pydantic_ai_skills._lazy import import_lazily

if TYPE_CHECKING:
    from .registry import PackageSkillsRegistry, SkillPackage

__all__ = ('PackageSkillsRegistry', 'SkillPackage')

__getattr__ = import_lazily(__name__, {'.registry': __all__})
