"""Skills from git repositories."""

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir

    from .options import GitCloneOptions
    from .progress import GitProgress, ProgressCallback
    from .registry import GitSkillsRegistry

__all__ = ('GitCloneOptions', 'GitProgress', 'GitSkillsRegistry', 'ProgressCallback', 'default_cache_dir')

__getattr__ = import_lazily(
    __name__,
    {
        '.options': ('GitCloneOptions',),
        '.progress': ('GitProgress', 'ProgressCallback'),
        '.registry': ('GitSkillsRegistry',),
        'pydantic_ai_skills.filesystem.user_dirs': ('default_cache_dir',),
    },
)
