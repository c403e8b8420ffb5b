"""The checks of a case, as values: what must be true of an answer, and of what was done for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    from .runs import CaseRun


@dataclass(frozen=True)
class OutputContains:
    """The answer contains a text."""

    kind: ClassVar[str] = 'contains'

    text: str
    """The text."""

    ignore_case: bool = False
    """Whether upper and lower case are the same."""

    absent: bool = False
    """Whether the answer must not contain it."""

    def __str__(self) -> str:
        return f'The answer {"does not contain" if self.absent else "contains"} {self.text!r}.'


@dataclass(frozen=True)
class OutputEquals:
    """The answer is exactly a text, apart from white space around it."""

    kind: ClassVar[str] = 'equals'

    text: str
    """The text."""

    def __str__(self) -> str:
        return f'The answer is {self.text!r}.'


@dataclass(frozen=True)
class OutputMatches:
    """A regular expression matches somewhere in the answer.

    The search runs in a process of its own and is stopped after a few seconds, whatever the expression is.
    """

    kind: ClassVar[str] = 'regex'

    pattern: str
    """The expression, as `re` reads it."""

    absent: bool = False
    """Whether it must not match anywhere."""

    def __str__(self) -> str:
        return f'The answer {"does not match" if self.absent else "matches"} /{self.pattern}/.'


@dataclass(frozen=True)
class FileWritten:
    """There is a file in the work folder after the run."""

    kind: ClassVar[str] = 'file'

    path: str
    """Its path in the folder. `*` and `?` stand for any characters of a name."""

    contains: str | None = None
    """A text that it contains, if that matters."""

    def __str__(self) -> str:
        content = '' if self.contains is None else f' that contains {self.contains!r}'
        return f'There is a file {self.path!r}{content}.'


@dataclass(frozen=True)
class ExitCode:
    """The last script that ran ended with an exit code."""

    kind: ClassVar[str] = 'exit-code'

    code: int = 0
    """The exit code."""

    script: str | None = None
    """Count only runs of this script."""

    def __str__(self) -> str:
        return f'{f"The script {self.script!r}" if self.script else "The last script"} ended with {self.code}.'


@dataclass(frozen=True)
class ScriptRan:
    """A script ran, however it ended."""

    kind: ClassVar[str] = 'script'

    script: str
    """Its name or the end of its path, such as `fill.py`."""

    def __str__(self) -> str:
        return f'The script {self.script!r} ran.'


@dataclass(frozen=True)
class Satisfies:
    """A function says whether the run is as it should be."""

    kind: ClassVar[str] = 'function'

    function: Callable[[CaseRun], bool | str | Awaitable[bool | str | None] | None] = field(compare=False)
    """Takes what a run did; may be async.

    It returns whether the run is right, or a text that says what is wrong with it. The message of a failed `assert`
    counts as such a text; a function that returns nothing is satisfied.
    """

    name: str = ''
    """What to call it; the name of the function by default."""

    def __str__(self) -> str:
        return self.name or str(getattr(self.function, '__name__', 'function'))


@dataclass(frozen=True)
class Judged:
    """A statement in plain words that a judging model holds to be true of the run."""

    kind: ClassVar[str] = 'judge'

    text: str
    """The statement, such as "The report names its sources"."""

    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """What the file of the case says about it, if it is more than the statement."""

    def __str__(self) -> str:
        return self.text


Check: TypeAlias = (
    OutputContains | OutputEquals | OutputMatches | FileWritten | ExitCode | ScriptRan | Satisfies | Judged
)
"""One thing to check about a run."""
