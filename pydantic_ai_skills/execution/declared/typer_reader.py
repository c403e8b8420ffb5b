"""Reads what a script declares with typer: the signatures of its commands."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from .parameters import Declaration, Parameter
from .python_source import Constants, called, keyword, keyword_text, receiver, text_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
Enums = Mapping[str, tuple[str, ...]]
"""The values of each enumeration of a script."""

_LISTS = frozenset({'list', 'List', 'Sequence', 'set', 'Set'})
_CONTEXTS = frozenset({'Context', 'CallbackParam'})


def read_typer(tree: ast.Module, constants: Constants) -> Declaration | None:
    """What a script declares with typer; `None` if it declares nothing with it."""
    functions = {node.name: node for node in tree.body if isinstance(node, Function)}
    enums = {node.name: _enum_values(node) for node in tree.body if isinstance(node, ast.ClassDef)}
    commands = {name: _command(function, constants, enums) for name, function in functions.items()}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if called(call) == 'run' and receiver(call) == 'typer' and call.args:
            return commands.get(called(call.args[0]) or '')
    apps = dict.fromkeys(_apps(tree), '')
    if not apps:
        return None
    inner = {app: owner for app, (owner, _) in _added(tree, constants).items() if owner in apps}
    root = next((app for app in apps if app not in inner), next(iter(apps)))
    return _app(root, tree, commands, constants, frozenset())


def _apps(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if called(call) == 'Typer':
                yield name
            case _:
                pass


def _added(tree: ast.Module, constants: Constants) -> dict[str, tuple[str, str]]:
    """The apps that are added to another app: for each, that other app and the name of the sub-command."""
    found: dict[str, tuple[str, str]] = {}
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Call(args=[ast.Name(id=app), *_]) as call) if called(call) == 'add_typer':
                found[app] = (receiver(call) or '', keyword_text(call, 'name', constants) or app)
            case _:
                pass
    return found


def _app(
    app: str, tree: ast.Module, commands: Mapping[str, Declaration], constants: Constants, above: frozenset[str]
) -> Declaration:
    """An app with its commands. An app with one command and no callback is that command."""
    found: dict[str, Declaration] = {}
    own: Declaration | None = None
    for node in tree.body:
        for decorator in node.decorator_list if isinstance(node, Function) else ():
            if receiver(decorator) != app or not isinstance(node, Function):
                continue
            if called(decorator) == 'callback':
                own = commands[node.name]
            elif called(decorator) == 'command':
                found[_name(decorator, node.name, constants)] = commands[node.name]
    for inner, (owner, name) in _added(tree, constants).items():
        if owner == app and inner not in above:
            found[name] = _app(inner, tree, commands, constants, above | {app})
    if len(found) == 1 and own is None and not above:
        return next(iter(found.values()))
    own = own or Declaration(complete=True)
    return replace(own, commands=found, needs_command=bool(found), complete=own.complete and bool(found))


def _name(decorator: ast.expr, function: str, constants: Constants) -> str:
    given = ''
    if isinstance(decorator, ast.Call):
        given = (text_of(decorator.args[0], constants) if decorator.args else None) or ''
        given = given or keyword_text(decorator, 'name', constants)
    return given or function.lower().replace('_', '-')


def _command(function: Function, constants: Constants, enums: Enums) -> Declaration:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(every) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(every, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    parameters = [_parameter(argument, default, constants, enums) for argument, default in pairs]
    return Declaration(
        about=ast.get_docstring(function) or '',
        parameters=tuple(parameter for parameter in parameters if parameter is not None),
        complete=not (arguments.vararg or arguments.kwarg),
    )


def _parameter(argument: ast.arg, default: ast.expr | None, constants: Constants, enums: Enums) -> Parameter | None:
    kind, marks = _annotation(argument.annotation)
    if called(kind) in _CONTEXTS if kind is not None else False:
        return None
    mark = next((mark for mark in marks if called(mark) in ('Option', 'Argument')), None)
    if mark is None and isinstance(default, ast.Call) and called(default) in ('Option', 'Argument'):
        mark = default
        default = mark.args[0] if mark.args else keyword(mark, 'default')
        names = mark.args[1:]
    else:
        names = mark.args if mark else []
    is_required = default is None or (isinstance(default, ast.Constant) and default.value is ...)
    is_option = called(mark) == 'Option' if mark is not None else default is not None
    words = [word for node in names if (word := text_of(node, constants))]
    described = Parameter(
        name=argument.arg,
        required=is_required,
        help=keyword_text(mark, 'help', constants) if mark else '',
        choices=_choices(kind, enums),
    )
    is_list = kind is not None and _is_list(kind)
    if not is_option:
        return replace(described, least=int(is_required), most=None if is_list else 1)
    return _option(described, words, is_switch=called(kind) == 'bool' if kind else False, is_list=is_list)


def _option(described: Parameter, words: list[str], *, is_switch: bool, is_list: bool) -> Parameter:
    hyphened = described.name.replace('_', '-')
    declared = [word for word in words if word.startswith('-')]
    pairs = [word.partition('/') for word in declared or [f'--{hyphened}']]
    flags = tuple(on.strip() for on, _, _ in pairs if on.strip())
    if not is_switch:
        return replace(described, flags=flags, repeats=is_list)
    off = tuple(off.strip() for _, _, off in pairs if off) if declared else (f'--no-{hyphened}',)
    return replace(described, flags=flags, off=off, least=0, most=0)


def _annotation(node: ast.expr | None) -> tuple[ast.expr | None, list[ast.Call]]:
    """The type of a parameter and what `Annotated` adds to it, without `| None`."""
    marks: list[ast.Call] = []
    if isinstance(node, ast.Subscript) and called(node.value) == 'Annotated' and isinstance(node.slice, ast.Tuple):
        node, *added = node.slice.elts
        marks = [mark for mark in added if isinstance(mark, ast.Call)]
    if isinstance(node, ast.Subscript) and called(node.value) == 'Optional':
        node = node.slice
    if isinstance(node, ast.BinOp):
        node = node.right if isinstance(node.left, ast.Constant) else node.left
    return node, marks


def _is_list(kind: ast.expr) -> bool:
    return isinstance(kind, ast.Subscript) and called(kind.value) in _LISTS


def _choices(kind: ast.expr | None, enums: Enums) -> tuple[str, ...]:
    if isinstance(kind, ast.Subscript) and called(kind.value) == 'Literal':
        items = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        return tuple(str(item.value) for item in items if isinstance(item, ast.Constant))
    return enums.get(called(kind) or '', ()) if kind is not None else ()


def _enum_values(node: ast.ClassDef) -> tuple[str, ...]:
    if not any((called(base) or '').endswith('Enum') for base in node.bases):
        return ()
    values = [item.value for item in node.body if isinstance(item, ast.Assign)]
    return tuple(str(value.value) for value in values if isinstance(value, ast.Constant))
