"""What the parsing files share: values of frontmatter, and findings, which become problems once the path is known.

`yaml_reader` is imported only when it is needed: PyYAML takes longer to import than the rest of this package, and most
frontmatter is simple enough to do without.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

MAX_SHOWN = 80
"""How many characters of a skill's text a message quotes."""

MAX_NESTING = 32
"""How deep lists and mappings may be nested in each other."""

Value: TypeAlias = 'str | list[Value] | dict[str, Value]'
"""A value in frontmatter: text, or lists and mappings of text."""

_TRUE = frozenset(('true', 'yes', 'on', '1'))
_FALSE = frozenset(('false', 'no', 'off', '0', ''))


class Finding(NamedTuple):
    """Something a person should know about a text. It becomes a `SkillProblem` when there is a path to go with it."""

    code: str
    """A code in `RULES`."""

    message: str
    """What is wrong and how to fix it."""

    line: int | None = None
    """The line, counted from 1."""


class UnreadableYaml(Exception):
    """The text is not YAML, or goes beyond the part of YAML that frontmatter uses. Repair may help."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class RefusedYaml(Exception):
    """The text is YAML that is refused on purpose."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def read_flag(value: Value) -> bool | None:
    """Whether a value of the frontmatter means yes or no; `None` if it means neither."""
    word = value.strip().lower() if isinstance(value, str) else None
    return True if word in _TRUE else False if word in _FALSE else None


def shown(text: str) -> str:
    """Text of a skill as a message may quote it: escaped and short."""
    return repr(text if len(text) <= MAX_SHOWN else f'{text[: MAX_SHOWN - 1]}…')
