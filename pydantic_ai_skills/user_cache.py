"""Where a user's home and caches are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillValidationError

__all__ = ('default_cache_dir', 'expand_home', 'is_cache_named')

VARIABLE = 'PYDANTIC_AI_SKILLS_CACHE_DIR'


def expand_home(path: str | Path) -> Path:
    """A path with the home folder in place of the `~` it begins with.

    Raises:
        SkillValidationError: There is no such user, or the user has no home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SkillValidationError(f'The home folder in {str(path)!r} cannot be found.') from None


def is_cache_named() -> bool:
    """Whether somebody says where the cache is, in the environment."""
    return bool(os.environ.get(VARIABLE))


def default_cache_dir() -> Path:
    """The user's cache folder for this package, where the platform has it."""
    given = os.environ.get(VARIABLE)
    if given:
        return expand_home(given).absolute()
    try:
        home = Path.home()
    except RuntimeError:
        raise SkillValidationError('This user has no home directory: say where the cache is, as cache_dir=.') from None
    if sys.platform == 'win32':
        base = Path(os.environ.get('LOCALAPPDATA') or home / 'AppData' / 'Local')
    elif sys.platform == 'darwin':
        base = home / 'Library' / 'Caches'
    else:
        given = os.environ.get('XDG_CACHE_HOME', '')
        base = Path(given) if os.path.isabs(given) else home / '.cache'
    return base / 'pydantic-ai-skills'
