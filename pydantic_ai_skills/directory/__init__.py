"""Finds skills in folders."""

from .directory import SkillsDirectory
from .standard import AGENTS_FOLDER

__all__ = ('AGENTS_FOLDER', 'SkillsDirectory')
