"""The table `[tool.pydantic-ai-skills]` of a `pyproject.toml`: read as data, edited as text.

An edit is read back and used only if it changed what it should and nothing else. TOML libraries that keep comments
move or drop those between two tables, so the edits are made here.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
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

    into: FolderName | None = None
    """A folder of the project to keep its files in, besides the cache."""

    allow: tuple[Literal['file', 'http'], ...] = ()
    """Protocols that are not allowed by default."""

    @classmethod
    def parse(cls, address: str) -> ProjectSource:
        """The source that `URL`, `URL@ref` or the address of a folder on a code host means.

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
    lines = [f'{key} = {_value(value)}' for key, value in fields.items()]
    block = '\n'.join((f'[[tool.{TABLE}.{SOURCES}]]', *lines, ''))
    newline = '\r\n' if '\r\n' in text else '\n'
    before = text.rstrip()
    edited = f'{before}{newline * 2 if before else ""}{block.replace(chr(10), newline)}'
    sources = table.setdefault(SOURCES, [])
    if isinstance(sources, list):
        cast('list[Any]', sources).append(dict(fields))
    if not _is(edited, expected):
        raise SkillValidationError(f'pyproject.toml cannot be edited here. Add this to it by hand:\n\n{block}')
    return edited


def remove_source(text: str, index: int) -> str:
    """The text without one of its sources."""
    expected = tomllib.loads(text)
    sources = expected['tool'][TABLE][SOURCES]
    url = sources.pop(index).get('url')
    if not sources:
        del expected['tool'][TABLE][SOURCES]
    lines = text.splitlines(keepends=True)
    for start, line in enumerate(lines):
        # What looks like a heading may be part of a string, so the result decides.
        if _HEADING.match(line.rstrip('\r\n')):
            edited = _without_block(lines, start)
            if _is(edited, expected):
                return edited
    raise SkillValidationError(f'pyproject.toml cannot be edited here. Remove the source {url!r} from it by hand.')


def _without_block(lines: list[str], start: int) -> str:
    end = next((n for n in range(start + 1, len(lines)) if _ANY_HEADING.match(lines[n])), len(lines))
    # Comments and blank lines before the next heading belong to it.
    while end > start + 1 and _EMPTY.match(lines[end - 1].rstrip('\r\n')):
        end -= 1
    while start > 0 and not lines[start - 1].strip():
        start -= 1
    return ''.join((*lines[:start], *lines[end:]))


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
