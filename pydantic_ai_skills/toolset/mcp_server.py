"""Offers the skills of a toolset as an MCP server: their list with digests, and their files. It runs nothing."""

from __future__ import annotations

import hashlib
import logging
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import quote

import anyio.to_thread

from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.filesystem.safe_open import SkillFolder

try:
    import mcp_types
    from fastmcp.skills.models import GetSkillParams, GetSkillResult, ListSkillsParams, ListSkillsResult, MCPSkill
    from fastmcp.skills.models import SkillResource as ListedFile
    from fastmcp.skills.skill import Skill as ReadSkill
    from mcp import MCPError
    from mcp.server.extension import Extension, MethodBinding
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ResourceNotFoundError
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
except ImportError as error:
    raise ImportError("Serving skills needs fastmcp: pip install 'pydantic-ai-skills[mcp]'.") from error

if TYPE_CHECKING:
    from pydantic_ai_skills.types.skill import Skill

logger = logging.getLogger('pydantic_ai_skills')

SKILL_FILE = 'SKILL.md'
MAX_FILES = 512
"""How many files a skill may have to be offered."""

MAX_BYTES = 16 * 1024 * 1024
"""How many bytes these files may have in total."""

PAGE = 200
"""How many skills are on one page of the list."""

FOLDER_TYPE = 'inode/directory'
_MODERN = frozenset(MODERN_PROTOCOL_VERSIONS)


class SkillsSource(Protocol):
    """Something that has skills and can read them again, such as a toolset."""

    @property
    def skills(self) -> Mapping[str, Skill[Any]]:
        """The skills by name."""
        ...

    def reload(self) -> None:
        """Pick up changes."""
        ...


def serve_skills(toolset: SkillsSource, *, name: str = 'pydantic-ai-skills') -> SkillsServer:
    """An MCP server with the skills of a toolset that are in folders, for any program that speaks MCP.

    ```python {test="skip"}
    from pydantic_ai_skills import SkillsToolset, serve_skills

    serve_skills(SkillsToolset('./skills'), name='acme').run()
    ```

    Args:
        toolset: Whose skills to offer. Skills that only a person may load, and those without a folder, are left out.
        name: What the server calls itself.

    Raises:
        ImportError: fastmcp is not installed.
    """
    return SkillsServer(toolset, name)


@dataclass(frozen=True)
class OfferedSkill:
    """A skill in a folder, and the files of it that are offered."""

    skill: Skill[Any]
    folder: SkillFolder

    @property
    def uri(self) -> str:
        """The URI of its folder."""
        return f'skill://{quote(self.skill.name)}'

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The files by their path in the folder: those that a model could read or run here."""
        files = self.skill.files
        names = {each.name for each in (*files.resources, *files.scripts, *files.unlisted)}
        module = {files.tools_module.name} if files.tools_module else set[str]()
        return (SKILL_FILE, *sorted(names | module))

    def uri_of(self, name: str) -> str:
        """The URI of a file."""
        return f'{self.uri}/{quote(name)}'

    def read(self, name: str) -> bytes:
        """The content of a file, which is opened without following links."""
        return self.folder.read_bytes(name, MAX_BYTES)

    def entry(self) -> MCPSkill:
        """Its entry in the list.

        Raises:
            SkillError: A file cannot be read.
            ValueError: It has too many files or bytes, or frontmatter that other programs do not accept.
        """
        if len(self.names) > MAX_FILES:
            raise ValueError(f'it has more than {MAX_FILES} files')
        contents: dict[str, bytes] = {}
        left = MAX_BYTES
        for name in self.names:
            contents[name] = self.read(name)
            left -= len(contents[name])
            if left < 0:
                raise ValueError(f'its files have more than {MAX_BYTES:,} bytes')
        frontmatter = ReadSkill.from_files({SKILL_FILE: contents[SKILL_FILE]}).frontmatter
        files = [
            ListedFile(uri=self.uri_of(name), digest=f'sha256:{hashlib.sha256(data).hexdigest()}', size=len(data))
            for name, data in contents.items()
        ]
        return MCPSkill(uri=self.uri_of(SKILL_FILE), frontmatter=frontmatter, resources=files)

    def children(self, path: str) -> list[mcp_types.Resource]:
        """The entries of a folder in the skill; `''` means the skill's own folder."""
        inside = f'{path}/' if path else ''
        below = [name[len(inside) :] for name in self.names if name.startswith(inside)]
        found: dict[str, mcp_types.Resource] = {}
        for name in below:
            step, is_folder, _ = name.partition('/')
            kind = FOLDER_TYPE if is_folder else _media_type(step)
            found[step] = mcp_types.Resource(uri=self.uri_of(f'{inside}{step}'), name=step, mime_type=kind)
        return list(found.values())


