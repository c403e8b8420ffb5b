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
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_ai_skills.filesystem.atomic import replace_file
from pydantic_ai_skills.filesystem.ownership import is_ours, make_folder
from pydantic_ai_skills.filesystem.pinned import PinnedFile, content_hash
from pydantic_ai_skills.problems import RULES

MANIFEST = 'manifest.json'
VERSION = 1
WRITTEN_AT = 946_684_800
"""Modification time of every stored file. A file with another time was touched and is read to check it."""

_REVISION = re.compile(r'[0-9a-f]{40}|[0-9a-f]{64}')

_MODES = {False: stat.S_IFREG | 0o644, True: stat.S_IFREG | 0o755}
"""Type and mode bits of a file, by whether it is executable."""

_UNUSABLE = (errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTDIR)
"""Errors of a name this file system cannot hold: too long, or equal to another one when case is ignored."""


_UNUSABLE_STEPS = frozenset({'', '.', '..', '.git'})
SKILL_FILE = 'skill.md'


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


class PartProblem(NamedTuple):
    """What a person should know about a part of a source, such as a plugin of a marketplace."""

    code: str
    """The code of the problem."""

    part: str
    """The part, as the source calls it."""

    message: str
    is_final: bool = True
    """Whether this revision always has the problem. Otherwise the next visit fetches the missing part."""

    is_skill: bool = False
    """Whether the part is a skill, so that it concerns only those who want that one."""


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
    problems: tuple[PartProblem, ...] = ()
    """What is wrong with parts of the source."""

    @property
    def is_partial(self) -> bool:
        """Whether something of the revision is missing that may be there at the next visit."""
        return not all(part.is_final for part in self.problems)

    @cached_property
    def skills(self) -> dict[str, str]:
        """Content hash of each folder with a `SKILL.md`."""
        return {folder: content_hash(files) for folder, files in self._folders.items() if _is_skill(files)}

    @cached_property
    def _folders(self) -> dict[str, dict[str, PinnedFile]]:
        """The files of the root and of each folder with a `SKILL.md`, by their path in it, sorted."""
        skills = (path[:-9] for path in self.files if path[-8:].lower() == SKILL_FILE and path[-9:-8] in ('', '/'))
        folders: dict[str, dict[str, PinnedFile]] = {folder: {} for folder in ('', *sorted(skills))}
        for path, file in sorted(self.files.items()):
            pinned = PinnedFile(file.size, file.digest, file.executable)
            folders[''][path] = pinned
            end = path.rfind('/')
            while end > 0:
                inside = folders.get(path[:end])
                if inside is not None:
                    inside[path[end + 1 :]] = pinned
                end = path.rfind('/', 0, end)
        return folders

    @property
    def size(self) -> int:
        """Total bytes of its files."""
        return sum(file.size for file in self.files.values())

    def pinned(self, folder: str) -> dict[str, PinnedFile]:
        """The files below the folder of a skill, `''` for all, by their path in it."""
        return self._folders.get(folder, {})

    def agrees_with(self, pins: Mapping[str, str]) -> bool:
        """Whether no skill in it differs from the content hash that a lock file pins for it."""
        return all(self.skills.get(folder, pin) == pin for folder, pin in pins.items())

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
        try:
            return cls._parse(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None  # somebody else wrote it

    @classmethod
    def _parse(cls, fields: dict[str, Any]) -> Manifest | None:
        if fields['version'] != VERSION:
            return None
        stored: dict[str, Any] = fields['files']
        files = {path: StoredFile._make(file) for path, file in stored.items() if is_usable_path(path)}
        about = {name: str(fields[name]) for name in ('url', 'commit', 'selection')}
        problems = tuple(PartProblem._make(each) for each in fields.get('problems', ()))
        if len(files) < len(stored) or any(part.code not in RULES for part in problems):
            return None
        return cls(files=files, left_out=tuple(fields['left_out']), problems=problems, **about)

    def is_whole(self, root: Path, *, thorough: bool = False) -> bool:
        """Whether all files are as they were written, and ours. Only `thorough` reads files that look untouched."""
        prefix = f'{root}{os.sep}'
        try:
            for path, file in self.files.items():
                status = os.lstat(prefix + path)
                actual = status.st_mode, status.st_size, status.st_mtime
                expected = _MODES[file.executable], file.size, WRITTEN_AT
                if not is_ours(status):
                    return False
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
        self.problems: list[PartProblem] = []

    def write(self, path: str, blob: str, data: bytes | Iterable[bytes], *, executable: bool) -> None:
        """Write a file, whole or piece by piece, or skip it if its name cannot be used here."""
        if not is_usable_path(path):
            self.left_out.append(path)
            return
        target = os.path.join(self.root, *path.split('/'))
        digest, size = hashlib.sha256(), 0
        try:
            make_folder(Path(target).parent, 0o755)
            with open(target, 'xb') as file:
                for piece in (data,) if isinstance(data, bytes) else data:
                    digest.update(piece)
                    size += file.write(piece)
        except OSError as error:
            if error.errno not in _UNUSABLE:
                raise
            self.left_out.append(path)
            return
        os.chmod(target, stat.S_IMODE(_MODES[executable]))
        os.utime(target, (WRITTEN_AT, WRITTEN_AT))
        self.files[path] = StoredFile(size, digest.hexdigest(), executable, blob)

    def report(self, code: str, part: str, message: str, *, is_final: bool = True, is_skill: bool = False) -> None:
        """Record a problem with a part of the source. Unless it is final, the next visit fetches the part again."""
        self.problems.append(PartProblem(code, part, message, is_final, is_skill))

    def manifest(self, *, url: str, commit: str, selection: str, left_out: Iterable[str]) -> Manifest:
        """Build the manifest of what was written."""
        return Manifest(
            url=url,
            commit=commit,
            selection=selection,
            files=self.files,
            left_out=tuple(sorted({*left_out, *self.left_out})),
            problems=tuple(self.problems),
        )


def is_usable_path(path: str) -> bool:
    """Whether a relative path can name a file below its folder, and nothing outside it, on this machine too."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False  # neither a model nor a lock file can be given such a name
    if not _UNUSABLE_STEPS.isdisjoint(path.lower().split('/')):
        return False
    return os.sep == '/' or not any(character in path for character in '\\:')


def _is_skill(names: Iterable[str]) -> bool:
    """Whether a folder with files of these names is a skill."""
    return any(name.lower() == 'skill.md' for name in names)
