"""Imports public names on first use, because most agents need few of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def import_lazily(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """A `__getattr__` for a package. `names` maps each module, absolute or relative to the package, to its names."""
    homes = {name: module for module, names_of_module in names.items() for name in names_of_module}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        return getattr(import_module(homes[name], package), name)

    return get
