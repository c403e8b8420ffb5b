# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportArgumentType=false, reportUnknownMemberType=false, reportCallIssue=false
# The parser of regular expressions has no types.
"""Finds every regular expression of the package, with the ways it is used, and inputs that are the worst for each.

Run as a program, it measures them all: `python -m tests.hostile.expressions`.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Iterator
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pydantic_ai_skills

from .conftest import Stopwatch

sre: Any = importlib.import_module('re._parser')

SIZE = 1_000_000
SHORT = 10_000
WAYS = ('search', 'match', 'fullmatch', 'split', 'findall', 'finditer', 'sub', 'subn')
FIXED = frozenset({'match', 'fullmatch'})
"""Ways that try one position only; the others try every position of the text."""

MADE_FROM_DATA = {
    'pydantic_ai_skills.toolset.results:rename_tools': r'\b(load_skill|run_skill_script)\b',
    'pydantic_ai_skills.toolset.compat:neutralize_tags': r'<(?=\s*(?:/\s*)?(?:system|context)(?:[\s/>]|$))',
    'pydantic_ai_skills.parsing.skill_md:_line_of': r'^["\']?description["\']?[ \t]*:',
}
"""Expressions that are put together when they are used, each with an example."""


class Expression(NamedTuple):
    """A regular expression, and how the package uses it."""

    where: str
    pattern: re.Pattern[Any]
    anywhere: bool
    """Whether it is tried at every position of a text."""


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(pydantic_ai_skills.__path__, 'pydantic_ai_skills.'):
        if not found.name.endswith('__main__'):
            yield importlib.import_module(found.name)


def expressions() -> Iterator[Expression]:
    trees = {module.__name__: ast.parse(Path(module.__file__).read_text()) for module in modules()}
    used = {name: way for tree in trees.values() for name, way in _uses(tree)}
    for name, tree in trees.items():
        yield from _in_module(sys.modules[name], used)
        yield from _in_source(name, tree)


def _uses(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Names of constants of which a method is used that tries every position."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in WAYS and node.attr not in FIXED:
            value = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            if isinstance(value, ast.Name | ast.Attribute):
                yield (value.id if isinstance(value, ast.Name) else value.attr), True


def _in_module(module: Any, used: dict[str, bool]) -> Iterator[Expression]:
    for name, value in vars(module).items():
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        for item in values:
            pattern = getattr(item, '__self__', item)
            if isinstance(pattern, re.Pattern):
                anywhere = used.get(name, False) if item is pattern else item.__name__ not in FIXED
                yield Expression(f'{module.__name__}:{name}', pattern, anywhere)


def _in_source(module: str, tree: ast.AST) -> Iterator[Expression]:
    """The expressions that are compiled when they are used: `re.sub(r'…', …)`, or `re.sub(NAME, …)`."""
    for function, call in _calls(tree):
        where = f'{module}:{function}'
        given = call.args[0]
        named = getattr(sys.modules[module], ast.unparse(given), None)
        text = given.value if isinstance(given, ast.Constant) else named or MADE_FROM_DATA[where]
        flags = ' '.join(ast.unparse(node) for node in (*call.args[1:], *(word.value for word in call.keywords)))
        multiline = re.MULTILINE if 'MULTILINE' in flags else re.NOFLAG
        assert isinstance(call.func, ast.Attribute)
        yield Expression(where, re.compile(text, multiline), call.func.attr not in FIXED)


def _calls(tree: ast.AST, function: str = '') -> Iterator[tuple[str, ast.Call]]:
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f're.{way}' for way in WAYS}:
            yield inner, node
        yield from _calls(node, inner)


# --- The worst inputs ---------------------------------------------------------------------------------------------


class Input(NamedTuple):
    """A text that repeats a piece many times."""

    beginning: str
    piece: str
    end: str
    is_bytes: bool

    def __mul__(self, size: int) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - of any length
        text = self.beginning + self.piece * (size // len(self.piece)) + self.end
        return text.encode('latin-1', 'replace') if self.is_bytes else text


def worst_inputs(pattern: re.Pattern[Any]) -> Iterator[Input]:
    """Texts of what the expression itself is made of, which nearly match at every position."""
    parsed = sre.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    pieces = list(dict.fromkeys([*_literals(parsed), *_samples(parsed)]))[:12]
    repeated = [*pieces, *(a + b for a, b in itertools.permutations(pieces[:7], 2))]
    repeated += ['\n'.join(['', *pieces]), ''.join(pieces)]
    for piece in dict.fromkeys(filter(None, repeated)):
        for beginning in ('', *pieces[:4]):
            for end in ('', '\0'):
                yield Input(beginning, piece, end, isinstance(pattern.pattern, bytes))


def _nodes(parsed: Any) -> Iterator[tuple[str, Any]]:
    for operation, argument in parsed:
        yield str(operation), argument
        parts = argument if isinstance(argument, tuple | list) else (argument,)
        for part in itertools.chain.from_iterable(p if isinstance(p, list) else [p] for p in parts):
            if isinstance(part, sre.SubPattern):
                yield from _nodes(part)


def _literals(parsed: Any) -> Iterator[str]:
    """Runs of literal characters, together and one by one."""
    run = ''
    for operation, argument in [*_nodes(parsed), ('END', None)]:
        if operation == 'LITERAL':
            run += chr(argument)
            continue
        if len(run) > 1:
            yield run
        yield from run[:2]
        run = ''


CATEGORIES = {'SPACE': ' \n', 'DIGIT': '0', 'WORD': 'a', 'NOT_SPACE': 'a', 'NOT_DIGIT': 'a', 'NOT_WORD': '-'}


def _samples(parsed: Any) -> Iterator[str]:
    """A character of each class of characters."""
    for operation, argument in _nodes(parsed):
        if operation == 'ANY':
            yield 'x'
        elif operation == 'NOT_LITERAL':
            yield chr(argument + 1)
        elif operation == 'IN':
            yield from _of_class(argument)


def _of_class(items: Any) -> Iterator[str]:
    negated = str(items[0][0]) == 'NEGATE'
    for operation, argument in [] if negated else items:
        if str(operation) == 'LITERAL':
            yield chr(argument)
        elif str(operation) == 'RANGE':
            yield chr(argument[0])
        elif str(operation) == 'CATEGORY':
            yield from CATEGORIES[str(argument).removeprefix('CATEGORY_')]
    if negated:
        yield from 'x '


# --- Measuring ----------------------------------------------------------------------------------------------------


class TooSlow(Exception):
    """Matching took longer than anything that is linear."""


def _stop(*_: object) -> None:
    raise TooSlow


def cpu_seconds(expression: Expression, text: Any, limit: float) -> float:
    """Seconds that matching computes; a little over the limit if it takes longer."""
    pattern, nothing = expression.pattern, text[:0]
    signal.setitimer(signal.ITIMER_VIRTUAL, limit * 1.5)
    started = time.process_time()
    try:
        if expression.anywhere:
            pattern.sub(nothing, text)
        else:
            pattern.match(text)
            pattern.fullmatch(text)
    except TooSlow:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - started


def least_seconds(expression: Expression, text: Any, limit: float) -> float:
    """The least that matching takes, of as many tries as any work gets that other processes may disturb."""
    watch = Stopwatch(limit)
    for _ in watch:
        watch.best = min(watch.best, cpu_seconds(expression, text, limit))
    return watch.best


def measure(limit: float) -> Iterator[tuple[str, str, float]]:
    """For each expression: its place, its worst input, and the seconds it takes."""
    signal.signal(signal.SIGVTALRM, _stop)
    for expression in {expression.pattern: expression for expression in expressions()}.values():
        # Short texts show which ones may be the worst; only those are tried at full length.
        short: list[tuple[float, Input]] = []
        for text in worst_inputs(expression.pattern):
            short.append((cpu_seconds(expression, text * SHORT, limit), text))
            if short[-1][0] > limit / 4:
                break
        slowest, worst = 0.0, Input('', 'x', '', isinstance(expression.pattern.pattern, bytes))
        for _, text in nlargest(3, short, key=itemgetter(0)):
            taken = least_seconds(expression, text * SIZE, limit)
            if taken > slowest:
                slowest, worst = taken, text
        yield expression.where, repr(worst.beginning + worst.piece), slowest


if __name__ == '__main__':
    for row in measure(float(sys.argv[1])):
        print(json.dumps(row), flush=True)  # noqa: T201 - read by the test
