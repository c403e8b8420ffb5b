"""The table `[tool.pydantic-ai-skills]` of a `pyproject.toml`: read as data, edited as text so that the rest stays.

An edit is made on the text, read back, and given out only if it changed what it should and nothing else.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.execution.policy import ScriptDecision
from pydantic_ai_skills.registries.lockfile import quote

if TYPE_CHECKING:
    from pydantic_ai_skills.registries.base import SkillRegistry

__all__ = (
    'ProjectSettings',
    'ProjectSource',
    'add_source',
    'read_settings',
    'read_table',
    'remove_source',
    'source_block',
    'text_of',
)

TABLE = 'pydantic-ai-skills'
SOURCES = 'git'

_HEADING = re.compile(rf'^[ \t]*\[\[[ \t]*tool[ \t]*\.[ \t]*(["\']?){TABLE}\1[ \t]*\.[ \t]*{SOURCES}[ \t]*\]\].*$')
_ANY_HEADING = re.compile(r'^[ \t]*\[')
_EMPTY = re.compile(r'^[ \t]*(#.*)?$')


_SCHEME = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*://')
_SCP = re.compile(r'[^/\\]+:')


def _key(name: str) -> str:
    return name.replace('_', '-')


class _Settings(BaseModel):
    model_config = ConfigDict(extra='forbid', frozen=True, alias_generator=_key, populate_by_name=True)


class ProjectSource(_Settings):
    """A git repository that a project has skills from: one `[[tool.pydantic-ai-skills.git]]`."""

    url: str
    """Its address; a local path is taken from the project's folder."""

    ref: str | None = None
    """A branch, a tag or a full commit; the default branch when not given."""

    path: str = ''
    """The folder in it to look for skills in; it may be a skill itself."""

    prefix: str = ''
    """What the names of its skills begin with here."""

    trusted: bool = False
    """Whether you vouch for it, so that its scripts may run outside a sandbox."""

    token_env: str | None = None
    """An environment variable that holds a token for it."""

    ssh_key_file: str | None = None
    """The private key for an `ssh` address."""

    into: str | None = None
    """A folder of the project to keep its files in, besides the cache."""

    allow: tuple[Literal['file', 'http'], ...] = ()
    """Ways to reach it that are not allowed by default."""

    def fields(self) -> dict[str, Any]:
        """What the file has to say about it."""
        return self.model_dump(mode='json', by_alias=True, exclude_defaults=True)

    def named(self, registry: SkillRegistry) -> SkillRegistry:
        """Its registry, with the names that its skills have here."""
        return registry.prefixed(self.prefix) if self.prefix else registry

    @property
    def is_local(self) -> bool:
        """Whether the address is a path on this machine."""
        return not _SCHEME.match(self.url) and not _SCP.match(self.url)

    def __str__(self) -> str:
        return f'{self.url}{f"@{self.ref}" if self.ref else ""}{f" ({self.path})" if self.path else ""}'


class ProjectSettings(_Settings):
    """What `[tool.pydantic-ai-skills]` says."""

    directories: tuple[str, ...] | Literal['standard'] | None = None
    packages: tuple[str, ...] | Literal['all'] = ()
    trusted_packages: tuple[str, ...] = ()
    max_depth: int | None = Field(default=3, ge=0)
    catalog_budget: int | None = Field(default=None, ge=0)
    sandbox: bool | None = None
    policy: ScriptDecision | None = None
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    pass_env: tuple[str, ...] = ()
    git: tuple[ProjectSource, ...] = ()


def text_of(file: Path) -> str:
    """The text of a file, empty if it is not there.

    Raises:
        SkillValidationError: It cannot be read.
    """
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ''
    except (OSError, UnicodeDecodeError) as error:
        raise SkillValidationError(f'{file} cannot be read: {error}.') from None


