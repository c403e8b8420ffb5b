"""What a person should know about a skill that was found: problems as values, never as exceptions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ('DOCS_URL', 'ProblemSeverity', 'SkillProblem')

DOCS_URL = 'https://pydantic-ai-skills.readthedocs.io/en/latest/problems/'
"""The page that explains each problem code, under an anchor of the same name."""

ProblemSeverity = Literal['error', 'warning']
"""`'error'`: the skill or source was left out. `'warning'`: it was loaded all the same."""


@dataclass(frozen=True, kw_only=True)
class SkillProblem:
    """Something a person should know about a skill that was found."""

    path: str
    """The file or source it is about."""

    code: str
    """A stable, kebab-case identifier of the rule, such as `name-mismatch`."""

    severity: ProblemSeverity
    """Whether the skill was left out (`'error'`) or loaded all the same (`'warning'`)."""

    message: str
    """What is wrong and how to mend it, in one or two sentences."""

    line: int | None = None
    """The line of the file it is about, counted from 1, where one can be named."""

    fix: str | None = field(default=None, compare=False, repr=False)
    """What to do about problems of this kind."""

    @property
    def url(self) -> str:
        """Where the documentation explains the code."""
        return f'{DOCS_URL}#{self.code}'

    def __str__(self) -> str:
        place = self.path if self.line is None else f'{self.path}:{self.line}'
        text = f'{place}: {self.severity} [{self.code}] {self.message}'
        # It goes to logs and terminals, and the names of files are the words of strangers.
        return text if text.isprintable() else ''.join(c if c.isprintable() else repr(c)[1:-1] for c in text)
