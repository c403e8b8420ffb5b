"""Where the code of an installed distribution is: in the place it was installed to, or where it is edited."""

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

from pydantic_ai_skills.registries.packages.distributions import Distribution
from pydantic_ai_skills.registries.packages.trees import FolderTree, Tree, ZipTree

__all__ = ('MAX_LINES_FILE_BYTES', 'Code', 'ModuleFile', 'find_code')

MAX_LINES_FILE_BYTES = 1024 * 1024
"""How long a file may be that says where code is."""


@dataclass(frozen=True)
class ModuleFile:
    """The file of a module."""

    tree: Tree
    """Where it is."""

    name: str
    """Its path in there."""

    is_package: bool = False
    """Whether it is the `__init__` of a package."""

    @property
    def path(self) -> str:
        """Its whole path."""
        return os.path.join(self.tree.path, *self.name.split('/'))

    @property
    def is_source(self) -> bool:
        """Whether it can be read."""
        return self.name.endswith('.py')


@dataclass(frozen=True, kw_only=True)
class Code:
    """Where modules of a distribution are looked for."""

    trees: tuple[Tree, ...]
    """Places that hold top-level packages."""

    packages: tuple[tuple[str, str], ...] = ()
    """Packages that are elsewhere, with their folders."""

    projects: tuple[FolderTree, ...] = ()
    """Those places in which it is edited."""

    @property
    def is_edited(self) -> bool:
        """Whether the code is edited in place, so that the list of installed files does not have it."""
        return bool(self.packages or self.projects)

    def find(self, module: str) -> ModuleFile | None:
        """The file of a module; nothing is imported to find it."""
        mapped = [
            (FolderTree(os.path.dirname(folder)), f'{os.path.basename(folder)}{module[len(package) :]}')
            for package, folder in self.packages
            if f'{module}.'.startswith(f'{package}.')
        ]
        places = (*mapped, *((tree, module) for tree in self.trees))
        return next((found for tree, name in places if (found := _find_in(tree, name))), None)


def _find_in(tree: Tree, module: str) -> ModuleFile | None:
    base = module.replace('.', '/')
    suffixes = ('.py', *EXTENSION_SUFFIXES, *BYTECODE_SUFFIXES)
    for suffix in suffixes:
        if tree.has_file(f'{base}/__init__{suffix}'):
            return ModuleFile(tree, f'{base}/__init__{suffix}', is_package=True)
    for suffix in suffixes:
        if tree.has_file(f'{base}{suffix}'):
            return ModuleFile(tree, f'{base}{suffix}')
    return None


def find_code(distribution: Distribution, path: Sequence[str] | None) -> Code:
    """Where the code of a distribution is: where it is edited, where it is installed, then the rest of the path."""
    roots: list[str] = []
    packages: list[tuple[str, str]] = []
    for name in distribution.loose_files:
        data = distribution.tree.read(name, MAX_LINES_FILE_BYTES) or b''
        if name.endswith('.pth'):
            roots += _paths_in(data.decode('utf-8', 'replace'), distribution.tree.path)
        else:
            packages += _mapped_packages(data)
    if not roots and not packages:
        roots += _edited_project(distribution)
    projects = tuple(map(FolderTree, dict.fromkeys(roots)))
    trees: dict[str, Tree] = {tree.path: tree for tree in (*projects, distribution.tree)}
    for place in sys.path if path is None else path:
        trees.setdefault(place, ZipTree(place) if os.path.isfile(place) else FolderTree(place or os.getcwd()))
    return Code(trees=tuple(trees.values()), packages=tuple(packages), projects=projects)


def _paths_in(text: str, place: str) -> Iterator[str]:
    """The folders that a `.pth` file adds to the path; what it would run is not run."""
    for line in text.splitlines():
        if line.strip() and not line.startswith(('#', 'import ', 'import\t')):
            folder = os.path.join(place, line.strip())
            if os.path.isdir(folder):
                yield folder


def _mapped_packages(data: bytes) -> Iterator[tuple[str, str]]:
    """The folders of packages that an import hook for editing in place knows, read from its source."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        pairs: Any = None
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            pairs = _literal(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == 'map_module':
            pairs = dict([[_literal(argument) for argument in node.args]]) if len(node.args) == 2 else None
        if isinstance(pairs, dict):
            for name, folder in cast('dict[Any, Any]', pairs).items():
                if isinstance(name, str) and isinstance(folder, str) and os.path.isabs(folder):
                    yield name, os.path.dirname(folder) if folder.endswith('__init__.py') else folder


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _edited_project(distribution: Distribution) -> list[str]:
    """The folders of a project that is edited in place, where only the note of the installer tells."""
    data = distribution.tree.read(f'{distribution.info}/direct_url.json', MAX_LINES_FILE_BYTES)
    try:
        note: Any = json.loads(data or b'{}')
        if not note['dir_info']['editable']:
            return []
        project = unquote(urlsplit(str(note['url'])).path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return [folder for folder in (os.path.join(project, 'src'), project) if os.path.isdir(folder)]
