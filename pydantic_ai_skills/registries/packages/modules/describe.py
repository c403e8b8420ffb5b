"""Documentation of one symbol, read from its source: nothing is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pydantic_ai_skills.exceptions import SkillResourceNotFoundError
from pydantic_ai_skills.registries.packages.code import Code
from pydantic_ai_skills.registries.packages.trees import FolderTree, ZipTree

from .allowed import ALL, read_declarations
from .api import render_api, render_symbol
from .source import UnusableModule, read_module
from .symbols import Module


def describe(symbol: object, *, path: Sequence[str | Path] | None = None) -> str:
    """Describe a function with its parameters, a class with its methods, or a module with what agents may use.

    It is read from the source, with the comments on parameters; nothing is imported or run.

    ```python
    from pydantic_ai_skills import describe

    print(describe('textwrap.fill').splitlines()[0])
    #> def fill(text, width=70, **kwargs):
    ```

    Args:
        symbol: A module, a class, a function or a method, or its dotted name, such as `'textwrap.shorten'`.
        path: Where to look for modules, in place of `sys.path`.

    Raises:
        SkillResourceNotFoundError: There is no such symbol, or no source of it.
    """
    name = symbol if isinstance(symbol, str) else _name_of(symbol)
    code = Code(trees=tuple(map(_tree, map(str, sys.path if path is None else path))))
    for module_name, inner in _splits(name):
        try:
            module = Module(read_module(module_name, code.find(module_name)), code)
        except UnusableModule:
            continue
        if (text := describe_in(module, inner)) is not None:
            return text
    raise SkillResourceNotFoundError(f'There is no symbol {name!r} whose source can be read.')


def describe_in(module: Module, name: str = '') -> str | None:
    """Describe a symbol of a module, or the module itself; `None` if it has no such symbol."""
    if name:
        return render_symbol(module, name)
    source = module.source
    declared = read_declarations(source)
    allowed = sorted(name.removesuffix(f'.{ALL}') for name in declared or ())
    parts = [f'# module {source.name}', source.docstring, render_api(module)]
    return '\n\n'.join(filter(None, [*parts, f'Agents may call: {", ".join(allowed)}.' if allowed else '']))


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """The ways to read a dotted name: as a module, or as a symbol in one."""
    steps = name.strip().split('.')
    for count in range(len(steps), 0, -1):
        yield '.'.join(steps[:count]), '.'.join(steps[count:])


def _name_of(symbol: Any) -> str:
    if isinstance(symbol, ModuleType):
        return symbol.__name__
    named = symbol if hasattr(symbol, '__qualname__') else cast('Any', type(symbol))
    return f'{named.__module__}.{named.__qualname__}'


def _tree(place: str) -> FolderTree | ZipTree:
    return ZipTree(place) if os.path.isfile(place) else FolderTree(place or os.getcwd())
