"""The source of a module, read and parsed but never run."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem

from .code import ModuleFile

__all__ = ('MAX_MODULE_BYTES', 'ModuleSource', 'UnusableModule', 'read_module')

MAX_MODULE_BYTES = 512 * 1024
"""A longer module is not read."""

_UNKNOWN_ESCAPE = re.compile(r'\\([^\n\r\\\'"abfnrtv0-7xNuU])|\\(.)', re.DOTALL)
_STRING = re.compile(
    r"""\#[^\n]*|(?<!\w)(?P<prefix>[A-Za-z]{0,2})(?P<quote>\'\'\'|\"\"\"|\'|\")(?:\\.|(?!(?P=quote)).)*(?P=quote)""",
    re.DOTALL,
)


class UnusableModule(Exception):
    """A module that cannot be a skill; the problem says why."""

    def __init__(self, found: SkillProblem) -> None:
        super().__init__(found.message)
        self.problem = found


@dataclass(frozen=True)
class ModuleSource:
    """A module whose source was read."""

    name: str
    """Its dotted name."""

    file: ModuleFile
    """Its file."""

    text: str
    """Its source, with escapes that Python does not know spelled out, which it would warn about."""

    tree: ast.Module
    """The same, parsed."""

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
        """For each name that it imports, what the name means, as a dotted path."""
        return dict(self._imports())

    @cached_property
    def starred(self) -> list[str]:
        """The modules of which it imports everything."""
        nodes = (node for node in self.tree.body if isinstance(node, ast.ImportFrom))
        return [self.absolute(node.module or '', node.level) for node in nodes if node.names[0].name == '*']

    @cached_property
    def functions(self) -> dict[int, ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function in it by the line it begins on, with its decorators."""
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        return {min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]): node for node in nodes}

    @cached_property
    def submodules(self) -> list[str]:
        """The modules of its own package that it imports as such, by `import package.module`."""
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
    """Read and parse a module.

    Raises:
        UnusableModule: There is no source, or it is not Python.
    """
    if file is None:
        where = (
            'It is built into Python, so there is no source to read.'
            if _is_built_in(name)
            else 'There is no such module.'
        )
        raise UnusableModule(problem('module-missing', name, where))
    if not file.is_source:
        message = f'The module {name!r} is compiled, so there is no source to read its description from.'
        raise UnusableModule(problem('module-compiled', file.path, message))
    data = file.tree.read(file.name, MAX_MODULE_BYTES)
    if data is None:
        message = f'The module {name!r} cannot be read, or is longer than {MAX_MODULE_BYTES:,} bytes.'
        raise UnusableModule(problem('module-invalid', file.path, message))
    text = _decode(data, name, file)
    text = _without_warnings(text)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
        message = f'The module {name!r} is not valid Python: {reason}.'
        raise UnusableModule(problem('module-invalid', file.path, message, line)) from error
    source = ModuleSource(name, file, text, tree)
    if (line := _raises_at(tree)) is not None:
        message = f'The module {name!r} raises an exception whenever it is imported.'
        raise UnusableModule(problem('module-fails', file.path, message, line))
    return source


def _is_built_in(name: str) -> bool:
    return name in sys.builtin_module_names or name in sys.stdlib_module_names


def _decode(data: bytes, name: str, file: ModuleFile) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return io.TextIOWrapper(io.BytesIO(data), encoding, newline=None).read()
    except (SyntaxError, UnicodeError, LookupError) as error:
        message = f'The text of the module {name!r} cannot be decoded: {error}.'
        raise UnusableModule(problem('module-invalid', file.path, message)) from error


def _without_warnings(text: str) -> str:
    r"""The source with unknown escapes such as `\d` spelled out, so that Python does not warn about other's code."""
    if not any(match[1] for match in _UNKNOWN_ESCAPE.finditer(text)):
        return text
    return _STRING.sub(_without_unknown_escapes, text)


def _without_unknown_escapes(string: re.Match[str]) -> str:
    is_raw = string['prefix'] is None or 'r' in string['prefix'].lower()
    return string[0] if is_raw else _UNKNOWN_ESCAPE.sub(_spelled_out, string[0])


def _spelled_out(match: re.Match[str]) -> str:
    return f'\\\\{match[1]}' if match[1] else match[0]


def _raises_at(tree: ast.Module) -> int | None:
    """The line of a statement that raises whenever the module is imported, if one is sure to be reached."""
    for node in tree.body:
        if isinstance(node, ast.Raise):
            return node.lineno
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and not node.test.value:
            return node.lineno
        if isinstance(node, ast.Expr | ast.Assign) and _divides_by_zero(node.value):
            return node.lineno
    return None


def _divides_by_zero(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod)
        and isinstance(node.left, ast.Constant)
        and isinstance(node.left.value, int | float)
        and isinstance(node.right, ast.Constant)
        and node.right.value == 0
    )
