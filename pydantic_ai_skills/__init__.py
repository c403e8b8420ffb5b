"""Agent Skills for pydantic-ai: skills from folders, Python and registries, for any agent."""

from typing import TYPE_CHECKING

from ._lazy import import_lazily
from .catalog.search import SkillRanker
from .directory.directory import SkillsDirectory
from .exceptions import (
    SandboxUnavailableError,
    SkillError,
    SkillNotFoundError,
    SkillRegistryError,
    SkillRegistryRefusedError,
    SkillResourceLoadError,
    SkillResourceNotFoundError,
    SkillScriptExecutionError,
    SkillScriptNotFoundError,
    SkillToolsError,
    SkillValidationError,
)
from .execution import CallableSkillScriptExecutor, ScriptFile, ScriptPolicy, ScriptResult, SkillScriptExecutor
from .filesystem.user_dirs import user_skills_folder
from .problems import SkillProblem, SkillRule, skill_rules
from .registries.base import SkillRegistry
from .toolset.events import (
    ResourceRead,
    ScriptFinished,
    ScriptOutput,
    SkillActivity,
    SkillEvent,
    SkillLoaded,
    send_to_ui,
)
from .toolset.prompt import estimate_tokens
from .toolset.toolset import SkillsToolset
from .types import (
    FileSkillResource,
    Skill,
    SkillProvenance,
    SkillResource,
    SkillScript,
    SkillWrapper,
    normalize_skill_name,
)

if TYPE_CHECKING:
    from .capability.capability import SkillsCapability
    from .catalog.fulltext import FullTextRanker
    from .directory.validation import ValidationReport, fix_problems, validate_skills
    from .execution import (
        BubblewrapSkillScriptExecutor,
        LocalSkillScriptExecutor,
        PathPolicy,
        ScriptLimits,
        UvEnvironments,
        WorkspaceSkillScriptExecutor,
    )
    from .project.checkout_trust import UserTrust
    from .project.project import ProjectSource, SkillsProject
    from .project.user_skills import (
        create_user_skill,
        disable_user_skill,
        enable_user_skill,
        list_user_skills,
        remove_user_skill,
    )
    from .registries import (
        ArchiveSkillsRegistry,
        CombinedRegistry,
        FetchedRegistry,
        FetchOptions,
        FetchProgress,
        FetchSession,
        FolderSkillsRegistry,
        GitCloneOptions,
        GitProgress,
        GitSkillsRegistry,
        MarketplaceSkillsRegistry,
        MCPSkillsRegistry,
        ObjectStoreSkillsRegistry,
        PackageSkillsRegistry,
        SkillPackage,
        SourceRegistry,
        Upstream,
        WellKnownSkillsRegistry,
        describe,
        list_package_skills,
        open_registry,
    )
    from .toolset.mcp_server import serve_skills
    from .toolset.workspace_tools import WorkspaceToolset
    from .types.decorators import resource, script, tool
    from .types.needs import SkillNeed, SkillNeeds, skill_needs
    from .types.skill_class import SkillClass

__all__ = (
    'ArchiveSkillsRegistry',
    'BubblewrapSkillScriptExecutor',
    'CallableSkillScriptExecutor',
    'CombinedRegistry',
    'FetchOptions',
    'FetchProgress',
    'FetchSession',
    'FetchedRegistry',
    'FileSkillResource',
    'FolderSkillsRegistry',
    'FullTextRanker',
    'GitCloneOptions',
    'GitProgress',
    'GitSkillsRegistry',
    'LocalSkillScriptExecutor',
    'MCPSkillsRegistry',
    'MarketplaceSkillsRegistry',
    'ObjectStoreSkillsRegistry',
    'PackageSkillsRegistry',
    'PathPolicy',
    'ProjectSource',
    'ResourceRead',
    'SandboxUnavailableError',
    'ScriptFile',
    'ScriptFinished',
    'ScriptLimits',
    'ScriptOutput',
    'ScriptPolicy',
    'ScriptResult',
    'Skill',
    'SkillActivity',
    'SkillClass',
    'SkillError',
    'SkillEvent',
    'SkillLoaded',
    'SkillNeed',
    'SkillNeeds',
    'SkillNotFoundError',
    'SkillPackage',
    'SkillProblem',
    'SkillProvenance',
    'SkillRanker',
    'SkillRegistry',
    'SkillRegistryError',
    'SkillRegistryRefusedError',
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
    'SourceRegistry',
    'Upstream',
    'UserTrust',
    'UvEnvironments',
    'ValidationReport',
    'WellKnownSkillsRegistry',
    'WorkspaceSkillScriptExecutor',
    'WorkspaceToolset',
    'create_user_skill',
    'describe',
    'disable_user_skill',
    'enable_user_skill',
    'estimate_tokens',
    'fix_problems',
    'list_package_skills',
    'list_user_skills',
    'normalize_skill_name',
    'open_registry',
    'remove_user_skill',
    'resource',
    'script',
    'send_to_ui',
    'serve_skills',
    'skill_needs',
    'skill_rules',
    'tool',
    'user_skills_folder',
    'validate_skills',
)

__getattr__ = import_lazily(
    __name__,
    {
        '.capability': ('SkillsCapability',),
        '.catalog.fulltext': ('FullTextRanker',),
        '.directory.validation': ('ValidationReport', 'fix_problems', 'validate_skills'),
        '.execution': (
            'BubblewrapSkillScriptExecutor',
            'LocalSkillScriptExecutor',
            'PathPolicy',
            'ScriptLimits',
            'UvEnvironments',
            'WorkspaceSkillScriptExecutor',
        ),
        '.project': ('ProjectSource', 'SkillsProject', 'UserTrust'),
        '.project.user_skills': (
            'create_user_skill',
            'disable_user_skill',
            'enable_user_skill',
            'list_user_skills',
            'remove_user_skill',
        ),
        '.registries': (
            'ArchiveSkillsRegistry',
            'CombinedRegistry',
            'FetchOptions',
            'FetchProgress',
            'FetchSession',
            'FetchedRegistry',
            'FolderSkillsRegistry',
            'GitCloneOptions',
            'GitProgress',
            'GitSkillsRegistry',
            'MarketplaceSkillsRegistry',
            'ObjectStoreSkillsRegistry',
            'MCPSkillsRegistry',
            'PackageSkillsRegistry',
            'SkillPackage',
            'SourceRegistry',
            'Upstream',
            'WellKnownSkillsRegistry',
            'describe',
            'list_package_skills',
            'open_registry',
        ),
        '.toolset.mcp_server': ('serve_skills',),
        '.toolset.workspace_tools': ('WorkspaceToolset',),
        '.types.decorators': ('resource', 'script', 'tool'),
        '.types.needs': ('SkillNeed', 'SkillNeeds', 'skill_needs'),
        '.types.skill_class': ('SkillClass',),
    },
)
