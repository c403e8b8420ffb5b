"""Checking skills for their authors: every rule, whole files, and fixes for what can be fixed safely."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.user_dirs import expand_home
from pydantic_ai_skills.parsing import check_text
from pydantic_ai_skills.parsing.fixes import mend
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import Skill

from .directory import SkillsDirectory
from .folder_skill import MAX_SKILL_BYTES
from .plain import PlainSkills, UnusualFolder, read_file
from .scan import MAX_SCAN_DEPTH
from .scanned import SKILL_FILE

__all__ = ('ValidationReport', 'fix_problems', 'validate_skills')


@dataclass(frozen=True, kw_only=True)
class ValidationReport:
    """What a check of skills found."""

    skills: int
    """How many skills would load."""

    problems: tuple[SkillProblem, ...]
    """What is wrong, sorted by place."""

    @property
    def ok(self) -> bool:
        """Whether there were skills, and nothing is wrong with any of them."""
        return self.skills > 0 and not self.problems


def validate_skills(
    *paths: str | Path, max_depth: int | None = 3, progress: Callable[[int, int], None] | None = None
) -> ValidationReport:
    """Check skills by every rule: frontmatter, instructions and files.

    ```python
    from pydantic_ai_skills import validate_skills

    report = validate_skills('examples/skills')
    print(report.skills, report.problems)
    #> 3 ()
    ```

    Args:
        *paths: Directories of skills, skills, or files in skills; `./skills` when none is given.
        max_depth: How deep below a directory to look for skills; `None` for no limit.
        progress: Called with the number of skills that were checked and the number of all.
    """
    checked: set[str] = set()
    problems: dict[SkillProblem, None] = {}
    for folder in dict.fromkeys(_skill_folder(Path(path)) for path in paths or ('skills',)):
        checked |= _check_directory(folder, max_depth, problems, progress)
    return ValidationReport(skills=len(checked), problems=tuple(sorted(map(_placed, problems), key=_place)))


def fix_problems(problems: Iterable[SkillProblem], *, dry_run: bool = False) -> list[SkillProblem]:
    """Fix what can be fixed without a decision that is the author's: the skills load as before, without the problem.

    Files are replaced whole or not at all. What cannot be written is left as it is.

    Args:
        problems: What `validate_skills` found.
        dry_run: Whether only to tell what would be fixed.

    Returns:
        The problems that were fixed.
    """
    fixed: list[SkillProblem] = []
    for path, group in groupby(sorted(problems, key=_place), key=lambda problem: problem.path):
        file, of_file = Path(path), list(group)
        if file.name.lower() != SKILL_FILE.lower() or file.is_symlink() or not file.is_file():
            continue
        codes = _fix_file(file, {problem.code for problem in of_file}, dry_run=dry_run)
        fixed += [problem for problem in of_file if problem.code in codes]
    return fixed


def _fix_file(file: Path, codes: set[str], *, dry_run: bool) -> set[str]:
    """Fix a `SKILL.md`, and return the codes of what was fixed."""
    fixed: set[str] = set()
    try:
        text, mended = mend(file.read_bytes().decode(), file.parent.name)
        if mended & codes:
            if not dry_run:
                replace_file(file, text.encode())
            fixed |= mended
        if 'file-name' in codes and not (file.parent / SKILL_FILE).exists():
            if not dry_run:
                file.rename(file.parent / SKILL_FILE)
            fixed.add('file-name')
    except (OSError, UnicodeDecodeError):
        pass  # what cannot be read or written now stays as it is
    return fixed


def _skill_folder(path: Path) -> Path:
    """The folder to look into: the path itself, or that of the skill which a file belongs to."""
    if not path.is_file():
        return path
    folders = [path.parent, *path.absolute().parent.parents]
    return next((folder for folder in folders if (folder / SKILL_FILE).exists()), path.parent)


def _check_directory(
    path: Path,
    max_depth: int | None,
    problems: dict[SkillProblem, None],
    progress: Callable[[int, int], None] | None,
) -> set[str]:
    """Check the skills of a directory, add to the problems, and return the folders of the skills that would load."""
    plain = PlainSkills(progress)
    try:
        plain.walk(os.path.realpath(expand_home(path)), MAX_SCAN_DEPTH if max_depth is None else max_depth)
    except (UnusualFolder, OSError):
        return _check_found(SkillsDirectory(path, max_depth=max_depth), problems, progress)
    rest: dict[SkillProblem, None] = {}
    checked = set(plain.folders.values())
    names = set(plain.folders)
    for folder, depth in plain.rest:
        if not os.path.isdir(folder):
            continue  # it has gone since it was found
        directory = SkillsDirectory(folder, max_depth=depth)
        checked |= _check_found(directory, rest, None)
        more = directory.get_skills().keys()
        if names & more:
            # Which of two skills of one name is used, depends on all of them.
            return _check_found(SkillsDirectory(path, max_depth=max_depth), problems, progress)
        names |= more
    problems |= dict.fromkeys(plain.problems) | rest
    return checked


def _check_found(
    directory: SkillsDirectory, problems: dict[SkillProblem, None], progress: Callable[[int, int], None] | None
) -> set[str]:
    found = directory.find()
    problems |= dict.fromkeys(found.problems)
    for done, skill in enumerate(found.skills):
        if progress is not None:
            progress(done, len(found.skills))
        problems |= dict.fromkeys(_check(skill))
    return {skill.path or '' for skill in found.skills}


def _check(skill: Skill[Any]) -> list[SkillProblem]:
    folder = skill.path or ''
    problems = list(skill.files.problems)
    try:
        path = _file_in(folder)
        return [*problems, *check_text(read_file(path, MAX_SKILL_BYTES), path)]
    except OSError:
        return problems  # it has gone since it was found


def _file_in(folder: str) -> str:
    """The `SKILL.md` of a skill, whatever its letters."""
    names = [name for name in os.listdir(folder) if name.lower() == SKILL_FILE.lower()]
    return os.path.join(folder, max(names, default=SKILL_FILE))


def _placed(problem: SkillProblem) -> SkillProblem:
    """A problem with a line, if it is about a `SKILL.md`."""
    if problem.line is not None or os.path.basename(problem.path).lower() != SKILL_FILE.lower():
        return problem
    return replace(problem, line=1)


def _place(problem: SkillProblem) -> tuple[str, int, str]:
    return problem.path, problem.line or 0, problem.code
