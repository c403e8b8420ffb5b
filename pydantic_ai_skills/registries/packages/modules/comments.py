"""What comments in the source say about the parameters of a function, and about what it returns."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping

from .signatures import AnyFunctionDef

__all__ = ('RETURNS', 'comments_by_line', 'parameter_comments')

RETURNS = 'return'
"""Stands for what a function returns; no parameter can be called so."""


def comments_by_line(text: str) -> dict[int, str]:
    """The comments of a source text by the lines they are on."""
    comments: dict[int, str] = {}
    if '#' not in text:
        return comments
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip('#').strip()
    return comments


def parameter_comments(function: AnyFunctionDef, comments: Mapping[int, str]) -> dict[str, str]:
    """The comment behind each parameter that stands on a line with no other one, and the one behind the result."""
    given = function.args
    by_line: dict[int, list[str]] = {}
    defaults = dict(zip([*given.posonlyargs, *given.args][::-1], given.defaults[::-1], strict=False))
    defaults |= {arg: default for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default}
    optional = [parameter for parameter in (given.vararg, given.kwarg) if parameter is not None]
    for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs, *optional):
        line = defaults.get(parameter, parameter).end_lineno or parameter.lineno
        by_line.setdefault(line, []).append(parameter.arg)
    ends_at = max(by_line, default=function.lineno)
    if function.returns is not None:
        ends_at = function.returns.end_lineno or function.returns.lineno
    found = {names[0]: comments[line] for line, names in by_line.items() if len(names) == 1 and line in comments}
    if function.returns is not None or ends_at == function.lineno:
        # Behind the end of the signature stands what is said of the result, or of the function as a whole.
        found = {name: text for name, text in found.items() if name not in by_line.get(ends_at, ())}
    if function.returns is not None and ends_at in comments:
        found[RETURNS] = comments[ends_at]
    return found
