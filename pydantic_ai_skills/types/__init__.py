"""What a skill is: its header, resources, scripts and tools as values, wherever they come from."""

from .items import SkillFiles, SkillResource, SkillScript
from .skill import (
    DepsT,
    FoundSkills,
    Skill,
    SkillOptions,
    SkillProblem,
    SkillProvenance,
    SkillWrapper,
    header_options,
    normalize_skill_name,
)

__all__ = (
    'DepsT',
    'FoundSkills',
    'Skill',
    'SkillFiles',
    'SkillOptions',
    'SkillProblem',
    'SkillProvenance',
    'SkillResource',
    'SkillScript',
    'SkillWrapper',
    'header_options',
    'normalize_skill_name',
)
