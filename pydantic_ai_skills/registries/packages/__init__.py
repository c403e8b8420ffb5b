"""Skills from installed Python packages."""

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from .modules.describe import describe
    from .registry import PackageSkillsRegistry, SkillPackage, list_package_skills

__all__ = ('PackageSkillsRegistry', 'SkillPackage', 'describe', 'list_package_skills')

__getattr__ = import_lazily(
    __name__,
    {'.registry': ('PackageSkillsRegistry', 'SkillPackage', 'list_package_skills'), '.modules.describe': ('describe',)},
)
