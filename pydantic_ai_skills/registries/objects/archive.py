"""An archive in an object store as an upstream: one object, which is unpacked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from io import BytesIO

from pydantic_ai_skills.registries.archive.entry import ArchiveError
from pydantic_ai_skills.registries.archive.registry import WantedSkills
from pydantic_ai_skills.registries.manifest import FileSink
from pydantic_ai_skills.registries.upstream import FetchSession

from .upstream import ObjectUpstream, StoredObject


@dataclass(frozen=True, kw_only=True)
class ArchiveObjectUpstream(ObjectUpstream):
    """An archive, and the folder in it that is wanted."""

    key: str
    wanted: str

    def fetch(self, revision: str, sink: FileSink, session: FetchSession) -> list[str]:
        """Fetch the archive, if it has not changed since `ask`, and unpack its skills."""
        files = self._files_of(revision, session)
        self._check_size(files)
        data = self._run(partial(self._get, files[0]), session)
        wanted = WantedSkills(path=self.wanted, max_depth=self.max_depth, max_bytes=self.max_bytes)
        try:
            return wanted.unpack(BytesIO(data), files[0].blob, sink, session.deadline)
        except ArchiveError as error:
            raise self._error(str(error)) from None

    def _list(self, session: FetchSession) -> list[StoredObject]:
        self.listed.append([self._run(self._head, session)])
        return self.listed[-1]

    async def _head(self) -> StoredObject:
        import obstore

        assert self.store is not None
        return self._stored(await obstore.head_async(self.store, self.key))
