"""Checks skills against every rule, for their authors, and fixes what can be fixed safely."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.user_dirs import expand_home
from pydantic_ai_skills.parsing.fixes import mend
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.skill import Skill

from .scan import scan_directory
from .settings import SKILL_FILE, ScanSettings


@dataclass(frozen=True, kw_only=True)
class ValidationReport:
    """The result of validating skills."""

    skills: int
    """How many skills would load."""

    problems: tuple[SkillProblem, ...]
    """What is wrong, sorted by file and line."""

    @property
    def ok(self) -> bool:
        """Whether there are skills, and nothing is wrong with any of them."""
        return self.skills > 0 and not self.problems


def validate_skills(
    *paths: str | Path,
    max_depth: int | None = 3,
    needs: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ValidationReport:
    """Check skills against every rule: frontmatter, instructions and files.

    ```python
    from pydantic_ai_skills import validate_skills

    report = validate_skills('examples/skills')
    print(report.skills, report.problems)
    #> 3 ()
    ```

    Args:
        *paths: Directories of skills, skills, or files in skills; `./skills` when none is given. A file that belongs
            to no skill is passed over.
        max_depth: How deep below a directory to look for skills; `None` for no limit.
        needs: Whether to also report packages, programs and keys that skills need and this machine lacks.
        progress: Called before each skill with the number of skills checked and the number of all.
    """
    checked: set[str] = set()
    problems: dict[SkillProblem, None] = {}
    folders = dict.fromkeys(_skill_folder(Path(path)) for path in paths or ('skills',))
    for folder in filter(None, folders):
        checked |= _check_directory(folder, max_depth, problems, progress, needs=needs)
    return ValidationReport(skills=len(checked), problems=tuple(sorted(map(_placed, problems), key=_place)))


def fix_problems(problems: Iterable[SkillProblem], *, dry_run: bool = False) -> list[SkillProblem]:
    """Fix the problems that need no decision by the author. The skills load as before.

    Files are replaced as a whole or not at all. A file that cannot be written stays as it is.

    Args:
        problems: What `validate_skills` found.
        dry_run: Whether to only return what would be fixed.

    Returns:
        The problems that were fixed.
    """
    fixed: list[SkillProblem] = []
    for path, group in groupby(sorted(problems, key=_place), key=lambda each: each.path):
        file, of_file = Path(path), list(group)
        if file.name.lower() != SKILL_FILE.lower() or file.is_symlink() or not file.is_file():
            continue
        codes = _fix_file(file, {problem.code for problem in of_file}, dry_run=dry_run)
        fixed += [problem for problem in of_file if problem.code in codes]
    return fixed


def _fix_file(file: Path, codes: set[str], *, dry_run: bool) -> set[str]:
    """Fix a `SKILL.md`, and return the codes of the problems that were fixed."""
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
        pass  # the file stays as it is
    return fixed


def _skill_folder(path: Path) -> Path | None:
    """The folder to check: the path itself, or that of the skill a file belongs to; `None` if it belongs to none."""
    if not path.is_file():
        return path
    if path.name.lower() == SKILL_FILE.lower():
        return path.parent
    return next((folder for folder in path.absolute().parents if (folder / SKILL_FILE).exists()), None)


def _check_directory(
    path: Path,
    max_depth: int | None,
    problems: dict[SkillProblem, None],
    progress: Callable[[int, int], None] | None,
    *,
    needs: bool,
) -> set[str]:
    """Check the skills of a directory, add to the problems, and return the folders of the skills that would load."""
    settings = ScanSettings(path=str(expand_home(path)), max_depth=max_depth, whole_files=True)
    scan = scan_directory(settings, os.path.realpath(settings.path))
    found = scan.result()
    problems |= dict.fromkeys(found.problems)
    for done, skill in enumerate(found.skills):
        if progress is not None:
            progress(done, len(found.skills))
        if skill.path not in scan.ordinary:
            problems |= dict.fromkeys(skill.files.problems)
        if needs:
            problems |= dict.fromkeys(_lacks(skill))
    return {skill.path or '' for skill in found.skills}


def _lacks(skill: Skill[Any]) -> Iterator[SkillProblem]:
    """What a skill needs and this machine lacks."""
    from pydantic_ai_skills.types.needs import skill_needs  # only on request

    needs = skill_needs(skill)
    for code, what, wanted in (
        ('dependency-missing', 'Python package', needs.python),
        ('dependency-missing', 'npm package', needs.npm),
        ('program-missing', 'program', needs.programs),
        ('key-missing', 'environment variable', needs.keys),
    ):
        for need in wanted:
            if need.is_lacking:
                path = os.path.join(skill.path or '', need.files[0])
                yield problem(code, path, f'The {what} {need.name!r} that it needs is not there.')


def _placed(problem: SkillProblem) -> SkillProblem:
    """The problem; with a line, if it is about a `SKILL.md`."""
    if problem.line is not None or os.path.basename(problem.path).lower() != SKILL_FILE.lower():
        return problem
    return replace(problem, line=1)


def _place(problem: SkillProblem) -> tuple[str, int, str]:
    return problem.path, problem.line or 0, problem.code