def read_settings(file: Path) -> ProjectSettings:
    """What a file says about skills.

    Raises:
        SkillValidationError: The file is not TOML, or its table has something else in it than it can have.
    """
    table = read_table(text_of(file), label=str(file))
    try:
        return ProjectSettings.model_validate(table or {})
    except ValidationError as error:
        wrong: dict[str, list[str]] = {}
        for each in error.errors():
            # Of the ways a value can be right, only the messages are told, not what they are called: `tuple[str, ...]`.
            place = '.'.join(str(part) for part in each['loc'] if '[' not in str(part))
            model = ProjectSettings if len(each['loc']) == 1 else ProjectSource
            known = f'is not a setting; there are {", ".join(map(_key, model.model_fields))}'
            message = known if each['type'] == 'extra_forbidden' else each['msg'].replace('valid tuple', 'list')
            wrong.setdefault(place, []).append(message)
        told = '; '.join(f'{place!r}: {" or ".join(messages)}' for place, messages in wrong.items())
        raise SkillValidationError(f'{file}: in [tool.{TABLE}], {told}.') from None


def read_table(text: str, *, label: str = 'pyproject.toml') -> dict[str, Any] | None:
    """The table, or `None` if the file has none.

    Raises:
        SkillValidationError: The file is not TOML, or the table is not a table.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SkillValidationError(f'{label} is not valid TOML: {error}.') from None
    table: object = document
    for key in ('tool', TABLE):
        if not isinstance(table, dict):
            raise SkillValidationError(f'{label}: `tool` is not a table.')
        table = cast('dict[str, object]', table).get(key, {} if key == 'tool' else None)
    if table is not None and not isinstance(table, dict):
        raise SkillValidationError(f'{label}: `tool.{TABLE}` is not a table.')
    return cast('dict[str, Any] | None', table)


def source_block(fields: Mapping[str, Any]) -> str:
    """A source as the file has it."""
    lines = [f'{key} = {_value(value)}' for key, value in fields.items()]
    return '\n'.join((f'[[tool.{TABLE}.{SOURCES}]]', *lines, ''))


def add_source(text: str, fields: Mapping[str, Any], *, label: str = 'pyproject.toml') -> str:
    """The text with one more source at its end.

    Raises:
        SkillValidationError: It cannot be added like that; the message has the lines to add by hand.
    """
    expected = tomllib.loads(text)
    table = expected.setdefault('tool', {}).setdefault(TABLE, {})
    block = source_block(fields)
    newline = '\r\n' if '\r\n' in text else '\n'
    before = text.rstrip()
    edited = f'{before}{newline * 2 if before else ""}{block.replace(chr(10), newline)}'
    sources = table.setdefault(SOURCES, [])
    if isinstance(sources, list):
        cast('list[Any]', sources).append(dict(fields))
    if not _is(edited, expected):
        raise SkillValidationError(f'{label} cannot be edited here. Add this to it by hand:\n\n{block}')
    return edited


def remove_source(text: str, index: int, *, label: str = 'pyproject.toml') -> str:
    """The text without one of its sources.

    Raises:
        SkillValidationError: It cannot be removed like that.
    """
    expected = tomllib.loads(text)
    sources = expected['tool'][TABLE][SOURCES]
    failure = f'{label} cannot be edited here. Remove the source {sources[index].get("url")!r} from it by hand.'
    del sources[index]
    if not sources:
        del expected['tool'][TABLE][SOURCES]
    lines = text.splitlines(keepends=True)
    for start, line in enumerate(lines):
        # What looks like a heading may be part of a text, so the result decides which one is meant.
        if _HEADING.match(line.rstrip('\r\n')):
            edited = _without_block(lines, start)
            if _is(edited, expected):
                return edited
    raise SkillValidationError(failure)


def _without_block(lines: list[str], start: int) -> str:
    end = next((n for n in range(start + 1, len(lines)) if _ANY_HEADING.match(lines[n])), len(lines))
    # Comments and blank lines before the next heading belong to that.
    while end > start + 1 and _EMPTY.match(lines[end - 1].rstrip('\r\n')):
        end -= 1
    while start > 0 and not lines[start - 1].strip():
        start -= 1
    return ''.join((*lines[:start], *lines[end:]))


def _is(text: str, expected: Mapping[str, Any]) -> bool:
    """Whether a text says this, and is TOML at all."""
    try:
        return _without_empty(tomllib.loads(text)) == _without_empty(expected)
    except tomllib.TOMLDecodeError:
        return False


def _without_empty(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without our table if that is empty, since a table that only its arrays made goes with them."""
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
