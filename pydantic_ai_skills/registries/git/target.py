"""A checkout at a place the developer chose: only files that were put there by us are ever replaced or removed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillRegistryError
from pydantic_ai_skills.registries.store import Entry

from .manifest import Manifest, StoredFile

__all__ = ('TargetFolder',)

STATE = '.pydantic-ai-skills'
"""The folder that says what was put there."""


@dataclass(frozen=True)
class TargetFolder:
    """The place for a checkout."""

    path: Path

    def open(self, url: str, selection: str, commit: str | None) -> Entry | None:
        """What is there, if it is whole, what is wanted, and of this commit; of any one if none is given."""
        manifest = Manifest.read(self.path / STATE)
        if manifest is None or (manifest.url, manifest.selection) != (url, selection):
            return None
        if commit not in (None, manifest.commit):
            return None
        return Entry(self.path, manifest) if manifest.is_whole(self.path) else None

    def publish(self, entry: Entry) -> list[str]:
        """Bring the folder to the state of an entry; return the files that were left because somebody edited them.

        Raises:
            SkillRegistryError: The folder holds something else.
        """
        before = Manifest.read(self.path / STATE)
        if before is None and self.path.exists() and any(self.path.iterdir()):
            raise SkillRegistryError(
                f'{str(self.path)!r} is not empty and is not a checkout of ours; choose another target_dir'
            )
        if before is not None and before.url != entry.manifest.url:
            raise SkillRegistryError(f'{str(self.path)!r} is a checkout of {before.url}; choose another target_dir')
        known: Mapping[str, StoredFile] = before.files if before else {}
        (self.path / STATE).mkdir(parents=True, exist_ok=True)
        edited = [path for path, file in entry.manifest.files.items() if not self._update(entry, path, file, known)]
        for path in known.keys() - entry.manifest.files.keys():
            self._remove(path, known[path])
        _replace(self.path / STATE, entry.manifest)
        return sorted(edited)

    def _update(self, entry: Entry, path: str, file: StoredFile, known: Mapping[str, StoredFile]) -> bool:
        target = self.path / path
        there = self._digest(path)
        if there is not None and there != file.digest and (path not in known or there != known[path].digest):
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path / STATE / uuid.uuid4().hex
        try:
            shutil.copy2(entry.root / path, beside)
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        return True

    def _remove(self, path: str, file: StoredFile) -> None:
        if self._digest(path) == file.digest:
            (self.path / path).unlink()
            folder = (self.path / path).parent
            with contextlib.suppress(OSError):
                # Fails at the first one that is not empty.
                while folder != self.path:
                    folder.rmdir()
                    folder = folder.parent

    def _digest(self, path: str) -> str | None:
        """The hash of what is there; `None` if nothing is, something no file of ours has for what is not ours."""
        target = self.path / path
        links = (target, *target.parents[: len(Path(path).parts) - 1])
        if any(link.is_symlink() for link in links) or (target.exists() and not target.is_file()):
            return 'not a file'
        try:
            return hashlib.sha256(target.read_bytes()).hexdigest()
        except (FileNotFoundError, NotADirectoryError):
            return None


def _replace(folder: Path, manifest: Manifest) -> None:
    beside = folder / uuid.uuid4().hex
    beside.mkdir()
    try:
        manifest.write(beside)
        for file in beside.iterdir():
            os.replace(file, folder / file.name)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
