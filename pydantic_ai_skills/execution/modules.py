"""Makes the modules of a skill importable for its scripts, wherever these start.

The skill's folder is on the `PYTHONPATH`, so that `from scripts.x import y` works as it does for somebody who calls
`python -m scripts.z` in that folder. A script with relative imports is started as such a module.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from .interpreters import ScriptHead, interpreters_for

_RELATIVE_IMPORT = re.compile(rb'^[ \t]*from[ \t]+\.[\w.]*[ \t]+import[ \t(]', re.MULTILINE)
_SITE_MODULES = frozenset({'sitecustomize', 'usercustomize'})


def module_name(file: str, head: bytes) -> str | None:
    """The module as which to run a Python script, a path in its skill: one in a folder, with relative imports."""
    path = PurePosixPath(file)
    if path.suffix != '.py' or len(path.parts) < 2 or not _RELATIVE_IMPORT.search(head):
        return None
    names = (*path.parts[:-1], path.stem)
    return '.'.join(names) if all(name.isidentifier() for name in names) else None


def module_words(name: str) -> list[str]:
    """What follows the interpreter to run a module. `-P` keeps the folder it starts in out of its imports."""
    return ['-P', '-m', name]


def start_words(path: Path, skill_dir: Path, head: ScriptHead) -> list[str]:
    """What follows the interpreter to run a script: its path, or its module where it has to be run as one."""
    module = None
    if skill_dir in path.parents and _runs_on_python(head):
        module = module_name(path.relative_to(skill_dir).as_posix(), head.head)
    return [str(path)] if module is None else module_words(module)


def _runs_on_python(head: ScriptHead) -> bool:
    interpreters = interpreters_for(head.name, head.head, executable=head.executable)
    return bool(interpreters) and interpreters[0].is_python


def import_variables(
    skill_dir: str, modules: Iterable[str], env: Mapping[str, str], *, as_module: bool, separator: str = os.pathsep
) -> dict[str, str]:
    """The variables that make the modules in a skill's folder importable, in addition to what the developer set.

    There are none if one of the `modules` at its top would take the place of a module of the standard library: it does
    not when somebody calls `python scripts/x.py`, either. A script that runs as a module needs the folder in any case.
    """
    names = {name.removesuffix('.py') for name in modules}
    if separator in skill_dir or (not as_module and names & (sys.stdlib_module_names | _SITE_MODULES)):
        return {}
    return {'PYTHONPATH': separator.join(filter(None, (env.get('PYTHONPATH'), skill_dir)))}


def top_modules(files: Iterable[str]) -> set[str]:
    """The modules and packages at the top of a skill, from the paths of its files."""
    paths = [PurePosixPath(file).parts for file in files]
    modules = {parts[0] for parts in paths if len(parts) == 1 and parts[0].endswith('.py')}
    return modules | {parts[0] for parts in paths if len(parts) == 2 and parts[1] == '__init__.py'}


def top_modules_in(folder: Path) -> set[str]:
    """The modules and packages at the top of a skill's folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if _is_module(entry)}
    except OSError:
        return set()


def _is_module(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith('.py') or os.path.exists(os.path.join(entry.path, '__init__.py'))


def with_folder_first(search_path: str, program: str | None) -> str:
    """A `PATH` on which the folder of a program comes first, unless it is on it already."""
    folder = os.path.dirname(program or '')
    if not folder or folder in search_path.split(os.pathsep):
        return search_path
    return os.pathsep.join(filter(None, (folder, search_path)))
