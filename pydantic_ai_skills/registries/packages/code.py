"""Finds the source files of an installed distribution, also if it is installed in editable mode."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from .distributions import Distribution
from .trees import FolderTree, Tree, ZipTree

MAX_LINES_FILE_BYTES = 1024 * 1024
"""A longer file that says where code is, such as a `.pth` file, is not read."""

_SUFFIXES = ('.py', *EXTENSION_SUFFIXES, *BYTECODE_SUFFIXES)


@dataclass(frozen=True)
class ModuleFile:
    """The file of a module."""

    tree: Tree
    name: str
    """Its path in the tree."""

    is_package: bool = False
    """Whether it is the `__init__` of a package."""

    @property
    def path(self) -> str:
        return os.path.join(self.tree.path, *self.name.split('/'))

    @property
    def is_source(self) -> bool:
        return self.name.endswith('.py')


@dataclass(frozen=True, kw_only=True)
class Code:
    """Where the modules of a distribution are."""

    trees: tuple[Tree, ...]
    """Where to look for top-level packages."""

    packages: tuple[tuple[str, str], ...] = ()
    """Names and folders of packages that are elsewhere."""

    projects: tuple[FolderTree, ...] = ()
    """The folders of its project, if it is installed in editable mode."""

    @property
    def is_edited(self) -> bool:
        """Whether it is installed in editable mode, so that the list of installed files does not have the code."""
        return bool(self.packages or self.projects)

    def find(self, module: str) -> ModuleFile | None:
        """Find the file of a module without importing anything."""
        mapped = [
            (FolderTree(os.path.dirname(folder)), f'{os.path.basename(folder)}{module[len(package) :]}')
            for package, folder in self.packages
            if f'{module}.'.startswith(f'{package}.')
        ]
        places = (*mapped, *((tree, module) for tree in self.trees))
        return next((found for tree, name in places if (found := _find_in(tree, name.replace('.', '/')))), None)


def _find_in(tree: Tree, base: str) -> ModuleFile | None:
    for end, is_package in (('/__init__', True), ('', False)):
        for suffix in _SUFFIXES:
            if tree.has_file(f'{base}{end}{suffix}'):
                return ModuleFile(tree, f'{base}{end}{suffix}', is_package)
    return None


def find_code(distribution: Distribution, path: Sequence[str] | None) -> Code:
    """Find the code of a distribution: where it is edited, where it is installed, then on the rest of the path."""
    roots, packages = _edited_in(distribution)
    projects = tuple(map(FolderTree, dict.fromkeys(roots)))
    trees: dict[str, Tree] = {tree.path: tree for tree in (*projects, distribution.tree)}
    for place in sys.path if path is None else path:
        trees.setdefault(place, ZipTree(place) if os.path.isfile(place) else FolderTree(place or os.getcwd()))
    return Code(trees=tuple(trees.values()), packages=tuple(packages), projects=projects)


def _edited_in(distribution: Distribution) -> tuple[list[str], list[tuple[str, str]]]:
    """The project folders of an editable install, and its packages that have folders of their own."""
    roots: list[str] = []
    packages: list[tuple[str, str]] = []
    for name in distribution.loose_files:
        data = distribution.tree.read(name, MAX_LINES_FILE_BYTES) or b''
        if name.endswith('.pth'):
            roots += _paths_in(data.decode('utf-8', 'replace'), distribution.tree.path)
        else:
            packages += _mapped_packages(data)
    return roots if roots or packages else _edited_project(distribution), packages


def _paths_in(text: str, place: str) -> Iterator[str]:
    """The folders that a `.pth` file adds to the path. Its `import` lines are not run."""
    for line in text.splitlines():
        if line.strip() and not line.startswith(('#', 'import ', 'import\t')):
            folder = os.path.join(place, line.strip())
            if os.path.isdir(folder):
                yield folder


def _mapped_packages(data: bytes) -> Iterator[tuple[str, str]]:
    """The packages and folders that the import hook of an editable install maps, read from its source."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for name, folder in (pair for node in ast.walk(tree) for pair in _literal_pairs(node)):
        if isinstance(name, str) and isinstance(folder, str) and os.path.isabs(folder):
            yield name, os.path.dirname(folder) if folder.endswith('__init__.py') else folder


def _literal_pairs(node: ast.AST) -> Iterator[tuple[Any, Any]]:
    """The items of a dictionary that is assigned, or the arguments of `map_module(name, folder)`."""
    try:
        match node:
            case ast.Assign(value=ast.Dict() as value) | ast.AnnAssign(value=ast.Dict() as value):
                yield from cast('dict[Any, Any]', ast.literal_eval(value)).items()
            case ast.Call(func=ast.Attribute(attr='map_module'), args=[name, folder]):
                yield ast.literal_eval(name), ast.literal_eval(folder)
            case _:
                pass
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return


def _edited_project(distribution: Distribution) -> list[str]:
    """The project folders of an editable install, according to the installer's `direct_url.json`."""
    data = distribution.tree.read(f'{distribution.info}/direct_url.json', MAX_LINES_FILE_BYTES)
    try:
        note: Any = json.loads(data or b'{}')
        if not note['dir_info']['editable']:
            return []
        project = unquote(urlsplit(str(note['url'])).path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return [folder for folder in (os.path.join(project, 'src'), project) if os.path.isdir(folder)]
