"""Skills as a pydantic-ai capability."""

from .capability import SkillsCapability

__all__ = ('SkillsCapability',)
