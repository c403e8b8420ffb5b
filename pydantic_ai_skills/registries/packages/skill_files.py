"""Which folders of skills an installed distribution has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from .distributions import Distribution, normalize
from .modules.code import MAX_LINES_FILE_BYTES, Code
from .trees import FolderTree, Tree

__all__ = ('find_skill_files',)

MAX_DEPTH = 3
"""How deep below a folder of skills they are looked for, and how deep in a namespace packages are."""

NOT_PACKAGES = frozenset({'benchmarks', 'build', 'dist', 'docs', 'examples', 'scripts', 'test', 'tests'})
"""Folders beside a package, or in it, that hold no skills for those who install it."""


def find_skill_files(distribution: Distribution, code: Code, folders: Sequence[str]) -> list[tuple[Tree, str]]:
    """Each `SKILL.md` in the folders of skills that a distribution has, with the place it is in.

    Where there is a list of the installed files, that is what counts. Where there is none, or the code is edited in
    place, the folders of its packages are looked at.
    """
    tree = distribution.tree
    found = [(tree, name) for name in distribution.skill_files if _is_skill(name, folders) and tree.has_file(name)]
    if code.is_edited or not distribution.has_record:
        for place, package in _packages_of(distribution, code):
            found += [(place, name) for folder in folders for name in _walk(place, f'{package}/{folder}')]
    homes = {_home(place, name) for place, name in found}
    whole = {_home(place, name): (place, name) for place, name in found if not _is_part(_home(place, name), homes)}
    return [whole[home] for home in sorted(whole)]


def _is_skill(name: str, folders: Sequence[str]) -> bool:
    """Whether an installed file is the `SKILL.md` of a skill in one of the folders of a package."""
    for folder in folders:
        package, found, below = f'/{name}'.rpartition(f'/{folder}/')
        is_package = not any(step.startswith('.') or step in NOT_PACKAGES for step in package.split('/'))
        if found and is_package and 0 < below.count('/') <= MAX_DEPTH:
            return True
    return False


def _home(tree: Tree, name: str) -> str:
    return os.path.dirname(os.path.join(tree.path, name))


def _is_part(home: str, homes: set[str]) -> bool:
    """Whether a skill's folder is only a part of another skill: one that is in no `skills` folder of that."""
    parent: str = os.path.dirname(home)
    while os.path.basename(parent) not in ('skills', ''):
        if parent in homes:
            return True
        parent = os.path.dirname(parent)
    return False


def _walk(tree: Tree, folder: str, depth: int = 0) -> Iterator[str]:
    for name in tree.names(folder):
        inner = f'{folder}/{name}'
        if depth and name.lower() == 'skill.md':
            yield inner
        elif depth < MAX_DEPTH and not name.startswith('.') and tree.has_folder(inner):
            yield from _walk(tree, inner, depth + 1)


def _packages_of(distribution: Distribution, code: Code) -> Iterator[tuple[Tree, str]]:
    """The folders of the packages of a distribution, where no list of files tells."""
    for _, folder in code.packages:
        yield FolderTree(os.path.dirname(folder)), os.path.basename(folder)
    named = distribution.tree.read(f'{distribution.info}/top_level.txt', MAX_LINES_FILE_BYTES) or b''
    top_level = named.decode('utf-8', 'replace').split()
    if not code.is_edited:
        guesses = [distribution.key.replace('-', '_'), distribution.key.replace('-', '/')]
        for name in dict.fromkeys(top_level or guesses):
            yield distribution.tree, name
    for project in code.projects:
        packages = [package for name in project.names('') for package in _packages_at(project, name)]
        own = [name for name in packages if name in top_level or normalize(name.replace('/', '.')) == distribution.key]
        for package in own or packages:
            yield project, package


def _packages_at(tree: Tree, folder: str, depth: int = 1) -> Iterator[str]:
    """The package in a folder, or the packages in it if it is only a part of a namespace."""
    name = folder.rpartition('/')[2]
    if not name.isidentifier() or name in NOT_PACKAGES or not tree.has_folder(folder):
        return
    names = list(tree.names(folder))
    if any(name.endswith('.py') for name in names):
        yield folder
    elif depth < MAX_DEPTH:
        for name in names:
            yield from _packages_at(tree, f'{folder}/{name}', depth + 1)
