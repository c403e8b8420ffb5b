"""What a skill is: its header, resources, scripts and tools as values, wherever they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from pydantic_ai_skills.parsing.skill_names import normalize_skill_name
    from pydantic_ai_skills.problems import SkillProblem

    from .found_skills import FoundSkills
    from .functions import DepsT
    from .provenance import SkillProvenance
    from .resource import FileSkillResource, SkillResource
    from .script import SkillScript
    from .skill import Skill, SkillFiles, SkillOptions
    from .wrapper import SkillWrapper

__all__ = (
    'DepsT',
    'FileSkillResource',
    'FoundSkills',
    'Skill',
    'SkillFiles',
    'SkillOptions',
    'SkillProblem',
    'SkillProvenance',
    'SkillResource',
    'SkillScript',
    'SkillWrapper',
    'normalize_skill_name',
)

__getattr__ = import_lazily(
    __name__,
    {
        '.found_skills': ('FoundSkills',),
        '.functions': ('DepsT',),
        '.provenance': ('SkillProvenance',),
        '.resource': ('FileSkillResource', 'SkillResource'),
        '.script': ('SkillScript',),
        '.skill': ('Skill', 'SkillFiles', 'SkillOptions'),
        '.wrapper': ('SkillWrapper',),
        'pydantic_ai_skills.parsing.skill_names': ('normalize_skill_name',),
        'pydantic_ai_skills.problems': ('SkillProblem',),
    },
)
