"""The source of a module: read and parsed, and imported only on request."""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.registries.packages.code import ModuleFile

AnyFunctionDef = ast.FunctionDef | ast.AsyncFunctionDef

MAX_MODULE_BYTES = 512 * 1024
"""A longer module is not read."""

_ESCAPE = re.compile(r'(?P<known>\\[\n\r\\\'"abfnrtv0-7xNuU])|\\')
_STRING = re.compile(
    r"""\#[^\n]*|(?<!\w)(?P<prefix>[A-Za-z]{0,2})(?P<quote>\'\'\'|\"\"\"|\'|\")(?:\\.|(?!(?P=quote)).)*+(?:(?P=quote)|\Z)""",
    re.DOTALL,
)


class UnusableModule(Exception):
    """A module that cannot be a skill; the problem says why."""

    def __init__(self, found: SkillProblem) -> None:
        super().__init__(found.message)
        self.problem = found


@dataclass(frozen=True)
class ModuleSource:
    """The source of a module."""

    name: str
    """Its dotted name."""

    file: ModuleFile
    text: str
    """Its source, with unknown escapes doubled, so that Python does not warn about them."""

    tree: ast.Module

    @cached_property
    def docstring(self) -> str:
        """Its docstring; empty if it has none."""
        return (ast.get_docstring(self.tree) or '').strip()

    @cached_property
    def summary(self) -> str:
        """The first paragraph of its docstring on one line."""
        return ' '.join(re.split(r'\n\s*\n', self.docstring, maxsplit=1)[0].split())

    @cached_property
    def imports(self) -> dict[str, str]:
        """The dotted path that each imported name stands for."""
        return dict(self._imports())

    @cached_property
    def starred(self) -> list[str]:
        """The modules that it imports with `*`."""
        nodes = (node for node in self.tree.body if isinstance(node, ast.ImportFrom))
        return [self.absolute(node.module or '', node.level) for node in nodes if node.names[0].name == '*']

    @cached_property
    def functions(self) -> dict[int, AnyFunctionDef]:
        """Every function by its first line, which may be that of a decorator."""
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, AnyFunctionDef))
        return {min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]): node for node in nodes}

    @cached_property
    def comments(self) -> dict[int, str]:
        """Its comments by line."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text if '#' in self.text else '').readline)
        return {token.start[0]: token.string.lstrip('#').strip() for token in tokens if token.type == tokenize.COMMENT}

    @cached_property
    def submodules(self) -> list[str]:
        """The modules of its own package that it imports by `import package.module`."""
        own = self.name.partition('.')[0]
        nodes = (node for node in self.tree.body if isinstance(node, ast.Import))
        names = (alias.name for node in nodes for alias in node.names if alias.asname is None)
        return [name for name in names if name.startswith(f'{own}.') and name != self.name]

    def _imports(self) -> Iterator[tuple[str, str]]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition('.')[0]
                    yield (alias.asname, alias.name) if alias.asname else (top, top)
            elif isinstance(node, ast.ImportFrom):
                package = self.absolute(node.module or '', node.level)
                for alias in node.names:
                    yield alias.asname or alias.name, f'{package}.{alias.name}'

    def absolute(self, module: str, level: int) -> str:
        """The dotted name of a module that is imported with `level` dots."""
        if not level:
            return module
        steps = self.name.split('.')
        steps = steps[: len(steps) - level + self.file.is_package]
        return '.'.join((*steps, module) if module else steps)


def read_module(name: str, file: ModuleFile | None) -> ModuleSource:
    """Read and parse a module."""
    if file is None:
        is_built_in = name in sys.builtin_module_names or name in sys.stdlib_module_names
        why = 'It is built into Python, so there is no source to read.' if is_built_in else 'There is no such module.'
        raise UnusableModule(problem('module-missing', name, why))
    if not file.is_source:
        message = f'The module {name!r} is compiled, so there is no source to read its description from.'
        raise UnusableModule(problem('module-compiled', file.path, message))
    text = _read_text(name, file)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
        message = f'The module {name!r} is not valid Python: {reason}.'
        raise UnusableModule(problem('module-invalid', file.path, message, line)) from error
    if (line := _raises_at(tree)) is not None:
        message = f'The module {name!r} raises an exception whenever it is imported.'
        raise UnusableModule(problem('module-fails', file.path, message, line))
    return ModuleSource(name, file, text, tree)


def last_name(node: ast.AST) -> str | None:
    """The last step of a dotted name; `None` if it is not a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def import_source(source: ModuleSource) -> ModuleType:
    """Import the module whose source was read. This runs its code."""
    try:
        module = import_module(source.name)
    except (Exception, SystemExit) as error:
        message = f'The module {source.name!r} cannot be imported: {type(error).__name__}: {error}'
        raise SkillRegistryError(f'{message.rstrip(".")}.') from error
    file = getattr(module, '__file__', None)
    if file is None or os.path.realpath(file) != os.path.realpath(source.file.path):
        raise SkillRegistryError(f'The module {source.name!r} that Python imports is not the one that was read.')
    return module


def _read_text(name: str, file: ModuleFile) -> str:
    data = file.tree.read(file.name, MAX_MODULE_BYTES)
    if data is None:
        message = f'The module {name!r} cannot be read, or is longer than {MAX_MODULE_BYTES:,} bytes.'
        raise UnusableModule(problem('module-invalid', file.path, message))
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = io.TextIOWrapper(io.BytesIO(data), encoding, newline=None).read()
    except (SyntaxError, UnicodeError, LookupError) as error:
        message = f'The text of the module {name!r} cannot be decoded: {error}.'
        raise UnusableModule(problem('module-invalid', file.path, message)) from error
    has_unknown_escapes = not all(escape['known'] for escape in _ESCAPE.finditer(text))
    return _STRING.sub(_double_unknown_escapes, text) if has_unknown_escapes else text


def _double_unknown_escapes(string: re.Match[str]) -> str:
    r"""Double the backslash of unknown escapes such as `\d`: Python would warn the user about the package's code."""
    is_raw = string['prefix'] is None or 'r' in string['prefix'].lower()
    return string[0] if is_raw else _ESCAPE.sub(lambda escape: escape['known'] or '\\\\', string[0])


def _raises_at(tree: ast.Module) -> int | None:
    """The line of the first top-level statement that always raises."""
    for node in tree.body:
        fails = isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and node.test.value is False
        if fails or isinstance(node, ast.Raise):
            return node.lineno
    return None
