"""The skills of a project and of its user, as `pyproject.toml` and the lock file declare them."""

from .checkout_trust import UserTrust
from .project import ProjectSource, SkillsProject

__all__ = ('ProjectSource', 'SkillsProject', 'UserTrust')
