"""Reads parameters from a usage line, such as `Usage: fill.py <form> [output] [--dpi N]`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from .parameters import Parameter

MAX_USAGE_LINE = 400
"""How much of a usage line is read."""

MAX_USAGE_LINES = 5
"""How many usage lines are read."""

MAX_USAGE = 2_000
"""How many characters after "usage:" are searched for usage lines."""

_USAGE = re.compile(r'usage:', re.IGNORECASE)
_WORD = re.compile(r'\[[^\[\]]{1,100}\](?:\.\.\.)?|<[^<>]{1,60}>(?:\.\.\.)?|[^\s\[\]<>]{1,100}')
_FLAG = re.compile(r'(--?[A-Za-z][\w-]*)(?:[ =](.+))?', re.DOTALL)
_PLACEHOLDER = re.compile(r'<[^<>]{1,60}>|\{?[A-Z][A-Z0-9_-]*\}?|[a-z][\w.-]*')
_PROGRAM = re.compile(r'(?:\S*/)?[\w.-]+\.(?:py|sh|js|mjs|cjs|ts|rb|pl|php|ps1)|\$0|\$\{0\}|…')
_REMARK = re.compile(r'\s#\s|\s\s(?=[A-Z][a-z])|["\'`]$')
_JOINED = re.compile(r'[ =]')
_PLAIN = re.compile(r'[^0-9A-Za-z]+')
_RUNNERS = frozenset({'python', 'python3', 'node', 'bash', 'sh', 'uv', 'run', 'npx', 'tsx', 'bun', 'deno', '$'})


def usage_lines(text: str) -> list[str]:
    """The lines after "usage:" in a text, up to the first blank one; each shows one way to call a script."""
    found = _USAGE.search(text)
    if found is None:
        return []
    lines = [line.strip() for line in text[found.end() : found.end() + MAX_USAGE].split('\n')]
    lines = lines[1:] if not lines[0] else lines
    shown = [_REMARK.split(line, maxsplit=1)[0].rstrip() for line in takewhile(bool, lines)]
    # A line that does not begin like the first one continues it, or is about something else.
    return [line for line in shown[:MAX_USAGE_LINES] if line.split()[:1] == shown[0].split()[:1]]


def read_usage(lines: Sequence[str], script: str) -> tuple[Parameter, ...]:
    """The parameters that usage lines show; none if they contradict each other or a word cannot be understood."""
    ways = [_read_line(line, script) for line in lines]
    if not ways or not all(ways):
        return ()
    places = [[parameter.name for parameter in way if parameter.is_positional] for way in ways]
    longest = max(places, key=len)
    if any(place != longest[: len(place)] for place in places):
        return ()
    found = {parameter.name: parameter for way in (max(ways, key=len), *ways) for parameter in way}
    every = [{parameter.name for parameter in way} for way in ways]
    always = every[0].intersection(*every[1:])
    return tuple(each if each.name in always else replace(each, required=False) for each in found.values())


def _read_line(line: str, script: str) -> tuple[Parameter, ...]:
    words = list(_after_program(_WORD.findall(line[:MAX_USAGE_LINE]), script))
    found: list[Parameter] = []
    while words:
        word = words.pop(0)
        parameter = _parameter(word, words[0] if words else '')
        if parameter is None:
            return ()
        if parameter.flags and not word.startswith('[') and not parameter.is_switch and not _JOINED.search(word):
            words.pop(0)
        found.append(parameter)
    names = [parameter.name for parameter in found]
    return tuple(found) if len(set(names)) == len(names) else ()


def _after_program(words: list[str], script: str) -> Iterator[str]:
    """What comes after the name of the program."""
    place = next((i for i, word in enumerate(words[:6]) if _is_program(word, script)), None)
    if place is None:
        place = next((i for i, word in enumerate(words) if word not in _RUNNERS), 0)
    yield from (word for word in words[place + 1 :])


def _is_program(word: str, script: str) -> bool:
    name = script.rpartition('/')[2]
    return word in (script, name, name.partition('.')[0]) or _PROGRAM.fullmatch(word) is not None


def _parameter(word: str, following: str) -> Parameter | None:
    if word.startswith('['):
        many = word.endswith('...') or '...' in word
        bare = word.strip('.')[1:-1].replace('...', '').strip()
        inner = _parameter(bare if bare.startswith('-') else '_'.join(bare.split()), '')
        return inner and replace(inner, required=False, least=0, most=None if many else inner.most)
    if flag := _FLAG.fullmatch(word):
        return _flag(flag[1], flag[2] or (following if _is_value(following) else ''))
    bare = word.removesuffix('...')
    if bare and _PLACEHOLDER.fullmatch(bare):
        name = _PLAIN.sub('_', bare).strip('_')
        return Parameter(name=name, required=True, most=None if bare != word else 1) if name else None
    return None


def _is_value(word: str) -> bool:
    return word.startswith('<') or (word.isupper() and not word.startswith(('-', '[')))


def _flag(flag: str, value: str) -> Parameter:
    name = flag.lstrip('-').replace('-', '_')
    choices = tuple(value.split('|')) if '|' in value and not value.startswith('<') else ()
    return Parameter(name=name, flags=(flag,), least=1 if value else 0, most=1 if value else 0, choices=choices)
