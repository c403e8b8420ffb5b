"""Reads frontmatter that is not valid YAML.

Most of it has a colon in plain text: `description: Use when: always`. First every such value is quoted; if that is not
enough, each top-level key is read on its own, and a value that still cannot be read is taken as plain text.
"""

from __future__ import annotations

import re
from textwrap import dedent
from typing import NamedTuple

from .fast_path import read_simple
from .findings import UnreadableYaml, Value

MAX_REPAIRED_KEYS = 256
"""How many keys of broken frontmatter are read as YAML; to limit the time, the others become plain text."""

# `key: value` and, at the start of a line, also `key:value`, but not `https://`.
_TOP_LEVEL = re.compile(r"""(?P<key>[\w.-]+|"[^"]+"|'[^']+')[ \t]*:(?!//)(?P<value>.*)""").fullmatch
# Text that is neither quoted nor begins with an indicator, with a colon that YAML takes for the end of a key.
_UNQUOTED = re.compile(
    r"""(?P<key>[ \t]*(?:-[ ]+)?[\w.-]+:)[ \t]+(?P<value>[^\s"'\[{|>&*!#].*:(?:[ \t].*)?)"""
).fullmatch
# Text in quotes that holds the same quotes: `"Say "hi" now"`, but not `"hi" and "bye"`.
_QUOTED = re.compile(r"""'(?![^'\n]*+'\s).*'|"(?![^"\n]*+"\s).*\"""").fullmatch
_BLOCK = re.compile(r'(?P<style>[|>])[-+0-9]*[ \t]*(?:#.*)?').fullmatch


class Repaired(NamedTuple):
    """The keys and values that could be read from broken frontmatter."""

    fields: dict[str, Value]

    as_text: list[str]
    """The keys whose values were taken as plain text."""


def repair(source: str) -> Repaired | None:
    """Read frontmatter that is not valid YAML; `None` if it has no keys at all.

    Raises:
        RefusedYaml: A part is nested too deep or uses aliases.
    """
    return _with_quotes(source) or _key_by_key(source)


def _with_quotes(source: str) -> Repaired | None:
    quoted: list[str] = []
    as_text: dict[str, None] = {}
    key = ''
    for line in source.split('\n'):
        match = _TOP_LEVEL(line)
        key = match['key'] if match else key  # the items of a list may stand below their key without indentation
        quoted.append(_quote(line) if line[:1].strip() else line)
        if quoted[-1] != line:
            as_text[key] = None
    fields = _read_mapping('\n'.join(quoted)) if as_text else None
    return None if fields is None else Repaired(fields, list(as_text))


def _quote(line: str) -> str:
    match = _UNQUOTED(line)
    if match is None:
        return line
    value = match['value'].strip().replace("'", "''")
    return f"{match['key']} '{value}'"


def _read_mapping(source: str) -> dict[str, Value] | None:
    fields = read_simple(source)
    if fields is not None:
        return fields
    from .yaml_reader import read_yaml  # brings in PyYAML, which takes long to import

    try:
        value, _ = read_yaml(source)
    except UnreadableYaml:
        return None
    return value if isinstance(value, dict) else None


def _key_by_key(source: str) -> Repaired | None:
    repaired = Repaired({}, [])
    for number, entry in enumerate(_entries(source)):
        fields = None
        if number < MAX_REPAIRED_KEYS:
            fields = _read_mapping(entry.lines(mended=False)) or _read_mapping(entry.lines(mended=True))
        if fields is None:
            fields = {entry.key: entry.text()}
            repaired.as_text.append(entry.key)
        repaired.fields.update(fields)
    return repaired if repaired.fields else None


class _Entry(NamedTuple):
    """A top-level key with all the lines that belong to it."""

    key: str
    value: str
    below: list[str]

    def lines(self, *, mended: bool) -> str:
        """The lines; if `mended`, with spaces for tabs and, where they are a mapping, with their values quoted."""
        below = [_indent_with_spaces(line) for line in self.below] if mended else self.below
        if mended and not self.value:
            below = [_quote(line) for line in below]
        return '\n'.join((f'{self.key}:{self.value}', *below))

    def text(self) -> str:
        """The value as plain text, folded as YAML would fold it, unless its line breaks seem to matter."""
        value = self.value.strip()
        block = _BLOCK(value)
        if block or not value:
            text = dedent('\n'.join(self.below)).strip()
            return ' '.join(text.split()) if block and block['style'] == '>' else text
        text = ' '.join(filter(None, (value, *(line.strip() for line in self.below))))
        return text[1:-1] if _QUOTED(text) else text


def _indent_with_spaces(line: str) -> str:
    text = line.lstrip()
    return line[: len(line) - len(text)].replace('\t', '  ') + text


def _entries(source: str) -> list[_Entry]:
    entries: list[_Entry] = []
    for line in dedent(source).split('\n'):
        # The first key may be indented by mistake; later, indented lines belong to the key above them.
        match = _TOP_LEVEL(line if entries else line.lstrip())
        if match:
            entries.append(_Entry(match['key'].strip('"\''), match['value'].rstrip(), []))
        elif entries and not line.startswith('#'):
            entries[-1].below.append(line)
    return entries
