"""Frontmatter fields → the header of a skill, with a problem for each Agent Skills rule they break."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic_ai_skills.exceptions import SkillValidationError

from .findings import Finding, Value, read_flag
from .skill_names import (
    MAX_COMPATIBILITY_LENGTH,
    MAX_DESCRIPTION_LENGTH,
    MAX_NAME_LENGTH,
    RESERVED_WORDS,
    check_skill_name,
    find_reserved_word,
    normalize_skill_name,
    shorten_skill_name,
)

if TYPE_CHECKING:
    from .tool_specs import ToolSpec

MAX_FRONTMATTER_BYTES = 64 * 1024
"""The frontmatter, with both `---` lines, must end within this many bytes of the file."""

MODEL_KEYS = ('model', 'model-settings', 'model_settings')
"""Keys by which skills for other programs choose a model; here the application does."""

TOOLS_KEYS = ('allowed-tools', 'allowed_tools')
"""The spellings of the key that lists tools; the first one counts."""

# Blanks and commas separate tools, but not within the brackets of `Bash(git add *)`.
_TOOL = r'(?:[^\s,()]++|\((?:[^()]++|\([^()]*+\))*+\)|[()])++'


class SkillHeader(NamedTuple):
    """What the frontmatter of a `SKILL.md` says about a skill."""

    name: str
    """A valid name: the one in the frontmatter, made usable if need be, or the folder's."""

    description: str
    """What the skill does and when to use it, in full."""

    license: str | None = None
    """The licence's name or the file that holds it."""

    compatibility: str | None = None
    """What the skill needs to run."""

    metadata: Mapping[str, Any] = MappingProxyType({})
    """The entries of the frontmatter's `metadata`, and every other key that has no meaning of its own here.

    Values are text, or lists and mappings of text. A key beside `metadata` that has another value in it is
    kept as `frontmatter.<key>`.
    """

    allowed_tools: tuple[str, ...] = ()
    """The tools that should need no approval once the skill is loaded, such as `Bash(git add *)`."""

    disable_model_invocation: bool = False
    """Whether only a person may load the skill: it is not shown to the model."""

    user_invocable: bool = True
    """Whether a person may load the skill by its name."""

    tool_specs: tuple[ToolSpec, ...] = ()
    """The typed tools it declares under `tools`."""


def restore_header(kept: Iterable[Any]) -> SkillHeader:
    """Restore a header from its fields after they went through JSON."""
    header = SkillHeader._make(tuple(cast('list[Any]', value)) if isinstance(value, list) else value for value in kept)
    if not header.tool_specs:
        return header
    from .tool_specs import restore_tools  # few skills declare tools

    return header._replace(tool_specs=restore_tools(header.tool_specs))


def read_header(
    fields: dict[str, Value], *, folder_name: str | None, line_of: Callable[[str], int | None]
) -> tuple[SkillHeader | None, list[Finding]]:
    """Apply the rules of the specification to frontmatter.

    Without a usable name or description there is no header. `line_of` gives the line of a top-level key.
    """
    unread = _Unread(dict(fields), line_of)
    name = _name(unread, folder_name)
    description = _description(unread)
    if name is None or description is None:
        return None, unread.findings
    _ignore_model(unread)
    _check_reserved(unread, name)
    header = SkillHeader(
        name=name,
        description=description,
        license=unread.text('license'),
        compatibility=_compatibility(unread),
        allowed_tools=_allowed_tools(unread),
        disable_model_invocation=unread.flag('disable-model-invocation', default=False),
        user_invocable=unread.flag('user-invocable', default=True),
        tool_specs=_tools(unread, name),
        # Last, because it takes all that is left.
        metadata=_metadata(unread),
    )
    return header, unread.findings


class _Unread:
    """The fields that are not read yet, and what was found in those that are."""

    def __init__(self, fields: dict[str, Value], line_of: Callable[[str], int | None]) -> None:
        self.fields = fields
        self.findings: list[Finding] = []
        self._line_of = line_of

    def found(self, code: str, key: str, message: str) -> None:
        self.findings.append(Finding(code, message, self._line_of(key)))

    def text(self, key: str) -> str | None:
        """Remove and return a text; a value of another kind stays and ends up in the metadata."""
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong_type(key, 'text')
            return None
        del self.fields[key]
        return value.strip() or None

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.fields.get(key)
        if value is None:
            return default
        flag = read_flag(value)
        if flag is None:
            self.wrong_type(key, "'true' or 'false'")
            return default
        del self.fields[key]
        return flag

    def wrong_type(self, key: str, expected: str) -> None:
        self.found('field-type', key, f'{key!r} should be {expected}. It is kept unchanged in the metadata.')


