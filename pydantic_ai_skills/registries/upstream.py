"""What a registry fetches from: a place that says which revision it has now, and hands out the files of a revision."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from uuid import uuid4

from .manifest import FileSink, is_revision
from .store import Entry, SourceStore


class Deadline:
    """The time by which a whole operation has to finish."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then; negative once it has passed."""
        return self._end - time.monotonic()


@dataclass(kw_only=True)
class FetchSession:
    """One visit to an upstream, from asking what it has to the last file. Leaving it removes its folders."""

    deadline: Deadline
    store: SourceStore
    """Where the files go, and what was fetched before."""

    _stack: ExitStack = field(default_factory=ExitStack)
    _work: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def new_folder(self) -> Path:
        """A new empty folder to work in, on the disk of the store."""
        self._work = self._work or self._stack.enter_context(self.store.workspace())
        folder = self._work / uuid4().hex
        folder.mkdir()
        return folder

    def reuse(self, *, own: bool = False) -> Callable[[str], bytes | None]:
        """A function that returns the content that a `blob` had in an earlier revision, or `None`.

        Ask it only for what the source has named at this visit, or with `own=True`: then it has only what was fetched
        with the same credentials.
        """
        return self.store.blobs(own=own)

    def earlier(self) -> Iterator[Entry]:
        """What was fetched before, whoever asked for it. Use only what the source itself identifies by its content."""
        return self.store.earlier()


class Upstream(ABC):
    """Where the files of a fetched registry come from.

    A revision is 40 or 64 hexadecimal digits that always stand for the same content, such as a git commit or a SHA-256.
    """

    url: str
    """Its address, without credentials. It identifies the source in the cache and in the lock file."""

    ref: str | None = None
    """What was asked for, such as a branch, a tag or a digest; `None` for whatever is there."""

    @property
    def pinned(self) -> str | None:
        """The only revision that is wanted, so that the source need not be asked; `None` if the ref can move."""
        return self.ref if is_revision(self.ref) else None

    @property
    def owner(self) -> str:
        """Identifies the credentials without giving them away; empty if there are none."""
        return ''

    def fixed(self) -> Upstream:
        """The same upstream with the credentials it has now, for one visit from beginning to end."""
        return self

    @abstractmethod
    def ask(self, session: FetchSession) -> str:
        """The revision it has now.

        Raises:
            SkillRegistryRefusedError: It does not accept the credentials.
            SkillRegistryError: It cannot be asked.
        """

    @abstractmethod
    def fetch(self, revision: str, sink: FileSink, session: FetchSession) -> list[str]:
        """Write the files of a revision into a sink, and return the paths that were skipped.

        Raises:
            SkillRegistryRefusedError: It does not accept the credentials.
            SkillRegistryError: It does not have this revision, or cannot send it.
        """
