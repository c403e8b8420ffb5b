"""The questions that a server is asked: its list of skills, a file, the files in a folder."""

from __future__ import annotations

import base64
from typing import Any, Literal

import mcp_types
from fastmcp import Client
from fastmcp.skills.models import ListSkillsParams, ListSkillsRequest
from mcp import MCPError

from pydantic_ai_skills.problems import problem

from .listing import MAX_FILES, ListedSkill, Listing, path_in, read_listing, with_problem

EXTENSION = 'io.modelcontextprotocol/skills'
MAX_SKILLS = 10_000
"""How many skills of one server are listed."""

MAX_PAGES = 500
"""How many pages of a list are read."""

FOLDER_TYPE = 'inode/directory'


class NoSkills(Exception):
    """The server does not offer skills."""


class FileRefused(Exception):
    """What a server sent is not the file that was asked for."""


class ListResult(mcp_types.PaginatedResult, mcp_types.CacheableResult):
    """A page of the list of skills. Its entries are checked one by one."""

    skills: list[Any]


class FolderParams(mcp_types.PaginatedRequestParams):
    """Which folder, and which page of what is in it."""

    uri: str


class FolderRequest(mcp_types.Request[FolderParams, Literal['resources/directory/read']]):
    """Asks what is in a folder."""

    method: Literal['resources/directory/read'] = 'resources/directory/read'
    params: FolderParams


class FolderResult(mcp_types.PaginatedResult):
    """A page of what is in a folder."""

    resources: list[mcp_types.Resource]


async def list_skills(client: Client[Any], place: str) -> Listing:
    """The skills that a server lists, all pages of it."""
    check_extension(client)
    entries: list[Any] = []
    cursor: str | None = None
    cursors: set[str] = set()
    ttls: list[int] = []
    for _ in range(MAX_PAGES):
        request = ListSkillsRequest(params=ListSkillsParams(cursor=cursor))
        page = await client.session.send_request(request, ListResult)
        entries += page.skills[: MAX_SKILLS + 1 - len(entries)]
        ttls += [page.ttl_ms] if 'ttl_ms' in page.model_fields_set else []
        cursor = page.next_cursor
        if cursor is None or cursor in cursors or len(entries) > MAX_SKILLS:
            break
        cursors.add(cursor)
    info = client.server_info
    ttl = min(ttls) / 1000 if ttls else None
    listing = read_listing(entries[:MAX_SKILLS], server=info.name if info else '', place=place, ttl=ttl)
    if cursor is None and len(entries) <= MAX_SKILLS:
        return listing
    message = f'The server lists more than {MAX_SKILLS:,} skills, or more than {MAX_PAGES} pages; the rest is left out.'
    return with_problem(listing, problem('too-many-skills', place, message))


def check_extension(client: Client[Any]) -> dict[str, Any]:
    """What the server says about its skills.

    Raises:
        NoSkills: It does not offer any.
    """
    capabilities = client.server_capabilities
    offered = (capabilities.extensions if capabilities else None) or {}
    if EXTENSION not in offered:
        raise NoSkills(f'it does not offer skills (the extension {EXTENSION})')
    return offered[EXTENSION]


async def read_file(client: Client[Any], uri: str, limit: int) -> bytes:
    """The bytes of a file.

    Raises:
        FileRefused: The server sent something else, or too much.
    """
    result = await client.session.read_resource(uri)
    if len(result.contents) != 1:
        raise FileRefused(f'the server sent {len(result.contents)} contents')
    content = result.contents[0]
    is_text = isinstance(content, mcp_types.TextResourceContents)
    data = content.text.encode('utf-8', 'surrogatepass') if is_text else base64.b64decode(content.blob)
    if len(data) > limit:
        raise FileRefused('it has more bytes than are listed')
    return data


async def list_folder(client: Client[Any], skill: ListedSkill) -> dict[str, str]:
    """The files of a skill whose files are not listed: their URIs by their path in the skill."""
    if not check_extension(client).get('directoryRead'):
        return {}
    files: dict[str, str] = {}
    pending, seen = [skill.folder], {skill.folder}
    while pending and len(seen) <= MAX_FILES:
        for child in await _children(client, pending.pop()):
            uri = child.uri.rstrip('/')
            try:
                path = path_in(skill, uri)
            except ValueError:
                continue
            if uri in seen:
                continue
            seen.add(uri)
            if child.mime_type == FOLDER_TYPE:
                pending.append(uri)
            else:
                files[path] = uri
    return dict(sorted(files.items())[:MAX_FILES])


async def _children(client: Client[Any], uri: str) -> list[mcp_types.Resource]:
    """What is in a folder, all pages of it; nothing if there is no such folder."""
    found: list[mcp_types.Resource] = []
    cursor: str | None = None
    cursors: set[str | None] = set()
    while cursor not in cursors and len(cursors) < MAX_PAGES and len(found) <= MAX_FILES:
        cursors.add(cursor)
        try:
            request = FolderRequest(params=FolderParams(uri=uri, cursor=cursor))
            page = await client.session.send_request(request, FolderResult)
        except MCPError as error:
            if error.code != mcp_types.INVALID_PARAMS:
                raise
            return found
        found += page.resources
        cursor = page.next_cursor
    return found[:MAX_FILES]
