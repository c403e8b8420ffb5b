"""What it costs to start with the skills that an MCP server lists, against the bare list."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from fastmcp import Client
from fastmcp.skills import SkillsClientExtension

from pydantic_ai_skills import MCPSkillsRegistry, SkillsToolset
from tests.registries.mcp.servers import SkillServer, serving, skill_md

from .figure import Figure, best_of

SKILLS = 1_000


def make_server() -> SkillServer:
    """A server that lists 1,000 skills with five files each."""
    server = SkillServer()
    for number in range(SKILLS):
        name = f'skill-{number:04}'
        files = {f'references/part-{part}.md': f'{number} {part}' for part in range(3)}
        server.add(name, {'SKILL.md': skill_md(name), 'scripts/run.py': 'print(1)', **files})
    return server


def measure(root: Path) -> Iterator[Figure]:
    server, caches = make_server(), count()
    with serving(server.streamable_http_app()) as port:
        url = f'http://127.0.0.1:{port}/mcp'

        async def list_skills() -> None:
            async with Client(url, extensions=[SkillsClientExtension()]) as client:
                assert len(await client.list_skills()) == SKILLS

        def start() -> None:
            cache = root / f'cache-{next(caches)}'
            registry = MCPSkillsRegistry(url, allowed_protocols=['http', 'local'], cache_dir=cache)
            assert len(SkillsToolset(registries=[registry]).skills) == SKILLS
            registry.close()

        ours, bare = best_of(start, lambda: asyncio.run(list_skills()))
    assert not server.reads
    yield Figure(
        what=f'MCP: start with {SKILLS:,} listed skills',
        measured=ours,
        unit='ms',
        limit=1.5,
        judged_by='ratio',
        baseline=bare,
        baseline_is="the list, read by fastmcp's client",
    )


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from measure(Path(folder))
