"""Finds the Python packages, npm packages and programs installed where scripts run. Nothing is imported or run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from functools import cached_property
from importlib.machinery import PathFinder
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

from pydantic_ai_skills.execution.packages import find_uv
from pydantic_ai_skills.parsing.needs.requirements import canonical


class InstalledPackages:
    """The Python packages beside an interpreter."""

    def __init__(self, python: str | None = None) -> None:
        """Look beside `python`, by default the one this process runs on."""
        self._own = python is None or os.path.abspath(python) == os.path.abspath(sys.executable)
        if self._own:
            here = os.getcwd()
            # A script does not start in the current folder.
            self.folders = [folder for folder in sys.path if folder and os.path.abspath(folder) != here]
        else:
            prefix = Path(shutil.which(python or '') or python or '').absolute().parent.parent
            self.folders = [str(folder) for folder in sorted(prefix.glob('lib/python3*/site-packages'))]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the packages."""
        found = distributions(path=self.folders)
        return frozenset(canonical(name) for item in found if (name := item.metadata['Name']))

    def has_module(self, module: str) -> bool:
        """Whether a module can be imported, judged by its first part and, in a namespace package, also by the next."""
        top, _, rest = module.partition('.')
        spec = PathFinder.find_spec(top, self.folders)
        if spec is None:
            return False
        folders, inner = list(spec.submodule_search_locations or ()), rest.partition('.')[0]
        if spec.origin is not None or not inner:
            return True
        return PathFinder.find_spec(inner, folders) is not None

    def package_of(self, module: str) -> str | None:
        """The package that brings a module, if exactly one does; `None` for any Python but that of this process."""
        found = self._packages.get(module.partition('.')[0], []) if self._own else []
        return canonical(found[0]) if len(set(found)) == 1 else None

    @cached_property
    def _packages(self) -> Mapping[str, list[str]]:
        return packages_distributions()


def has_npm_package(name: str, folder: Path) -> bool:
    """Whether Node finds a package from a folder: in a `node_modules` there or above, or along `NODE_PATH`."""
    named = filter(None, os.environ.get('NODE_PATH', '').split(os.pathsep))
    places = [*(parent / 'node_modules' for parent in (folder, *folder.parents)), *map(Path, named)]
    return any((place / name).is_dir() for place in places)


def find_program(name: str) -> str | None:
    """Where a program is installed; uv may also be beside the Python of this process."""
    return find_uv() if name == 'uv' else shutil.which(name)
