"""The public symbols of a module, each traced through imports to the source that defines it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.registries.packages.code import Code

from .source import AnyFunctionDef, ModuleSource, UnusableModule, read_module

if TYPE_CHECKING:
    import griffe

MAX_STEPS = 8
"""How many imports are followed from a name to its definition."""


class MissingExtraError(SkillRegistryError, ImportError):
    """A library of an extra is not installed."""


@dataclass(frozen=True)
class Symbol:
    """A public name of a module and its definition."""

    name: str
    home: Module
    """The module that defines it."""

    meaning: griffe.Object
    """Its definition."""

    @property
    def function(self) -> AnyFunctionDef | None:
        """Its source, if it is a function."""
        return self.home.source.functions.get(self.meaning.lineno or 0) if self.meaning.is_function else None

    @property
    def methods(self) -> Iterator[Symbol]:
        """Its public methods, if it is a class."""
        for name, member in self.meaning.members.items() if self.meaning.is_class else ():
            if not name.startswith('_') and member.is_function and not member.is_alias:
                yield Symbol(f'{self.name}.{name}', self.home, member)  # pyright: ignore[reportArgumentType] - no alias


class Module:
    """A module as static analysis sees it."""

    def __init__(self, source: ModuleSource, code: Code, known: dict[str, Module | None] | None = None) -> None:
        self.source = source
        self.code = code
        self._known = {} if known is None else known
        self._known[source.name] = self

    @cached_property
    def analyzed(self) -> griffe.Module:
        """The module as griffe sees it."""
        try:
            import griffe  # an extra
        except ImportError as error:
            message = "Modules as skills need griffe: pip install 'pydantic-ai-skills[packages]'."
            raise MissingExtraError(message) from error
        return griffe.visit(self.source.name, Path(self.source.file.path), self.source.text)

    @cached_property
    def symbols(self) -> list[Symbol]:
        """Its public symbols: those in `__all__`, or else its own definitions with a public name."""
        return [symbol for name in self.public_names if (symbol := self.find(name)) is not None]

    @property
    def submodules(self) -> list[Module]:
        """The modules among its public symbols, and those of its own package that it imports."""
        named = (self.source.imports.get(name, f'{self.source.name}.{name}') for name in self.public_names)
        own = self.source.name.partition('.')[0]
        names = dict.fromkeys(name for name in (*named, *self.source.submodules) if name.startswith(f'{own}.'))
        return [module for name in names if name != self.source.name and (module := self._module(name)) is not None]

    @cached_property
    def public_names(self) -> list[str]:
        """The names it offers to others."""
        if self.analyzed.exports is not None:
            return list(dict.fromkeys(self.exported()))
        members = self.analyzed.members.items()
        return [name for name, member in members if not name.startswith('_') and not member.is_alias]

    def exported(self, above: tuple[Module, ...] = ()) -> Iterator[str]:
        """The names in `__all__`, and in the `__all__` of other modules that it includes."""
        for export in self.analyzed.exports or ():
            if isinstance(export, str):
                yield export
                continue
            home, _, inner = self._absolute(export.path).rpartition('.')
            module = self._module(home)
            if inner == '__all__' and module is not None and module not in (self, *above):
                yield from module.exported((self, *above))

    def _absolute(self, path: str) -> str:
        """The absolute path of a dotted name in the module."""
        first, dot, rest = path.partition('.')
        return f'{self.source.imports.get(first, f"{self.source.name}.{first}")}{dot}{rest}'

    def find(self, name: str, steps: int = MAX_STEPS) -> Symbol | None:
        """Find the definition of a name; `None` if its source cannot be found, or it is a module."""
        member = self.analyzed.members.get(name)
        if member is not None and not member.is_alias:
            return Symbol(name, self, member)  # pyright: ignore[reportArgumentType] - it is not an alias
        for path in self._paths(name) if steps else ():
            home, _, inner = path.rpartition('.')
            module = self._module(home)
            found = None if module is None else module.find(inner, steps - 1)
            if found is not None:
                return Symbol(name, found.home, found.meaning)
        return None

    def _paths(self, name: str) -> Iterator[str]:
        if name in self.source.imports:
            yield self.source.imports[name]
        yield from (f'{module}.{name}' for module in self.source.starred)

    def _module(self, name: str) -> Module | None:
        if name not in self._known:
            self._known[name] = None
            with suppress(UnusableModule):
                Module(read_module(name, self.code.find(name)), self.code, self._known)
        return self._known[name]
