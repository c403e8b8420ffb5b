"""Skills from the text of a `SKILL.md`, and from a folder that has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic_ai_skills.exceptions import SkillValidationError

from .attached import SkillFiles

if TYPE_CHECKING:
    from pydantic_ai_skills.parsing.header import SkillHeader

_HARD_RULES = frozenset({'name-invalid', 'name-too-long', 'description-too-long'})
"""Rules about name and description. A text that breaks one is refused, unless the caller sets `validate=False`."""


class ReadSkills:
    """The part of `Skill` that reads skills from texts and folders."""

    __slots__ = ()

    if TYPE_CHECKING:
        files: SkillFiles

        @classmethod
        def from_header(cls, header: SkillHeader, content: str | Callable[[], str], **options: Any) -> Self: ...

    @classmethod
    def from_text(cls, text: str, *, validate: bool = True) -> Self:
        """Read a skill from the text of a `SKILL.md`. What is wrong with it is in `problems`.

        Args:
            text: Frontmatter between `---` lines, then the instructions.
            validate: Whether to refuse a name or a description that the Agent Skills rules do not allow. Otherwise the
                name is made usable.

        Raises:
            SkillValidationError: There is no usable name or description, or the rules do not allow it.
        """
        from pydantic_ai_skills.parsing.skill_md import parse_skill_text  # not needed before a text is read

        header, body, problems = parse_skill_text(text)
        refused = [problem for problem in problems if validate and problem.code in _HARD_RULES]
        if header is None or refused:
            raise SkillValidationError(' '.join(problem.message for problem in refused or problems))
        found = tuple(replace(problem, path=f'skill://{header.name}') for problem in problems)
        return cls.from_header(header, body, files=SkillFiles(problems=found))

    @classmethod
    def from_path(cls, path: str | Path, **options: Any) -> Self:
        """Read a skill from its folder, or from the `SKILL.md` in it. What is wrong with it is in `problems`.

        Args:
            path: The folder or the file.
            **options: Options of `SkillsDirectory`, such as `script_executor` and `trusted`.

        Raises:
            SkillValidationError: There is no skill, or it cannot be loaded.
        """
        # Imported by name, because directories are built on skills.
        directory = import_module('pydantic_ai_skills.directory').SkillsDirectory(path, **{'max_depth': 0, **options})
        found = directory.find()
        if not found.skills:
            why = ' '.join(problem.message for problem in found.problems) or 'It has no SKILL.md.'
            raise SkillValidationError(f'There is no skill in {str(path)!r}. {why}')
        skill = cast('Self', found.skills[0])
        skill.files = replace(skill.files, problems=(*found.problems, *skill.files.problems))
        return skill
