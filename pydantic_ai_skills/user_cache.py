"""Where a user's caches are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillValidationError

__all__ = ('default_cache_dir',)


def default_cache_dir() -> Path:
    """The user's cache folder for this package, where the platform has it."""
    given = os.environ.get('PYDANTIC_AI_SKILLS_CACHE_DIR')
    if given:
        return Path(given).expanduser().absolute()
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
