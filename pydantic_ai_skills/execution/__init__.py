"""Runs the scripts of skills: as local processes, in a sandbox, in a workspace or by a function of yours."""

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
from .gate import ScriptCall, ScriptDecision, ScriptPolicy, describe_call
from .work_files import ScriptFile

if TYPE_CHECKING:
    from .bubblewrap.executor import BubblewrapSkillScriptExecutor
    from .limits import ScriptLimits
    from .local import LocalSkillScriptExecutor
    from .packages import UvEnvironments
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
    'UvEnvironments',
    'WorkspaceSkillScriptExecutor',
    'describe_call',
)

__getattr__ = import_lazily(
    __name__,
    {
        '.bubblewrap': ('BubblewrapSkillScriptExecutor',),
        '.limits': ('ScriptLimits',),
        '.local': ('LocalSkillScriptExecutor',),
        '.packages': ('UvEnvironments',),
        '.path_policy': ('PathPolicy',),
        '.workspace': ('WorkspaceSkillScriptExecutor',),
    },
)
