"""Skills from git repositories."""

from typing import TYPE_CHECKING

from pydantic_ai_skills._lazy import import_lazily

if TYPE_CHECKING:
    from .options import GitCloneOptions
    from .progress import GitProgress, ProgressCallback
    from .registry import GitSkillsRegistry, default_cache_dir

__all__ = ('GitCloneOptions', 'GitProgress', 'GitSkillsRegistry', 'ProgressCallback', 'default_cache_dir')

__getattr__ = import_lazily(
    __name__,
    {
        'GitCloneOptions': f'{__name__}.options',
        'GitProgress': f'{__name__}.progress',
        'GitSkillsRegistry': f'{__name__}.registry',
        'ProgressCallback': f'{__name__}.progress',
        'default_cache_dir': f'{__name__}.registry',
    },
)
