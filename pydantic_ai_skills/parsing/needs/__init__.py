"""Finds what the files of a skill need, from their text alone: packages, programs and variables of the environment."""

from .found import Found, NeedKind
from .reader import SkillSources, read_needs

__all__ = ('Found', 'NeedKind', 'SkillSources', 'read_needs')
