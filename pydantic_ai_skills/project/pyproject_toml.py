"""The table `[tool.pydantic-ai-skills]` of a `pyproject.toml`: read as data, edited as text.

An edit is read back and used only if it changed what it should and nothing else. TOML libraries that keep comments
move or drop those between two tables, so the edits are made here.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pydantic_ai_skills.capability.spec import SourceSettings, describe_misfit
from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.execution.gate import ScriptDecision
from pydantic_ai_skills.filesystem.safe_open import read_regular
from pydantic_ai_skills.parsing.toml_reader import load_toml
from pydantic_ai_skills.registries.address import KINDS, SourceAddress, parse_source
from pydantic_ai_skills.registries.facts_toml import quote
from pydantic_ai_skills.registries.requirements import Requirement
from pydantic_ai_skills.registries.signatures import SigstoreIdentity

MAX_PROJECT_BYTES = 256 * 1024
"""A larger file is not read: it comes with whatever is checked out."""

TABLE = 'pydantic-ai-skills'

_HEADING = re.compile(
    rf'^[ \t]*\[\[[ \t]*tool[ \t]*\.[ \t]*(["\']?){TABLE}\1[ \t]*\.[ \t]*(["\']?)(?P<kind>[a-z-]+)\2[ \t]*\]\].*$'
)
_ANY_HEADING = re.compile(r'^[ \t]*\[')
_EMPTY = re.compile(r'^[ \t]*(#.*)?$')


_IN_TOML = ConfigDict(
    extra='forbid', frozen=True, alias_generator=lambda name: name.replace('_', '-'), populate_by_name=True
)


FolderName = Annotated[str, Field(pattern=r'^[^\x00]*$')]
"""The path of a folder. No system allows a NUL in it."""


class ProjectSource(SourceSettings):
    """A source that a project has skills from: one table `[[tool.pydantic-ai-skills.git]]`, or of another kind."""

    model_config = _IN_TOML

    skills: tuple[str, ...] = ()
    """The names of the skills to take, as the source has them; all of them when empty."""

    into: FolderName | None = None
    """A folder of the project to keep its files in, besides the cache."""

    allow: tuple[Literal['file', 'http', 'local'], ...] = ()
    """Protocols that are not allowed by default."""

    @classmethod
    def parse(cls, address: str) -> ProjectSource:
        """The source that an address means: any that `open_registry` takes.

        Raises:
            SkillValidationError: It is not an address that is known here.
        """
        kind, url, ref, path = parse_source(address)
        return cls(kind=kind, url=url, ref=ref, path=path)

    @classmethod
    def of(cls, **settings: Any) -> ProjectSource:
        """A source with these settings.

        Raises:
            SkillValidationError: A setting does not fit, or its kind does not have it.
        """
        try:
            return cls(**settings)
        except ValidationError as error:
            raise SkillValidationError(f'The source does not fit: {describe_misfit(error, cls)}.') from None

    def fields(self) -> dict[str, Any]:
        """Its settings as the file has them."""
        return self.model_dump(mode='json', by_alias=True, exclude_defaults=True)

    @property
    def is_local(self) -> bool:
        """Whether the address is a path on this machine."""
        return SourceAddress(self.kind, self.url).is_local

    def __str__(self) -> str:
        kind = f'{self.kind}+' if self.kind in ('marketplace', 'mcp') else ''
        return f'{kind}{self.url}{f"@{self.ref}" if self.ref else ""}{f" ({self.path})" if self.path else ""}'


class ProjectSettings(BaseModel):
    """What `[tool.pydantic-ai-skills]` says."""

    model_config = _IN_TOML

    directories: tuple[FolderName, ...] | Literal['standard'] | None = None
    packages: tuple[str, ...] | Literal['all'] = ()
    trusted_packages: tuple[str, ...] = ()
    max_depth: int | None = Field(default=3, ge=0)
    catalog_budget: int | None = Field(default=None, ge=0)
    sandbox: bool | None = None
    policy: ScriptDecision | None = None
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    pass_env: tuple[str, ...] = ()
    require: tuple[Requirement, ...] = ()
    """What the skills of all its sources must have to be offered."""

    signers: tuple[str | SigstoreIdentity, ...] = ()
    """Who may sign the skills of all its sources."""

    sources: tuple[ProjectSource, ...] = Field(default=(), exclude=True)
    """What the tables of all kinds of sources say, in the order of the file."""

    @classmethod
    def setting_names(cls) -> list[str]:
        """The names of the settings that people write: each kind of source has a table."""
        return [*(name.replace('_', '-') for name in cls.model_fields if name != 'sources'), *KINDS]

    def as_data(self) -> ProjectSettings:
        """The settings that count in an untrusted checkout: what to look at, and nothing about what runs and how."""
        shown = ('directories', 'max_depth', 'catalog_budget', 'sources')
        return ProjectSettings().model_copy(update={name: getattr(self, name) for name in shown})


def text_of(file: Path) -> str:
    """The text of a file; empty if it does not exist."""
    try:
        return read_regular(file, MAX_PROJECT_BYTES, follow_links=True).decode()
    except FileNotFoundError:
        return ''
    except (OSError, UnicodeDecodeError) as error:
        raise SkillValidationError(f'{file} cannot be read: {error}.') from None


def read_settings(file: Path) -> ProjectSettings:
    """What a file says about skills."""
    table = read_table(text_of(file), label=str(file)) or {}
    tables = {kind: table[kind] for kind in table if kind in KINDS}
    wrong = [kind for kind, entries in tables.items() if not isinstance(entries, list)]
    if wrong or 'sources' in table:
        misfit = f'{wrong[0]!r}: Input should be a list' if wrong else f"'sources' is one of {', '.join(KINDS)}"
        raise SkillValidationError(f'{file}: in [tool.{TABLE}], {misfit}.')
    places = [(kind, n) for kind, entries in tables.items() for n in range(len(entries))]
    sources = [_of_kind(kind, tables[kind][n]) for kind, n in places]
    others = {name: value for name, value in table.items() if name not in tables}
    try:
        return ProjectSettings.model_validate({**others, 'sources': sources})
    except ValidationError as error:
        misfit = describe_misfit(error, ProjectSettings, ProjectSource, places=places)
        raise SkillValidationError(f'{file}: in [tool.{TABLE}], {misfit}.') from None


def _of_kind(kind: str, entry: object) -> object:
    """An entry of a table of sources, with the kind that the table stands for."""
    return {**cast('dict[str, object]', entry), 'kind': kind} if isinstance(entry, dict) else entry


def read_table(text: str, *, label: str = 'pyproject.toml') -> dict[str, Any] | None:
    """The table, or `None` if the file has none."""
    try:
        document = load_toml(text)
    except (ValueError, RecursionError) as error:
        raise SkillValidationError(f'{label} is not valid TOML: {error}.') from None
    table: object = document
    for key in ('tool', TABLE):
        if not isinstance(table, dict):
            raise SkillValidationError(f'{label}: `tool` is not a table.')
        table = cast('dict[str, object]', table).get(key, {} if key == 'tool' else None)
    if table is not None and not isinstance(table, dict):
        raise SkillValidationError(f'{label}: `tool.{TABLE}` is not a table.')
    return cast('dict[str, Any] | None', table)


def add_source(text: str, fields: Mapping[str, Any], *, kind: str = 'git') -> str:
    """The text with one more source at its end. If it cannot be added, the error has the lines to add by hand."""
    expected = tomllib.loads(text)
    table = expected.setdefault('tool', {}).setdefault(TABLE, {})
    block = ''.join((f'[[tool.{TABLE}.{kind}]]\n', *_lines(fields, '')))
    newline = '\r\n' if '\r\n' in text else '\n'
    before = text.rstrip()
    edited = f'{before}{newline * 2 if before else ""}{block.replace(chr(10), newline)}'
    sources = table.setdefault(kind, [])
    if isinstance(sources, list):
        cast('list[Any]', sources).append(dict(fields))
    if not _is(edited, expected):
        raise SkillValidationError(f'pyproject.toml cannot be edited here. Add this to it by hand:\n\n{block}')
    return edited


def change_source(text: str, index: int, fields: Mapping[str, Any], *, kind: str = 'git') -> str:
    """The text with other settings for one of its sources of a kind, which keeps its place and its comments."""
    expected = tomllib.loads(text)
    sources = expected['tool'][TABLE][kind]
    before, sources[index] = sources[index], dict(fields)
    lines = (text if text.endswith('\n') else f'{text}\n').splitlines(keepends=True)
    for start, end in _blocks(lines, kind):
        for block in (_changed(lines[start:end], before, fields), [lines[start], *_lines(fields, lines[start])]):
            edited = ''.join((*lines[:start], *block, *lines[end:]))
            if _is(edited, expected):
                return edited
    block = ''.join((f'[[tool.{TABLE}.{kind}]]\n', *_lines(fields, '')))
    raise SkillValidationError(f'pyproject.toml cannot be edited here. Write this source by hand:\n\n{block}')


def _changed(block: list[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The lines of a source with each changed setting on the line where it was, and new ones at the end."""
    changed: list[str] = []
    left = dict(after)
    for line in block:
        key = line.partition('=')[0].strip().strip('"\'')
        if key not in before:
            changed.append(line)
        elif key in after:
            old, new = (f'{key} = {_value(value)}' for value in (before[key], left.pop(key)))
            rest = line.removeprefix(old)
            changed.append(line if old == new else f'{new}{rest}' if rest != line else f'{new}{_newline(line)}')
    return [*changed, *_lines(left, block[0])]


