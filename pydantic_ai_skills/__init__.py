"""Agent Skills for pydantic-ai: skills from folders, Python and registries, for any agent."""

from typing import TYPE_CHECKING

from pydantic_ai_skills.capability import SkillsCapability
from pydantic_ai_skills.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import (
    SandboxUnavailableError,
    SkillError,
    SkillNotFoundError,
    SkillRegistryError,
    SkillResourceLoadError,
    SkillResourceNotFoundError,
    SkillScriptExecutionError,
    SkillScriptNotFoundError,
    SkillValidationError,
)
from pydantic_ai_skills.execution import (
    CallableSkillScriptExecutor,
    ScriptFile,
    ScriptPolicy,
    ScriptResult,
    SkillScriptExecutor,
)
from pydantic_ai_skills.lazy import import_lazily
from pydantic_ai_skills.registries.base import SkillRegistry
from pydantic_ai_skills.toolset import SkillsToolset
from pydantic_ai_skills.types import (
    Skill,
    SkillProblem,
    SkillProvenance,
    SkillResource,
    SkillScript,
    SkillWrapper,
    normalize_skill_name,
)

if TYPE_CHECKING:
    from pydantic_ai_skills.execution import (
        BubblewrapSkillScriptExecutor,
        LocalSkillScriptExecutor,
        PathPolicy,
        ScriptLimits,
        WorkspaceSkillScriptExecutor,
    )
    from pydantic_ai_skills.registries import CombinedRegistry, GitCloneOptions, GitProgress, GitSkillsRegistry

__all__ = (
    'BubblewrapSkillScriptExecutor',
    'CallableSkillScriptExecutor',
    'CombinedRegistry',
    'GitCloneOptions',
    'GitProgress',
    'GitSkillsRegistry',
    'LocalSkillScriptExecutor',
    'PathPolicy',
    'SandboxUnavailableError',
    'ScriptFile',
    'ScriptLimits',
    'ScriptPolicy',
    'ScriptResult',
    'Skill',
    'SkillError',
    'SkillNotFoundError',
    'SkillProblem',
    'SkillProvenance',
    'SkillRegistry',
    'SkillRegistryError',
    'SkillResource',
    'SkillResourceLoadError',
    'SkillResourceNotFoundError',
    'SkillScript',
    'SkillScriptExecutionError',
    'SkillScriptExecutor',
    'SkillScriptNotFoundError',
    'SkillValidationError',
    'SkillWrapper',
    'SkillsCapability',
    'SkillsDirectory',
    'SkillsToolset',
    'WorkspaceSkillScriptExecutor',
    'normalize_skill_name',
)

_EXECUTION, _REGISTRIES = f'{__name__}.execution', f'{__name__}.registries'
__getattr__ = import_lazily(
    __name__,
    {
        'BubblewrapSkillScriptExecutor': _EXECUTION,
        'CombinedRegistry': _REGISTRIES,
        'GitCloneOptions': _REGISTRIES,
        'GitProgress': _REGISTRIES,
        'GitSkillsRegistry': _REGISTRIES,
        'LocalSkillScriptExecutor': _EXECUTION,
        'PathPolicy': _EXECUTION,
        'ScriptLimits': _EXECUTION,
        'WorkspaceSkillScriptExecutor': _EXECUTION,
    },
)
