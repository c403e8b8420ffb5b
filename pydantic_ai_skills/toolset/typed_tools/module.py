"""Imports the tools in a skill's `tools.py`, when the skill is loaded and if its source is trusted."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, cast
from weakref import finalize

from pydantic_ai.tools import Tool

from pydantic_ai_skills.directory.settings import TOOLS_MODULE
from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError, SkillToolsError
from pydantic_ai_skills.filesystem.locks import ThreadLock
from pydantic_ai_skills.filesystem.safe_open import FileStamp, SkillFolder, stamp
from pydantic_ai_skills.types.decorators import make_tool, mark_of
from pydantic_ai_skills.types.skill import Skill

logger = logging.getLogger('pydantic_ai_skills')


_PREFIX = 'pydantic_ai_skills_tools_'

_users: Counter[str] = Counter()
"""How many `SkillTools` have the tools of each module."""

_counting = ThreadLock()


class _Loader(SourceFileLoader):
    """Neither reads nor writes compiled files: a skill's folder stays unchanged, and an approval covers what runs."""

    def path_stats(self, path: str) -> Any:
        raise OSError


class _Finder:
    """Finds the files beside a `tools.py` that it imports."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module of this name, if it is one of a skill."""
        spec = PathFinder.find_spec(name, path, target) if name.startswith(_PREFIX) else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def module_stamp(folder: str) -> FileStamp | None:
    """Identifies the version of `tools.py`; `None` if it is gone."""
    try:
        return stamp(os.lstat(os.path.join(folder, TOOLS_MODULE)))
    except OSError:
        return None


def import_tools(skill: Skill[Any], user: object) -> list[Tool[Any]]:
    """Import the `tools.py` of a skill, which runs its code. It blocks.

    The module is a package with a unique name, so that it can import files beside it (`from .helpers import …`). Python
    forgets it when the last `user` of this folder's tools is gone.

    Raises:
        SkillToolsError: It cannot be imported. The message has the last line of the traceback, the log all of it.
    """
    assert skill.path is not None
    name = f'{_PREFIX}{hashlib.sha256(skill.path.encode()).hexdigest()[:16]}'
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    try:
        skill.check_unchanged()
        source = SkillFolder(skill.path).read_bytes(TOOLS_MODULE)
    except (SkillResourceLoadError, SkillScriptExecutionError) as error:
        raise SkillToolsError(f'The tools of skill {skill.name!r} cannot be read: {error}') from error
    path = os.path.join(skill.path, TOOLS_MODULE)
    module = ModuleType(name)
    module.__file__ = path
    module.__package__ = name
    module.__path__ = [skill.path]
    _forget(name)
    sys.modules[name] = module  # where pydantic looks up the types that annotations name
    try:
        # `dont_inherit`: without this file's imports from `__future__`.
        code = compile(source, path, 'exec', dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - the source is trusted
        tools = _tools_in(module)
    except (Exception, SystemExit) as error:
        _forget(name)
        logger.error('The tools of skill %r cannot be imported', skill.name, exc_info=error)
        last_line = traceback.format_exception_only(error)[-1].strip()
        raise SkillToolsError(f'The tools of skill {skill.name!r} cannot be imported: {last_line}') from error
    with _counting:
        _users[name] += 1
    finalize(user, _release, name).atexit = False
    return tools


def _release(name: str) -> None:
    """Forget a module whose last user is gone."""
    with _counting:
        _users[name] -= 1
        if not _users[name]:
            del _users[name]
            _forget(name)


def _forget(name: str) -> None:
    """Remove a module, and those that it imported from its folder, from the modules of this process."""
    for known in [known for known in tuple(sys.modules) if known == name or known.startswith(f'{name}.')]:
        sys.modules.pop(known, None)


def _tools_in(module: ModuleType) -> list[Tool[Any]]:
    tools: list[Tool[Any]] = []
    found: list[object] = []
    public = (value for name, value in vars(module).items() if not name.startswith('_'))
    for value in cast(Iterable[object], public):
        if any(value is other for other in found):  # under another name
            continue
        mark = mark_of(value)
        if isinstance(value, Tool):
            tools.append(value)  # pyright: ignore[reportUnknownArgumentType] - of whatever dependencies
        elif mark is not None and mark.kind == 'tool':
            tools.append(make_tool(value, mark.options))  # pyright: ignore[reportArgumentType] - from the decorator
        else:
            continue
        found.append(cast(object, value))
    return tools
