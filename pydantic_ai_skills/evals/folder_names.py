"""Puts names in place of folders of this machine, so that recordings and reports are the same on any machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast


@dataclass(frozen=True)
class FolderNames:
    """The folders that a model may see in a run, and the names that stand for them elsewhere."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The name of each folder, such as `work`, by its path."""

    def hide(self, value: Any) -> Any:
        """The same JSON value with names in place of folders."""
        longest_first = sorted(self.names.items(), key=lambda each: -len(each[0]))
        return _replaced(value, [(folder, _mark(name)) for folder, name in longest_first])

    def show(self, value: Any) -> Any:
        """The same JSON value with folders in place of names."""
        return _replaced(value, [(_mark(name), folder) for folder, name in self.names.items()])


def _mark(name: str) -> str:
    return f'<folder:{name}>'


def _replaced(value: Any, pairs: list[tuple[str, str]]) -> Any:
    def replace(text: str) -> str:
        for old, new in pairs:
            text = text.replace(old, new)
        return text

    return _map(value, replace)


def _map(value: Any, change: Callable[[str], str]) -> Any:
    """Change all text in a JSON value, but not the keys of objects."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map(each, change) for each in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _map(each, change) for key, each in cast(dict[str, Any], value).items()}
    return value
