"""Finds skills in folders."""

from .directory import SkillsDirectory

__all__ = ('SkillsDirectory',)
