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

from pydantic_ai_skills.capability.spec import GitSource, describe_misfit
from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.execution.gate import ScriptDecision
from pydantic_ai_skills.filesystem.safe_open import read_regular
from pydantic_ai_skills.parsing.toml_reader import load_toml
from pydantic_ai_skills.registries.git.address import is_local_path, split_address
from pydantic_ai_skills.registries.lockfile import quote

MAX_PROJECT_BYTES = 256 * 1024
"""A larger file is not read: it comes with whatever is checked out."""

TABLE = 'pydantic-ai-skills'
SOURCES = 'git'

_HEADING = re.compile(rf'^[ \t]*\[\[[ \t]*tool[ \t]*\.[ \t]*(["\']?){TABLE}\1[ \t]*\.[ \t]*{SOURCES}[ \t]*\]\].*$')
_ANY_HEADING = re.compile(r'^[ \t]*\[')
_EMPTY = re.compile(r'^[ \t]*(#.*)?$')


_IN_TOML = ConfigDict(
    extra='forbid', frozen=True, alias_generator=lambda name: name.replace('_', '-'), populate_by_name=True
)


FolderName = Annotated[str, Field(pattern=r'^[^\x00]*$')]
"""The path of a folder, which no system lets have a NUL."""


class ProjectSource(GitSource):
    """A git repository that a project has skills from: one `[[tool.pydantic-ai-skills.git]]`."""

    model_config = _IN_TOML

    skills: tuple[str, ...] = ()
    """The names of the skills to take, as the repository has them; all of them when empty."""

    into: FolderName | None = None
    """A folder of the project to keep its files in, besides the cache."""

    allow: tuple[Literal['file', 'http'], ...] = ()
    """Protocols that are not allowed by default."""

    @classmethod
    def parse(cls, address: str) -> ProjectSource:
        """The source that `owner/repository`, `URL`, `URL@ref` or the address of a folder on a code host means.

        Raises:
            SkillValidationError: It is none of them.
        """
        url, ref, path = split_address(address)
        return cls(url=url, ref=ref, path=path)

    def fields(self) -> dict[str, Any]:
        """Its settings as the file has them."""
        return self.model_dump(mode='json', by_alias=True, exclude_defaults=True)

    @property
    def is_local(self) -> bool:
        """Whether the address is a path on this machine."""
        return is_local_path(self.url)

    def __str__(self) -> str:
        return f'{self.url}{f"@{self.ref}" if self.ref else ""}{f" ({self.path})" if self.path else ""}'


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
    git: tuple[ProjectSource, ...] = ()

    def as_data(self) -> ProjectSettings:
        """What counts of an untrusted checkout: what there is to see, and nothing about what runs and how."""
        shown = ('directories', 'max_depth', 'catalog_budget', 'git')
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
    table = read_table(text_of(file), label=str(file))
    try:
        return ProjectSettings.model_validate(table or {})
    except ValidationError as error:
        misfit = describe_misfit(error, ProjectSettings, ProjectSource)
        raise SkillValidationError(f'{file}: in [tool.{TABLE}], {misfit}.') from None


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


def add_source(text: str, fields: Mapping[str, Any]) -> str:
    """The text with one more source at its end. If it cannot be added, the error has the lines to add by hand."""
    expected = tomllib.loads(text)
    table = expected.setdefault('tool', {}).setdefault(TABLE, {})
    block = ''.join((f'[[tool.{TABLE}.{SOURCES}]]\n', *_lines(fields, '')))
    newline = '\r\n' if '\r\n' in text else '\n'
    before = text.rstrip()
    edited = f'{before}{newline * 2 if before else ""}{block.replace(chr(10), newline)}'
    sources = table.setdefault(SOURCES, [])
    if isinstance(sources, list):
        cast('list[Any]', sources).append(dict(fields))
    if not _is(edited, expected):
        raise SkillValidationError(f'pyproject.toml cannot be edited here. Add this to it by hand:\n\n{block}')
    return edited


def change_source(text: str, index: int, fields: Mapping[str, Any]) -> str:
    """The text with other settings for one of its sources, which keeps its place and its comments."""
    expected = tomllib.loads(text)
    sources = expected['tool'][TABLE][SOURCES]
    before, sources[index] = sources[index], dict(fields)
    lines = (text if text.endswith('\n') else f'{text}\n').splitlines(keepends=True)
    for start, end in _blocks(lines):
        for block in (_changed(lines[start:end], before, fields), [lines[start], *_lines(fields, lines[start])]):
            edited = ''.join((*lines[:start], *block, *lines[end:]))
            if _is(edited, expected):
                return edited
    block = ''.join((f'[[tool.{TABLE}.{SOURCES}]]\n', *_lines(fields, '')))
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
    """The lines of settings, ended as the heading above them is."""
    return [f'{key} = {_value(value)}{_newline(heading)}' for key, value in fields.items()]


def _newline(line: str) -> str:
    return '\r\n' if line.endswith('\r\n') else '\n'


def remove_source(text: str, index: int) -> str:
    """The text without one of its sources."""
    expected = tomllib.loads(text)
    sources = expected['tool'][TABLE][SOURCES]
    url = sources.pop(index).get('url')
    if not sources:
        del expected['tool'][TABLE][SOURCES]
    lines = text.splitlines(keepends=True)
    blocks = list(_blocks(lines))
    for start, end in blocks[index:] + blocks[:index]:
        while start > 0 and not lines[start - 1].strip():
            start -= 1
        edited = ''.join((*lines[:start], *lines[end:]))
        if _is(edited, expected):
            return edited
    raise SkillValidationError(f'pyproject.toml cannot be edited here. Remove the source {url!r} from it by hand.')


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Where the table of each source begins and ends.

    What looks like a heading may be part of a string, so the caller has to check the result of an edit.
    """
    for start, line in enumerate(lines):
        if _HEADING.match(line.rstrip('\r\n')):
            end = next((n for n in range(start + 1, len(lines)) if _ANY_HEADING.match(lines[n])), len(lines))
            # Comments and blank lines before the next heading belong to it.
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
    return quote(str(value))
