"""Parses JSON and YAML files of a skill where that is safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

import yaml
from pydantic_core import from_json

MAX_JSON_CHARS = 256 * 1024
"""Longer JSON stays text: its values take time, and many times the memory of the text."""

MAX_YAML_CHARS = 64 * 1024
"""Longer YAML stays text: reading it takes too long."""

MAX_YAML_EVENTS = 1_500
"""YAML with more keys, values and brackets stays text: each takes its time, however short it is."""

MAX_VALUE_DEPTH = 64
"""YAML nested deeper stays text: its reader would run out of stack."""

MAX_NUMBER_CHARS = 100
"""YAML with a longer number stays text: reading `59:59:59…` takes time quadratic in its length."""

_BEGINS_NUMBER = frozenset('+-.0123456789')
_Loader: type[Any] = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


def parse_value(text: str, name: str) -> Any:
    """The value a `.json`, `.yaml` or `.yml` file holds; the text for other files and for what does not parse."""
    suffix = PurePosixPath(name).suffix.lower()
    try:
        if suffix == '.json' and len(text) <= MAX_JSON_CHARS:
            return from_json(text)
        if suffix in ('.yaml', '.yml') and len(text) <= MAX_YAML_CHARS and _is_harmless(text):
            return yaml.load(text, Loader=_Loader)  # noqa: S506, TID251 - a safe loader, behind the check
    except (ValueError, yaml.YAMLError):
        pass
    return text


def _is_harmless(text: str) -> bool:
    """Whether building the values takes no longer than looking at the text."""
    depth = 0
    parse: Callable[..., Iterator[yaml.Event]] = getattr(yaml, 'parse')  # noqa: B009 - its stub has no types
    for count, event in enumerate(parse(text, Loader=_Loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if count >= MAX_YAML_EVENTS or depth > MAX_VALUE_DEPTH or _is_harmful(event):
            return False
    return True


def _is_harmful(event: yaml.Event) -> bool:
    """Whether it is an alias, which can multiply; a tag, which can fail in any way; or a very long number."""
    if isinstance(event, yaml.ScalarEvent):
        value: str = event.value
        looks_like_number = event.implicit[0] and value[:1] in _BEGINS_NUMBER and ' ' not in value
        return event.tag is not None or (looks_like_number and len(value) > MAX_NUMBER_CHARS)
    return isinstance(event, yaml.AliasEvent) or getattr(event, 'tag', None) is not None
