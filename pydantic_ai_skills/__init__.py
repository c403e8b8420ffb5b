"""Agent Skills for pydantic-ai: skills from folders, Python and registries, for any agent."""

from typing import TYPE_CHECKING

from pydantic_ai_skills._lazy import import_lazily
from pydantic_ai_skills.catalog.search import SkillRanker
from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.exceptions import (
    SandboxUnavailableError,
    SkillError,
    SkillNotFoundError,
    SkillRegistryError,
    SkillResourceLoadError,
    SkillResourceNotFoundError,
    SkillScriptExecutionError,
    SkillScriptNotFoundError,
    SkillToolsError,
    SkillValidationError,
)
from pydantic_ai_skills.execution import (
    CallableSkillScriptExecutor,
    ScriptFile,
    ScriptPolicy,
    ScriptResult,
    SkillScriptExecutor,
)
from pydantic_ai_skills.registries.base import SkillRegistry
from pydantic_ai_skills.toolset.events import ResourceRead, ScriptFinished, SkillEvent, SkillLoaded
from pydantic_ai_skills.toolset.toolset import SkillsToolset
from pydantic_ai_skills.types.skill import (
    Skill,
    SkillProblem,
    SkillProvenance,
    SkillResource,
    SkillScript,
    SkillWrapper,
    normalize_skill_name,
)

if TYPE_CHECKING:
    from pydantic_ai_skills.capability.capability import SkillsCapability
    from pydantic_ai_skills.catalog.fulltext import FullTextRanker
    from pydantic_ai_skills.directory.validation import ValidationReport, fix_problems, validate_skills
    from pydantic_ai_skills.execution import (
        BubblewrapSkillScriptExecutor,
        LocalSkillScriptExecutor,
        PathPolicy,
        ScriptLimits,
        WorkspaceSkillScriptExecutor,
    )
    from pydantic_ai_skills.filesystem.user_dirs import user_skills_folder
    from pydantic_ai_skills.parsing.rules import SkillRule, skill_rules
    from pydantic_ai_skills.project.project import ProjectSource, SkillsProject
    from pydantic_ai_skills.project.user_skills import (
        create_user_skill,
        disable_user_skill,
        enable_user_skill,
        list_user_skills,
        remove_user_skill,
    )
    from pydantic_ai_skills.registries import (
        CombinedRegistry,
        GitCloneOptions,
        GitProgress,
        GitSkillsRegistry,
        PackageSkillsRegistry,
        SkillPackage,
    )
    from pydantic_ai_skills.toolset.tokens import estimate_tokens
    from pydantic_ai_skills.types.decorators import resource, script, tool
    from pydantic_ai_skills.types.skill_class import SkillClass

__all__ = (
    'BubblewrapSkillScriptExecutor',
    'CallableSkillScriptExecutor',
    'CombinedRegistry',
    'FullTextRanker',
    'GitCloneOptions',
    'GitProgress',
    'GitSkillsRegistry',
    'LocalSkillScriptExecutor',
    'PackageSkillsRegistry',
    'PathPolicy',
    'ProjectSource',
    'ResourceRead',
    'SandboxUnavailableError',
    'ScriptFile',
    'ScriptFinished',
    'ScriptLimits',
    'ScriptPolicy',
    'ScriptResult',
    'Skill',
    'SkillClass',
    'SkillError',
    'SkillEvent',
    'SkillLoaded',
    'SkillNotFoundError',
    'SkillPackage',
    'SkillProblem',
    'SkillProvenance',
    'SkillRanker',
    'SkillRegistry',
    'SkillRegistryError',
    'SkillResource',
    'SkillResourceLoadError',
    'SkillResourceNotFoundError',
    'SkillRule',
    'SkillScript',
    'SkillScriptExecutionError',
    'SkillScriptExecutor',
    'SkillScriptNotFoundError',
    'SkillToolsError',
    'SkillValidationError',
    'SkillWrapper',
    'SkillsCapability',
    'SkillsDirectory',
    'SkillsProject',
    'SkillsToolset',
    'ValidationReport',
    'WorkspaceSkillScriptExecutor',
    'create_user_skill',
    'disable_user_skill',
    'enable_user_skill',
    'estimate_tokens',
    'fix_problems',
    'list_user_skills',
    'normalize_skill_name',
    'remove_user_skill',
    'resource',
    'script',
    'skill_rules',
    'tool',
    'user_skills_folder',
    'validate_skills',
)

_EXECUTION, _REGISTRIES, _USER = f'{__name__}.execution', f'{__name__}.registries', f'{__name__}.project.user_skills'
__getattr__ = import_lazily(
    __name__,
    {
        'BubblewrapSkillScriptExecutor': _EXECUTION,
        'CombinedRegistry': _REGISTRIES,
        'FullTextRanker': f'{__name__}.catalog.fulltext',
        'GitCloneOptions': _REGISTRIES,
        'GitProgress': _REGISTRIES,
        'GitSkillsRegistry': _REGISTRIES,
        'LocalSkillScriptExecutor': _EXECUTION,
        'PackageSkillsRegistry': _REGISTRIES,
        'PathPolicy': _EXECUTION,
        'ProjectSource': f'{__name__}.project',
        'ScriptLimits': _EXECUTION,
        'SkillClass': f'{__name__}.types.skill_class',
        'SkillPackage': _REGISTRIES,
        'SkillRule': f'{__name__}.parsing.rules',
        'SkillsCapability': f'{__name__}.capability',
        'SkillsProject': f'{__name__}.project',
        'ValidationReport': f'{__name__}.directory.validation',
        'WorkspaceSkillScriptExecutor': _EXECUTION,
        'create_user_skill': _USER,
        'disable_user_skill': _USER,
        'enable_user_skill': _USER,
        'estimate_tokens': f'{__name__}.toolset.tokens',
        'fix_problems': f'{__name__}.directory.validation',
        'list_user_skills': _USER,
        'remove_user_skill': _USER,
        'resource': f'{__name__}.types.decorators',
        'script': f'{__name__}.types.decorators',
        'skill_rules': f'{__name__}.parsing.rules',
        'tool': f'{__name__}.types.decorators',
        'user_skills_folder': f'{__name__}.filesystem.user_dirs',
        'validate_skills': f'{__name__}.directory.validation',
    },
)
