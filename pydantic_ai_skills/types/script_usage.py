"""How a script is used, read from its text. Nothing is run and nothing is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ('describe_usage', 'read_usage')

MAX_SOURCE_BYTES = 64 * 1024
"""How much of a script is looked at. It also keeps what the parser needs within bounds."""

MAX_USAGE_CHARS = 1_500
"""How long the text for the model may be."""

MAX_TEXT_CHARS = 800
"""How much of a docstring or comment is shown."""

MAX_HELP_CHARS = 160
"""How much of the help for one argument is shown."""

_DECLARING = {'add_argument', 'argument', 'option'}
"""Functions that declare an argument, of argparse and of click."""

_NOT_ESCAPE = re.compile(r'\\([^\n\r\\\'"abfnrtv0-3xNuU])|\\(.)', re.DOTALL)
_COMMENTS = {
    'line': re.compile(r'(?:[ \t]*(?:#|//)[^\n]*(?:\n|$))+'),
    'block': re.compile(r'\s*(?:/\*+|<#)(.*?)(?:\*/|#>)', re.DOTALL),
}


def read_usage(path: Path) -> str | None:
    """How to use the script in a file, or `None` if its text does not tell."""
    try:
        with path.open('rb') as file:
            source = file.read(MAX_SOURCE_BYTES + 1)
    except OSError:
        return None
    return describe_usage(path.name, source)


def describe_usage(name: str, source: bytes) -> str | None:
    """How to use a script with this file name and text, or `None` if it does not tell.

    For Python: the docstring, and the arguments declared with argparse or click. For others: the comment at the top.
    """
    text = source[:MAX_SOURCE_BYTES].decode('utf-8', 'replace').removeprefix('\ufeff').replace('\r\n', '\n')
    first_line, _, rest = text.partition('\n')
    shebang = first_line.startswith('#!')
    if PurePosixPath(name).suffix == '.py' or (shebang and 'python' in first_line):
        # A script that was cut does not parse; its docstring can still be had.
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
    docstring = ast.get_docstring(tree)
    parts = [
        _shortened(docstring, MAX_TEXT_CHARS) if docstring else _description(calls),
        _usage_line(name, tree) if 'usage:' not in (docstring or '').lower() else None,
        _declared(calls),
    ]
    return '\n'.join(part for part in parts if part) or None


def _description(calls: list[ast.Call]) -> str | None:
    for call in calls:
        if _called(call) == 'ArgumentParser' and (text := _keyword(call, 'description')):
            return _shortened(text, MAX_TEXT_CHARS)
    return None


def _usage_line(name: str, tree: ast.Module) -> str | None:
    """A text that begins with "Usage:", which scripts without a parser print when they are called wrongly."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            text = _text(node, name)
            if text and text.strip().lower().startswith('usage:'):
                return _shortened(text.strip(), MAX_TEXT_CHARS)
    return None


def _declared(calls: list[ast.Call]) -> str | None:
    lines = [line for call in calls if _called(call) in _DECLARING and (line := _argument(call))]
    return '\n'.join(['Arguments:', *lines]) if lines else None


def _argument(call: ast.Call) -> str | None:
    names = [text for node in call.args if (text := _text(node))]
    if not names:
        return None
    details: list[str] = []
    if isinstance(choices := _keyword_node(call, 'choices'), ast.List | ast.Tuple):
        details.append('|'.join(text for item in choices.elts if (text := _text(item))))
    if isinstance(required := _keyword_node(call, 'required'), ast.Constant) and required.value is True:
        details.append('required')
    if (action := _keyword(call, 'action')) and action.startswith('store_'):
        details.append('flag')
    shown = ', '.join(names) + (f' ({", ".join(details)})' if details else '')
    described = _keyword(call, 'help')
    return f'  {shown}: {_shortened(" ".join(described.split()), MAX_HELP_CHARS)}' if described else f'  {shown}'


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
            yield name if 'argv' in ast.dump(piece) else '…'


def _comment(text: str) -> str | None:
    """The comment at the top of a script in any other language."""
    if block := _COMMENTS['block'].match(text):
        lines = [re.sub(r'^\s*\* ?', '', line) for line in block[1].splitlines()]
    elif comment := _COMMENTS['line'].match(text.lstrip('\n')):
        lines = [re.sub(r'^\s*(?:#+|//+) ?', '', line) for line in comment[0].splitlines()]
    else:
        return None
    return _shortened('\n'.join(line.rstrip() for line in lines).strip(), MAX_TEXT_CHARS) or None


def _shortened(text: str, limit: int) -> str:
    text = text.strip()
    return text if len(text) <= limit else f'{text[: limit - 1].rstrip()}…'
