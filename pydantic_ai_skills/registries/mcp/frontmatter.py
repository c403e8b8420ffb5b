"""The frontmatter in a listing: JSON that has to pass the rules for a `SKILL.md`, and to be the same as in the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai_skills.parsing import MAX_FRONTMATTER_BYTES, SkillHeader
from pydantic_ai_skills.parsing.findings import MAX_NESTING, Finding, Value, read_flag
from pydantic_ai_skills.parsing.frontmatter import Split, read_frontmatter, split
from pydantic_ai_skills.parsing.header import read_header
from pydantic_ai_skills.problems import RULES, SkillProblem, problem

_NULL = frozenset({'', '~', 'null', 'Null', 'NULL'})


def check_frontmatter(frontmatter: Any) -> dict[str, Any]:
    """Frontmatter of a listing, if it is a mapping of a size that a file could have.

    Raises:
        ValueError: It is not.
    """
    if not isinstance(frontmatter, dict):
        raise ValueError('its frontmatter is not a mapping')
    _check_values(cast(object, frontmatter), MAX_NESTING)
    try:
        size = len(json.dumps(frontmatter, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:
        raise ValueError('its frontmatter cannot be written as text') from None
    if size > MAX_FRONTMATTER_BYTES:
        raise ValueError(f'its frontmatter has more than {MAX_FRONTMATTER_BYTES:,} bytes')
    return cast('dict[str, Any]', frontmatter)


def _check_values(value: object, levels: int) -> None:
    if isinstance(value, str) and '\0' in value:
        raise ValueError('its frontmatter holds a NUL character')
    if isinstance(value, dict | list):
        if not levels:
            raise ValueError(f'its frontmatter is nested more than {MAX_NESTING} levels deep')
        if isinstance(value, dict):
            named = cast('dict[str, object]', value)
            inner = [*named, *named.values()]
        else:
            inner = cast('list[object]', value)
        for each in inner:
            _check_values(each, levels - 1)


def header_of(
    frontmatter: Mapping[str, Any], *, place: str, folder_name: str, validate: bool
) -> tuple[SkillHeader | None, list[SkillProblem]]:
    """The header that a `SKILL.md` with this frontmatter would have, and what is wrong with it."""
    fields = {name: _as_text(value) for name, value in frontmatter.items()}
    header, findings = read_header(fields, folder_name=folder_name, line_of=lambda _: None)
    wanted = [each for each in findings if validate or RULES[each.code].severity == 'error']
    return header, [problem(each.code, place, each.message) for each in wanted]


def same_frontmatter(listed: Mapping[str, Any], data: bytes) -> bool:
    """Whether the frontmatter of a `SKILL.md` is the listed one."""
    parts = split(data, complete=True)
    if not isinstance(parts, Split):
        return False
    read = read_frontmatter(parts.source)
    return not isinstance(read, Finding) and _same(dict(listed), read.fields)


def _as_text(value: Any) -> Value:
    """A value as YAML writes it, in the form in which frontmatter is read: text, or lists and mappings of text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {str(name): _as_text(each) for name, each in cast('dict[Any, Any]', value).items()}
    if isinstance(value, list):
        return [_as_text(each) for each in cast('list[Any]', value)]
    return '' if value is None else json.dumps(value)


def _same(listed: Any, read: Value) -> bool:
    """Whether a server may have read a JSON value from the YAML of which we made `read`.

    We read `1.10` as text; a server may read it as a number.
    """
    if isinstance(listed, dict):
        named = cast('dict[str, Any]', listed)
        return isinstance(read, dict) and named.keys() == read.keys() and all(_same(named[n], read[n]) for n in named)
    if isinstance(listed, list):
        items = cast('list[Any]', listed)
        return isinstance(read, list) and len(items) == len(read) and all(map(_same, items, read))
    if not isinstance(read, str):
        return False
    if isinstance(listed, str):
        return listed.strip() == read.strip()
    if listed is None:
        return read in _NULL
    return read_flag(read) is listed if isinstance(listed, bool) else _number(read) == listed


def _number(text: str) -> float | None:
    for read in (float, _whole_number):
        try:
            return read(text)
        except (ValueError, OverflowError):
            continue
    return None


def _whole_number(text: str) -> int:
    """A number as YAML may write it, in another base or with underscores."""
    return int(text[:64], 0)
