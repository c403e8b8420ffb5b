"""What a function takes, as its source tells: enough to show it to a model and to check arguments before any import.

Annotations are looked up in a table of types, never evaluated. What is not in the table is taken for any value, and is
checked when the function was imported.
"""

from __future__ import annotations

import ast
import datetime
import decimal
import inspect
import pathlib
import typing
import uuid
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union

from pydantic_ai.tools import RunContext
from pydantic_core import to_json

from pydantic_ai_skills.types.functions import FunctionOptions, FunctionSchema

__all__ = ('AnyFunctionDef', 'is_exact', 'parameter_names', 'static_schema', 'takes')

AnyFunctionDef = ast.FunctionDef | ast.AsyncFunctionDef

_BUILTINS: dict[str, Any] = {
    kind.__name__: kind for kind in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)
}
_COLLECTIONS = {
    **dict.fromkeys(('Collection', 'Iterable', 'Iterator', 'MutableSequence', 'Sequence', 'Set'), list),
    **dict.fromkeys(('Mapping', 'MutableMapping'), dict),
}
_TYPING = {
    'List': list,
    'Dict': dict,
    'FrozenSet': frozenset,
    'Tuple': tuple,
    **{name: getattr(typing, name) for name in ('Annotated', 'Any', 'Literal', 'Optional', 'Union')},
    **_COLLECTIONS,
}
_TYPES: dict[str, Any] = {
    **{f'{module}.{name}': kind for module in ('typing', 'typing_extensions') for name, kind in _TYPING.items()},
    **{f'collections.abc.{name}': kind for name, kind in _COLLECTIONS.items()},
    **{
        f'datetime.{kind.__name__}': kind
        for kind in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta)
    },
    **{f'pydantic_ai.{home}RunContext': RunContext[Any] for home in ('', 'tools.')},
    'decimal.Decimal': decimal.Decimal,
    'os.PathLike': pathlib.Path,
    'pathlib.Path': pathlib.Path,
    'pathlib.PurePath': pathlib.Path,
    'uuid.UUID': uuid.UUID,
}
"""The types that are known without importing what a module imports."""

_FAITHFUL_DECORATORS = frozenset({'allow', 'cache', 'deprecated', 'llmtool', 'lru_cache', 'validate_call'})

_UNKNOWN_DEFAULT = None
"""Stands for a default that is no literal, or one that JSON cannot hold."""


def parameter_names(function: AnyFunctionDef) -> list[str]:
    """The names of its parameters that can be given by position."""
    return [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]


