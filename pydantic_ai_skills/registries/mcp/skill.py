"""A skill on a server: its instructions and files are read when they are used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic_ai.messages import BinaryContent

from pydantic_ai_skills.directory.folder_skill import can_be_shown, is_private_file
from pydantic_ai_skills.directory.programs import Examiner
from pydantic_ai_skills.exceptions import SkillRegistryError, SkillResourceLoadError, SkillScriptExecutionError
from pydantic_ai_skills.execution.base import SkillScriptExecutor
from pydantic_ai_skills.execution.interpreters import SCRIPT_NAME
from pydantic_ai_skills.filesystem.content import as_content
from pydantic_ai_skills.parsing import SkillHeader, decode_body
from pydantic_ai_skills.types.attached import SkillFiles
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.resource import SkillResource
from pydantic_ai_skills.types.script import SkillScript, local_executor
from pydantic_ai_skills.types.skill import Skill

from .frontmatter import same_frontmatter
from .listing import SKILL_FILE, ListedSkill
from .source import ServerFiles, skill_file


@dataclass(repr=False)
class MCPResource(SkillResource):
    """A file on a server, which is read and verified each time it is asked for."""

    fetch: Callable[[], bytes] | None = field(default=None, compare=False)
    """Reads the file, and blocks meanwhile."""

    async def _read_file(self, uri: str) -> str | BinaryContent:
        return await anyio.to_thread.run_sync(self._load, abandon_on_cancel=True)

    def _load(self) -> str | BinaryContent:
        assert self.fetch is not None
        try:
            return as_content(self.fetch(), self.name)
        except SkillRegistryError as error:
            raise SkillResourceLoadError(f'{str(error).rstrip(".")}.') from None


@dataclass(repr=False)
class MCPScript(SkillScript):
    """A program on a server. It is run from a copy of its whole skill, every file of which is verified."""

    copy: Callable[[], Path] | None = field(default=None, compare=False)
    """Makes the copy, or verifies the one there is, and blocks meanwhile."""

    @property
    def usage(self) -> str | None:
        """How to use it, once there is a copy."""
        path = self.path
        return super().usage if path is not None and path.is_file() else None

    async def fetch(self) -> None:
        """Fetch its skill, unless there is a copy of it already."""
        await anyio.to_thread.run_sync(self._copy, abandon_on_cancel=True)

    def _copy(self) -> None:
        assert self.copy is not None
        try:
            self.copy()
        except (SkillRegistryError, OSError) as error:
            raise SkillScriptExecutionError(
                f'The script {self.name!r} was not run: {str(error).rstrip(".")}.'
            ) from None


class MCPSkill(Skill[Any]):
    """A skill of which only the listing was read."""

    __slots__ = ('_renamed', 'listed')

    listed: ListedSkill
    _renamed: dict[str, Skill[Any]]

    @classmethod
    def of(
        cls,
        listed: ListedSkill,
        header: SkillHeader,
        server: ServerFiles,
        source: SkillProvenance,
        executor: SkillScriptExecutor | None,
    ) -> MCPSkill:
        """Make a skill of an entry in a listing; its files are read from the server when they are needed."""
        # Does not call `__init__`, which would check each of thousands of headers a second time.
        skill = cls.__new__(cls)
        skill._remember(listed, header, server, source, executor)  # noqa: SLF001 - its own
        return skill

    def _remember(
        self,
        listed: ListedSkill,
        header: SkillHeader,
        server: ServerFiles,
        source: SkillProvenance,
        executor: SkillScriptExecutor | None,
    ) -> None:
        self.header = header
        self.source = source
        self.path = self.model_settings = self.pinned = self.own_uri = self._tools = self._toolsets = None
        self._content = partial(_instructions, listed, server)
        self._headings = ''
        self._file_list = partial(_files, listed, server, header.name, executor)
        self.known_files = None
        # To list the files of a skill without digests, the server has to be asked.
        self.late = listed.files is None
        self.listed = listed
        self._renamed = {}

    def renamed(self, name: str) -> Skill[Any]:
        """The same skill under another name: always the same object, so that a new merge changes nothing."""
        if name not in self._renamed:
            self._renamed[name] = super().renamed(name)
        return self._renamed[name]

    def _get_content(self) -> str:
        if self.listed.files is None and not isinstance(self._content, str):
            return self._content()  # it may be another one each time
        return super()._get_content()


def _instructions(listed: ListedSkill, server: ServerFiles) -> str:
    file = skill_file(listed)
    try:
        data = server.read_unlisted(listed.uri) if file is None else server.read(file)
    except SkillRegistryError as error:
        raise SkillResourceLoadError(f'{str(error).rstrip(".")}.') from None
    if not same_frontmatter(listed.frontmatter, data):
        raise SkillResourceLoadError(
            f'{listed.uri} of {server.url} is not used: its frontmatter is not the one that the server lists.'
        )
    return decode_body(data)


def _files(listed: ListedSkill, server: ServerFiles, name: str, executor: SkillScriptExecutor | None) -> SkillFiles:
    """The files of a skill, classified by their names alone: none of them is read."""
    runs = executor or local_executor()
    files, examiner = SkillFiles(executor=runs), Examiner(lambda _name, _count: b'')
    for resource in _resources(listed, server):
        path = resource.name
        if path == SKILL_FILE or not can_be_shown(path) or is_private_file(path.rpartition('/')[2]):
            continue
        offer = examiner.judge(path, b'', can_run=SCRIPT_NAME.match(path) is not None)
        if listed.files is None:
            offer = 'resource'  # without a digest, it could not be verified before a run
        if offer == 'script':
            files.scripts.append(_script(path, listed, server, name, runs))
        (files.resources if offer == 'resource' else files.unlisted).append(resource)
    return files


def _resources(listed: ListedSkill, server: ServerFiles) -> list[MCPResource]:
    """All files of a skill, as something to read."""
    if listed.files is None:
        try:
            uris = server.list_folder(listed)
        except SkillRegistryError as error:
            raise SkillResourceLoadError(f'{str(error).rstrip(".")}.') from None
        return [
            MCPResource(path, uri=uris[path], fetch=partial(server.read_unlisted, uris[path])) for path in sorted(uris)
        ]
    files = sorted(listed.files.items())
    return [MCPResource(path, uri=file.uri, fetch=partial(server.read, file)) for path, file in files]


def _script(path: str, listed: ListedSkill, server: ServerFiles, name: str, executor: SkillScriptExecutor) -> MCPScript:
    folder = server.copy_path(listed)
    return MCPScript(
        path,
        uri=str(folder.joinpath(*path.split('/'))),
        skill_name=name,
        skill_dir=folder,
        executor=executor,
        root=str(folder.parents[2]),
        copy=partial(server.copy, listed),
    )
