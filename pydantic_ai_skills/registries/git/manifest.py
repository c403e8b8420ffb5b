"""What an entry of the store consists of, so that damage is seen: each file with its size, mode and hash."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ('FileSink', 'Manifest', 'StoredFile', 'blob_hash')

MANIFEST = 'manifest.json'
VERSION = 1
WRITTEN_AT = 946_684_800
"""The modification time of every file in the store: one that has another was touched, and is looked at closely."""

_MODES = {False: stat.S_IFREG | 0o644, True: stat.S_IFREG | 0o755}
"""The kind and the mode of a file, by whether it can be executed."""

_UNUSABLE = (errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTDIR)
"""Why a name cannot be used here: too long, or the same as another one on a file system that ignores case."""


class StoredFile(NamedTuple):
    """One file."""

    size: int
    digest: str
    """The SHA-256 of its bytes."""
    executable: bool
    blob: str
    """What git calls its content."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All files of an entry."""

    url: str
    commit: str
    selection: str = ''
    """Which files of the commit were asked for."""
    files: Mapping[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    left_out: tuple[str, ...] = ()
    """Links, other repositories and names that cannot be used here."""
    skills: Mapping[str, str] = field(default_factory=dict[str, str])
    """The content hash of each folder with a `SKILL.md`."""

    @property
    def size(self) -> int:
        """How many bytes its files have."""
        return sum(file.size for file in self.files.values())

    def write(self, folder: Path) -> None:
        """Write it into a folder, with its own hash before it."""
        body = json.dumps({'version': VERSION, **asdict(self)}, separators=(',', ':'), sort_keys=True)
        (folder / MANIFEST).write_text(f'{hashlib.sha256(body.encode()).hexdigest()}\n{body}', 'ascii')

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of a folder; `None` if it has none that is whole."""
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
        """Whether all files are as they were written. Only what looks different is read, unless it is thorough."""
        prefix = f'{root}{os.sep}'
        try:
            for path, file in self.files.items():
                status = os.lstat(prefix + path)
                looks = status.st_mode, status.st_size, status.st_mtime
                written = _MODES[file.executable], file.size, WRITTEN_AT
                if (thorough or looks != written) and not _has_its_bytes(prefix + path, status, file):
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
    """Writes files below a folder of ours and notes what it wrote. It makes no links, so no path leads elsewhere."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, StoredFile] = {}
        self.left_out: list[str] = []

    def write(self, path: str, blob: str, data: bytes, *, executable: bool) -> None:
        """Write a file; one whose name cannot be used here is left out."""
        steps = path.split('/')
        if any(step in ('', '.', '..') or step.lower() == '.git' or not _is_usable(step) for step in steps):
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
        """The manifest of what was written."""
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
        return False  # it cannot be told to a model nor written into a lock file, and some systems do not have it
    return os.sep == '/' or not any(character in step for character in '\\:')


def _skill_hashes(files: Mapping[str, StoredFile]) -> dict[str, str]:
    """A hash for each folder with a `SKILL.md`, over the names, modes and hashes of all files below it."""
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


def blob_hash(data: bytes, like: str) -> str:
    """What git calls these bytes, in the kind of hash `like` is."""
    kind = 'sha1' if len(like) == 40 else 'sha256'
    return hashlib.new(kind, b'blob %d\0' % len(data) + data, usedforsecurity=False).hexdigest()
