"""Finds the folders of skills in an installed distribution."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

from .code import MAX_LINES_FILE_BYTES, Code
from .distributions import Distribution, normalize
from .trees import FolderTree, Tree

MAX_DEPTH = 3
"""How deep to look below a folder of skills, and for packages in a namespace."""

NOT_PACKAGES = frozenset({'benchmarks', 'build', 'dist', 'docs', 'examples', 'scripts', 'test', 'tests'})
"""Folders in or beside a package that hold no skills for its users."""


def find_skill_files(distribution: Distribution, code: Code, folders: Sequence[str]) -> list[tuple[Tree, str]]:
    """Find each `SKILL.md` in the skill folders of a distribution, with the tree it is in.

    The list of installed files decides. Without one, or if the code is edited in place, the packages are searched.
    """
    tree = distribution.tree
    found = [(tree, name) for name in distribution.skill_files if _is_skill(name, folders) and tree.has_file(name)]
    if code.is_edited or not distribution.has_record:
        found += _search(distribution, code, folders)
    homes = {os.path.dirname(os.path.join(place.path, name)): (place, name) for place, name in found}
    return [homes[home] for home in sorted(homes) if not _is_part(home, homes.keys())]


def _search(distribution: Distribution, code: Code, folders: Sequence[str]) -> Iterator[tuple[Tree, str]]:
    for tree, package in _packages_of(distribution, code):
        for folder in folders:
            yield from ((tree, name) for name in _walk(tree, f'{package}/{folder}'))


def _is_skill(name: str, folders: Sequence[str]) -> bool:
    """Whether an installed file is the `SKILL.md` of a skill in a skill folder of a package."""
    for folder in folders:
        package, found, below = f'/{name}'.rpartition(f'/{folder}/')
        is_package = not any(step.startswith('.') or step in NOT_PACKAGES for step in package.split('/'))
        if found and is_package and 0 < below.count('/') <= MAX_DEPTH:
            return True
    return False


def _is_part(home: str, homes: Collection[str]) -> bool:
    """Whether a folder is only a part of another skill, outside of that skill's own `skills` folder."""
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
    """The packages of a distribution whose list of files does not name them."""
    for _, folder in code.packages:
        yield FolderTree(os.path.dirname(folder)), os.path.basename(folder)
    named = distribution.tree.read(f'{distribution.info}/top_level.txt', MAX_LINES_FILE_BYTES) or b''
    top_level = named.decode('utf-8', 'replace').split()
    if not code.is_edited:
        guesses = [distribution.key.replace('-', '_'), distribution.key.replace('-', '/')]
        yield from ((distribution.tree, name) for name in dict.fromkeys(top_level or guesses))
    for project in code.projects:
        yield from ((project, package) for package in _edited_packages(project, top_level, distribution.key))


def _edited_packages(project: Tree, top_level: list[str], key: str) -> list[str]:
    """The packages of an editable install in a folder of its project; all packages there if none has its name."""
    packages = [package for name in project.names('') for package in _packages_at(project, name)]
    own = [name for name in packages if name in top_level or normalize(name.replace('/', '.')) == key]
    return own or packages


def _packages_at(tree: Tree, folder: str, depth: int = 1) -> Iterator[str]:
    """The package in a folder, or the packages in it if it is part of a namespace."""
    name = folder.rpartition('/')[2]
    if not name.isidentifier() or name in NOT_PACKAGES or not tree.has_folder(folder):
        return
    names = list(tree.names(folder))
    if any(name.endswith('.py') for name in names):
        yield folder
    elif depth < MAX_DEPTH:
        for name in names:
            yield from _packages_at(tree, f'{folder}/{name}', depth + 1)
