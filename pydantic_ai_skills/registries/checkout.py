"""The skills of fetched files: where each comes from, and whether it is what the lock file pins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.skill import Skill

from .lockfile import LockedSource, hold_to_lock
from .store import Entry

MAX_LISTED = 20
"""How many skipped files are listed one by one."""


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """Files of one revision of a source, ready to be read."""

    entry: Entry
    root: Path
    """The folder that stands for the root of the source."""

    failure: str | None = None
    """Why this may not be what the server has now."""

    moved: str | None = None
    """The revision the ref has now, if that is not the locked one."""

    is_placed: bool = False
    """Whether the files are in a folder of the developer, where others may add files."""

    edited: tuple[str, ...] = ()
    """Files in that folder that were edited there and therefore left alone."""


@dataclass(eq=False)
class CheckoutSkills:
    """The skills in a folder of a checkout and the problems found with them."""

    checkout: Checkout
    directory: SkillsDirectory
    about: SkillProvenance
    """The provenance that all of them share."""

    label: str
    lock: LockedSource | None
    found: FoundSkills = field(default_factory=FoundSkills)
    _seen: FoundSkills | None = None

    @property
    def commit(self) -> str:
        """The revision the files are from."""
        return self.checkout.entry.manifest.commit

    def updated(self, checkout: Checkout, lock: LockedSource | None) -> CheckoutSkills | None:
        """The same skills with the problems of a newer checkout; `None` if its files differ."""
        mine = self.checkout
        if (mine.root, mine.entry.manifest) != (checkout.root, checkout.entry.manifest):
            return None
        # The entries may be two locks on the same files.
        if (replace(checkout, entry=mine.entry), lock) == (mine, self.lock):
            return self
        new = replace(self, checkout=checkout, lock=lock)
        new._read(self._seen or FoundSkills())  # noqa: SLF001 - a copy of this object
        return new

    def find(self) -> FoundSkills:
        """The skills. Files in the cache never change; a folder of the developer is read again."""
        if self._seen is None or self.checkout.root != self.checkout.entry.root:
            seen = self.directory.find()
            if seen is not self._seen:
                self._read(seen)
        return self.found

    def _read(self, seen: FoundSkills) -> None:
        root = os.path.realpath(self.checkout.root)
        for skill in seen.skills:
            skill.source = self._provenance(skill, root)
        found = FoundSkills(seen.skills, (*seen.problems, *self._problems()))
        if self.lock is not None:
            found = hold_to_lock(found, self.lock, place=self._place, moved=self.checkout.moved)
        self.found = found
        self._seen = seen

    def _provenance(self, skill: Skill[Any], root: str) -> SkillProvenance:
        folder = (skill.path or '').removeprefix(root).lstrip(os.sep).replace(os.sep, '/')
        inside = f'{folder}/' if folder else ''
        is_edited = any(path.startswith(inside) for path in self.checkout.edited) or self._has_added(skill, inside)
        content_hash = None if is_edited else self.checkout.entry.manifest.skills.get(folder)
        return replace(self.about, commit=self.commit, path=folder, content_hash=content_hash)

    def _has_added(self, skill: Skill[Any], inside: str) -> bool:
        """Whether a locked skill has files that were not fetched."""
        if self.lock is None or not self.checkout.is_placed:
            return False
        fetched = self.checkout.entry.manifest.files
        return any(inside + item.name not in fetched for item in (*skill.resources, *skill.scripts))

    @property
    def _place(self) -> str:
        return f'{self.about.url}@{self.commit[:12]}'

    def _problems(self) -> Iterator[SkillProblem]:
        left_out = self.checkout.entry.manifest.left_out
        for path in left_out[:MAX_LISTED]:
            message = 'Links, submodules and names that cannot be used here are not fetched.'
            yield problem('file-link', f'{self._place}:{path}', message)
        if len(left_out) > MAX_LISTED:
            message = f'{len(left_out) - MAX_LISTED} more files were not fetched for this reason.'
            yield problem('file-link', self._place, message)
        for path in self.checkout.edited:
            message = 'The file was edited here, so it is not brought up to date.'
            yield problem('file-edited', str(self.checkout.root / path), message)
        if self.checkout.failure is not None:
            message = f'{self.checkout.failure.rstrip(".")}. Its skills of commit {self.commit[:12]} are kept.'
            yield problem('source-failed', self.label, message)
