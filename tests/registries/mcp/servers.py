"""MCP servers with skills, good and bad, that count what they are asked."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import mcp_types
import uvicorn
from fastmcp.skills.models import ListSkillsParams
from mcp import MCPError
from mcp.server.extension import Extension, MethodBinding
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged

from pydantic_ai_skills.toolset.mcp_server import FolderParams

Entry = dict[str, Any]

REFUNDS = {
    'SKILL.md': '---\nname: refunds\ndescription: Handles refunds. Use when money goes back.\n---\nAsk for the receipt.\n',
    'references/policy.md': 'Thirty days.\n',
    'scripts/refund.py': 'import sys\nprint("refunded", *sys.argv[1:])\n',
}


def frontmatter(name: str, **more: Any) -> Entry:
    return {'name': name, 'description': f'Does {name}. Use for {name}.', **more}


def skill_md(name: str, body: str = 'Do it.') -> str:
    return f'---\nname: {name}\ndescription: Does {name}. Use for {name}.\n---\n{body}\n'


class SkillServer(MCPServer[Any]):
    """A server whose list and files are what a test puts there."""

    def __init__(
        self, name: str = 'Acme', *, extension: bool = True, listens: bool = True, directory_read: bool = True
    ) -> None:
        self.directory_read = directory_read
        self.bus = InMemorySubscriptionBus()
        self.entries: list[Any] = []
        self.files: dict[str, str | bytes] = {}
        self.folders: dict[str, list[dict[str, Any]]] = {}
        self.ttl_ms: int | None = 0
        self.lists = 0
        """How often the list was asked for."""
        self.reads: list[str] = []
        """The files that were read."""
        self.copies = 1
        """How often each file is in an answer."""
        self.announce = 0
        """How often each read says that the list has changed."""
        self.page: Callable[[str | None], dict[str, Any]] = lambda _cursor: {'skills': self.entries}
        self.pause: Callable[[], Awaitable[None]] | None = None
        extensions = [_Skills(self)] if extension else []
        super().__init__(
            name, extensions=extensions, log_level='CRITICAL', subscriptions=self.bus if listens else False
        )

    def add(self, name: str, files: Mapping[str, str | bytes] | None = None, *, folder: str | None = None) -> Entry:
        """Add a skill and return its entry, which may be spoilt."""
        files = {'SKILL.md': skill_md(name)} if files is None else files
        folder = folder or f'skill://{name}'
        resources: list[Entry] = []
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            uri = f'{folder}/{path}'
            self.files[uri] = content
            resources.append({'uri': uri, 'digest': f'sha256:{hashlib.sha256(data).hexdigest()}', 'size': len(data)})
        described = {} if name != 'refunds' else {'description': 'Handles refunds. Use when money goes back.'}
        entry: Entry = {
            'uri': f'{folder}/SKILL.md',
            'frontmatter': {**frontmatter(name), **described},
            'resources': resources,
        }
        self.entries.append(entry)
        return entry

    def remove(self, name: str) -> None:
        self.entries = [entry for entry in self.entries if entry['frontmatter']['name'] != name]

    async def list_skills(self, params: ListSkillsParams) -> dict[str, Any]:
        self.lists += 1
        if self.pause is not None:
            await self.pause()
        hints = {} if self.ttl_ms is None else {'ttlMs': self.ttl_ms, 'cacheScope': 'private'}
        return {'resultType': 'complete', **hints, **self.page(params.cursor)}

    async def read_folder(self, params: FolderParams) -> dict[str, Any]:
        if params.uri not in self.folders:
            raise MCPError(code=mcp_types.INVALID_PARAMS, message='no such folder')
        if not self.folders[params.uri]:
            raise MCPError(code=mcp_types.INTERNAL_ERROR, message='out of order')
        following = f'{int(params.cursor or 0) + 1}'
        return {'resultType': 'complete', 'resources': self.folders[params.uri], 'nextCursor': following}

    async def read_resource(self, uri: Any, context: Any = None) -> list[ReadResourceContents]:
        self.reads.append(str(uri))
        for _ in range(self.announce):
            await self.bus.publish(ResourcesListChanged())
        if str(uri) not in self.files:
            raise MCPError(code=mcp_types.INVALID_PARAMS, message='no such file')
        return [ReadResourceContents(content=self.files[str(uri)], mime_type='text/plain')] * self.copies


class _Skills(Extension):
    identifier = 'io.modelcontextprotocol/skills'

    def __init__(self, server: SkillServer) -> None:
        self._server = server

    def settings(self) -> dict[str, Any]:
        return {'directoryRead': True} if self._server.directory_read else {}

    def methods(self) -> list[MethodBinding]:
        return [
            MethodBinding('skills/list', ListSkillsParams, self._list),
            MethodBinding('resources/directory/read', FolderParams, self._folder),
        ]

    async def _list(self, _ctx: Any, params: ListSkillsParams) -> dict[str, Any]:
        return await self._server.list_skills(params)

    async def _folder(self, _ctx: Any, params: FolderParams) -> dict[str, Any]:
        return await self._server.read_folder(params)


def refunds_server(name: str = 'Acme', **options: bool) -> SkillServer:
    """A server with the skill `refunds`, which has a reference and a script."""
    server = SkillServer(name, **options)
    server.add('refunds', REFUNDS)
    return server


@contextmanager
def serving(app: Any, port: int = 0) -> Generator[int]:
    """Serve an ASGI application on the loopback and yield its port."""
    config = uvicorn.Config(app, host='127.0.0.1', port=port, log_level='critical', timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
        assert thread.is_alive()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(120)


class Wrapped:
    """An application in front of another one, which may answer in its place."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.headers: list[dict[str, str]] = []
        """The headers of each request."""
        self.answer: Callable[[Any, Any], Awaitable[bool]] | None = None
        """Answers a request, or returns `False`."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope['type'] == 'http':
            self.headers.append({name.decode(): value.decode() for name, value in scope['headers']})
            if self.answer is not None and await self.answer(scope, send):
                return
        await self.app(scope, receive, send)


def status(code: int, *headers: tuple[bytes, bytes], body: bytes = b'') -> Callable[[Any, Any], Awaitable[bool]]:
    """Answer every request with a status."""

    async def answer(_scope: Any, send: Any) -> bool:
        await send({'type': 'http.response.start', 'status': code, 'headers': list(headers)})
        await send({'type': 'http.response.body', 'body': body})
        return True

    return answer


async def never() -> None:
    await anyio.sleep(60)
