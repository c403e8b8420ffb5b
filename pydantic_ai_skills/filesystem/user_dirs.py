"""Locates the user's home, cache, configuration and skills folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic_ai_skills.exceptions import SkillValidationError

CACHE_VARIABLE = 'PYDANTIC_AI_SKILLS_CACHE_DIR'
CONFIG_VARIABLE = 'PYDANTIC_AI_SKILLS_CONFIG_DIR'
SKILLS_VARIABLE = 'PYDANTIC_AI_SKILLS_USER_DIR'

# For each platform and purpose: the variable that names the base folder, and its default below the home folder.
_BASES = {
    'win32': {
        'cache': ('LOCALAPPDATA', 'AppData/Local'),
        'config': ('APPDATA', 'AppData/Roaming'),
        'data': ('APPDATA', 'AppData/Roaming'),
    },
    'darwin': {
        'cache': ('', 'Library/Caches'),
        'config': ('', 'Library/Application Support'),
        'data': ('', 'Library/Application Support'),
    },
    'linux': {
        'cache': ('XDG_CACHE_HOME', '.cache'),
        'config': ('XDG_CONFIG_HOME', '.config'),
        'data': ('XDG_DATA_HOME', '.local/share'),
    },
}


def expand_home(path: str | Path) -> Path:
    """Replace a leading `~` with the home folder; `SkillValidationError` if there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SkillValidationError(f'The home folder in {str(path)!r} cannot be found.') from None


def is_cache_named() -> bool:
    """Whether the environment names the cache folder."""
    return bool(os.environ.get(CACHE_VARIABLE))


def default_cache_dir() -> Path:
    """This package's cache folder: where the environment says, or below the user's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return expand_home(given).absolute()
    return _user_dir('cache', _home('cache_dir='), os.environ)


def user_config_dir() -> Path:
    """This package's folder for the user's decisions: where the environment says, or below the configuration folder."""
    given = os.environ.get(CONFIG_VARIABLE)
    if given:
        return expand_home(given).absolute()
    return _user_dir('config', _home(CONFIG_VARIABLE), os.environ)


def user_skills_folder(home: str | Path | None = None) -> Path:
    """The folder with the skills of a user. It need not exist.

    On Linux it is `$XDG_DATA_HOME/pydantic-ai-skills/skills`, on macOS it is below `~/Library/Application Support`, on
    Windows below `%APPDATA%`. `PYDANTIC_AI_SKILLS_USER_DIR` overrides it.

    Args:
        home: The home folder of another user, whose environment is not known.

    Raises:
        SkillValidationError: This user has no home folder.
    """
    if home is not None:
        return _user_dir('data', Path(home), {}) / 'skills'
    given = os.environ.get(SKILLS_VARIABLE)
    if given:
        return expand_home(given)
    return _user_dir('data', _home(SKILLS_VARIABLE), os.environ) / 'skills'


def _user_dir(purpose: Literal['cache', 'config', 'data'], home: Path, environment: Mapping[str, str]) -> Path:
    variable, default = _BASES.get(sys.platform, _BASES['linux'])[purpose]
    named = environment.get(variable, '')
    base = Path(named) if os.path.isabs(named) else home / default
    return base / 'pydantic-ai-skills'


def _home(instead: str) -> Path:
    try:
        return Path.home()
    except RuntimeError:
        message = f'This user has no home folder: name a folder with {instead}.'
        raise SkillValidationError(message) from None
