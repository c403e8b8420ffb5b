"""A YAML reader for untrusted text: text stays text, and reading takes time in proportion to the size.

It builds values from the parser's events. Nothing is resolved, constructed or merged, aliases are refused and nesting
is limited, so neither a bomb nor a tower of brackets gets further than its first bytes.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from .findings import MAX_NESTING, Finding, RefusedYaml, UnreadableYaml, Value, shown

LOADER: Any = getattr(yaml, 'CBaseLoader', yaml.BaseLoader)
"""The source of the parser's events: libyaml, which is much faster, if PyYAML was built with it."""

_NOT_ALLOWED = re.compile('[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]').search


def read_yaml(source: str, *, loader: Any = LOADER) -> tuple[Value, list[Finding]]:
    """Read one document.

    Raises:
        UnreadableYaml: It does not parse.
        RefusedYaml: It is nested too deep or uses aliases.
    """
    builder = _Builder()
    try:
        _feed(builder, loader(source))
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark
        raise UnreadableYaml(e.problem or 'it cannot be parsed', mark.line + 1 if mark else None) from e
    except (yaml.YAMLError, ValueError, OverflowError) as e:
        # Characters YAML does not allow; the Python parser passes on what `chr` raises for an escape.
        match = _NOT_ALLOWED(source)
        line = source.count('\n', 0, match.start()) + 1 if match else None
        raise UnreadableYaml('it holds a character that YAML does not allow', line) from e
    return builder.result()


def _feed(builder: _Builder, loader: Any) -> None:
    try:
        while loader.check_event():
            builder.take(loader.get_event())
    finally:
        loader.dispose()


class _Builder:
    """Builds the values of a document without recursion."""

    def __init__(self) -> None:
        self._root: Value = ''
        self._documents = 0
        self._open: list[list[Value] | dict[str, Value]] = []
        # For each open collection, the key that waits for its value.
        self._keys: list[str | None] = []
        self._anchors: set[str] = set()
        self._error: UnreadableYaml | None = None
        self._duplicate: Finding | None = None
        self._tag: Finding | None = None

    def result(self) -> tuple[Value, list[Finding]]:
        if self._error:
            raise self._error
        return self._root, [finding for finding in (self._duplicate, self._tag) if finding]

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            if not event.value.isascii():
                # The Python parser makes half a surrogate pair of "\ud800", which cannot be encoded.
                event.value.encode()
            self._note(event)
            self._add(event.value, event)
        elif isinstance(event, yaml.MappingStartEvent):
            self._enter({}, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._enter([], event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._keys.pop()
        elif isinstance(event, yaml.AliasEvent):
            self._refuse(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise UnreadableYaml('a second document begins', _line(event))

    def _enter(self, collection: list[Value] | dict[str, Value], event: yaml.CollectionStartEvent) -> None:
        if len(self._open) >= MAX_NESTING:
            message = f'The frontmatter is nested more than {MAX_NESTING} levels deep.'
            raise RefusedYaml(Finding('frontmatter-too-deep', message, _line(event)))
        self._note(event)
        self._add(collection, event)
        self._open.append(collection)
        self._keys.append(None)

    def _add(self, value: Value, event: Any) -> None:
        if not self._open:
            self._root = value
            return
        parent = self._open[-1]
        if isinstance(parent, list):
            parent.append(value)
            return
        key = self._keys[-1]
        if key is not None:
            parent[key] = value
            self._keys[-1] = None
        elif isinstance(value, str):
            self._keys[-1] = value
            if value in parent and not self._duplicate:
                message = f'The key {shown(value)} occurs more than once; the last value counts. Remove the others.'
                self._duplicate = Finding('yaml-duplicate-key', message, _line(event))
        else:
            # Reported at the end: `{{{{…` is nested too deep before it is anything else.
            self._error = UnreadableYaml('a key is a list or a mapping', _line(event))
            self._keys[-1] = ''

    def _note(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        """Remember an anchor and report a tag; neither changes the value."""
        if event.anchor:
            self._anchors.add(event.anchor)
        if event.tag and event.tag != '!' and not self._tag:
            tag = event.tag.replace('tag:yaml.org,2002:', '!!')
            message = f'The YAML tag {shown(tag)} is ignored: text stays text. Remove it.'
            self._tag = Finding('yaml-tag', message, _line(event))

    def _refuse(self, alias: yaml.AliasEvent) -> None:
        if alias.anchor not in self._anchors:
            # Somebody wrote text that begins with a star.
            raise UnreadableYaml(f'nothing is named {shown(f"&{alias.anchor}")}', _line(alias))
        message = f'The YAML alias {shown(f"*{alias.anchor}")} is not followed. Write out what it stands for.'
        raise RefusedYaml(Finding('yaml-alias', message, _line(alias)))


def _line(event: Any) -> int:
    return event.start_mark.line + 1