def takes(function: AnyFunctionDef, name: str) -> bool:
    """Whether the function has a parameter of this name, or takes arguments of any name."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *([given.vararg] if given.vararg else [])]
    return any(parameter.arg == name for parameter in named) or (given.kwarg is not None and given.kwarg.arg != name)


def is_exact(function: AnyFunctionDef) -> bool:
    """Whether the function takes what its source says: a decorator may make it take something else."""
    names = (node.func if isinstance(node, ast.Call) else node for node in function.decorator_list)
    last = (name.attr if isinstance(name, ast.Attribute) else getattr(name, 'id', '') for name in names)
    return all(name in _FAITHFUL_DECORATORS for name in last)


def static_schema(
    function: AnyFunctionDef, *, imports: Mapping[str, str], comments: Mapping[str, str], name: str
) -> FunctionSchema:
    """The schema of a function that was not imported.

    Args:
        function: The function.
        imports: What the names that its module imports mean.
        comments: What comments in the source say about its parameters.
        name: What the function is called.
    """
    computed: list[str] = []
    parameters: list[inspect.Parameter] = []
    for parameter, kind, default in _parameters(function.args):
        annotation = _resolve(parameter.annotation, imports)
        value: Any = inspect.Parameter.empty
        if default is not None:
            try:
                value = ast.literal_eval(default)
                to_json(value)
            except (ValueError, TypeError):  # computed, or nothing that a schema can show
                value = _UNKNOWN_DEFAULT
                computed.append(parameter.arg)
        parameters.append(inspect.Parameter(parameter.arg, kind, default=value, annotation=annotation))
    schema = FunctionOptions().read_schema(_stand_in(name, parameters, ast.get_docstring(function, clean=False)))
    properties: dict[str, dict[str, Any]] = schema.json_schema.get('properties', {})
    for parameter_name in computed:
        properties[parameter_name].pop('default', None)
    for parameter_name in properties.keys() & comments.keys():
        properties[parameter_name]['description'] = comments[parameter_name]
    return schema


def _parameters(
    given: ast.arguments,
) -> Iterator[tuple[ast.arg, Any, ast.expr | None]]:
    kinds = inspect.Parameter
    positional = [*given.posonlyargs, *given.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults))
    for index, (parameter, default) in enumerate(zip(positional, [*missing, *given.defaults], strict=True)):
        is_only = index < len(given.posonlyargs)
        yield parameter, kinds.POSITIONAL_ONLY if is_only else kinds.POSITIONAL_OR_KEYWORD, default
    if given.vararg is not None:
        yield given.vararg, kinds.VAR_POSITIONAL, None
    for parameter, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield parameter, kinds.KEYWORD_ONLY, default
    if given.kwarg is not None:
        yield given.kwarg, kinds.VAR_KEYWORD, None


def _stand_in(name: str, parameters: list[inspect.Parameter], docstring: str | None) -> Any:
    """A function with the signature of one that was not imported."""

    def stand_in(*_: Any, **__: Any) -> Any: ...

    stand_in.__name__ = stand_in.__qualname__ = name
    stand_in.__doc__ = docstring
    stand_in.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(stand_in)['__signature__'] = inspect.Signature(parameters)
    return stand_in


def _resolve(node: ast.expr | None, imports: Mapping[str, str]) -> Any:
    """The type that an annotation means, `Any` if it is not one of those that are known."""
    try:
        return Any if node is None else _type_of(node, imports)
    except (KeyError, TypeError, ValueError, SyntaxError, RecursionError):
        return Any


def _type_of(node: ast.expr, imports: Mapping[str, str]) -> Any:
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str(text)):
            return _type_of(ast.parse(text.strip(), mode='eval').body, imports)
        case ast.Name() | ast.Attribute():
            path = _dotted(node, imports)
            return _BUILTINS[path] if path in _BUILTINS else _TYPES[path]
        case ast.BinOp(op=ast.BitOr()):
            return Union[_resolve(node.left, imports), _resolve(node.right, imports)]  # noqa: UP007 - of values
        case ast.Subscript():
            return _subscript(_type_of(node.value, imports), node.slice, imports)
        case _:
            raise TypeError('It is not an annotation that is known.')


def _subscript(kind: Any, node: ast.expr, imports: Mapping[str, str]) -> Any:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    if kind is Literal:
        return Literal[tuple(ast.literal_eval(item) for item in items)]
    if kind is Annotated:
        # What stands beside the type may change what is accepted, unless it is only said about it.
        return _type_of(items[0], imports) if all(map(_is_said, items[1:])) else Any
    if kind == RunContext[Any]:  # two of them need not be the same object
        return kind
    inner = [... if isinstance(item, ast.Constant) and item.value is ... else _resolve(item, imports) for item in items]
    return kind[inner[0] if len(inner) == 1 else tuple(inner)]


def _is_said(node: ast.expr) -> bool:
    name = node.func if isinstance(node, ast.Call) else node
    return isinstance(node, ast.Constant) or (isinstance(name, ast.Name) and name.id in ('Doc', 'Field'))


def _dotted(node: ast.Name | ast.Attribute, imports: Mapping[str, str]) -> str:
    steps: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        steps.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name):
        raise TypeError('It is not a dotted name.')
    return '.'.join((imports.get(inner.id, inner.id), *reversed(steps)))
