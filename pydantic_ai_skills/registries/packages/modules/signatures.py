"""Reads the parameters of a function from its source, to show them to a model and check arguments before an import.

Annotations are looked up in a table of types, never evaluated. A type that is not in the table accepts any value until
the function is imported.
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

from .source import AnyFunctionDef, last_name

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
    **{kind.__name__: kind for kind in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)},
    **{f'{module}.{name}': kind for module in ('typing', 'typing_extensions') for name, kind in _TYPING.items()},
    **{f'collections.abc.{name}': kind for name, kind in _COLLECTIONS.items()},
    **{f'datetime.{name}': getattr(datetime, name) for name in ('date', 'datetime', 'time', 'timedelta')},
    **{f'pydantic_ai.{home}RunContext': RunContext[Any] for home in ('', 'tools.')},
    'decimal.Decimal': decimal.Decimal,
    'os.PathLike': pathlib.Path,
    'pathlib.Path': pathlib.Path,
    'pathlib.PurePath': pathlib.Path,
    'uuid.UUID': uuid.UUID,
}
"""The types that are known without an import of the module."""

_FAITHFUL_DECORATORS = frozenset({'allow', 'cache', 'deprecated', 'llmtool', 'lru_cache', 'validate_call'})


def parameter_names(function: AnyFunctionDef) -> list[str]:
    """The names of the parameters that can be given by position."""
    return [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]


def takes(function: AnyFunctionDef, name: str) -> bool:
    """Whether the function has a parameter of this name, or `**kwargs`, which accept any name but their own."""
    return any(
        (parameter.arg == name) != (kind is inspect.Parameter.VAR_KEYWORD)
        for parameter, kind, _ in parameters_of(function.args)
    )


def is_exact(function: AnyFunctionDef) -> bool:
    """Whether no decorator may change what the function takes."""
    names = (node.func if isinstance(node, ast.Call) else node for node in function.decorator_list)
    return all(last_name(name) in _FAITHFUL_DECORATORS for name in names)


def static_schema(
    function: AnyFunctionDef, *, imports: Mapping[str, str], comments: Mapping[str, str], name: str
) -> FunctionSchema:
    """Build the schema of a function that was not imported; `comments` describe its parameters."""
    computed: list[str] = []
    parameters: list[inspect.Parameter] = []
    for parameter, kind, default in parameters_of(function.args):
        annotation = _resolve(parameter.annotation, imports)
        value: Any = inspect.Parameter.empty
        if default is not None:
            try:
                value = ast.literal_eval(default)
                to_json(value)
            except (ValueError, TypeError):  # computed, or not JSON
                value = None
                computed.append(parameter.arg)
        parameters.append(inspect.Parameter(parameter.arg, kind, default=value, annotation=annotation))
    schema = FunctionOptions().read_schema(_stand_in(name, parameters, ast.get_docstring(function, clean=False)))
    properties: dict[str, dict[str, Any]] = schema.json_schema.get('properties', {})
    for parameter_name in computed:
        properties[parameter_name].pop('default', None)
    for parameter_name in properties.keys() & comments.keys():
        properties[parameter_name]['description'] = comments[parameter_name]
    return schema


def parameters_of(given: ast.arguments) -> Iterator[tuple[ast.arg, Any, ast.expr | None]]:
    """Each parameter with its kind and default."""
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
    """The type of an annotation; `Any` if it is not known."""
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
            return _TYPES[_dotted(node, imports)]
        case ast.BinOp(op=ast.BitOr()):
            return Union[_resolve(node.left, imports), _resolve(node.right, imports)]  # noqa: UP007 - of values
        case ast.Subscript():
            return _subscript(_type_of(node.value, imports), node.slice, imports)
        case _:
            raise TypeError('The annotation is not known.')


def _subscript(kind: Any, node: ast.expr, imports: Mapping[str, str]) -> Any:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    if kind is Literal:
        return Literal[tuple(ast.literal_eval(item) for item in items)]
    if kind is Annotated:
        # Other metadata, such as a validator, may change what is accepted.
        return _type_of(items[0], imports) if all(map(_only_describes, items[1:])) else Any
    if kind == RunContext[Any]:  # two of them need not be the same object
        return kind
    inner = tuple(_inner_type(item, imports) for item in items)
    return kind[inner[0] if len(inner) == 1 else inner]


def _inner_type(node: ast.expr, imports: Mapping[str, str]) -> Any:
    return ... if isinstance(node, ast.Constant) and node.value is ... else _resolve(node, imports)


def _only_describes(node: ast.expr) -> bool:
    name = node.func if isinstance(node, ast.Call) else node
    return isinstance(node, ast.Constant) or (isinstance(name, ast.Name) and name.id in ('Doc', 'Field'))


def _dotted(node: ast.Name | ast.Attribute, imports: Mapping[str, str]) -> str:
    first, dot, rest = ast.unparse(node).partition('.')
    return f'{imports.get(first, first)}{dot}{rest}'
