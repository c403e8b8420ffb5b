"""What a repository lists: its marketplace file, or the one plugin that it is."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic_ai_skills.exceptions import SkillValidationError
from pydantic_ai_skills.registries.git.fetch import Fetch

from .manifests import (
    CATALOGUES,
    MAX_MANIFEST_BYTES,
    PLUGINS,
    Marketplace,
    manifest_that_counts,
    read_marketplace,
    read_plugin,
)


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The manifest of a repository at one commit."""

    commit: str
    file: str
    """The path of the manifest."""

    text: bytes

    @staticmethod
    def key_of(commit: str) -> str:
        """Identifies the record of a commit's manifest."""
        return f'marketplace-{commit}'

    @property
    def key(self) -> str:
        """Identifies the record."""
        return self.key_of(self.commit)

    def record(self) -> bytes:
        """What `restore` needs to have the manifest again without the repository."""
        return json.dumps({'file': self.file, 'text': self.text.decode('utf-8', 'replace')}).encode()

    @classmethod
    def restore(cls, commit: str, record: bytes) -> Catalogue:
        """The manifest that a record has."""
        about = json.loads(record)
        return cls(commit=commit, file=about['file'], text=about['text'].encode())

    def marketplace(self) -> Marketplace:
        """The plugins it lists.

        Raises:
            SkillValidationError: The manifest is invalid.
        """
        if self.file in CATALOGUES:
            return read_marketplace(self.text, self.file)
        manifest = read_plugin(self.text, self.file)
        if not manifest.name:
            raise SkillValidationError(f'{self.file} has no name.')
        return Marketplace(plugins=[{'name': manifest.name, 'source': './'}])


def read_catalogue(fetch: Fetch) -> Catalogue:
    """Read the manifest of a repository: that of a marketplace, or else that of a plugin.

    Raises:
        SkillValidationError: There is none, or it is too large.
    """
    wanted = (*CATALOGUES, *PLUGINS)
    entries = {entry.path: entry for path in wanted for entry in fetch.entries(path) if entry.is_file()}
    there = [entries[path] for path in wanted if path in entries]
    for entry in there:
        if entry.path in CATALOGUES:
            text = fetch.read([entry], max_bytes=MAX_MANIFEST_BYTES)[entry.path]
            return Catalogue(commit=fetch.commit, file=entry.path, text=text)
    if not there:
        way_out = 'For the skills of a repository without one, use GitSkillsRegistry.'
        raise SkillValidationError(f'It has no manifest of a marketplace or plugin: {", ".join(wanted)}. {way_out}')
    texts = fetch.read(there, max_bytes=len(PLUGINS) * MAX_MANIFEST_BYTES)
    file = manifest_that_counts(texts)
    return Catalogue(commit=fetch.commit, file=file, text=texts[file])
