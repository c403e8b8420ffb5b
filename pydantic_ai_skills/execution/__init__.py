"""Runs the scripts of skills: as local processes, in a sandbox, in a workspace or by a function of yours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai_skills.filesystem.lazy_imports import import_lazily

if TYPE_CHECKING:
    from .base import CallableSkillScriptExecutor, SkillScriptExecutor
    from .bubblewrap.executor import BubblewrapSkillScriptExecutor
    from .gate import ScriptCall, ScriptDecision, ScriptPolicy, describe_call
    from .limits import ScriptLimits
    from .local import LocalSkillScriptExecutor
    from .packages import UvEnvironments
    from .path_policy import PathPolicy
    from .result import ScriptResult, SkillScriptStoppedError, SkillScriptTimeoutError
    from .work_files import ScriptFile
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
        '.base': ('CallableSkillScriptExecutor', 'SkillScriptExecutor'),
        '.bubblewrap': ('BubblewrapSkillScriptExecutor',),
        '.gate': ('ScriptCall', 'ScriptDecision', 'ScriptPolicy', 'describe_call'),
        '.limits': ('ScriptLimits',),
        '.local': ('LocalSkillScriptExecutor',),
        '.packages': ('UvEnvironments',),
        '.path_policy': ('PathPolicy',),
        '.result': ('ScriptResult', 'SkillScriptStoppedError', 'SkillScriptTimeoutError'),
        '.work_files': ('ScriptFile',),
        '.workspace': ('WorkspaceSkillScriptExecutor',),
    },
)
