"""Names that are imported when they are first asked for, because most agents have no use for what is behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ('import_lazily',)


def import_lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """A `__getattr__` for a package that imports a name from the module it lives in.

    Args:
        package: The package's `__name__`.
        homes: For each name the module it lives in.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        return getattr(import_module(homes[name]), name)

    return get
