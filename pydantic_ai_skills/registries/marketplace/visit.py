"""A visit to one repository at one commit, for the plugins it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.registries.git.fetch import Fetch, TreeEntry
from pydantic_ai_skills.registries.manifest import FileSink, PartProblem

from .manifests import (
    AGENT_PLUGIN,
    MAX_MANIFEST_BYTES,
    PLUGINS,
    AgentPlugin,
    PluginManifest,
    manifest_that_counts,
    read_plugin,
)
from .parts import Part, Reuse, failed_part
from .plan import MAX_MESSAGE, Plugin
from .skills import PluginFolder, choose, files_of, look_at

MAX_NAMED = 10
"""How many unknown keys or empty folders of a plugin are reported."""


@dataclass(kw_only=True)
class _Draft:
    """A plugin whose part is being made."""

    part: Part
    folder: PluginFolder | None = None
    chosen: list[TreeEntry] = field(default_factory=list[TreeEntry])

    @property
    def manifests(self) -> Iterable[TreeEntry]:
        return self.folder.manifests.values() if self.folder and self.part.plugin.entry.strict else ()


@dataclass(frozen=True, kw_only=True)
class Visit:
    """Fetches plugins that are in one repository: each step for all of them, so that there are few requests."""

    fetch: Fetch
    plugins: Sequence[Plugin]
    roots: Sequence[Path]
    """An empty folder for each plugin."""

    reuse: Reuse

    def parts(self) -> list[Part]:
        """Fetch the plugins. What is wrong with one does not keep the others from being fetched."""
        pairs = list(zip(self.plugins, self.roots, strict=True))
        try:
            self.fetch.trees()
        except SkillRegistryError as error:
            return [failed_part(plugin, error, root) for plugin, root in pairs]
        drafts = [_Draft(part=Part(plugin=plugin, files=FileSink(root))) for plugin, root in pairs]
        self._each(drafts, self._look)
        self._get(entry for draft in drafts for entry in draft.manifests)
        self._each(drafts, self._choose)
        self._get(entry for draft in drafts for entry in draft.chosen)
        self._each(drafts, self._take)
        return [draft.part for draft in drafts]

    def _each(self, drafts: Iterable[_Draft], step: Callable[[_Draft], None]) -> None:
        """Do a step for each plugin that has not failed yet."""
        for draft in drafts:
            part = draft.part
            try:
                if part.failure is None:
                    step(draft)
            except SkillValidationError as error:
                draft.part = replace(part, failure=str(error)[:MAX_MESSAGE], is_final=True)
            except SkillRegistryError as error:
                draft.part = failed_part(part.plugin, error, part.files.root)

    def _get(self, entries: Iterable[TreeEntry]) -> None:
        """Fetch what is not here yet, all at once. If that fails, it is tried again for each plugin."""
        missing = [entry for entry in entries if entry.is_file() and self.reuse(entry.blob) is None]
        with suppress(SkillRegistryError):
            self.fetch.get(missing)

    # --- The steps ------------------------------------------------------------------------------------------------

    def _look(self, draft: _Draft) -> None:
        draft.folder = look_at(self.fetch, draft.part.plugin.source.paths)

    def _choose(self, draft: _Draft) -> None:
        part, folder = draft.part, draft.folder
        assert folder is not None
        entry = part.plugin.entry
        manifest = self._manifest(folder) if draft.manifests else None
        skills, empty = choose(folder, entry, manifest)
        draft.chosen = files_of(self.fetch, folder, skills)
        declared = manifest.parts if isinstance(manifest, PluginManifest) else []
        part.others = sorted({*entry.parts, *declared, *(folder.parts if entry.strict else ())})
        if isinstance(manifest, AgentPlugin) and (keys := manifest.unknown_keys):
            told = ', '.join(map(repr, keys[:MAX_NAMED]))
            message = f'{AGENT_PLUGIN} has keys that Agent Plugins 1.0 does not have, which are ignored: {told}.'
            part.problems.append(PartProblem('plugin-key-unknown', part.plugin.name, message[:MAX_MESSAGE]))
        for path in empty[:MAX_NAMED]:
            message = f'It names {path[:200]!r} as skills, but no SKILL.md is there.'
            part.problems.append(PartProblem('plugin-without-skills', part.plugin.name, message))

    def _manifest(self, folder: PluginFolder) -> PluginManifest | AgentPlugin:
        found = self.fetch.read(folder.manifests.values(), max_bytes=len(PLUGINS) * MAX_MANIFEST_BYTES)
        texts = {name: found[entry.path] for name, entry in folder.manifests.items()}
        name = manifest_that_counts(texts)
        return read_plugin(texts[name], name)

    def _take(self, draft: _Draft) -> None:
        part = draft.part
        part.left_out = self.fetch.take(draft.chosen, sink=part.files, reuse=self.reuse)
        part.commit = self.fetch.commit
