"""Cases of an evaluation: a prompt, which skill it is for, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pydantic_ai_skills.filesystem.safe_open import SkillFolder
from pydantic_ai_skills.problems import SkillProblem

from .checks import Check, Judged


@dataclass(frozen=True)
class FolderFile:
    """A file in the folder of a skill. Reading it follows no links, so nothing outside of the folder is read."""

    folder: str
    """The folder."""

    name: str
    """Its path below the folder, with `/` between the parts."""

    def read(self) -> bytes:
        """Its content.

        Raises:
            SkillResourceLoadError: There is no such file, or it is larger than `MAX_RESOURCE_BYTES`.
        """
        return SkillFolder(self.folder).read_bytes(self.name)


FileSource: TypeAlias = str | bytes | Path | FolderFile
"""The content of a file: text, bytes, or where to read it."""


@dataclass(frozen=True, kw_only=True)
class SkillCase:
    """A prompt that a skill is tried with.

    A case can ask two things. With `should_trigger` it is a query: does the model load the skill? With checks or an
    expected output it is a task: is the result right, with the skill and without it?

    ```python
    from pydantic_ai_skills.evals import FileWritten, OutputContains, SkillCase

    query = SkillCase(skill='pdf', prompt='What is in this PDF?', should_trigger=True)
    task = SkillCase(
        skill='pdf',
        prompt='Fill in form.pdf for Ada Lovelace.',
        files={'form.pdf': b'%PDF-1.7 ...'},
        checks=[FileWritten('filled.pdf'), OutputContains('Ada Lovelace')],
    )
    print(query.is_query, query.is_task, task.is_query, task.is_task)
    #> True False False True
    ```
    """

    prompt: str
    """What the user says."""

    skill: str | None = None
    """The skill that is tried. `None` for a case of the whole library: no skill should be loaded."""

    id: str | int = ''
    """Names the case among those of its skill; its number by default."""

    should_trigger: bool | None = None
    """Whether the model should load the skill; `None` if the case does not ask that."""

    expected_skill: str | None = None
    """In a negative case, the skill that should be loaded instead, if there is one."""

    expected_output: str | None = None
    """A description of a good answer, with which the judging model compares the actual one."""

    checks: Sequence[Check] = ()
    """What must be true of a run. See `OutputContains` and the others."""

    files: Mapping[str, FileSource] = field(default_factory=dict[str, FileSource])
    """Files to put into the work folder before the run, by their names there: text, bytes, or the path of a file."""

    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All other keys in the file of the case, unchanged."""

    source: str | None = field(default=None, compare=False)
    """The file it was read from."""

    @property
    def target(self) -> str | None:
        """The skill that should be loaded; `None` if none should, or if the case does not ask that."""
        return self.skill if self.should_trigger else self.expected_skill

    @property
    def is_query(self) -> bool:
        """Whether the case asks which skills are loaded."""
        return self.should_trigger is not None

    @property
    def is_task(self) -> bool:
        """Whether the case asks for a result. A case that asks for nothing at all is a task without checks."""
        return bool(self.all_checks) or not self.is_query

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """Its checks, and one that compares the answer with the expected output."""
        if self.expected_output is None:
            return tuple(self.checks)
        return (*self.checks, Judged(f'The result is as expected: {self.expected_output}'))


@dataclass(frozen=True, kw_only=True)
class CaseSet:
    """The cases of a file or of several, and what is wrong with the files."""

    cases: Sequence[SkillCase] = ()
    """The cases that could be read."""

    problems: Sequence[SkillProblem] = ()
    """What could not be read, and why."""

    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All that a file holds besides its cases, unchanged."""
