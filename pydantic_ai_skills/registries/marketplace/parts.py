"""What was fetched of each plugin, and a record of it from which a later revision can restore it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic_ai_skills.exceptions import SkillRegistryError, SkillRegistryRefusedError
from pydantic_ai_skills.registries.git.fetch import is_blob
from pydantic_ai_skills.registries.manifest import FileSink, PartProblem

from .plan import MAX_MESSAGE, Plugin, plugin_key

Reuse = Callable[[str], bytes | None]

RECORDS = '.plugins'
"""The folder with a record of each plugin in the revision."""


@dataclass(kw_only=True)
class Part:
    """What was fetched of one plugin."""

    plugin: Plugin
    files: FileSink
    """Its files, in a folder of their own."""

    left_out: list[str] = field(default_factory=list[str])
    others: list[str] = field(default_factory=list[str])
    """What it has besides skills."""

    problems: list[PartProblem] = field(default_factory=list[PartProblem])
    commit: str | None = None
    failure: str | None = None
    """Why there are no files, or why they are those of an earlier commit."""

    is_final: bool = False
    """Whether a failure will be the same at the next visit."""

    @property
    def has_files(self) -> bool:
        """Whether it can be used, even if it has no skills."""
        return self.commit is not None

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(file.size for file in self.files.files.values())

    def record(self) -> bytes:
        """What `restore` needs to have the same part again without its repository."""
        files = [[path, file.blob, file.executable] for path, file in sorted(self.files.files.items())]
        about = {'origin': self.plugin.origin, 'commit': self.commit, 'others': self.others, 'problems': self.problems}
        return json.dumps({**about, 'files': files, 'left_out': self.left_out}, sort_keys=True).encode()

    @property
    def key(self) -> str:
        """Identifies the record."""
        return plugin_key(self.plugin.name, self.plugin.origin, self.commit)


def restore(plugin: Plugin, record: bytes | None, reuse: Reuse, root: Path) -> Part | None:
    """The part that a record describes, if all its files are here and it is the same plugin."""
    about: dict[str, Any] = json.loads(record) if record else {}
    if about.get('origin') != plugin.origin:
        return None
    sink = FileSink(root)
    for path, blob, executable in about['files']:
        data = reuse(blob)
        if data is None or not is_blob(data, blob):
            return None
        sink.write(path, blob, data, executable=executable)
    problems = [PartProblem._make(each) for each in about['problems']]
    part = Part(plugin=plugin, files=sink, others=about['others'], problems=problems, commit=about['commit'])
    part.left_out = about['left_out']
    return part


def failed_part(plugin: Plugin, error: SkillRegistryError, root: Path) -> Part:
    """A plugin that cannot be fetched now."""
    plugin = replace(plugin, is_refused=isinstance(error, SkillRegistryRefusedError))
    return Part(plugin=plugin, files=FileSink(root), failure=str(error)[:MAX_MESSAGE])
