"""Running the scripts of skills: argument vectors, processes, limits, sandboxes, workspaces, policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills._lazy import import_lazily

from .base import (
    CallableSkillScriptExecutor,
    ScriptResult,
    SkillScriptExecutor,
    SkillScriptStoppedError,
    SkillScriptTimeoutError,
)
from .policy import ScriptDecision, ScriptPolicy
from .work_dir import ScriptFile

if TYPE_CHECKING:
    from .approval import ScriptCall, describe_call
    from .bubblewrap.executor import BubblewrapSkillScriptExecutor
    from .limits import ScriptLimits
    from .local import LocalSkillScriptExecutor
    from .path_policy import PathPolicy
    from .workspace import WorkspaceSkillScriptExecutor

__all__ = (
    'BubblewrapSkillScriptExecutor',
    'CallableSkillScriptExecutor',
    'LocalSkillScriptExecutor',
    'PathPolicy',
    'ScriptCall',
    'ScriptDecision',
    'ScriptFile',
    'ScriptLimits',
    'ScriptPolicy',
    'ScriptResult',
    'SkillScriptExecutor',
    'SkillScriptStoppedError',
    'SkillScriptTimeoutError',
    'WorkspaceSkillScriptExecutor',
    'describe_call',
)

__getattr__ = import_lazily(
    __name__,
    {
        'BubblewrapSkillScriptExecutor': f'{__name__}.bubblewrap',
        'LocalSkillScriptExecutor': f'{__name__}.local',
        'PathPolicy': f'{__name__}.path_policy',
        'ScriptCall': f'{__name__}.approval',
        'ScriptLimits': f'{__name__}.limits',
        'WorkspaceSkillScriptExecutor': f'{__name__}.workspace',
        'describe_call': f'{__name__}.approval',
    },
)
