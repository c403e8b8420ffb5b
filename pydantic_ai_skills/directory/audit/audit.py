"""Audits a skill: runs every check over its files, and binds what they found to the content hash."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic_ai_skills.filesystem.safe_open import SkillFolder
from pydantic_ai_skills.filesystem.user_dirs import expand_home
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.ledger import ScanVerdict
from pydantic_ai_skills.types.skill import Skill

from .credentials import secrets
from .files import AuditedFile, AuditedFolder, read_folder
from .findings import Finding
from .hidden_text import hidden_characters, instructions_in_comments
from .programs import compiled_code, downloads_that_run, hosts_not_named, oversized

SCANNER = 'pydantic-ai-skills'
"""What the built-in checks are called in verdicts."""

CHECKS: tuple[Callable[[AuditedFile, AuditedFolder], Iterator[Finding]], ...] = (
    hidden_characters,
    instructions_in_comments,
    downloads_that_run,
    secrets,
    hosts_not_named,
    compiled_code,
    oversized,
)
"""All checks. Each looks at one file, in time that grows with its length only."""

MAX_LISTED = 3
"""How many findings of one code in one file are listed."""


@dataclass(frozen=True, kw_only=True)
class SkillAudit:
    """What the built-in checks found in a skill, and in which content."""

    path: str
    """The skill's folder."""

    content_hash: str | None
    """The hash of the content, as registries and lock files have it; `None` if not all of it was looked at."""

    problems: tuple[SkillProblem, ...]
    """What was found, sorted by file and line."""

    @property
    def verdict(self) -> ScanVerdict:
        """What to record about this content."""
        return verdict_of(self.problems, scanner=SCANNER, scanner_version=version('pydantic-ai-skills'))


def audit_skill(folder: str | Path, *, ignore: Collection[str] = ()) -> SkillAudit:
    """Look for what a reader of a skill would not see, or should know before using it.

    These are hidden characters, instructions in HTML comments, downloads that are piped into a shell, secrets, hosts
    that programs contact and the `SKILL.md` does not name, compiled code, and files too large to be searched. Nothing
    is run, and nothing outside the folder is read.

    ```python
    from pydantic_ai_skills import audit_skill

    audit = audit_skill('examples/skills/unit-converter')
    print(audit.problems, audit.verdict.passed)
    #> () True
    ```

    Args:
        folder: The skill's folder.
        ignore: Codes of problems to leave out.
    """
    path = os.path.abspath(expand_home(folder))
    content = read_folder(SkillFolder(os.path.realpath(path)))
    found = [*content.problems, *(each for file in content.files for each in _problems(file, content, path))]
    kept = sorted((each for each in found if each.code not in ignore), key=_place)
    return SkillAudit(path=path, content_hash=content.content_hash, problems=tuple(kept))


def skill_content_hash(skill: Skill[Any]) -> str | None:
    """The hash of the content that a skill has now, as lock files have it: what `record_scan` and `record_score` take.

    Returns:
        The hash; `None` if it has no files here, not all of them can be read, or a fetched skill was edited.
    """
    if skill.path is None:
        return None
    if skill.source is not None and skill.source.content_hash is not None:
        is_edited = skill.pinned is not None and skill.pinned.difference() is not None
        return None if is_edited else skill.source.content_hash
    return read_folder(SkillFolder(os.path.realpath(skill.path))).content_hash


def verdict_of(
    problems: Collection[SkillProblem], *, scanner: str, scanner_version: str, notes: int = 0
) -> ScanVerdict:
    """The verdict of a scanner that found these problems."""
    errors = sum(each.severity == 'error' for each in problems)
    return ScanVerdict(
        scanner=scanner,
        version=scanner_version,
        passed=not errors,
        errors=errors,
        warnings=len(problems) - errors,
        notes=notes,
    )


def _problems(file: AuditedFile, content: AuditedFolder, folder: str) -> Iterator[SkillProblem]:
    place = os.path.join(folder, *file.path.split('/'))
    for check in CHECKS:
        found = list(check(file, content))
        for finding in found[:MAX_LISTED]:
            line = None if finding.offset is None else file.text.count('\n', 0, finding.offset) + 1
            yield problem(finding.code, place, finding.message, line)
        if len(found) > MAX_LISTED:
            more = len(found) - MAX_LISTED
            yield problem(found[0].code, place, f'There are {more} more of this kind in the file.')


def _place(each: SkillProblem) -> tuple[str, int, str]:
    return each.path, each.line or 0, each.code
