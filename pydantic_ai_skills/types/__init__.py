"""What a skill is: its header, resources, scripts and tools as values, wherever they come from."""

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
