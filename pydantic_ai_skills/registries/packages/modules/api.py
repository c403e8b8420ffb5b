"""The API of a module as text for a model: signatures, types, what is said about parameters, first docstring lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from .comments import RETURNS, parameter_comments
from .symbols import Module, Symbol

if TYPE_CHECKING:
    import griffe

__all__ = ('parameter_descriptions', 'render_api')

MAX_API_CHARS = 40_000
"""How long the API of one module may be; the rest is named."""

MAX_DEFAULT_CHARS = 80
MAX_COMMENT_CHARS = 200
_INDENT = '    '
_MARKS = {
    'positional-only': '',
    'positional or keyword': '',
    'variadic positional': '*',
    'keyword-only': '',
    'variadic keyword': '**',
}
_QUIET = {'warnings': False}


def render_api(module: Module) -> str:
    """The public symbols of a module and of the modules it offers, as the stub of a Python file."""
    blocks = [*_blocks(module)]
    for inner in module.submodules:
        lines = [f'# {inner.source.name}', *([f'# {inner.source.summary}'] if inner.source.summary else [])]
        blocks += [(inner.source.name, '\n'.join(map(_cut, lines))), *_blocks(inner)]
    text: list[str] = []
    left_out: list[str] = []
    room = MAX_API_CHARS
    for name, block in blocks:
        if left_out or len(block) > room:
            left_out.append(name)
        else:
            room -= len(block)
            text.append(block)
    if left_out:
        text.append(_cut(f'# {len(left_out)} more, not shown: {", ".join(left_out)}', MAX_COMMENT_CHARS * 5))
    return '\n\n'.join(text)


def _blocks(module: Module) -> Iterator[tuple[str, str]]:
    for symbol in module.symbols:
        yield symbol.name, '\n'.join(_lines(symbol, symbol.meaning, symbol.name))


def _lines(symbol: Symbol, meaning: griffe.Object, name: str) -> Iterator[str]:
    if meaning.is_function:
        yield from _function(symbol, cast('griffe.Function', meaning), name)
    elif meaning.is_class:
        yield from _class(symbol, cast('griffe.Class', meaning), name)
    else:
        yield _attribute(cast('griffe.Attribute', meaning), name)


def _class(symbol: Symbol, meaning: griffe.Class, name: str) -> Iterator[str]:
    bases = f'({", ".join(map(str, meaning.bases))})' if meaning.bases else ''
    yield f'class {name}{bases}:'
    body = [f'"""{summary}"""'] if (summary := _summary(meaning)) else []
    for inner_name, member in meaning.members.items():
        if (inner_name.startswith('_') and inner_name != '__init__') or member.is_alias or _is_inner(member):
            continue
        body += _lines(symbol, cast('griffe.Object', member), inner_name)
    yield from (f'{_INDENT}{line}' for line in body or ['...'])


def _is_inner(member: griffe.Object | griffe.Alias) -> bool:
    """Whether it is something that `__init__` sets and says nothing about."""
    return (
        member.is_attribute
        and 'class-attribute' not in member.labels
        and 'property' not in member.labels
        and not (cast('griffe.Attribute', member).annotation)
    )


def _attribute(meaning: griffe.Attribute, name: str) -> str:
    annotation = f': {meaning.annotation}' if meaning.annotation is not None else ''
    comment = f'  # {summary}' if (summary := _summary(meaning)) else ''
    if 'property' in meaning.labels:
        return f'{name}{annotation}  # property{": " + summary if summary else ""}'
    value = f' = {_cut(str(meaning.value), MAX_DEFAULT_CHARS)}' if meaning.value is not None else ''
    return f'{name}{annotation}{value}{comment}'


def _function(symbol: Symbol, meaning: griffe.Function, name: str) -> Iterator[str]:
    for overload in meaning.overloads or ():
        yield '@overload'
        yield from _function(symbol, overload, name)
    comments = parameter_descriptions(symbol, meaning)
    for label in ('staticmethod', 'classmethod'):
        if label in meaning.labels:
            yield f'@{label}'
    start = f'{"async " if "async" in meaning.labels else ""}def {name}('
    parameters = [*_parameters(meaning)]
    returns = f' -> {meaning.returns}' if meaning.returns is not None else ''
    told = f'  # {_cut(comments[RETURNS])}' if RETURNS in comments else ''
    if any(parameter in comments for parameter, _ in parameters):
        yield start
        for parameter, text in parameters:
            yield f'{_INDENT}{text},{f"  # {_cut(comments[parameter])}" if parameter in comments else ""}'
        yield f'){returns}:{told}'
    else:
        yield f'{start}{", ".join(text for _, text in parameters)}){returns}:{told}'
    summary = _summary(meaning)
    yield f'{_INDENT}"""{summary}"""' if summary else f'{_INDENT}...'


def _parameters(meaning: griffe.Function) -> Iterator[tuple[str, str]]:
    """The parameters of a function as they are written, with the marks between their kinds."""
    last = ''
    for parameter in meaning.parameters:
        kind = parameter.kind.value if parameter.kind is not None else 'positional or keyword'
        if last == 'positional-only' and kind != last:
            yield '/', '/'
        if kind == 'keyword-only' and last not in ('keyword-only', 'variadic positional'):
            yield '*', '*'
        last = kind
        mark = _MARKS[kind]
        annotation = f': {parameter.annotation}' if parameter.annotation is not None else ''
        default = ''
        if parameter.default is not None and not mark:
            equals = ' = ' if annotation else '='
            default = f'{equals}{_cut(str(parameter.default), MAX_DEFAULT_CHARS)}'
        yield parameter.name, f'{mark}{parameter.name}{annotation}{default}'
    if last == 'positional-only':
        yield '/', '/'


def parameter_descriptions(symbol: Symbol, meaning: griffe.Function) -> dict[str, str]:
    """What docstring and comments say about each parameter and about the result."""
    described = _described_in_docstring(meaning)
    node = symbol.home.source.functions.get(meaning.lineno or 0)
    return described | (parameter_comments(node, symbol.home.comments) if node else {})


def _described_in_docstring(meaning: griffe.Function) -> dict[str, str]:
    import griffe  # it is there: it made `meaning`

    if meaning.docstring is None:
        return {}
    quiet: Any = dict.fromkeys(('google', 'numpy', 'sphinx'), _QUIET)
    described: dict[str, str] = {}
    # With an end of line, which the styles are told apart by.
    docstring = griffe.Docstring(f'{meaning.docstring.value}\n')
    for section in griffe.parse_auto(docstring, method='heuristics', default='google', per_style_options=quiet):
        if section.kind is griffe.DocstringSectionKind.parameters:
            described |= {item.name.lstrip('*'): item.description for item in section.value}
        elif section.kind is griffe.DocstringSectionKind.returns:
            described[RETURNS] = section.value[0].description
    return {name: text for name, text in described.items() if text.strip()}


def _summary(meaning: griffe.Object) -> str:
    """The first paragraph of a docstring."""
    text = meaning.docstring.value if meaning.docstring is not None else ''
    return _cut(re.split(r'\n\s*\n', text.strip(), maxsplit=1)[0]).replace('"""', "'''")


def _cut(text: str, limit: int = MAX_COMMENT_CHARS) -> str:
    text = ' '.join(text.split())
    return text if len(text) <= limit else f'{text[: limit - 1].rstrip()}…'
