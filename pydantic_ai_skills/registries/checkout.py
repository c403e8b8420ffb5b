"""The skills of fetched files: where each comes from, and whether it is what the lock file pins."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic_ai_skills.filesystem.pinned import PinnedFolder
from pydantic_ai_skills.problems import SkillProblem, problem
from pydantic_ai_skills.types.found_skills import FoundSkills
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.skill import Skill

from .lockfile import REVIEW, LockedSource, hold_to_lock
from .manifest import MANIFEST
from .requirements import Requirements
from .store import Entry
from .target import STATE

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
    """Whether the files are in the developer's `target_dir`, where others may add files."""

    edited: tuple[str, ...] = ()
    """Files in that folder that were edited there and therefore left alone."""


class FoundDirectory(Protocol):
    """Finds the skills in the files of a checkout."""

    def find(self) -> FoundSkills:
        """The skills, some of which may have the same name. If nothing has changed, the result is the same object."""
        ...


@dataclass(eq=False)
class CheckoutSkills:
    """The skills in a folder of a checkout and the problems found with them."""

    checkout: Checkout
    directory: FoundDirectory
    make_provenance: Callable[..., SkillProvenance]
    """Makes the provenance of one skill; what all of them share is filled in."""

    label: str
    lock: LockedSource | None
    requirements: Requirements
    """What the skills must be to be offered."""

    only: tuple[str, ...] | None = None
    """The names of the skills that are wanted; `None` for all."""

    offered_names: Callable[[Mapping[str, str]], Mapping[str, str]] = dict
    """Takes the name of each skill by its folder, and returns the names under which they are offered."""

    others: frozenset[str] = frozenset()
    """The folders of the skills that are not wanted."""

    found: FoundSkills = field(default_factory=FoundSkills)
    _seen: FoundSkills | None = None
    _renamed: dict[str, tuple[Skill[Any], Skill[Any]]] = field(default_factory=dict[str, tuple[Skill[Any], Skill[Any]]])

    @property
    def commit(self) -> str:
        """The revision the files are from."""
        return self.checkout.entry.manifest.commit

    @property
    def missing_parts(self) -> list[str]:
        """Why parts of the source are missing that may be there at the next visit."""
        return [part.message for part in self.checkout.entry.manifest.problems if not part.is_final]

    def updated(self, checkout: Checkout, lock: LockedSource | None) -> CheckoutSkills | None:
        """The same skills with the problems of a newer checkout; `None` if its files differ."""
        mine = self.checkout
        if (mine.root, mine.entry.manifest) != (checkout.root, checkout.entry.manifest):
            return None
        # The entries may differ only in the lock that they hold on the same files.
        if (replace(checkout, entry=mine.entry), lock) == (mine, self.lock):
            return self
        new = replace(self, checkout=checkout, lock=lock)
        # A lock needs the files read again: a damaged one may have been repaired since.
        new._read(self._seen if lock is None and self._seen else self.directory.find())  # noqa: SLF001 - a copy of this
        return new

    @property
    def _is_held(self) -> bool:
        """Whether the files are held to a lock file or to requirements."""
        return self.lock is not None or bool(self.requirements)

    def find(self) -> FoundSkills:
        """The skills. Files are read again if held to a lock or requirements, or if they were copied from the cache."""
        if self._seen is None or self._is_held or self.checkout.root != self.checkout.entry.root:
            seen = self.directory.find()
            if self._is_held or seen is not self._seen:
                self._read(seen)
        return self.found

    def _read(self, seen: FoundSkills) -> None:
        root = os.path.realpath(self.checkout.root)
        folders = {
            skill.path: (skill.path or '').removeprefix(root).lstrip(os.sep).replace(os.sep, '/')
            for skill in seen.skills
        }
        names = self.offered_names({folders[skill.path]: skill.name for skill in seen.skills})
        differences: dict[str, str] = {}
        wanted = seen if self.only is None else self._wanted(seen, self.only, folders, names)
        offered: list[Skill[Any]] = []
        for skill in wanted.skills:
            folder = folders[skill.path]
            skill.source = self._provenance(folder, skill.name, names[folder])
            skill.pinned = self._pinned(folder) if self._is_held else None
            if skill.pinned is not None and (difference := skill.pinned.difference()):
                differences[folder] = difference
            offered.append(self._offered(skill, names[folder]))
        found = FoundSkills(tuple(offered), (*wanted.problems, *self._problems()))
        if self.lock is not None:
            lock = self.lock.without(self.others)
            changes = dict(self._changes(found.skills, self.lock, differences))
            found = hold_to_lock(found, lock, changes, place=self._place, moved=self.checkout.moved)
        if self.requirements:
            found = self.requirements.hold(found, differences, place=self._place)
        if not found.is_same(self.found):
            self.found = found
        self._seen = seen

    def _offered(self, skill: Skill[Any], name: str) -> Skill[Any]:
        """The skill under its offered name; always the same object for the same skill."""
        if name == skill.name:
            return skill
        path = skill.path or ''
        original, renamed = self._renamed.get(path) or (None, skill)
        if original is not skill or renamed.name != name:
            renamed = skill.renamed(name)
            self._renamed[path] = (skill, renamed)
        renamed.source, renamed.pinned = skill.source, skill.pinned
        return renamed

    def _wanted(
        self, seen: FoundSkills, only: Collection[str], folders: Mapping[str | None, str], names: Mapping[str, str]
    ) -> FoundSkills:
        """The wanted skills with their problems, or with all problems if a wanted skill is missing."""
        skills = tuple(skill for skill in seen.skills if names[folders[skill.path]] in only)
        self.others = frozenset(folder for folder, name in names.items() if name not in only)
        known = list(names.values())
        missing = [name for name in only if name not in known]
        if missing:
            messages = (
                f'No skill {name!r} in {self._place}. It has: {", ".join(known) or "none"}.' for name in missing
            )
            return FoundSkills(skills, (*seen.problems, *(problem('skill-missing', self.label, m) for m in messages)))
        homes = tuple(f'{skill.path}{os.sep}' for skill in skills)
        return FoundSkills(skills, tuple(each for each in seen.problems if f'{each.path}{os.sep}'.startswith(homes)))

    def _provenance(self, folder: str, name: str, offered_name: str) -> SkillProvenance:
        manifest, edited = self.checkout.entry.manifest, self.checkout.edited
        is_edited = bool(edited) and any(path.startswith(f'{folder}/' if folder else '') for path in edited)
        return self.make_provenance(
            commit=manifest.commit,
            path=folder,
            content_hash=None if is_edited else manifest.skills.get(folder),
            original_name=None if name == offered_name else name,
        )

    def _pinned(self, folder: str) -> PinnedFolder:
        """The files that a skill must have according to the manifest; `_changes` compares their hash with the lock."""
        root, steps = self.checkout.root, tuple(folder.split('/')) if folder else ()
        if not self.checkout.is_placed:
            # In the cache, only the folder of the source is trusted: below it, no link is followed.
            root, steps = root.parents[1], (*root.parts[-2:], *steps)
        ignored = frozenset({f'{STATE}/{MANIFEST}'} if self.checkout.is_placed and not folder else ())
        files = self.checkout.entry.manifest.pinned(folder)
        return PinnedFolder(root=str(root), steps=steps, files=files, ignored=ignored)

    def _changes(
        self, skills: Iterable[Skill[Any]], lock: LockedSource, differences: Mapping[str, str]
    ) -> Iterator[tuple[str, str]]:
        """How skills differ from what the lock file pins, by their folders."""
        for folder in (skill.source.path for skill in skills if skill.source is not None):
            pin = lock.skills.get(folder)
            if pin is None:
                yield folder, f'is not in the lock file, so it is skipped. {REVIEW}'
            elif self.checkout.entry.manifest.skills.get(folder) != pin:
                yield folder, f'has changed since it was locked, so it is skipped. {REVIEW}'
            elif folder in differences:
                files = f'({differences[folder]}), so it is skipped'
                advice = 'Move the changes elsewhere; what is removed here is fetched again.'
                yield folder, f'has files that were edited or added here {files}. {advice}'

    @property
    def _place(self) -> str:
        return f'{self.checkout.entry.manifest.url}@{self.commit[:12]}'

    def _problems(self) -> Iterator[SkillProblem]:
        manifest = self.checkout.entry.manifest
        unwanted = tuple(f'{folder}/' for folder in self.others)
        left_out = [path for path in manifest.left_out if not path.startswith(unwanted)]
        for path in left_out[:MAX_LISTED]:
            message = 'Links, submodules, devices and names that cannot be used here are not fetched.'
            yield problem('file-link', f'{self._place}:{path}', message)
        if len(left_out) > MAX_LISTED:
            message = f'{len(left_out) - MAX_LISTED} more files were not fetched for this reason.'
            yield problem('file-link', self._place, message)
        for part in manifest.problems:
            if not part.is_skill or self.only is None or part.part in self.only:
                yield problem(part.code, f'{self._place}:{part.part}' if part.part else self._place, part.message)
        for path in self.checkout.edited:
            message = 'The file was edited here, so it is not brought up to date.'
            yield problem('file-edited', str(self.checkout.root / path), message)
        if self.checkout.failure is not None:
            message = f'{self.checkout.failure.rstrip(".")}. Its skills of commit {self.commit[:12]} are kept.'
            yield problem('source-failed', self.label, message)
