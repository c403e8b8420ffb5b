"""MCP servers as toolsets of skills: real ones, in this process and as a program of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from fastmcp.client.transports import StdioTransport
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

from pydantic_ai_skills import Skill
from tests.conversations import ScriptedModel, converse
from tests.folders import write

from .test_skill_toolsets import WAYS, Way, all_instructions, load_in, skills_of

pytestmark = pytest.mark.anyio

PROGRAM = """
import os
from pathlib import Path
from mcp.server.mcpserver import MCPServer

with Path(__file__).with_name('log').open('a') as log:
    log.write(f'{os.getpid()}\\n')
server = MCPServer('Books', log_level='CRITICAL')

@server.tool()
def book(amount: int) -> str:
    'Book an amount.'
    return f'booked {amount}'

server.run()
"""


@dataclass
class Books:
    """A server in this process that writes down when it is started and stopped."""

    log: list[str] = field(default_factory=list[str])

    def server(self) -> MCPServer[None]:
        @asynccontextmanager
        async def lifespan(server: MCPServer[None]) -> AsyncGenerator[None]:
            self.log.append('start')
            yield
            self.log.append('stop')

        server = MCPServer[None]('Books', instructions='Book nothing twice.', lifespan=lifespan, log_level='CRITICAL')

        @server.tool()
        def book(amount: int) -> str:
            """Book an amount."""
            self.log.append(f'book {amount}')
            if amount < 0:
                raise ToolError('An amount is positive.')
            return f'booked {amount}'

        return server


def ledger(toolset: MCPToolset[Any]) -> Skill[Any]:
    return Skill('ledger', 'Keeps books.', 'Call `book`.', toolsets=[toolset])


BOOK = ('book', {'amount': 3})


@pytest.mark.parametrize('way', WAYS)
async def test_a_server_in_this_process_is_started_and_offered_when_its_skill_is_loaded(way: Way):
    books = Books()
    toolset = MCPToolset[Any](books.server(), include_instructions=True)
    skills = skills_of(way, ledger(toolset), Skill('other', 'Does more.', 'Do more.'))
    await converse(skills, load_in(way, 'other'))
    assert books.log == []
    for _ in range(2):
        books.log.clear()
        script = await converse(skills, load_in(way), BOOK)
        assert ['book' in tools for tools in script.tools] == [False, True, True]
        assert script.results[-1] == ('book', 'success', 'booked 3')
        assert 'Book nothing twice.' not in str(script.instructions[0])
        assert 'Book nothing twice.' in all_instructions(script)
        assert books.log == ['start', 'book 3', 'stop']
    assert not toolset.is_running


@pytest.mark.parametrize('way', WAYS)
async def test_what_a_server_refuses_is_told_to_the_model(way: Way):
    books = Books()
    skills = skills_of(way, ledger(MCPToolset[Any](books.server())))
    script = await converse(skills, load_in(way), ('book', {'amount': -1}), BOOK)
    assert 'An amount is positive.' in str(script.results[-2])
    assert script.results[-1] == ('book', 'success', 'booked 3')
    assert books.log == ['start', 'book -1', 'book 3', 'stop']


@pytest.mark.parametrize('way', WAYS)
async def test_runs_share_a_server_within_async_with_agent(way: Way):
    books = Books()
    skills = skills_of(way, ledger(MCPToolset[Any](books.server())))
    given: dict[str, Any] = {'toolsets': [skills]} if way == 'toolset' else {'capabilities': [skills]}
    agent = Agent[None, str](**given)
    async with agent:
        assert books.log == ['start']
        for _ in range(2):
            await agent.run('Go.', model=ScriptedModel(calls=[load_in(way), BOOK]).model)
    assert books.log == ['start', 'book 3', 'book 3', 'stop']


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return write(tmp_path / 'server', {'books.py': PROGRAM}) / 'books.py'


def started_by(program: Path) -> MCPToolset[Any]:
    return MCPToolset[Any](StdioTransport(sys.executable, [str(program)], keep_alive=False))


def is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize('way', WAYS)
async def test_a_server_that_is_a_program_runs_from_the_load_to_the_end_of_the_run(way: Way, program: Path):
    log = program.with_name('log')
    skills = skills_of(way, ledger(started_by(program)), Skill('other', 'Does more.', 'Do more.'))
    await converse(skills, load_in(way, 'other'))
    assert not await to_thread.run_sync(log.exists)
    script = await converse(skills, load_in(way), BOOK)
    assert ['book' in tools for tools in script.tools] == [False, True, True]
    assert script.results[-1] == ('book', 'success', 'booked 3')
    started = (await to_thread.run_sync(log.read_text)).splitlines()
    with anyio.fail_after(60):
        while is_alive(started[0]):
            await anyio.sleep(0.02)
    assert len(started) == 1


@pytest.mark.parametrize('way', WAYS)
async def test_a_program_that_is_no_server_does_not_end_the_run(way: Way, tmp_path: Path):
    program = write(tmp_path, {'broken.py': 'raise SystemExit("no license")'}) / 'broken.py'
    script = await converse(skills_of(way, ledger(started_by(program))), load_in(way))
    assert 'book' not in script.tools[-1]
    assert "A part of the tools of the skill 'ledger' cannot be reached at the moment." in all_instructions(script)