class OfferedSkills:
    """The skills that a server offers, read again for each request."""

    def __init__(self, toolset: SkillsSource) -> None:
        self._toolset = toolset
        self._told: set[str] = set()

    def look(self) -> list[OfferedSkill]:
        """The skills that can be offered now. It blocks."""
        self._toolset.reload()
        return [
            OfferedSkill(skill, SkillFolder(getattr(skill, 'root', skill.path), skill.path))
            for skill in self._toolset.skills.values()
            if skill.path is not None and not skill.disable_model_invocation
        ]

    def entries(self) -> list[MCPSkill]:
        """The list of skills; one that cannot be listed does not hide the others."""
        entries: list[MCPSkill] = []
        for offered in self.look():
            try:
                entries.append(offered.entry())
            except (SkillError, ValueError) as error:
                self._tell(offered.skill.name, error)
        return entries

    def find(self, uri: str) -> tuple[OfferedSkill, str] | None:
        """The skill and the path in it that a URI means, if there is one."""
        for offered in self.look():
            if uri == offered.uri:
                return offered, ''
            for name in offered.names:
                if uri == offered.uri_of(name):
                    return offered, name
                if offered.uri_of(name).startswith(f'{uri}/') and uri.startswith(f'{offered.uri}/'):
                    return offered, name[: len(name) - len(offered.uri_of(name)) + len(uri)]
        return None

    def _tell(self, name: str, error: Exception) -> None:
        if name not in self._told:
            self._told.add(name)
            logger.warning('The skill %r is not offered: %s', name, ' '.join(str(error).split())[:300])


class FolderParams(mcp_types.PaginatedRequestParams):
    """Which folder to list."""

    uri: str


class FolderResult(mcp_types.CacheableResult):
    """What is in a folder."""

    resources: list[mcp_types.Resource]
    result_type: Literal['complete'] = 'complete'


class SkillsExtension(Extension):
    """The requests about skills that are not part of the core protocol."""

    identifier = 'io.modelcontextprotocol/skills'

    def __init__(self, offered: OfferedSkills) -> None:
        self._offered = offered

    def settings(self) -> dict[str, Any]:
        """What is advertised: folders can be listed."""
        return {'directoryRead': True}

    def methods(self) -> Sequence[MethodBinding]:
        """The requests and their handlers."""
        return (
            MethodBinding('skills/list', ListSkillsParams, self._list, _MODERN),
            MethodBinding('skills/get', GetSkillParams, self._get, _MODERN),
            MethodBinding('resources/directory/read', FolderParams, self._read_folder, _MODERN),
        )

    async def _list(self, _ctx: Any, params: ListSkillsParams) -> ListSkillsResult:
        cursor = params.cursor or '0'
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 9):
            raise MCPError(code=mcp_types.INVALID_PARAMS, message='There is no such page.')
        entries = await anyio.to_thread.run_sync(self._offered.entries)
        start, end = int(cursor), int(cursor) + PAGE
        return ListSkillsResult(skills=entries[start:end], next_cursor=str(end) if end < len(entries) else None)

    async def _get(self, _ctx: Any, params: GetSkillParams) -> GetSkillResult:
        entries = await anyio.to_thread.run_sync(self._offered.entries)
        found = next((entry for entry in entries if entry.uri == params.uri), None)
        if found is None:
            raise MCPError(code=mcp_types.INVALID_PARAMS, message='There is no such skill.')
        return GetSkillResult(skill=found)

    async def _read_folder(self, _ctx: Any, params: FolderParams) -> FolderResult:
        found = await anyio.to_thread.run_sync(self._offered.find, params.uri.rstrip('/'))
        if found is None or found[1] in found[0].names:
            raise MCPError(code=mcp_types.INVALID_PARAMS, message='There is no such folder.')
        return FolderResult(resources=found[0].children(found[1]))


class SkillsServer(MCPServer[Any]):
    """An MCP server that offers skills and nothing else. `run()` serves standard input and output."""

    def __init__(self, toolset: SkillsSource, name: str) -> None:
        """Remember the toolset; its skills are read for each request."""
        self._offered = OfferedSkills(toolset)
        own_version = version('pydantic-ai-skills')
        super().__init__(name, version=own_version, extensions=[SkillsExtension(self._offered)], log_level='ERROR')

    async def list_resources(self) -> list[mcp_types.Resource]:
        """The `SKILL.md` of each skill, for programs that do not know this extension."""
        offered = await anyio.to_thread.run_sync(self._offered.look)
        return [
            mcp_types.Resource(
                uri=each.uri_of(SKILL_FILE),
                name=each.skill.name,
                description=each.skill.description,
                mime_type='text/markdown',
            )
            for each in offered
        ]

    async def read_resource(self, uri: Any, context: Any = None) -> list[ReadResourceContents]:
        """Read a file of a skill that is offered."""
        try:
            name, data = await anyio.to_thread.run_sync(self._read, str(uri))
        except (SkillError, LookupError):
            raise ResourceNotFoundError('There is no such file.') from None
        try:
            content: str | bytes = data.decode()
        except UnicodeDecodeError:
            content = data
        return [ReadResourceContents(content=content, mime_type=_media_type(name))]

    def _read(self, uri: str) -> tuple[str, bytes]:
        found = self._offered.find(uri)
        if found is None or found[1] not in found[0].names:
            raise LookupError(uri)
        offered, name = found
        return name, offered.read(name)


def _media_type(name: str) -> str:
    if name.endswith('.md'):
        return 'text/markdown'
    return mimetypes.guess_type(name)[0] or 'application/octet-stream'
