"""Which functions a module lets agents call, and which of their parameters are paths, as its source declares.

Two ways to declare it are read, and nothing is run for either. A name that only agents look at:

    __skill_scripts__ = {'mean': {}, 'save': {'write': ['target']}}

and the calls of `allow` that modules of the `pyskills` convention make:

    allow(mean, {save: PosAllowPolicy(0, 'target')})
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from .source import ModuleSource

__all__ = ('AllowedFunction', 'Declarations', 'read_declarations')

DECLARATION = '__skill_scripts__'
"""The name of a module's declaration: a list of functions, or for each function its paths."""


Paths = Mapping[str | int, tuple[str, ...] | None]
"""Parameters that are paths, by name or position, with their folders; `None`: the folders that the developer gives."""


@dataclass(frozen=True, kw_only=True)
class AllowedFunction:
    """A function that agents may call."""

    read: Paths = field(default_factory=dict[str | int, tuple[str, ...] | None])
    """Parameters that are read from."""

    write: Paths = field(default_factory=dict[str | int, tuple[str, ...] | None])
    """Parameters that are written to."""

    unknown_policy: str | None = None
    """A policy that is not known here, so that the function cannot be called."""


@dataclass(kw_only=True)
class Declarations:
    """What a module declares."""

    is_declared: bool = False
    """Whether it declares anything; if so, only what is declared can be called."""

    functions: dict[str, AllowedFunction] = field(default_factory=dict[str, AllowedFunction])
    """The functions it allows."""

    def get(self, name: str) -> AllowedFunction | None:
        """How a public function may be called; `None` if it may not."""
        return self.functions.get(name) if self.is_declared else AllowedFunction()


def read_declarations(source: ModuleSource) -> Declarations:
    """Read what the source of a module declares."""
    found = Declarations()
    for node in _statements(source.tree.body):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) else None
        if isinstance(node, ast.Assign | ast.AnnAssign) and _assigns(node, DECLARATION):
            found.is_declared = True
            found.functions.update(_declared(value))
        elif isinstance(value, ast.Call) and _is_allow(value.func, source):
            found.is_declared = True
            found.functions.update(_allowed(value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if _is_allow(decorator, source):
                    found.is_declared = True
                    found.functions[node.name] = AllowedFunction()
    return found


def _statements(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a module, with those in `if`, `try` and `with`: what is declared there counts as well."""
    for node in nodes:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            yield from _statements(ast.iter_child_nodes(node))


def _is_allow(node: ast.expr, source: ModuleSource) -> bool:
    name = _last_name(node)
    return name is not None and source.imports.get(name, name).rpartition('.')[2] == 'allow'


def _assigns(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _declared(node: ast.expr | None) -> Iterator[tuple[str, AllowedFunction]]:
    try:
        value: Any = ast.literal_eval(node) if node else None
    except (ValueError, TypeError):
        return
    if isinstance(value, dict):
        for name, paths in cast('dict[Any, Any]', value).items():
            yield str(name), _with_paths(paths)
    elif isinstance(value, list | tuple | set):
        for name in cast('Sequence[Any]', value):
            yield str(name), AllowedFunction()


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


def _last_name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _allowed(call: ast.Call) -> Iterator[tuple[str, AllowedFunction]]:
    policy = next((keyword.value for keyword in call.keywords if keyword.arg == 'allow_policy'), None)
    for item in _flat(call.args):
        if isinstance(item, ast.Name):
            yield item.id, _under(policy)
        elif isinstance(item, ast.Dict):
            for key, value in zip(item.keys, item.values, strict=True):
                # Methods of a class are named in a list, or all of them by `...`: they are not called by agents here.
                if isinstance(key, ast.Name) and not isinstance(value, ast.List | ast.Tuple | ast.Set | ast.Constant):
                    yield key.id, _under(value)


def _flat(nodes: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.List | ast.Tuple | ast.Set):
            yield from node.value.elts
        else:
            yield node


def _under(policy: ast.expr | None) -> AllowedFunction:
    """What a policy says about a function: which of its parameters are paths."""
    if policy is None or (isinstance(policy, ast.Constant) and policy.value is None):
        return AllowedFunction()
    function = policy.func if isinstance(policy, ast.Call) else policy
    arguments = _arguments(policy) if isinstance(policy, ast.Call) else {}
    match _last_name(function):
        case 'PosAllowPolicy' if arguments is not None:
            way: str | int = arguments.get('kw', arguments.get(1)) or arguments.get('pos', arguments.get(0, 0))
            return AllowedFunction(write={way: None})
        case 'OpenWritePolicy':
            return AllowedFunction(write={0: None})
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
