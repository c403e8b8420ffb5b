"""Reads from the source of a module which functions agents may call, and which parameters are paths.

A module declares this in one of two ways, and neither is run. With a name of our own:

    __skill_scripts__ = {'mean': {}, 'save': {'write': ['target']}}

or with calls of `allow`, the `pyskills` convention:

    allow(mean, Table.add, {save: PosAllowPolicy(0, 'target'), Table: ['rows'], Report: ...})
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from .source import AnyFunctionDef, ModuleSource, last_name

DECLARATION = '__skill_scripts__'
"""The name of the declaration: a list of functions, or a mapping of functions to their paths."""

ALL = '*'
"""Stands for all public methods of a class."""

INSTANCE = 'self'
"""The argument of a method that makes the instance."""

Paths = Mapping[str | int, tuple[str, ...] | None]
"""Parameters that are paths, by name or position, with their folders; `None` for the developer's folders."""


@dataclass(frozen=True, kw_only=True)
class AllowedFunction:
    """A function that agents may call, and its parameters that are paths to read from or write to."""

    read: Paths = field(default_factory=dict[str | int, tuple[str, ...] | None])
    write: Paths = field(default_factory=dict[str | int, tuple[str, ...] | None])
    mode: str | None = None
    """The parameter that holds the mode of `open`, if it has one: paths are written to only if that says so."""

    unknown_policy: str | None = None
    """A policy that is not supported, so that the function cannot be called."""


def read_declarations(source: ModuleSource) -> dict[str, AllowedFunction] | None:
    """Read which functions a module allows; `None` if it declares nothing and so allows every public function."""
    allowed: dict[str, AllowedFunction] | None = None
    for node in _statements(source.tree.body):
        functions = _functions_of(node, source)
        if functions is not None:
            allowed = {**(allowed or {}), **dict(functions)}
    return allowed


def _functions_of(node: ast.AST, source: ModuleSource) -> Iterable[tuple[str, AllowedFunction]] | None:
    """The functions that a statement allows; `None` if it is not a declaration."""
    match node:
        case ast.Assign(targets=targets, value=value) if any(map(_is_declaration, targets)):
            return _declared(value)
        case ast.AnnAssign(target=target, value=value) if _is_declaration(target):
            return _declared(value)
        case (
            ast.Assign(value=ast.Call() as call)
            | ast.AnnAssign(value=ast.Call() as call)
            | ast.Expr(value=ast.Call() as call)
        ) if _is_allow(call.func, source):
            return _allowed(call)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            is_allowed = any(_is_allow(decorator, source) for decorator in node.decorator_list)
            return [(node.name, AllowedFunction())] if is_allowed else None
        case _:
            return None


def _statements(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a module, including those in `if`, `try` and `with`."""
    for node in nodes:
        yield node
        if not isinstance(node, AnyFunctionDef | ast.ClassDef | ast.expr):
            yield from _statements(ast.iter_child_nodes(node))


def _is_allow(node: ast.expr, source: ModuleSource) -> bool:
    name = last_name(node)
    return name is not None and source.imports.get(name, name).rpartition('.')[2] == 'allow'


def _is_declaration(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == DECLARATION


def _declared(node: ast.expr | None) -> Iterator[tuple[str, AllowedFunction]]:
    try:
        value: Any = ast.literal_eval(node) if node else None
    except (ValueError, TypeError):
        return
    if isinstance(value, dict):
        yield from ((str(name), _with_paths(paths)) for name, paths in cast('dict[Any, Any]', value).items())
    elif isinstance(value, list | tuple | set):
        yield from ((str(name), AllowedFunction()) for name in cast('Sequence[Any]', value))


def _with_paths(paths: object) -> AllowedFunction:
    """A function with `{'read': [...], 'write': [...]}`: names of parameters, or for each name its folders."""
    if not isinstance(paths, Mapping):
        return AllowedFunction(unknown_policy=repr(paths))
    given = cast('Mapping[Any, Any]', paths)
    if not given.keys() <= {'read', 'write'}:
        return AllowedFunction(unknown_policy=repr(given))
    return AllowedFunction(read=_folders(given.get('read', ())), write=_folders(given.get('write', ())))


def _folders(names: Any) -> Paths:
    if isinstance(names, Mapping):
        given = cast('Mapping[Any, Any]', names)
        return {
            str(name): (folders,) if isinstance(folders, str) else tuple(map(str, folders))
            for name, folders in given.items()
        }
    return dict.fromkeys([names] if isinstance(names, str) else map(str, names))


def _allowed(call: ast.Call) -> Iterator[tuple[str, AllowedFunction]]:
    policy = next((keyword.value for keyword in call.keywords if keyword.arg == 'allow_policy'), None)
    for item in _flat(call.args):
        match item:
            case ast.Name(id=name):
                yield name, _under(policy)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                yield f'{owner}.{name}', _under(policy)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Name):
                        yield from _of_key(key.id, value, policy)
            case _:
                pass


def _of_key(name: str, value: ast.expr, policy: ast.expr | None) -> Iterator[tuple[str, AllowedFunction]]:
    """What `{name: value}` allows: a function under a policy, or methods of a class."""
    match value:
        case ast.Constant(value=constant) if constant is ...:
            yield f'{name}.{ALL}', _under(policy)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            for item in items:
                match item:
                    case ast.Constant(value=str(method)):
                        yield f'{name}.{method}', _under(policy)
                    case ast.Tuple(elts=[ast.Constant(value=str(method)), own]):
                        yield f'{name}.{method}', _under(own)
                    case _:
                        pass
        case ast.Constant(value=str(method)):
            yield f'{name}.{method}', _under(policy)
        case ast.Constant():
            pass
        case _:
            yield name, _under(value)


def _flat(nodes: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.List | ast.Tuple | ast.Set):
            yield from node.value.elts
        else:
            yield node


def _under(policy: ast.expr | None) -> AllowedFunction:
    """The function under a policy, which says which parameters are paths."""
    if policy is None or (isinstance(policy, ast.Constant) and policy.value is None):
        return AllowedFunction()
    function = policy.func if isinstance(policy, ast.Call) else policy
    arguments = _arguments(policy) if isinstance(policy, ast.Call) else {}
    match last_name(function):
        case 'PosAllowPolicy' if arguments is not None:
            way: str | int = arguments.get('kw', arguments.get(1)) or arguments.get('pos', arguments.get(0, 0))
            return AllowedFunction(write={way: None})
        case 'OpenWritePolicy':
            return AllowedFunction(write={0: None}, mode='mode')
        case 'PathWritePolicy' if arguments is not None:
            target = arguments.get('target_kw', arguments.get(1))
            target = arguments.get('target_pos', arguments.get(0)) if target is None else target
            return AllowedFunction(write={INSTANCE: None} if target is None else {INSTANCE: None, target: None})
        case 'PathPolicy' if arguments is not None:
            return _with_paths(arguments)
        case _:
            return AllowedFunction(unknown_policy=ast.unparse(policy))


def _arguments(call: ast.Call) -> dict[str | int, Any] | None:
    """The arguments of a call, by position and by name; `None` if they are not all literals."""
    given: dict[str | int, ast.expr] = dict(enumerate(call.args))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    try:
        return {key: ast.literal_eval(value) for key, value in given.items()}
    except (ValueError, TypeError):
        return None
