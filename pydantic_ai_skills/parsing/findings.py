"""What is found in a text, before it is known which file the text is from.

These are the words `yaml_reader` has in common with its callers, which import it only when they need it: PyYAML takes
longer to import than the rest of this package, and most frontmatter is simple enough to do without.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ('MAX_NESTING', 'Finding', 'RefusedYaml', 'UnreadableYaml', 'Value', 'shown')

MAX_SHOWN = 80
"""Characters of a stranger's text in a message."""

MAX_NESTING = 32
"""How deep lists and mappings may be nested in each other."""

Value: TypeAlias = 'str | list[Value] | dict[str, Value]'
"""What frontmatter is made of."""


class Finding(NamedTuple):
    """Something a person should know about a text. It becomes a `SkillProblem` when there is a path to go with it."""

    code: str
    """A code out of `RULES`."""

    message: str
    """What is wrong and how to mend it."""

    line: int | None = None
    """The line, counted from 1."""


class UnreadableYaml(Exception):
    """The text is not YAML, or not the part of YAML that frontmatter is made of. Repair may help."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class RefusedYaml(Exception):
    """The text is YAML that is not read on purpose."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def shown(text: str) -> str:
    """A stranger's text as a message may hold it: quoted, escaped and short."""
    return repr(text if len(text) <= MAX_SHOWN else f'{text[: MAX_SHOWN - 1]}…')
