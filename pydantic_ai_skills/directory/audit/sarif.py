"""Reads what other scanners found, as SARIF. Its text is not trusted: it is bounded, checked and cleaned."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast, get_args
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import read_regular
from pydantic_ai_skills.parsing.characters import hidden_characters
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.ledger import ScanVerdict

from .audit import SCANNER, verdict_of

MAX_SARIF_BYTES = 16 * 1024 * 1024
"""A larger document is not read."""

MAX_RESULTS = 10_000
"""How many results a run may have."""

MAX_TEXT = 500
"""How much of a message is kept."""

MAX_RUNS = 100
"""How many runs a document may have."""

MAX_LINE = 10**7
"""The last line that a result may name."""

Level = Literal['error', 'warning', 'note', 'none']


@dataclass(frozen=True, kw_only=True)
class SarifResult:
    """One result of a scanner."""

    rule: str
    level: Level
    message: str
    path: str | None
    """The file it is about; `None` if it names none."""

    line: int | None


@dataclass(frozen=True, kw_only=True)
class SarifRun:
    """What one scanner found in one run."""

    scanner: str
    version: str
    results: tuple[SarifResult, ...]

    def without(self, rules: Collection[str]) -> SarifRun:
        """The run without the results of some rules."""
        return replace(self, results=tuple(each for each in self.results if each.rule not in rules))

    def about(self, folder: str) -> SarifRun:
        """The run with only those results that are about files in a folder."""
        inside = f'{os.path.realpath(folder)}{os.sep}'
        return replace(self, results=tuple(each for each in self.results if f'{each.path}{os.sep}'.startswith(inside)))

    @property
    def problems(self) -> tuple[SkillProblem, ...]:
        """Its errors and warnings."""
        return tuple(map(self._problem, (each for each in self.results if each.level in ('error', 'warning'))))

    def _problem(self, result: SarifResult) -> SkillProblem:
        message = f'{self.scanner} {result.rule}: {result.message}'
        found = problem('scanner-finding', result.path or '', message, result.line)
        return found if result.level == 'error' else replace(found, severity='warning')

    @property
    def verdict(self) -> ScanVerdict:
        """What to record about the skill that all its results are about."""
        notes = len(self.results) - len(self.problems)
        return verdict_of(self.problems, scanner=self.scanner, scanner_version=self.version, notes=notes)


def merge_runs(runs: Iterable[SarifRun]) -> list[SarifRun]:
    """The runs, with those of one scanner joined, so that a later run does not replace an earlier one."""
    merged: dict[str, SarifRun] = {}
    for run in runs:
        known = merged.get(run.scanner)
        merged[run.scanner] = replace(run, results=(*known.results, *run.results)) if known else run
    return list(merged.values())


def read_sarif(file: Path, *, root: Path | None = None) -> list[SarifRun]:
    """Read the runs in a SARIF file. Relative paths in it start from `root`, or else from the current folder.

    Raises:
        SkillValidationError: It cannot be read, or is not SARIF.
    """
    try:
        data = read_regular(file, MAX_SARIF_BYTES, follow_links=True)
    except OSError as error:
        raise SkillValidationError(f'{file} cannot be read: {error.strerror}.') from None
    return parse_sarif(data, root=root or Path.cwd(), label=str(file))


def parse_sarif(data: bytes, *, root: Path, label: str) -> list[SarifRun]:
    """The runs in a SARIF document.

    Raises:
        SkillValidationError: It is not SARIF, or has too many results.
    """
    try:
        document = _Document.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = _clean('.'.join(map(str, first['loc'])), MAX_TEXT)
        raise SkillValidationError(f'{label} is not SARIF: {place or "document"}: {first["msg"]}.') from None
    return [_read_run(run, root) for run in document.runs]


class _Of(BaseModel):
    """A part of a document. SARIF has much more than is read here."""

    model_config = ConfigDict(alias_generator=to_camel)


class _Configuration(_Of):
    level: str = 'warning'


class _Rule(_Of):
    id: str
    default_configuration: _Configuration = _Configuration()


class _Driver(_Of):
    name: str
    version: str | None = None
    semantic_version: str | None = None
    rules: list[_Rule] = []


class _Tool(_Of):
    driver: _Driver


class _Artifact(_Of):
    uri: str | None = None
    uri_base_id: str | None = None


class _Region(_Of):
    start_line: int | None = None


class _Place(_Of):
    artifact_location: _Artifact = _Artifact()
    region: _Region = _Region()


class _Location(_Of):
    physical_location: _Place = _Place()


class _Message(_Of):
    text: str = ''


class _Result(_Of):
    rule_id: str | None = None
    rule_index: int = -1
    level: str | None = None
    message: _Message = _Message()
    locations: list[_Location] = []


class _Run(_Of):
    tool: _Tool
    original_uri_base_ids: dict[str, _Artifact] = {}
    results: list[_Result] = Field(default=[], max_length=MAX_RESULTS)


class _Document(_Of):
    runs: list[_Run] = Field(min_length=1, max_length=MAX_RUNS)


def _read_run(run: _Run, root: Path) -> SarifRun:
    driver = run.tool.driver
    version = driver.semantic_version or driver.version or ''
    levels = {rule.id: rule.default_configuration.level for rule in driver.rules}
    results = tuple(_read_result(result, run, levels, root) for result in run.results)
    name = _clean(driver.name, 60) or 'unnamed'
    # Nobody else speaks for the built-in checks.
    scanner = f'{name} (SARIF)' if name.lower() == SCANNER else name
    return SarifRun(scanner=scanner, version=_clean(version, 40), results=results)


def _read_result(result: _Result, run: _Run, levels: Mapping[str, str], root: Path) -> SarifResult:
    rules, index = run.tool.driver.rules, result.rule_index
    rule = result.rule_id or (rules[index].id if 0 <= index < len(rules) else 'unnamed')
    level = result.level or levels.get(rule, 'warning')
    place = result.locations[0].physical_location if result.locations else _Place()
    artifact, line = place.artifact_location, place.region.start_line
    base = run.original_uri_base_ids.get(artifact.uri_base_id or '', _Artifact())
    return SarifResult(
        rule=_clean(rule, 100),
        # An unknown level may be the worst.
        level=cast('Level', level) if level in get_args(Level) else 'error',
        message=_clean(result.message.text, MAX_TEXT),
        path=None if artifact.uri is None else _path(artifact.uri, base.uri or '', root),
        line=line if line is not None and 0 < line < MAX_LINE else None,
    )


def _path(uri: str, base: str, root: Path) -> str | None:
    """The file that a URI names, if it is on this machine. Nothing is read from it."""
    start = _local(base) if base else ''
    named = _local(uri)
    if named is None or start is None or '\0' in named + start:
        return None
    return os.path.realpath(os.path.join(root, start, named))


def _local(uri: str) -> str | None:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme not in ('', 'file') or (parts.netloc and parts.netloc != 'localhost'):
        return None
    return unquote(parts.path)


def _clean(text: object, limit: int) -> str:
    """Untrusted text on one line, without hidden characters."""
    shown = ' '.join(hidden_characters().sub('', str(text)[: 4 * limit]).split())
    return shown if len(shown) <= limit else f'{shown[:limit]}…'
