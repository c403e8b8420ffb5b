"""Manifest of a store entry: every file with size, mode and hash, so that damage is noticed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_ai_skills.filesystem.atomic import replace_file

MANIFEST = 'manifest.json'
VERSION = 1
WRITTEN_AT = 946_684_800
"""Modification time of every stored file. A file with another time was touched and is read to check it."""

_REVISION = re.compile(r'[0-9a-f]{40}|[0-9a-f]{64}')

_MODES = {False: stat.S_IFREG | 0o644, True: stat.S_IFREG | 0o755}
"""Type and mode bits of a file, by whether it is executable."""

_UNUSABLE = (errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTDIR)
"""Errors of a name this file system cannot hold: too long, or equal to another one when case is ignored."""


def is_revision(text: str | None) -> bool:
    """Whether a text is a full hash, such as a git commit, which always stands for the same content."""
    return text is not None and _REVISION.fullmatch(text) is not None


class StoredFile(NamedTuple):
    """One file."""

    size: int
    digest: str
    """SHA-256 of its bytes."""
    executable: bool
    blob: str
    """Identifies its content at the source, so that it need not be fetched again."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All files of an entry."""

    url: str
    commit: str
    """Revision of the source: a git commit, or the hash of another source's content."""
    selection: str = ''
    """Which files of the revision were requested."""
    files: Mapping[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    left_out: tuple[str, ...] = ()
    """Links, submodules and names that cannot be stored here."""
    skills: Mapping[str, str] = field(default_factory=dict[str, str])
    """Content hash of each folder with a `SKILL.md`."""

    @property
    def size(self) -> int:
        """Total bytes of its files."""
        return sum(file.size for file in self.files.values())

    def write(self, folder: Path) -> None:
        """Write it into a folder, preceded by its own hash."""
        body = json.dumps({'version': VERSION, **asdict(self)}, separators=(',', ':'), sort_keys=True)
        replace_file(folder / MANIFEST, f'{hashlib.sha256(body.encode()).hexdigest()}\n{body}'.encode('ascii'))

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """Read the manifest of a folder; `None` if it is missing, damaged or of another version."""
        try:
            checksum, _, body = (folder / MANIFEST).read_bytes().partition(b'\n')
        except OSError:
            return None
        if hashlib.sha256(body).hexdigest().encode() != checksum:
            return None
        fields: dict[str, Any] = json.loads(body)
        if fields.pop('version') != VERSION:
            return None
        stored = fields.pop('files')
        files = dict(zip(stored, map(StoredFile._make, stored.values()), strict=True))
        return cls(files=files, left_out=tuple(fields.pop('left_out')), **fields)

    def is_whole(self, root: Path, *, thorough: bool = False) -> bool:
        """Whether all files are as they were written. Only `thorough` reads files that look untouched."""
        prefix = f'{root}{os.sep}'
        try:
            for path, file in self.files.items():
                status = os.lstat(prefix + path)
                actual = status.st_mode, status.st_size, status.st_mtime
                expected = _MODES[file.executable], file.size, WRITTEN_AT
                if (thorough or actual != expected) and not _has_its_bytes(prefix + path, status, file):
                    return False
        except OSError:
            return False
        return True


def _has_its_bytes(path: str, status: os.stat_result, file: StoredFile) -> bool:
    if not stat.S_ISREG(status.st_mode) or status.st_size != file.size:
        return False
    with open(path, 'rb') as opened:
        return hashlib.file_digest(opened, 'sha256').hexdigest() == file.digest


class FileSink:
    """Writes files below a folder of the store and records them. It creates no links, so no path leads outside."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, StoredFile] = {}
        self.left_out: list[str] = []

    def write(self, path: str, blob: str, data: bytes, *, executable: bool) -> None:
        """Write a file, or skip it if its name cannot be used here."""
        steps = path.split('/')
        if not all(map(_is_usable, steps)):
            self.left_out.append(path)
            return
        target = os.path.join(self.root, *steps)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, 'xb') as file:
                file.write(data)
        except OSError as error:
            if error.errno not in _UNUSABLE:
                raise
            self.left_out.append(path)
            return
        os.chmod(target, stat.S_IMODE(_MODES[executable]))
        os.utime(target, (WRITTEN_AT, WRITTEN_AT))
        self.files[path] = StoredFile(len(data), hashlib.sha256(data).hexdigest(), executable, blob)

    def manifest(self, *, url: str, commit: str, selection: str, left_out: Iterable[str]) -> Manifest:
        """Build the manifest of what was written."""
        return Manifest(
            url=url,
            commit=commit,
            selection=selection,
            files=self.files,
            left_out=tuple(sorted({*left_out, *self.left_out})),
            skills=_skill_hashes(self.files),
        )


def _is_usable(step: str) -> bool:
    try:
        step.encode()
    except UnicodeEncodeError:
        return False  # neither a model nor a lock file can be given such a name
    if step in ('', '.', '..') or step.lower() == '.git':
        return False
    return os.sep == '/' or not any(character in step for character in '\\:')


def _skill_hashes(files: Mapping[str, StoredFile]) -> dict[str, str]:
    """Hash the names, modes and contents of all files below each folder with a `SKILL.md`."""
    folders = {path.rpartition('/')[0] for path in files if path.rpartition('/')[2].lower() == 'skill.md'}
    hashes = {folder: hashlib.sha256() for folder in sorted(folders)}
    for path in sorted(files):
        file = files[path]
        steps = path.split('/')
        for depth in range(len(steps)):
            folder = '/'.join(steps[:depth])
            if folder in hashes:
                inner = '/'.join(steps[depth:])
                line = f'{inner}\0{"x" if file.executable else "-"}\0{file.digest}\n'
                hashes[folder].update(line.encode('utf-8', 'surrogateescape'))
    return {folder: f'sha256:{digest.hexdigest()}' for folder, digest in hashes.items()}
