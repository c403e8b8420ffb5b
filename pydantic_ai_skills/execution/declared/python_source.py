"""Reads the text of Python scripts: their syntax tree and their literals."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

_NOT_ESCAPE = re.compile(r'\\([^\n\r\\\'"abfnrtv0-3xNuU])|\\(.)', re.DOTALL)
Constants = Mapping[str, Any]
"""Names in a module and the plain values they have."""


def parse_python(text: str) -> ast.Module | None:
    """The syntax tree of a script; `None` if it has mistakes or is too deep."""
    try:
        # An unknown escape such as '\d' would make the parser warn about somebody else's code.
        return ast.parse(_NOT_ESCAPE.sub(lambda match: f'\\\\{match[1]}' if match[1] else match[0], text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def called(call: ast.expr | None) -> str | None:
    """The last part of what is called: `add_argument` in `parser.add_argument(…)`."""
    function = call.func if isinstance(call, ast.Call) else call
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def receiver(call: ast.expr) -> str | None:
    """The name of what a method is called on: `parser` in `parser.add_argument(…)`."""
    function = call.func if isinstance(call, ast.Call) else call
    owner = function.value if isinstance(function, ast.Attribute) else None
    return owner.id if isinstance(owner, ast.Name) else None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((item.value for item in call.keywords if item.arg == name), None)


def keyword_value(call: ast.Call, name: str, constants: Constants) -> Any:
    """The plain value of a keyword argument; `None` if it has none that can be read."""
    node = keyword(call, name)
    return None if node is None else literal(node, constants)


def keyword_text(call: ast.Call, name: str, constants: Constants) -> str:
    """The text of a keyword argument; empty if there is none."""
    node = keyword(call, name)
    return ('' if node is None else text_of(node, constants)) or ''


def literal(node: ast.expr, constants: Constants) -> Any:
    """The plain value of an expression: a literal, a constant of the module, or the names in either."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Dict):
        return _keys(node)
    if isinstance(node, ast.Call):
        return _listed(node, constants)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _listed(call: ast.Call, constants: Constants) -> list[Any] | None:
    """The items of `list(X)`, `sorted(X)` or `X.keys()` for an X that is known."""
    name = called(call)
    if name not in ('frozenset', 'keys', 'list', 'set', 'sorted', 'tuple'):
        return None
    inner = call.args[0] if call.args else getattr(call.func, 'value', None)
    value = literal(inner, constants) if isinstance(inner, ast.expr) else None
    if not isinstance(value, list | tuple | dict | set):
        return None
    items = list(cast('list[Any]', value))
    return sorted(items, key=str) if name == 'sorted' else items


def constants_of(tree: ast.Module) -> dict[str, Any]:
    """The names that a module gives plain values, at its top."""
    found: dict[str, Any] = {}
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                found[name] = literal(value, found)
            case _:
                pass
    return found


def _keys(node: ast.Dict) -> dict[str, None]:
    """The keys of a dictionary whatever its values are: choices are often its keys."""
    keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return dict.fromkeys(keys) if len(keys) == len(node.keys) else {}


def text_of(node: ast.expr, constants: Constants, name: str = '…') -> str | None:
    """The text of an expression. In an f-string, the program's name becomes `name`, and other values an ellipsis."""
    if isinstance(node, ast.JoinedStr):
        return ''.join(_pieces(node, name))
    value = constants.get(node.id) if isinstance(node, ast.Name) else getattr(node, 'value', None)
    return value if isinstance(value, str) else None


def _pieces(node: ast.JoinedStr, name: str) -> Iterator[str]:
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            yield str(piece.value)
        else:
            yield name if any(_is_argv(node) for node in ast.walk(piece)) else '…'


def _is_argv(node: ast.AST) -> bool:
    return 'argv' in (getattr(node, 'attr', ''), getattr(node, 'id', ''))
