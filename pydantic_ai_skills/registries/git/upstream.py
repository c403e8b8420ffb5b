"""A git repository as an upstream: its revisions are commits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic_ai_skills.registries.manifest import FileSink
from pydantic_ai_skills.registries.upstream import FetchSession, Upstream

from .fetch import Fetch, new_repository, resolve
from .options import Selection
from .process import Git


@dataclass(frozen=True, kw_only=True)
class GitUpstream(Upstream):
    """A repository, and the ref and files wanted from it."""

    git: Git
    ref: str | None
    selection: Selection

    @property
    def url(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - it is never assigned
        """The address of the repository."""
        return self.git.address.url

    @property
    def owner(self) -> str:
        """Identifies the token or key."""
        return self.git.owner

    def fixed(self) -> GitUpstream:
        """The same repository with the token it has now."""
        secret = self.git.secret
        return self if secret is None else replace(self, git=replace(self.git, secret=secret.fixed()))

    def ask(self, session: FetchSession) -> str:
        """Ask the server for the commit of the ref; if that is a commit, only check that the server answers."""
        wanted = None if self.pinned else self.ref
        return resolve(self.git, wanted, repository=new_repository(session.new_folder()), deadline=session.deadline)

    def fetch(self, revision: str, sink: FileSink, session: FetchSession) -> list[str]:
        """Fetch the files of a commit, except for those that an earlier one had."""
        repository = new_repository(session.new_folder())
        fetch = Fetch(git=self.git, commit=revision, repository=repository, deadline=session.deadline)
        return fetch.files(self.selection, sink=sink, reuse=session.reuse())
