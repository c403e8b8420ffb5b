"""Finds out from the text of a script how to use it. Nothing is run or imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import PurePosixPath
from typing import cast

MAX_SOURCE_BYTES = 64 * 1024
"""How much of a script is examined, which also limits the memory of the parser."""

MAX_USAGE_CHARS = 1_500
"""How long the text for the model may be."""

MAX_TEXT_CHARS = 800
"""How much of a docstring or comment is shown."""

MAX_HELP_CHARS = 160
"""How much of the help for one argument is shown."""

_DECLARING = {'add_argument', 'argument', 'option'}
"""Functions that declare an argument, of argparse and of click."""

_NOT_ESCAPE = re.compile(r'\\([^\n\r\\\'"abfnrtv0-3xNuU])|\\(.)', re.DOTALL)
_BLOCKS = {'/*': '*/', '<#': '#>'}
"""How a comment of several lines begins and ends."""


def describe_usage(name: str, source: bytes) -> str | None:
    """How to use a script with this file name and text; `None` if the text does not say.

    For Python: the docstring, and the arguments declared with argparse or click. For others: the comment at the top.
    """
    text = source[:MAX_SOURCE_BYTES].decode('utf-8', 'replace').removeprefix('\ufeff').replace('\r\n', '\n')
    first_line, _, rest = text.partition('\n')
    shebang = first_line.startswith('#!')
    if PurePosixPath(name).suffix == '.py' or (shebang and 'python' in first_line):
        # A script that was cut does not parse.
        usage = _python_usage(name, text) if len(source) <= MAX_SOURCE_BYTES else None
    else:
        usage = _comment(rest if shebang else text)
    return _shortened(usage, MAX_USAGE_CHARS) if usage else None


def _python_usage(name: str, text: str) -> str | None:
    try:
        # An unknown escape such as '\d' would make the parser warn about somebody else's code.
        tree = ast.parse(_NOT_ESCAPE.sub(lambda match: f'\\\\{match[1]}' if match[1] else match[0], text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    about = ast.get_docstring(tree) or _description(calls) or ''
    usage = _usage_line(name, tree) if 'usage:' not in about.lower() else None
    parts = (_shortened(about, MAX_TEXT_CHARS), usage, _declared(calls))
    return '\n'.join(filter(None, parts)) or None


def _description(calls: list[ast.Call]) -> str | None:
    descriptions = (_keyword(call, 'description') for call in calls if _called(call) == 'ArgumentParser')
    return next(filter(None, descriptions), None)


def _usage_line(name: str, tree: ast.Module) -> str | None:
    """A text that begins with "Usage:", which scripts without a parser print when they are called wrongly."""
    for node in ast.walk(tree):
        # Only the beginning of a long text with much to fill in is needed to tell.
        begins = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        if isinstance(begins, ast.Constant) and str(begins.value).lstrip().lower().startswith('usage:'):
            return _shortened((_text(cast(ast.expr, node), name) or '').strip(), MAX_TEXT_CHARS)
    return None


def _declared(calls: list[ast.Call]) -> str | None:
    lines = [line for call in calls if _called(call) in _DECLARING and (line := _argument(call))]
    return '\n'.join(['Arguments:', *lines]) if lines else None


def _argument(call: ast.Call) -> str | None:
    names = ', '.join(text for node in call.args if (text := _text(node)))
    if not names:
        return None
    details = ', '.join(_details(call))
    shown = f'  {names} ({details})' if details else f'  {names}'
    described = _keyword(call, 'help')
    return f'{shown}: {_shortened(" ".join(described.split()), MAX_HELP_CHARS)}' if described else shown


def _details(call: ast.Call) -> Iterator[str]:
    if isinstance(choices := _keyword_node(call, 'choices'), ast.List | ast.Tuple):
        yield '|'.join(text for item in choices.elts if (text := _text(item)))
    if isinstance(required := _keyword_node(call, 'required'), ast.Constant) and required.value is True:
        yield 'required'
    if (action := _keyword(call, 'action')) and action.startswith('store_'):
        yield 'flag'


def _called(call: ast.Call) -> str | None:
    """The last part of what is called: `add_argument` in `parser.add_argument(…)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None


def _keyword_node(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _keyword(call: ast.Call, name: str) -> str | None:
    node = _keyword_node(call, name)
    return None if node is None else _text(node)


def _text(node: ast.expr, name: str = '…') -> str | None:
    """The text of a literal. What an f-string fills in is `name` if it is the program's, else an ellipsis."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return ''.join(_pieces(node, name))
    return None


def _pieces(node: ast.JoinedStr, name: str) -> Iterator[str]:
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            yield str(piece.value)
        else:
            yield name if any(_is_argv(node) for node in ast.walk(piece)) else '…'


def _is_argv(node: ast.AST) -> bool:
    return 'argv' in (getattr(node, 'attr', ''), getattr(node, 'id', ''))


def _comment(text: str) -> str | None:
    """The comment at the top of a script in any other language."""
    text = text.lstrip()
    end = _BLOCKS.get(text[:2])
    block, is_block, _ = text[2:].partition(end) if end else ('', '', '')
    if is_block:
        lines = [re.sub(r'^\s*\* ?', '', line) for line in block.lstrip('*').splitlines()]
    else:
        comment = takewhile(lambda line: line.lstrip(' \t').startswith(('#', '//')), text.split('\n'))
        lines = [re.sub(r'^\s*(?:#+|//+) ?', '', line) for line in comment]
    return _shortened('\n'.join(line.rstrip() for line in lines), MAX_TEXT_CHARS) or None


def _shortened(text: str, limit: int) -> str:
    text = text.strip()
    return text if len(text) <= limit else f'{text[: limit - 1].rstrip()}…'
