"""A copy of an entry in a folder the developer chose. Only files that a registry wrote there are changed."""

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

from .manifest import Manifest, StoredFile
from .store import Entry

STATE = '.pydantic-ai-skills'
"""The folder that records what a registry wrote."""


@dataclass(frozen=True)
class TargetFolder:
    """The developer's folder."""

    path: Path

    def open(
        self, url: str, selection: str, revision: str | None, *, pins: Mapping[str, str] | None = None
    ) -> Entry | None:
        """Open the files if they are complete, of this selection and of this revision; `None` accepts any revision.

        With `pins`, the content hashes of skills in a lock file, every file that was fetched is read.
        """
        manifest = Manifest.read(self.path / STATE)
        if manifest is None or (manifest.url, manifest.selection) != (url, selection):
            return None
        if revision not in (None, manifest.commit):
            return None
        if not manifest.agrees_with(pins or {}) or not manifest.is_whole(self.path, thorough=pins is not None):
            return None
        return Entry(self.path, manifest)

    def publish(self, entry: Entry) -> list[str]:
        """Bring the folder to the state of an entry; return the files left alone because somebody edited them."""
        before = Manifest.read(self.path / STATE)
        if before is None and self.path.exists() and any(self.path.iterdir()):
            raise SkillRegistryError(
                f'{str(self.path)!r} is not empty and was not written by a registry; choose another target_dir'
            )
        if before is not None and before.url != entry.manifest.url:
            raise SkillRegistryError(f'{str(self.path)!r} is a checkout of {before.url}; choose another target_dir')
        known: Mapping[str, StoredFile] = before.files if before else {}
        (self.path / STATE).mkdir(parents=True, exist_ok=True)
        edited = [path for path, file in entry.manifest.files.items() if not self._update(entry, path, file, known)]
        for path in known.keys() - entry.manifest.files.keys():
            self._remove(path, known[path])
        entry.manifest.write(self.path / STATE)
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
        finally:
            beside.unlink(missing_ok=True)
        return True

    def _remove(self, path: str, file: StoredFile) -> None:
        if self._digest(path) == file.digest:
            (self.path / path).unlink()
            folder = (self.path / path).parent
            with contextlib.suppress(OSError):
                # Fails at the first folder that is not empty.
                while folder != self.path:
                    folder.rmdir()
                    folder = folder.parent

    def _digest(self, path: str) -> str | None:
        """The hash of the file there; `None` if nothing is there, and `'not a file'` if it is anything else."""
        target = self.path / path
        links = (target, *target.parents[: len(Path(path).parts) - 1])
        if any(link.is_symlink() for link in links) or (target.exists() and not target.is_file()):
            return 'not a file'
        try:
            return hashlib.sha256(target.read_bytes()).hexdigest()
        except (FileNotFoundError, NotADirectoryError):
            return None
