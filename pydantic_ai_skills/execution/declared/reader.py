"""Reads how a script is called from its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from pathlib import PurePosixPath
from typing import cast

from .argparse_reader import ArgparseReader
from .click_reader import read_click
from .parameters import MAX_SOURCE_BYTES, Declaration
from .python_source import Constants, constants_of, parse_python, text_of
from .typer_reader import read_typer
from .usage_line import read_usage, usage_lines

_FLAG = re.compile(r'--?[A-Za-z][\w-]{0,60}=?$')
_BLOCKS = {'/*': '*/', '<#': '#>'}
"""How a comment of several lines begins and ends."""


def read_declaration(name: str, source: bytes) -> Declaration:
    """How to call a script with this file name and text.

    For Python: the docstring, and the parameters declared with argparse, click or typer, or shown by a usage line. For
    others: the comment at the top, and a usage line.
    """
    text = source[:MAX_SOURCE_BYTES].decode('utf-8', 'replace').removeprefix('\ufeff').replace('\r\n', '\n')
    first_line, _, rest = text.partition('\n')
    shebang = first_line.startswith('#!')
    if PurePosixPath(name).suffix == '.py' or (shebang and 'python' in first_line):
        # A script that was cut does not parse.
        tree = parse_python(text) if len(source) < MAX_SOURCE_BYTES else None
        return Declaration() if tree is None else _python(name, tree)
    about = _comment(rest if shebang else text)
    return Declaration(about=about, parameters=read_usage(usage_lines(about) or usage_lines(text), name))


def _python(name: str, tree: ast.Module) -> Declaration:
    docstring = ast.get_docstring(tree) or ''
    usage = '' if 'usage:' in docstring.lower() else _printed_usage(name, tree)
    declared = _first_declared(tree, constants_of(tree))
    if declared is not None:
        return replace(declared, about=docstring or declared.about, usage=usage, reads_code=True)
    lines = usage_lines(usage or docstring)
    parameters = read_usage(lines, name)
    # Without any flag in the text, the words on the only usage line are all that the script can take.
    complete = len(lines) == 1 and bool(parameters) and not _mentions_flags(tree)
    return Declaration(about=docstring, usage=usage, parameters=parameters, complete=complete)


def _first_declared(tree: ast.Module, constants: Constants) -> Declaration | None:
    readers: tuple[Callable[[ast.Module, Constants], Declaration | None], ...] = (
        read_typer,
        read_click,
        lambda tree, constants: ArgparseReader(tree, constants).declaration(),
    )
    try:
        found = (reader(tree, constants) for reader in readers)
        return next((declared for declared in found if declared is not None), None)
    except RecursionError:  # nested too deeply to be followed
        return None


def _printed_usage(name: str, tree: ast.Module) -> str:
    """A text that begins with "Usage:", which scripts without a parser print when they are called wrongly."""
    for node in ast.walk(tree):
        # The beginning of an f-string is enough to decide, however long it is.
        begins = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        if isinstance(begins, ast.Constant) and str(begins.value).lstrip().lower().startswith('usage:'):
            return (text_of(cast(ast.expr, node), {}, name) or '').strip()
    return ''


def _mentions_flags(tree: ast.Module) -> bool:
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return any(map(_FLAG.match, texts))


def _comment(text: str) -> str:
    """The comment at the top of a script in any other language."""
    text = text.lstrip()
    end = _BLOCKS.get(text[:2])
    block, is_block, _ = text[2:].partition(end) if end else ('', '', '')
    if is_block:
        lines = [re.sub(r'^\s*\* ?', '', line) for line in block.lstrip('*').splitlines()]
    else:
        comment = takewhile(lambda line: line.lstrip(' \t').startswith(('#', '//')), text.split('\n'))
        lines = [re.sub(r'^\s*(?:#+|//+) ?', '', line) for line in comment]
    return '\n'.join(line.rstrip() for line in lines).strip()
