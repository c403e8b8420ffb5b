"""The skills of a checkout, with where they come from, held to the lock file if there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

from pydantic_ai_skills.directory.directory import SkillsDirectory
from pydantic_ai_skills.parsing.rules import problem
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.registries.lockfile import LockedSource
from pydantic_ai_skills.types.skill import FoundSkills, Skill, SkillProvenance

from .checkout import Checkout

__all__ = ('ShownCheckout',)

MAX_TOLD = 20
"""How many files that were left out are told one by one."""


class ShownCheckout:
    """What one checkout gives: the skills of its folder, and everything a person should know about them."""

    def __init__(
        self,
        checkout: Checkout,
        directory: SkillsDirectory,
        *,
        about: SkillProvenance,
        label: str,
        lock: LockedSource | None,
    ) -> None:
        """Remember what to show.

        Args:
            checkout: The files.
            directory: The folder of them that has the skills.
            about: What to note in each skill, but for what differs from skill to skill.
            label: What to call the registry in problems.
            lock: What the skills are held to, if there is a lock.
        """
        self.checkout = checkout
        self.found = FoundSkills()
        self._directory = directory
        self._about = about
        self._label = label
        self.lock = lock
        self._seen: FoundSkills | None = None

    @property
    def commit(self) -> str:
        """The commit the files are from."""
        return self.checkout.entry.manifest.commit

    def updated(self, checkout: Checkout, lock: LockedSource | None) -> ShownCheckout | None:
        """The same skills with other things to say about them; `None` if the files are not the same."""
        mine = self.checkout
        if (mine.root, mine.entry.manifest) != (checkout.root, checkout.entry.manifest):
            return None
        # The entries may be two locks on the same files.
        if (replace(checkout, entry=mine.entry), lock) == (mine, self.lock):
            return self
        shown = copy(self)
        shown.checkout = checkout
        shown.lock = lock
        shown._show(self._seen or FoundSkills())  # noqa: SLF001 - it is one of us
        return shown

    def look(self) -> FoundSkills:
        """The skills. What is in the cache never changes; a folder of the developer is looked at again."""
        if self._seen is None or self.checkout.root != self.checkout.entry.root:
            seen = self._directory.find()
            if seen is not self._seen:
                self._show(seen)
        return self.found

    def _show(self, seen: FoundSkills) -> None:
        root = os.path.realpath(self.checkout.root)
        for skill in seen.skills:
            skill.source = self._provenance(skill, root)
        problems = (*seen.problems, *self._about_files(), *self._about_server())
        self.found = self._hold_to_lock(FoundSkills(seen.skills, problems))
        self._seen = seen

    def _provenance(self, skill: Skill[Any], root: str) -> SkillProvenance:
        folder = (skill.path or '').removeprefix(root).lstrip(os.sep).replace(os.sep, '/')
        inside = f'{folder}/' if folder else ''
        is_edited = any(path.startswith(inside) for path in self.checkout.edited) or self._has_added(skill, inside)
        return SkillProvenance(
            kind=self._about.kind,
            url=self._about.url,
            ref=self._about.ref,
            commit=self.commit,
            path=folder,
            content_hash=None if is_edited else self.checkout.entry.manifest.skills.get(folder),
            trusted=self._about.trusted,
        )

    def _has_added(self, skill: Skill[Any], inside: str) -> bool:
        """Whether a skill that is held to a lock has files that were not fetched."""
        if self.lock is None or not self.checkout.is_placed:
            return False
        fetched = self.checkout.entry.manifest.files
        return any(inside + item.name not in fetched for item in (*skill.resources, *skill.scripts))

    # --- Problems -------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> str:
        return f'{self._about.url}@{self.commit[:12]}'

    def _about_files(self) -> Iterator[SkillProblem]:
        left_out = self.checkout.entry.manifest.left_out
        for path in left_out[:MAX_TOLD]:
            message = 'Links, submodules and names that cannot be used here are not fetched.'
            yield problem('file-link', f'{self._place}:{path}', message)
        if len(left_out) > MAX_TOLD:
            message = f'{len(left_out) - MAX_TOLD} more files were not fetched for this reason.'
            yield problem('file-link', self._place, message)
        for path in self.checkout.edited:
            message = 'The file was edited here, so it is not brought up to date.'
            yield problem('file-edited', str(self.checkout.root / path), message)

    def _about_server(self) -> Iterator[SkillProblem]:
        failure = self.checkout.failure
        if failure is not None:
            message = f'{failure.rstrip(".")}. Its skills of commit {self.commit[:12]} are kept.'
            yield problem('source-failed', self._label, message)

    # --- The lock file --------------------------------------------------------------------------------------------

    def _hold_to_lock(self, found: FoundSkills) -> FoundSkills:
        lock = self.lock
        if lock is None:
            return found
        good: list[Skill[Any]] = []
        left_out: list[str] = []
        changes: list[str] = []
        if self.checkout.moved is not None:
            changes.append(
                f'{self._about.ref or "The default branch"} is {self.checkout.moved[:12]} now; '
                f'it was {lock.commit[:12]} when it was locked, which is used'
            )
        for skill in found.skills:
            assert skill.source is not None
            path, content = skill.source.path, skill.source.content_hash
            if path in lock.skills and lock.skills[path] == content:
                good.append(skill)
            elif content is None:
                left_out.append(
                    f'The skill {skill.name!r} in {path!r} has files that were edited or added here, so it is left '
                    'out. Move the changes elsewhere; what is removed here is fetched again.'
                )
            else:
                what = 'has changed since it was locked' if path in lock.skills else 'is not in the lock file'
                changes.append(f'The skill {skill.name!r} in {path!r} {what}, so it is left out')
        there = {skill.source.path for skill in found.skills if skill.source}
        changes += [f'The skill in {path!r} is in the lock file and not there' for path in lock.skills.keys() - there]
        advice = 'Look at the change, then write the lock file again with `lock()`.'
        left_out += [f'{change}. {advice}' for change in changes]
        problems = (problem('lock-mismatch', self._place, message) for message in left_out)
        return FoundSkills(tuple(good), (*found.problems, *problems))
