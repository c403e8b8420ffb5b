"""Skills as a pydantic-ai toolset: what the model sees of them and what it can do with them."""

from .toolset import SkillsToolset

__all__ = ('SkillsToolset',)
