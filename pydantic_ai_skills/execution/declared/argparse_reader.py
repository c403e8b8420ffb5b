"""Reads what a script declares with argparse, by following its parsers from statement to statement."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from .parameters import Declaration, Parameter
from .python_source import Constants, called, keyword, keyword_text, keyword_value, literal, text_of

MAX_STEPS = 20_000
"""How many expressions are followed before the reading is given up as incomplete."""

MAX_ROUNDS = 50
"""How many items of a literal list a loop is followed for."""

_SWITCHES = frozenset({'store_true', 'store_const', 'append_const', 'count', 'help', 'version'})
_COUNTS: dict[Any, tuple[int, int | None]] = {'?': (0, 1), '*': (0, None), '+': (1, None), '...': (0, None)}
_REMAINDER = frozenset({'REMAINDER', 'ZERO_OR_MORE', 'PARSER'})

_PLAIN_TYPES = frozenset({'bool', 'float', 'int', 'str', 'Path', 'json', 'open'})

Scope = Mapping[str, Any]


@dataclass(eq=False)
class Parser:
    """A parser of the script, as far as it was followed."""

    about: str = ''
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    commands: dict[str, Parser] = field(default_factory=dict[str, 'Parser'])
    command_key: str = 'command'
    needs_command: bool = False
    complete: bool = True
    parses: bool = False
    """Whether it parses the command line."""

    is_part: bool = False
    """Whether it is a part of another parser."""

    def declaration(self) -> Declaration:
        """What it declares, and its sub-commands with it."""
        return Declaration(
            about=self.about,
            parameters=tuple(self.parameters),
            commands={name: command.declaration() for name, command in self.commands.items()},
            command_key=self.command_key,
            needs_command=self.needs_command,
            complete=self.complete,
        )


@dataclass(eq=False)
class _Group:
    """A group of a parser of which at most one parameter is given."""

    parser: Parser


@dataclass(eq=False)
class _Commands:
    """The sub-commands of a parser."""

    parser: Parser


class ArgparseReader:
    """Follows the parsers of a script through assignments, loops over literals and calls of its own functions."""

    def __init__(self, tree: ast.Module, constants: Constants) -> None:
        self._constants = constants
        self._functions = {
            node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        self._parsers: list[Parser] = []
        self._stray = Parser(complete=False)
        self._attributes: dict[str, Any] = {}
        self._called: dict[str, Any] = {}
        self._active: set[str] = set()
        self._steps = MAX_STEPS
        self._branches = 0
        self._block(tree.body, {})
        for name in self._functions:
            if name not in self._called:
                self._call_own(name, [], {})

    def declaration(self) -> Declaration | None:
        """What the script declares; `None` if it has no parser."""
        whole = [parser for parser in self._parsers if not parser.is_part]
        roots = [parser for parser in whole if parser.parses] or whole
        if self._stray.parameters:
            roots.append(self._stray)
        if len(roots) == 1 and self._steps > 0:
            return roots[0].declaration()
        if not roots:
            return None
        every = Declaration(
            about=next((root.about for root in roots if root.about), ''),
            parameters=tuple(parameter for root in roots for parameter in root.parameters),
            commands={name: each.declaration() for root in roots for name, each in root.commands.items()},
        )
        return every.without_requirements()

    # --- Statements -----------------------------------------------------------------------------------------------

    def _block(self, body: Iterable[ast.stmt], scope: dict[str, Any]) -> Any:
        """Follow statements; return the value of the first `return` among them."""
        returned: Any = None
        for statement in body:
            value = self._statement(statement, scope)
            returned = value if returned is None else returned
        return returned

    def _statement(self, statement: ast.stmt, scope: dict[str, Any]) -> Any:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return None
            case ast.Assign(targets=targets, value=value):
                found = self._value(value, scope) or literal(value, self._names(scope))
                for target in targets:
                    self._assign(target, found, scope)
            case ast.For(target=target, iter=items, body=body):
                for item in self._items(items, scope):
                    self._assign(target, item, scope)
                    self._block(body, scope)
            case ast.Return(value=ast.expr() as value):
                return self._value(value, scope)
            case ast.If():
                return self._branch(statement, scope)
            case _:
                return self._other(statement, scope)
        return None

    def _branch(self, statement: ast.If, scope: dict[str, Any]) -> Any:
        self._value(statement.test, scope)
        only_sometimes = '__name__' not in {getattr(node, 'id', '') for node in ast.walk(statement.test)}
        self._branches += only_sometimes
        returned = [self._block(body, scope) for body in (statement.body, statement.orelse)]
        self._branches -= only_sometimes
        return returned[0] or returned[1]

    def _other(self, statement: ast.stmt, scope: dict[str, Any]) -> Any:
        """Follow the expressions of any other statement, then its blocks."""
        returned: Any = None
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self._value(child, scope)
            elif isinstance(child, ast.stmt):
                returned = self._statement(child, scope) or returned
        return returned

    def _items(self, node: ast.expr, scope: Scope) -> list[Any]:
        """The items of a loop; one unknown item if they cannot be read."""
        if isinstance(node, ast.Tuple | ast.List):
            found = [self._value(item, scope) or literal(item, self._names(scope)) for item in node.elts]
        else:
            self._value(node, scope)
            value = literal(node, self._names(scope))
            found = list(cast('list[Any]', value)) if isinstance(value, list | tuple | dict) else [None]
        return found[:MAX_ROUNDS]

    def _assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, ast.Attribute):
            self._attributes[target.attr] = value

    # --- Expressions ----------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        """The parser, group or list of sub-commands that an expression gives, if it gives one."""
        self._steps -= 1
        if self._steps <= 0:
            return None
        if isinstance(node, ast.Name):
            return scope.get(node.id)
        if isinstance(node, ast.Attribute):
            self._value(node.value, scope)
            return self._attributes.get(node.attr)
        if isinstance(node, ast.Call):
            return self._call(node, scope)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child, scope)
        return None

    def _call(self, call: ast.Call, scope: Scope) -> Any:
        name = called(call) or ''
        if name.endswith('ArgumentParser'):
            return self._new_parser(call, scope)
        owner = self._value(call.func.value, scope) if isinstance(call.func, ast.Attribute) else None
        if isinstance(owner, _Commands) and name == 'add_parser':
            return self._add_command(owner.parser, call, scope)
        if isinstance(owner, Parser | _Group):
            return self._method(owner, name, call, scope)
        if name == 'add_argument':
            self._add(self._stray, call, scope, sometimes=True)
            return None
        values = [self._value(argument, scope) for argument in call.args]
        named = {item.arg or '': self._value(item.value, scope) for item in call.keywords}
        if name in self._functions:
            return self._call_own(name, values, named)
        for value in (*values, *named.values()):
            if isinstance(value, Parser | _Group):  # handed to a function that is not in the script
                _parser_of(value).complete = False
        return None

    def _call_own(self, name: str, values: list[Any], named: dict[str, Any]) -> Any:
        """Follow a call of a function of the script: every call that passes a parser, otherwise only the first."""
        gives_parser = any(isinstance(value, Parser | _Group | _Commands) for value in (*values, *named.values()))
        if name in self._active or (name in self._called and not gives_parser):
            return self._called.get(name)
        function = self._functions[name]
        parameters = [each.arg for each in function.args.args if each.arg not in ('self', 'cls')]
        self._active.add(name)
        self._called[name] = None
        scope = {**dict(zip(parameters, values, strict=False)), **named}
        self._called[name] = returned = self._block(function.body, scope)
        self._active.discard(name)
        return returned

    def _new_parser(self, call: ast.Call, scope: Scope) -> Parser:
        parser = Parser(about=keyword_text(call, 'description', self._names(scope)))
        parents = keyword(call, 'parents')
        for node in parents.elts if isinstance(parents, ast.List | ast.Tuple) else [parents] if parents else []:
            parent = self._value(node, scope)
            if isinstance(parent, Parser):
                parent.is_part = True
                parser.parameters += parent.parameters
                parser.complete &= parent.complete
            else:
                parser.complete = False
        parser.complete &= keyword(call, 'prefix_chars') is None
        self._parsers.append(parser)
        return parser

    def _add_command(self, parser: Parser, call: ast.Call, scope: Scope) -> Parser:
        command = self._new_parser(call, scope)
        command.is_part = True
        command.about = command.about or keyword_text(call, 'help', self._names(scope))
        name = text_of(call.args[0], self._names(scope)) if call.args else None
        if name is None:
            parser.complete = False
        else:
            aliases = keyword_value(call, 'aliases', self._constants) or ()
            parser.commands |= {each: command for each in (name, *aliases) if isinstance(each, str)}
        return command

    def _method(self, owner: Parser | _Group, name: str, call: ast.Call, scope: Scope) -> Any:
        parser = _parser_of(owner)
        match name:
            case 'add_argument':
                self._add(parser, call, scope, sometimes=isinstance(owner, _Group) or self._branches > 0)
            case 'add_subparsers':
                parser.command_key = keyword_text(call, 'dest', self._constants) or parser.command_key
                parser.needs_command = keyword_value(call, 'required', self._constants) is True
                return _Commands(parser)
            case 'add_argument_group':
                return owner
            case 'add_mutually_exclusive_group':
                return _Group(parser)
            case 'parse_args' | 'parse_known_args' | 'parse_intermixed_args' | 'parse_known_intermixed_args':
                parser.parses = True
                parser.complete &= 'known' not in name
            case _:
                pass
        return None

    def _names(self, scope: Scope) -> Constants:
        return ChainMap(cast('dict[str, Any]', scope), cast('dict[str, Any]', self._constants))

    def _add(self, parser: Parser, call: ast.Call, scope: Scope, *, sometimes: bool) -> None:
        names = [text_of(node, self._names(scope)) for node in call.args]
        if not names or None in names:
            parser.complete = False
            return
        parser.parameters.append(_parameter(cast('list[str]', names), call, self._names(scope), sometimes=sometimes))


def _parser_of(owner: Parser | _Group) -> Parser:
    return owner.parser if isinstance(owner, _Group) else owner


def _parameter(names: list[str], call: ast.Call, constants: Constants, *, sometimes: bool) -> Parameter:
    flags = tuple(name for name in names if name.startswith('-'))
    longest_first = sorted(flags, key=lambda flag: not flag.startswith('--'))
    name = keyword_text(call, 'dest', constants) or (longest_first[0].lstrip('-') if flags else names[0])
    action = keyword(call, 'action')
    kind = literal(action, constants) or called(action) if action is not None else None
    least, most = (0, 0) if kind in _SWITCHES or kind in ('store_false', 'BooleanOptionalAction') else _count(call)
    is_required = least > 0 if not flags else keyword_value(call, 'required', constants) is True
    off: tuple[str, ...] = ()
    if kind == 'store_false':
        flags, off = (), flags
    elif kind == 'BooleanOptionalAction':
        off = tuple(f'--no-{flag[2:]}' for flag in flags if flag.startswith('--'))
    choices, reader = keyword_value(call, 'choices', constants), keyword(call, 'type')
    return Parameter(
        name=name.replace('-', '_'),
        flags=flags,
        off=off,
        least=least,
        most=most,
        takes_rest=called(keyword(call, 'nargs')) == 'REMAINDER',
        reads_words=isinstance(reader, ast.Lambda) or (isinstance(reader, ast.Name) and reader.id not in _PLAIN_TYPES),
        repeats=kind in ('append', 'append_const', 'count'),
        choices=tuple(map(str, cast('list[Any]', choices))) if isinstance(choices, list | tuple | set | dict) else (),
        required=is_required and not sometimes,
        help=keyword_text(call, 'help', constants),
    )


def _count(call: ast.Call) -> tuple[int, int | None]:
    node = keyword(call, 'nargs')
    if node is None:
        return 1, 1
    if called(node) in _REMAINDER:
        return 0, None
    value = literal(node, {})
    return (value, value) if isinstance(value, int) and value > 0 else _COUNTS.get(value, (0, None))