def _name(unread: _Unread, folder_name: str | None) -> str | None:
    value = unread.fields.pop('name', '')
    if not isinstance(value, str):
        return _another_name(unread, '', folder_name, 'name-invalid', 'The name is a list or a mapping.')
    given = value.strip()
    if not given:
        return _another_name(unread, '', folder_name, 'name-missing', 'There is no name.')
    try:
        name = check_skill_name(given)
    except SkillValidationError as e:
        code = 'name-too-long' if len(given) > MAX_NAME_LENGTH else 'name-invalid'
        return _another_name(unread, given, folder_name, code, str(e))
    if folder_name is not None and name != folder_name and name != unicodedata.normalize('NFKC', folder_name):
        message = f'The name {name!r} is not the name of the folder, {folder_name!r}. Rename one of them.'
        unread.found('name-mismatch', 'name', message)
    return name


def _another_name(unread: _Unread, given: str, folder_name: str | None, code: str, wrong: str) -> str | None:
    """Make a usable name from the given one or the folder's."""
    for make in normalize_skill_name, shorten_skill_name:
        for wording in given, folder_name or '':
            with suppress(SkillValidationError):
                name = make(wording)
                unread.found(code, 'name', f'{wrong} The skill is loaded as {name!r}.')
                return name
    unread.found('name-unusable', 'name', f'{wrong} Nor is there a folder whose name could be used.')
    return None


def _description(unread: _Unread) -> str | None:
    value = unread.fields.pop('description', '')
    if not isinstance(value, str):
        unread.found('description-not-text', 'description', 'The description is a list or a mapping. Write it as text.')
        return None
    description = value.strip()
    if not description:
        message = 'There is no description. Say what the skill does and when to use it.'
        unread.found('description-missing', 'description', message)
        return None
    if len(description) > MAX_DESCRIPTION_LENGTH:
        message = f'The description has {len(description)} characters; at most {MAX_DESCRIPTION_LENGTH} are allowed.'
        unread.found('description-too-long', 'description', message)
    return description


def _compatibility(unread: _Unread) -> str | None:
    text = unread.text('compatibility')
    if text and len(text) > MAX_COMPATIBILITY_LENGTH:
        message = f'The compatibility note has {len(text)} characters; at most {MAX_COMPATIBILITY_LENGTH} are allowed.'
        unread.found('compatibility-too-long', 'compatibility', message)
    return text


def _allowed_tools(unread: _Unread) -> tuple[str, ...]:
    key = next((key for key in TOOLS_KEYS if key in unread.fields), TOOLS_KEYS[0])
    value = unread.fields.pop(key, '')
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) < len(items):
        unread.fields[key] = value
        unread.wrong_type(key, 'text or a list of texts')
        return ()
    # Joined, because YAML cuts `[Bash(ls, pwd), Read]` inside the brackets.
    return tuple(re.findall(_TOOL, ', '.join(texts)))


def _tools(unread: _Unread, name: str) -> tuple[ToolSpec, ...]:
    value = unread.fields.get('tools')
    # Other programs list names here, or map them to true or false; that stays in the metadata.
    if not isinstance(value, dict) or not any(isinstance(tool, dict) for tool in value.values()):
        return ()
    from .tool_specs import read_tools  # few skills declare tools

    del unread.fields['tools']
    tools, findings = read_tools(value, skill=name)
    for finding in findings:
        unread.found(finding.code, 'tools', finding.message)
    return tools


def _ignore_model(unread: _Unread) -> None:
    for key in MODEL_KEYS:
        if key in unread.fields:
            unread.found('model-ignored', key, f'{key!r} is ignored: the application chooses the model.')


def _check_reserved(unread: _Unread, name: str) -> None:
    for word in name.split('-') if find_reserved_word(name) else ():
        if word in RESERVED_WORDS:
            message = f'The word {word!r} in the name {name!r} is reserved: some programs refuse such a skill.'
            unread.found('name-reserved', 'name', message)


def _metadata(unread: _Unread) -> dict[str, Any]:
    value = unread.fields.pop('metadata', '')
    if isinstance(value, dict):
        metadata: dict[str, Any] = dict(value)
    else:
        metadata = {}
        if value:
            unread.wrong_type('metadata', 'a mapping')
            metadata['metadata'] = value
    for key, field_value in unread.fields.items():
        while metadata.get(key, field_value) != field_value:
            key = f'frontmatter.{key}'
        metadata[key] = field_value
    return metadata
