"""Importing a module that was only read so far."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

from pydantic_ai_skills.exceptions import SkillRegistryError

from .source import ModuleSource

__all__ = ('import_source',)


def import_source(source: ModuleSource) -> ModuleType:
    """Import the module whose source was read. This runs its code.

    Raises:
        SkillRegistryError: It cannot be imported, or another module of the same name comes first.
    """
    try:
        module = import_module(source.name)
    except (Exception, SystemExit) as error:
        message = f'The module {source.name!r} cannot be imported: {type(error).__name__}: {error}'
        raise SkillRegistryError(f'{message.rstrip(".")}.') from error
    file = getattr(module, '__file__', None)
    if file is None or os.path.realpath(file) != os.path.realpath(source.file.path):
        raise SkillRegistryError(f'The module {source.name!r} that Python imports is not the one that was read.')
    return module
