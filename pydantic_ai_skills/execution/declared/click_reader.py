"""Reads what a script declares with click: the decorators of its commands."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any, cast

from .parameters import Declaration, Parameter
from .python_source import Constants, called, keyword, keyword_text, keyword_value, literal, receiver, text_of

Function = ast.FunctionDef | ast.AsyncFunctionDef

_MAKERS = frozenset({'command', 'group'})
_HARMLESS = frozenset({'pass_context', 'pass_obj', 'version_option', 'help_option', 'wraps'})


def read_click(tree: ast.Module, constants: Constants) -> Declaration | None:
    """What a script declares with click; `None` if it declares nothing with it."""
    every = [node for node in tree.body if isinstance(node, Function)]
    functions = [function for function in every if _declares(function, {each.name for each in every})]
    commands = {function.name: _command(function, constants) for function in functions}
    inner = dict(_added(tree, commands))
    for function in functions:
        for decorator in function.decorator_list:
            owner = receiver(decorator)
            if called(decorator) in _MAKERS and owner in commands:
                inner[function.name] = (owner, _name(decorator, function.name, constants))
    roots = [name for name in commands if name not in inner]
    if not roots:
        return None
    root = roots[0]
    if len(roots) > 1:
        started = [called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        root = next((name for name in reversed(started) if name in roots), None) or root
    return _nested(root, commands, inner)


def _nested(root: str, commands: dict[str, Declaration], inner: dict[str, tuple[str, str]]) -> Declaration:
    """A command with its sub-commands; each function is used at most once."""
    command = commands.pop(root)
    below = [(name, shown) for name, (owner, shown) in inner.items() if owner == root and name in commands]
    nested = {shown: _nested(name, commands, inner) for name, shown in below if name in commands}
    return Declaration(
        about=command.about,
        parameters=command.parameters,
        commands=nested,
        needs_command=command.needs_command and bool(nested),
        complete=command.complete,
    )


def _declares(function: Function, functions: Collection[str]) -> bool:
    """Whether a function is a command: of click itself, of a group, or with options."""
    names = {called(decorator) for decorator in function.decorator_list}
    owners = {receiver(decorator) for decorator in function.decorator_list}
    return bool(names & _MAKERS) and bool(names & {'option', 'argument', 'group'} or owners & {'click', *functions})


def _added(tree: ast.Module, commands: dict[str, Declaration]) -> list[tuple[str, tuple[str, str]]]:
    """The commands that are added to a group by `group.add_command(command)`."""
    found: list[tuple[str, tuple[str, str]]] = []
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Call(args=[ast.Name(id=name), *rest]) as call) if name in commands:
                owner = receiver(call)
                if called(call) == 'add_command' and owner in commands:
                    shown = text_of(rest[0], {}) if rest else keyword_text(call, 'name', {})
                    found.append((name, (owner, shown or _hyphened(name))))
            case _:
                pass
    return found


def _hyphened(name: str) -> str:
    return name.replace('_', '-')


def _name(decorator: ast.expr, function: str, constants: Constants) -> str:
    """The name of a command: the one its decorator gives, or that of its function."""
    given = ''
    if isinstance(decorator, ast.Call):
        given = (text_of(decorator.args[0], constants) if decorator.args else None) or ''
        given = given or keyword_text(decorator, 'name', constants)
    return given or _hyphened(function.lower())


def _command(function: Function, constants: Constants) -> Declaration:
    parameters: list[Parameter] = []
    complete, needs_command = True, False
    for decorator in function.decorator_list:
        name = called(decorator)
        if name in _MAKERS:
            optional = isinstance(decorator, ast.Call) and (
                keyword_value(decorator, 'invoke_without_command', constants) is True
                or keyword(decorator, 'context_settings') is not None
            )
            needs_command = name == 'group' and not optional
            complete &= not (isinstance(decorator, ast.Call) and keyword(decorator, 'context_settings') is not None)
        elif name in ('option', 'argument') and isinstance(decorator, ast.Call):
            parameter = _parameter(decorator, name, constants)
            complete &= parameter is not None
            parameters += [parameter] if parameter else []
        else:
            complete &= name in _HARMLESS
    about = ast.get_docstring(function) or ''
    return Declaration(about=about, parameters=tuple(parameters), needs_command=needs_command, complete=complete)


def _parameter(call: ast.Call, kind: str, constants: Constants) -> Parameter | None:
    names = [text_of(node, constants) for node in call.args]
    if not names or None in names:
        return None
    words = cast('list[str]', names)
    flags, off = _flags([word for word in words if word.startswith('-')])
    plain = [word for word in words if not word.startswith('-')]
    name = plain[0] if plain else max(flags or off, key=lambda flag: flag.startswith('--')).lstrip('-')
    count = keyword_value(call, 'nargs', constants)
    is_required = keyword_value(call, 'required', constants)
    default = keyword(call, 'default')
    if kind == 'argument':
        is_required = (default is None and count != -1) if is_required is None else is_required
    least, most = _counts(call, count, constants, is_switch=bool(off))
    choices, ignores_case = _choices(keyword(call, 'type'), constants)
    return Parameter(
        name=name.replace('-', '_').lower(),
        flags=flags,
        off=off,
        least=least if is_required or kind == 'option' else 0,
        most=most,
        repeats=any(keyword_value(call, each, constants) is True for each in ('multiple', 'count')),
        choices=choices,
        ignores_case=ignores_case,
        required=is_required is True,
        help=keyword_text(call, 'help', constants),
    )


def _flags(words: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flags, and the flags after a slash, which switch the parameter off."""
    pairs = [word.partition('/') for word in words]
    return tuple(on.strip() for on, _, _ in pairs), tuple(off.strip() for _, _, off in pairs if off)


def _counts(call: ast.Call, count: Any, constants: Constants, *, is_switch: bool) -> tuple[int, int | None]:
    if is_switch or any(keyword_value(call, each, constants) is True for each in ('is_flag', 'count')):
        return 0, 0
    if count == -1:
        return 1, None
    return (count, count) if isinstance(count, int) and count > 0 else (1, 1)


def _choices(node: ast.expr | None, constants: Constants) -> tuple[tuple[str, ...], bool]:
    """The choices of `click.Choice([...])`, and whether letter case is ignored."""
    if not isinstance(node, ast.Call) or called(node) != 'Choice' or not node.args:
        return (), False
    values = literal(node.args[0], constants)
    choices = tuple(map(str, cast('list[Any]', values))) if isinstance(values, list | tuple) else ()
    return choices, keyword_value(node, 'case_sensitive', constants) is False