def _lines(fields: Mapping[str, Any], heading: str) -> list[str]:
    """The lines of settings, with the line ending of the heading above them."""
    return [f'{key} = {_value(value)}{_newline(heading)}' for key, value in fields.items()]


def _newline(line: str) -> str:
    return '\r\n' if line.endswith('\r\n') else '\n'


def remove_source(text: str, index: int, *, kind: str = 'git') -> str:
    """The text without one of its sources of a kind."""
    expected = tomllib.loads(text)
    sources = expected['tool'][TABLE][kind]
    url = sources.pop(index).get('url')
    if not sources:
        del expected['tool'][TABLE][kind]
    lines = text.splitlines(keepends=True)
    blocks = list(_blocks(lines, kind))
    for start, end in blocks[index:] + blocks[:index]:
        while start > 0 and not lines[start - 1].strip():
            start -= 1
        edited = ''.join((*lines[:start], *lines[end:]))
        if _is(edited, expected):
            return edited
    raise SkillValidationError(f'pyproject.toml cannot be edited here. Remove the source {url!r} from it by hand.')


def _blocks(lines: list[str], kind: str) -> Iterator[tuple[int, int]]:
    """Where the table of each source of a kind begins and ends.

    What looks like a heading may be part of a string, so the caller has to check the result of an edit.
    """
    for start, line in enumerate(lines):
        heading = _HEADING.match(line.rstrip('\r\n'))
        if heading is not None and heading['kind'] == kind:
            end = next((n for n in range(start + 1, len(lines)) if _ANY_HEADING.match(lines[n])), len(lines))
            # Comments and blank lines before the next heading belong to that heading.
            while end > start + 1 and _EMPTY.match(lines[end - 1].rstrip('\r\n')):
                end -= 1
            yield start, end


def _is(text: str, expected: Mapping[str, Any]) -> bool:
    """Whether a text is TOML with this content."""
    try:
        return _without_empty(tomllib.loads(text)) == _without_empty(expected)
    except tomllib.TOMLDecodeError:
        return False


def _without_empty(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without our table if it is empty: a table that exists only through its arrays goes with them."""
    result = copy.deepcopy(dict(document))
    tools = result.get('tool', {})
    if tools.get(TABLE) == {}:
        del tools[TABLE]
    if tools == {}:
        result.pop('tool', None)
    return result


def _value(value: object) -> str:
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, list | tuple):
        return f'[{", ".join(map(_value, cast("list[Any]", value)))}]'
    if isinstance(value, dict):
        pairs = cast('dict[str, Any]', value).items()
        return f'{{ {", ".join(f"{key} = {_value(each)}" for key, each in pairs)} }}'
    return quote(str(value))
