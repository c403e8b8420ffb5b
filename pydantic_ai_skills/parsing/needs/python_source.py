"""Finds imports, programs and keys in the source of a Python script. Nothing is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from .found import MAX_NAME, Found, key
from .programs import PROGRAMS

_STARTS = frozenset(
    (
        *('run', 'Popen', 'call', 'check_call', 'check_output', 'getoutput', 'system', 'popen', 'which'),
        *('create_subprocess_exec', 'create_subprocess_shell'),
    )
)
_IMPORT_ERRORS = frozenset({'ImportError', 'ModuleNotFoundError', 'Exception', 'BaseException'})
_ENDS = frozenset({'exit', '_exit', 'quit', 'fail', 'abort', 'die'})
# An unknown escape such as '\d' would make the parser warn about somebody else's code.
_UNKNOWN_ESCAPE = re.compile(r'\\(?:[\nabfnrtvxuUN0-7\\\'"]|(.))')


class _Step(NamedTuple):
    """A node to look at, and whether the script can do without what it imports there."""

    node: ast.AST
    optional: bool


def python_needs(text: str) -> Iterator[Found]:
    """The modules, programs and keys that a script needs; none if it is not valid Python."""
    try:
        tree = ast.parse(_UNKNOWN_ESCAPE.sub(lambda match: f'\\\\{match[1]}' if match[1] else match[0], text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    demanded = frozenset(_demanded(tree))
    steps = [_Step(tree, optional=False)]
    while steps:
        step = steps.pop()
        yield from _of_node(step, demanded)
        steps += _inside(step)


def _demanded(tree: ast.AST) -> Iterator[str]:
    """The variables without which a script does not go on: `NAME` in `not os.getenv('NAME')`, directly or assigned."""
    assigned: dict[str, str] = {}
    tested: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (variable := _looked_up(node.value)):
            assigned |= {target.id: variable for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            tested.append(node.operand)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is):
            tested.append(node.left)
    for expression in tested:
        if variable := _looked_up(expression) or assigned.get(getattr(expression, 'id', '')):
            yield variable


def _looked_up(node: ast.expr) -> str | None:
    """The variable that `os.environ.get(…)` or `os.getenv(…)` looks up."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    is_get = _called(node) == 'get' and isinstance(node.func, ast.Attribute) and _is_environ(node.func.value)
    name = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
    return name if isinstance(name, str) and (is_get or _called(node) == 'getenv') else None


def _inside(step: _Step) -> list[_Step]:
    """The nodes in a node; those of a `try` that survives an `ImportError` are optional."""
    node, optional = step
    if isinstance(node, ast.If) and 'TYPE_CHECKING' in (getattr(node.test, 'id', ''), getattr(node.test, 'attr', '')):
        return [_Step(child, optional) for child in node.orelse]
    if isinstance(node, ast.Try) and any(_survives(handler) for handler in node.handlers):
        rest = (*node.handlers, *node.orelse, *node.finalbody)
        return [_Step(child, optional=True) for child in node.body] + [_Step(child, optional=True) for child in rest]
    return [_Step(child, optional) for child in ast.iter_child_nodes(node)]


def _survives(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches a failed import and goes on."""
    caught = {
        getattr(node, 'id', getattr(node, 'attr', '')) for node in ast.walk(handler.type or ast.Name('Exception'))
    }
    if not caught & _IMPORT_ERRORS:
        return False
    return not any(isinstance(node, ast.Raise) or _called(node) in _ENDS for node in ast.walk(handler))


def _of_node(step: _Step, demanded: frozenset[str]) -> Iterator[Found]:
    node, optional = step
    if isinstance(node, ast.Import):
        yield from (Found('module', alias.name, optional) for alias in node.names if len(alias.name) <= MAX_NAME)
    elif isinstance(node, ast.ImportFrom):
        if node.module and not node.level and len(node.module) <= MAX_NAME:
            # `from google import genai` names a module too.
            yield Found('module', f'{node.module}.{node.names[0].name}', optional)
    elif isinstance(node, ast.Call):
        yield from _of_call(node, demanded, optional=optional)
    elif isinstance(node, ast.Subscript) and _is_environ(node.value) and isinstance(node.ctx, ast.Load):
        name = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(name, str) and (found := key(name, optional=optional, certain=True)):
            yield found


def _of_call(call: ast.Call, demanded: frozenset[str], *, optional: bool) -> Iterator[Found]:
    name, first = _called(call), call.args[0] if call.args else None
    if first is None:
        return
    if name in _STARTS:
        if isinstance(first, ast.List | ast.Tuple) and first.elts:
            first = first.elts[0]
        words = first.value.split(None, 1) if isinstance(first, ast.Constant) and isinstance(first.value, str) else []
        if words and words[0] in PROGRAMS:
            yield Found('program', words[0], optional)
    elif variable := _looked_up(call):
        has_default = len(call.args) + len(call.keywords) > 1
        if found := key(variable, optional=optional or has_default or variable not in demanded):
            yield found


def _is_environ(node: ast.expr) -> bool:
    return 'environ' in (getattr(node, 'id', ''), getattr(node, 'attr', ''))


def _called(node: ast.AST) -> str | None:
    """The last part of what is called: `run` in `subprocess.run(…)`."""
    if not isinstance(node, ast.Call):
        return None
    return getattr(node.func, 'attr', None) or getattr(node.func, 'id', None)
