"""The part of `skills.lock` that says what is known about each content of a skill, one line for each fact.

```toml
[[content]]
hash = "sha256:9a1b…"
name = "pdf"
signed-by = "key sha256:77d0…"
score = { pass-rate = 0.95, cases = 20, model = "openai:gpt-5.2", baseline = "none", delta = 0.4 }

[content.scans]
"pydantic-ai-skills" = { version = "0.1.0", passed = true, errors = 0, warnings = 2, notes = 0 }
```
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pydantic_ai_skills.types.ledger import EvalScore, ScanVerdict, SkillFacts

DIGITS = 4
"""How many decimal places of a rate are written."""

_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[float, Field(allow_inf_nan=False)]


class _InToml(BaseModel):
    model_config = ConfigDict(
        extra='forbid', strict=True, alias_generator=lambda name: name.replace('_', '-'), validate_by_name=False
    )


class _Scan(_InToml):
    version: str = ''
    passed: bool
    errors: _Count = 0
    warnings: _Count = 0
    notes: _Count = 0
    ignored: list[str] = []


class _Score(_InToml):
    pass_rate: Annotated[float, Field(ge=0, le=1)]
    cases: _Count
    model: str
    baseline: str | None = None
    delta: _Share | None = None


class _Content(_InToml):
    hash: str
    name: str = ''
    signed_by: str | None = None
    score: _Score | None = None
    scans: dict[str, _Scan] = {}


def parse_facts(entries: Iterable[object]) -> dict[str, SkillFacts]:
    """The facts in a document, by content hash; `ValueError` if one does not fit."""
    try:
        return {content.hash: _facts(content) for content in map(_Content.model_validate, entries)}
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise ValueError(f'{".".join(map(str, ("content", *first["loc"])))}: {first["msg"]}') from None


def _facts(content: _Content) -> SkillFacts:
    scans = {name: ScanVerdict(scanner=name, **_plain(scan)) for name, scan in content.scans.items()}
    score = content.score and EvalScore(**_plain(content.score))
    return SkillFacts(name=content.name, signed_by=content.signed_by, scans=scans, score=score)


def _plain(value: BaseModel) -> dict[str, Any]:
    return {name: tuple(cast('list[str]', given)) if isinstance(given, list) else given for name, given in value}


def format_facts(facts: Mapping[str, SkillFacts]) -> str:
    """The facts as TOML, sorted by the names of the skills: a changed fact is a changed line."""
    in_order = sorted(facts.items(), key=lambda item: (item[1].name, item[0]))
    return ''.join(_section(content_hash, known) for content_hash, known in in_order)


def _section(content_hash: str, known: SkillFacts) -> str:
    named = {'hash': content_hash, 'name': known.name, 'signed-by': known.signed_by}
    lines = ['', '[[content]]', *(f'{name} = {quote(value)}' for name, value in named.items() if value)]
    if known.score is not None:
        lines.append(f'score = {_table(known.score)}')
    if known.scans:
        scans = (f'{quote(name)} = {_table(known.scans[name], "scanner")}' for name in sorted(known.scans))
        lines += ('', '[content.scans]', *scans)
    return '\n'.join((*lines, ''))


def _table(value: ScanVerdict | EvalScore, left_out: str = '') -> str:
    """The fields of a value as an inline table, without `left_out` and those that are empty."""
    return f'{{ {", ".join(_pairs(value, left_out))} }}'


def _pairs(value: ScanVerdict | EvalScore, left_out: str) -> Iterator[str]:
    for name in (each.name for each in fields(value)):
        given: object = getattr(value, name)
        if name != left_out and given not in (None, '', ()):
            yield f'{name.replace("_", "-")} = {_value(given)}'


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return f'[{", ".join(map(_value, cast("tuple[object, ...]", value)))}]'
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return quote(value) if isinstance(value, str) else str(round(cast('float', value), DIGITS))


def quote(text: str) -> str:
    """Quote a text for TOML."""
    # A JSON string is a TOML string, except that JSON does not escape DEL.
    return json.dumps(text, ensure_ascii=False).replace('\x7f', '\\u007f')
