"""Reads all files of a skill's folder once, so that the checks see exactly what the content hash covers."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from pydantic_ai_skills.directory.settings import SKILL_FILE
from pydantic_ai_skills.exceptions import SkillResourceLoadError
from pydantic_ai_skills.filesystem.content import SNIFFED_BYTES
from pydantic_ai_skills.filesystem.pinned import PinnedFile, content_hash
from pydantic_ai_skills.filesystem.safe_open import MAX_RESOURCE_BYTES, FoundEntry, OpenFolder, SkillFolder, reason
from pydantic_ai_skills.problems import SkillProblem, problem

MAX_FILES = 2_000
"""How many files of a skill are looked at."""

MAX_BYTES = 64 * 1024 * 1024
"""How many bytes they may have together."""

MAX_TEXT_BYTES = 1024 * 1024
"""A longer text is reported as too large to be searched."""

MAX_DEPTH = 32
"""How deep the folders of a skill are looked into."""

_PROSE = frozenset({'.markdown', '.md', '.mdx', '.rst', '.txt'})
_PAGES = frozenset({'.htm', '.html', '.svg', '.xml'})
_PROGRAMS = frozenset(
    {
        *('.bash', '.bat', '.cjs', '.cmd', '.fish', '.go', '.js', '.jsx', '.ksh', '.lua', '.mjs', '.php', '.pl'),
        *('.ps1', '.psm1', '.py', '.pyw', '.r', '.rb', '.rs', '.sh', '.swift', '.tcl', '.ts', '.tsx', '.zsh'),
    }
)
_BINARY_SIGNS = (b'%PDF-', b'\x89PNG', b'\xff\xd8\xff', b'GIF8', b'RIFF', b'PK\x03\x04', b'\x1f\x8b')
_BOMS = {b'\xff\xfe': 'utf-16-le', b'\xfe\xff': 'utf-16-be'}


@dataclass(frozen=True, kw_only=True)
class AuditedFile:
    """A file of a skill, as it was read."""

    path: str
    """Its path in the skill, with `/` between the parts."""

    data: bytes
    """Its bytes; only the first ones if it is larger than `MAX_RESOURCE_BYTES`."""

    pinned: PinnedFile
    """Its size, its digest and whether it can be executed."""

    @property
    def suffix(self) -> str:
        """How its name ends, in lower case."""
        return PurePosixPath(self.path).suffix.lower()

    @property
    def is_prose(self) -> bool:
        """Whether it is a text for people and models. People may see it rendered, without the comments in it."""
        return self.suffix in _PROSE

    @property
    def is_page(self) -> bool:
        """Whether it is the source of a page."""
        return self.suffix in _PAGES

    @property
    def is_program(self) -> bool:
        """Whether it is the source of a program."""
        return self.suffix in _PROGRAMS or self.data.startswith(b'#!')

    @property
    def is_text(self) -> bool:
        """Whether models and interpreters read it as text."""
        if self.is_prose or self.is_program or self.data[:2] in _BOMS:
            return True
        return b'\0' not in self.data[:SNIFFED_BYTES] and not self.data.startswith(_BINARY_SIGNS)

    @property
    def is_oversized(self) -> bool:
        """Whether it is reported as too large to be searched."""
        return self.pinned.size > (MAX_TEXT_BYTES if self.is_text else MAX_RESOURCE_BYTES)

    @cached_property
    def text(self) -> str:
        """Its text; empty if it is not one."""
        return self.data.decode(_BOMS.get(self.data[:2], 'utf-8'), 'replace') if self.is_text else ''


@dataclass(frozen=True, kw_only=True)
class AuditedFolder:
    """All files of a skill."""

    files: tuple[AuditedFile, ...]
    problems: tuple[SkillProblem, ...] = ()
    """What in the folder is not a file, or was not looked at."""

    @property
    def content_hash(self) -> str | None:
        """The hash that a registry would give this content; `None` if there is more in the folder than these files."""
        return None if self.problems else content_hash({file.path: file.pinned for file in self.files})

    @cached_property
    def named_hosts(self) -> frozenset[str]:
        """The names in its `SKILL.md` that look like those of hosts."""
        texts = (file.text.lower() for file in self.files if file.path.lower() == SKILL_FILE.lower())
        return frozenset(name for text in texts for name in _HOST_NAME.findall(text))


_HOST_NAME = re.compile(r'(?<![\w.-])[a-z0-9-]++(?:\.[a-z0-9-]++)++')


def read_folder(folder: SkillFolder) -> AuditedFolder:
    """Read a skill's folder. Files that cannot be read or exceed the limits are reported as problems."""
    problems: list[SkillProblem] = []
    try:
        with folder.open() as opened:
            files = tuple(sorted(_read_all(opened, folder.path, problems), key=lambda file: file.path))
    except OSError as error:
        return AuditedFolder(files=(), problems=(problem('file-unreadable', folder.path, f'It {_because(error)}'),))
    return AuditedFolder(files=files, problems=tuple(problems))


def _read_all(opened: OpenFolder, path: str, problems: list[SkillProblem]) -> Iterator[AuditedFile]:
    left, count = MAX_BYTES, 0
    for found in opened.walk(MAX_DEPTH):
        place = os.path.join(path, *found.path.split('/'))
        count += 1
        if count > MAX_FILES or left < 0:
            message = f'The rest was not scanned: it has more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes.'
            problems.append(problem('oversized-file', path, message))
            return
        if not stat.S_ISREG(found.status.st_mode):
            problems.append(_not_a_file(found.status, place))
            continue
        try:
            file = _read(found)
        except (OSError, SkillResourceLoadError) as error:
            problems.append(problem('file-unreadable', place, f'The file {_because(error)}'))
            continue
        left -= file.pinned.size
        yield file


def _read(found: FoundEntry) -> AuditedFile:
    executable = bool(found.status.st_mode & stat.S_IXUSR)
    if found.status.st_size <= MAX_RESOURCE_BYTES:
        data = found.folder.read(found.name, MAX_RESOURCE_BYTES).data
        return AuditedFile(
            path=found.path, data=data, pinned=PinnedFile(len(data), hashlib.sha256(data).hexdigest(), executable)
        )
    if found.status.st_size > MAX_BYTES:
        raise SkillResourceLoadError(f'is larger than {MAX_BYTES:,} bytes.')
    with open(found.folder.file(found.name), 'rb') as file:
        head = file.read(SNIFFED_BYTES)
        file.seek(0)
        digest = hashlib.file_digest(file, 'sha256').hexdigest()
    return AuditedFile(path=found.path, data=head, pinned=PinnedFile(found.status.st_size, digest, executable))


def _not_a_file(status: os.stat_result, place: str) -> SkillProblem:
    if stat.S_ISLNK(status.st_mode):
        return problem('file-link', place, 'A link was not followed.')
    if stat.S_ISDIR(status.st_mode):
        return problem('folder-too-deep', place, f'Folders deeper than {MAX_DEPTH} were not scanned.')
    return problem('file-special', place, 'It is not a regular file, so it was not read.')


def _because(error: OSError | SkillResourceLoadError) -> str:
    return f'cannot be read: {reason(error)}.' if isinstance(error, OSError) else str(error)
