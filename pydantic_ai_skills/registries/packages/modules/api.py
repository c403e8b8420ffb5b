"""Renders the API of a module for a model: signatures, types, notes on parameters, first paragraphs of docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from .signatures import parameters_of
from .source import AnyFunctionDef
from .symbols import Module, Symbol

if TYPE_CHECKING:
    import griffe

RETURNS = 'return'
"""Stands for the result of a function. No parameter can have this name."""

MAX_API_CHARS = 40_000
"""How long the API of one module may be. What exceeds it is only named."""

MAX_DEFAULT_CHARS = 80
MAX_COMMENT_CHARS = 200
_INDENT = '    '
_STARS = {'variadic positional': '*', 'variadic keyword': '**'}
_QUIET = {'warnings': False}


def render_api(module: Module, max_chars: int = MAX_API_CHARS) -> str:
    """Render the public symbols of a module and of the modules it offers, like a stub file."""
    blocks = list(_blocks(module))
    for inner in module.submodules:
        lines = [f'# {inner.source.name}', *([f'# {inner.source.summary}'] if inner.source.summary else [])]
        blocks += [(inner.source.name, '\n'.join(map(_cut, lines))), *_blocks(inner)]
    text: list[str] = []
    left_out: list[str] = []
    room = max_chars
    for name, block in blocks:
        if left_out or len(block) > room:
            left_out.append(name)
        else:
            room -= len(block)
            text.append(block)
    if left_out:
        text.append(_cut(f'# {len(left_out)} more, not shown: {", ".join(left_out)}', MAX_COMMENT_CHARS * 5))
    return '\n\n'.join(text)


def render_symbol(module: Module, name: str) -> str | None:
    """Render one symbol of a module, or a method of its class, with the whole docstring; `None` if there is none."""
    owner, _, member = name.partition('.')
    symbol = module.find(owner)
    if symbol is None:
        return None
    meaning: Any = symbol.meaning
    if member:
        meaning = meaning.members.get(member) if meaning.is_class else None
        if meaning is None or meaning.is_alias:
            return None
    text = '\n'.join(_lines(symbol, meaning, member or owner))
    whole = meaning.docstring.value.strip() if meaning.docstring is not None else ''
    more = whole if re.search(r'\n\s*\n', whole) or len(whole) > MAX_COMMENT_CHARS else ''
    return f'{text}\n\n{more}'.strip()[:MAX_API_CHARS]


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
    """Whether it is an attribute that `__init__` sets without an annotation."""
    is_set_in_init = member.is_attribute and member.labels.isdisjoint(('class-attribute', 'property'))
    return is_set_in_init and not cast('griffe.Attribute', member).annotation


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
    yield from (f'@{label}' for label in ('staticmethod', 'classmethod') if label in meaning.labels)
    notes = {of: f'  # {_cut(text)}' for of, text in parameter_descriptions(symbol, meaning).items()}
    yield from _signature(meaning, name, notes)
    summary = _summary(meaning)
    yield f'{_INDENT}"""{summary}"""' if summary else f'{_INDENT}...'


def _signature(meaning: griffe.Function, name: str, notes: Mapping[str, str]) -> Iterator[str]:
    """The signature on one line, or on a line for each parameter if there are notes on them."""
    start = f'{"async " if "async" in meaning.labels else ""}def {name}('
    returns = f' -> {meaning.returns}' if meaning.returns is not None else ''
    end = f'){returns}:{notes.get(RETURNS, "")}'
    parameters = dict(_parameters(meaning))
    if notes.keys().isdisjoint(parameters):
        yield f'{start}{", ".join(parameters.values())}{end}'
    else:
        yield start
        yield from (f'{_INDENT}{text},{notes.get(parameter, "")}' for parameter, text in parameters.items())
        yield end


def _parameters(meaning: griffe.Function) -> Iterator[tuple[str, str]]:
    """The names and texts of the parameters of a function, with `/` and `*` between their kinds."""
    last = ''
    for parameter in meaning.parameters:
        kind = parameter.kind.value if parameter.kind is not None else ''
        if last == 'positional-only' and kind != last:
            yield '/', '/'
        if kind == 'keyword-only' and last not in ('keyword-only', 'variadic positional'):
            yield '*', '*'
        last = kind
        yield parameter.name, _parameter(parameter, _STARS.get(kind, ''))
    if last == 'positional-only':
        yield '/', '/'


def _parameter(parameter: griffe.Parameter, stars: str) -> str:
    text = f'{stars}{parameter.name}'
    equals = '='
    if parameter.annotation is not None:
        text, equals = f'{text}: {parameter.annotation}', ' = '
    if parameter.default is not None and not stars:
        text = f'{text}{equals}{_cut(str(parameter.default), MAX_DEFAULT_CHARS)}'
    return text


def parameter_descriptions(symbol: Symbol, meaning: griffe.Function) -> dict[str, str]:
    """What docstring and comments say about each parameter and about the result."""
    described = _described_in_docstring(meaning)
    node = symbol.home.source.functions.get(meaning.lineno or 0)
    return described | (_described_in_comments(node, symbol.home.source.comments) if node else {})


def _described_in_comments(function: AnyFunctionDef, comments: Mapping[int, str]) -> dict[str, str]:
    """The comment after each parameter that is alone on its line, and the one after the result."""
    by_line: dict[int, list[str]] = {}
    for name, line in _last_lines(function.args):
        by_line.setdefault(line, []).append(name)
    if function.returns is not None:
        by_line[function.returns.end_lineno or 0] = [RETURNS]
    elif by_line.keys() <= {function.lineno}:
        return {}  # The comment is about the function as a whole.
    return {names[0]: comments[line] for line, names in by_line.items() if len(names) == 1 and line in comments}


def _last_lines(given: ast.arguments) -> Iterator[tuple[str, int]]:
    """Each parameter with the line it ends on, its default included."""
    for parameter, _, default in parameters_of(given):
        last = default or parameter
        yield parameter.arg, last.end_lineno or last.lineno


def _described_in_docstring(meaning: griffe.Function) -> dict[str, str]:
    import griffe  # it made `meaning`, so it is installed

    if meaning.docstring is None:
        return {}
    quiet: Any = dict.fromkeys(('google', 'numpy', 'sphinx'), _QUIET)
    described: dict[str, str] = {}
    # griffe recognises the style of a docstring by its line ends, so the last line needs one too.
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
