"""Make the best of frontmatter that is not YAML.

Most of it was written by people and models who took a colon for punctuation: `description: Use when: always`. First
every such value is quoted; if that is not enough each top-level key is read on its own, and one that still cannot be
read keeps its text as it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent

from .fast_path import read_simple
from .findings import UnreadableYaml, Value

__all__ = ('MAX_REPAIRED_KEYS', 'Repaired', 'repair')

MAX_REPAIRED_KEYS = 256
"""How many keys of broken frontmatter are read as YAML; the others are plain text, so that it takes no longer."""

# `key: value` and, at the start of a line, also `key:value`, but not `https://`.
_TOP_LEVEL = re.compile(r"""(?P<key>[\w.-]+|"[^"]+"|'[^']+')[ \t]*:(?!//)(?P<value>.*)""").fullmatch
# Text that is neither quoted nor begins with an indicator, with a colon that YAML takes for the end of a key.
_UNQUOTED = re.compile(
    r"""(?P<key>[ \t]*(?:-[ ]+)?[\w.-]+:)[ \t]+(?P<value>[^\s"'\[{|>&*!#].*:(?:[ \t].*)?)"""
).fullmatch
# Text in quotes that holds the same quotes: `"Say "hi" now"`, but not `"hi" and "bye"`.
_QUOTED = re.compile(r"""(["'])(?!(?:(?!\1).)*\1\s).*\1""").fullmatch
_BLOCK = re.compile(r'(?P<style>[|>])[-+0-9]*[ \t]*(?:#.*)?').fullmatch


@dataclass(frozen=True, slots=True)
class Repaired:
    """What could be read of broken frontmatter."""

    fields: dict[str, Value]
    """Its keys and values."""

    as_text: list[str]
    """The keys whose values were taken for plain text."""


def repair(source: str) -> Repaired | None:
    """Read what is no YAML; `None` when it has no keys at all.

    Raises:
        RefusedYaml: A part is nested too deep or uses aliases.
    """
    return _with_quotes(source) or _key_by_key(source)


def _with_quotes(source: str) -> Repaired | None:
    lines = source.split('\n')
    quoted = [_quote(line) if line[:1].strip() else line for line in lines]
    fields = _read_mapping('\n'.join(quoted)) if quoted != lines else None
    if fields is None:
        return None
    as_text: dict[str, None] = {}
    key = ''
    for line, new in zip(lines, quoted, strict=True):
        match = _TOP_LEVEL(line)
        key = match['key'] if match else key  # the items of a list may stand below it without a space before them
        if line != new:
            as_text[key] = None
    return Repaired(fields, list(as_text))


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
            fields = _read_mapping(entry.lines()) or _read_mapping(entry.mended_lines())
        if fields is None:
            fields = {entry.key: entry.text()}
            repaired.as_text.append(entry.key)
        repaired.fields.update(fields)
    return repaired if repaired.fields else None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A top-level key with all the lines that belong to it."""

    key: str
    value: str
    below: list[str]

    def lines(self) -> str:
        return '\n'.join((f'{self.key}:{self.value}', *self.below))

    def mended_lines(self) -> str:
        """The lines with tabs turned into spaces and, where they are a mapping, their values quoted."""
        below = [_indent_with_spaces(line) for line in self.below]
        if not self.value:
            below = [_quote(line) for line in below]
        return '\n'.join((f'{self.key}:{self.value}', *below))

    def text(self) -> str:
        """The value as plain text: folded like YAML would, unless the lines seem to matter."""
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
