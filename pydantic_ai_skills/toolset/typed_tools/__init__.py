"""Tools that a skill brings along: declared in its frontmatter, in its `tools.py`, or written in Python."""

from __future__ import annotations

from .offered import WAITING, SkillTools, TypedTools

__all__ = ('WAITING', 'SkillTools', 'TypedTools')
