"""What the lock file of a project knows about the present content of a skill."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic_ai_skills.directory.audit.files import read_folder
from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.filesystem.safe_open import SkillFolder
from pydantic_ai_skills.registries.lockfile import LockDocument, read_document
from pydantic_ai_skills.registries.requirements import is_locked
from pydantic_ai_skills.types.ledger import SkillFacts
from pydantic_ai_skills.types.skill import Skill

if TYPE_CHECKING:
    from .project_folder import ProjectFolder


class KnownFacts:
    """The lock file of a project. What an untrusted project says about itself does not count."""

    def __init__(self, project: ProjectFolder) -> None:
        self._project = project

    @cached_property
    def _document(self) -> LockDocument:
        try:
            return read_document(self._project.lock_file) if self._project.is_trusted else LockDocument()
        except SkillRegistryError:
            return LockDocument()  # reported where it matters

    def is_locked(self, skill: Skill[Any]) -> bool:
        """Whether a skill is pinned with its present content."""
        return skill.source is not None and is_locked(self._document, skill.source)

    def about(self, skill: Skill[Any]) -> SkillFacts:
        """Who signed a skill, what scanners said and how it did in evals, all for its present content."""
        facts, source = self._document.facts, skill.source
        if source is not None and source.content_hash is not None:
            known = facts.get(source.content_hash, SkillFacts())
            return replace(known, signed_by=source.signed_by or known.signed_by)
        # Hashing the files of a skill about which nothing is known would waste time.
        is_named = any(known.name == skill.name for known in facts.values())
        content = read_folder(SkillFolder(skill.path)).content_hash if skill.path and is_named else None
        return facts.get(content or '', SkillFacts())
