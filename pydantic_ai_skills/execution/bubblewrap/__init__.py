"""Runs scripts in a bubblewrap sandbox."""

from .executor import BubblewrapSkillScriptExecutor

__all__ = ('BubblewrapSkillScriptExecutor',)
