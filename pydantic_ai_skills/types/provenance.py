"""Where a fetched or installed skill came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SkillProvenance:
    """Where a skill that was fetched or installed came from, and exactly what it is."""

    kind: str
    """What kind of source it is, such as `'git'` or `'package'`."""

    url: str
    """The address of the source. It holds no credentials."""

    ref: str | None = None
    """The branch, tag or commit that was asked for; `None` for the default branch."""

    commit: str | None = None
    """The commit that was found."""

    path: str = ''
    """The skill's folder in the source."""

    original_name: str | None = None
    """The name the skill has in the source, if it is offered under another because two skills there share one."""

    content_hash: str | None = None
    """A hash of the names, modes and bytes of all its files, such as `'sha256:…'`."""

    signed_by: str | None = None
    """Who signed this content, if that was verified; see `signers` of `FetchOptions`."""

    trusted: bool = False
    """Whether the developer vouches for the source."""

    distribution: str | None = None
    """The installed distribution that has it."""

    version: str | None = None
    """The version of that distribution."""

    label: str | None = None
    """What the developer calls the source."""

    qualifier: str | None = None
    """The prefix of the skill's name if another skill has the same name, so that both can be used. Without one, the
    skill that comes first is used."""

    @property
    def name(self) -> str:
        """What people call the source: its label, the distribution, or its address."""
        if self.label is not None:
            return self.label
        if self.distribution is not None:
            return f'{self.distribution} {self.version}'
        at = self.ref or (self.commit or '')[:12]
        return f'{self.url.partition("://")[2] or self.url}{f"@{at}" if at else ""}'
