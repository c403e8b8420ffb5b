"""Entries of an archive, and the names they may have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic_ai_skills.exceptions import SkillRegistryError

MAX_NAME_BYTES = 1024
"""How long the path of a file in an archive may be."""

MAX_STEPS = 32
"""How deep a file may be in its folders."""

MAX_ENTRIES = 100_000
"""How many entries of any kind an archive may have."""

_DRIVE = re.compile(r'[A-Za-z]:')


class ArchiveError(SkillRegistryError):
    """An archive is damaged, hostile or of a kind that is not read. The message continues after the archive's name."""


@dataclass(frozen=True, kw_only=True)
class ArchiveEntry:
    """A file in an archive, or something in its place."""

    path: str
    """Its path in the archive, with `/` between the steps and none at the end."""

    kind: Literal['file', 'folder', 'other']
    """`'other'` are links, devices and the like, which are not unpacked."""

    size: int = 0
    executable: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether its name can be shown and stored."""
        is_short = len(self.path.encode('utf-8', 'replace')) <= MAX_NAME_BYTES and self.path.count('/') < MAX_STEPS
        return is_short and self.path.isprintable()


class ArchiveReader(Protocol):
    """Reads an archive, as often as is wanted."""

    def entries(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        """The entries, each with its content, which can be read until the next entry.

        Raises:
            ArchiveError: The archive is damaged, hostile or larger than is allowed.
        """
        ...


def too_large(limit: int) -> ArchiveError:
    """The error of an archive that unpacks to more than is allowed, or than its own size makes likely."""
    return ArchiveError(f'unpacks to more than the {limit:,} bytes that max_bytes= and its own size allow')


def checked_path(name: str) -> str:
    """The path that a name in an archive stands for; empty for the root itself.

    Raises:
        ArchiveError: It leads out of the folder that the archive is unpacked into, or does so on another system.
    """
    steps = [step for step in name.split('/') if step not in ('', '.')]
    if name.startswith('/') or '\\' in name or '\0' in name or '..' in steps or _DRIVE.match(name):
        raise ArchiveError(f'has the name {name[:80]!r}, which leads out of the archive')
    return '/'.join(steps)
