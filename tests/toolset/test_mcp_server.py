from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client
from fastmcp.skills import SkillsClientExtension
from fastmcp.skills.models import ListSkillsParams, ListSkillsRequest, ListSkillsResult
from mcp import MCPError

from pydantic_ai_skills import MCPSkillsRegistry, Skill, SkillsDirectory, SkillsToolset, serve_skills
from pydantic_ai_skills.registries.mcp.requests import FolderParams, FolderRequest, FolderResult
from pydantic_ai_skills.toolset.mcp_server import SkillsServer
from tests.folders import write_skill

Question = Callable[[Client[Any]], Awaitable[Any]]

FILES: dict[str, str | bytes] = {
    'references/deep/rules.md': 'Rules',
    'references/logo.png': b'\x89PNG\r\n\xff',
    'scripts/run.py': 'print("ran")\n',
    'tools.py': 'from pydantic_ai.tools import Tool\n',
    '.env': 'SECRET=1',
    'key.pem': 'secret',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the skill `pdf`, which has files of all kinds and a link."""
    path = write_skill(tmp_path / 'skills/pdf', 'Reads PDF. Use for PDF.', files=FILES)
    (tmp_path / 'outside.md').write_text('outside')
    (path / 'link.md').symlink_to(tmp_path / 'outside.md')
    return tmp_path / 'skills'


@pytest.fixture
def server(folder: Path) -> SkillsServer:
    return serve_skills(SkillsToolset(folder), name='Acme')


async def _ask(server: SkillsServer, question: Question) -> Any:
    async with Client(server, extensions=[SkillsClientExtension()]) as client:
        return await question(client)


async def _send(request: ListSkillsRequest, client: Client[Any]) -> ListSkillsResult:
    return await client.session.send_request(request, ListSkillsResult)


def ask(server: SkillsServer, question: Question) -> Any:
    """Ask a server something, with fastmcp's own client."""
    return anyio.run(_ask, server, question)


def test_what_a_server_lists_is_read_and_verified_by_the_client_of_fastmcp(server: SkillsServer) -> None:
    skill = ask(server, lambda client: client.read_skill('skill://pdf/SKILL.md'))
    assert sorted(skill.files) == [
        'SKILL.md',
        'references/deep/rules.md',
        'references/logo.png',
        'scripts/run.py',
        'tools.py',
    ]
    assert skill.files['references/logo.png'] == FILES['references/logo.png']
    (resource,) = ask(server, lambda client: client.list_resources())
    assert (str(resource.uri), resource.name, resource.description) == (
        'skill://pdf/SKILL.md',
        'pdf',
        'Reads PDF. Use for PDF.',
    )


@pytest.mark.parametrize(
    'uri',
    [
        'skill://pdf/.env',
        'skill://pdf/key.pem',
        'skill://pdf/link.md',
        'skill://pdf/../outside.md',
        'skill://pdf/%2e%2e/outside.md',
        'skill://pdf/references',
        'skill://pdf',
        'skill://other/SKILL.md',
        'file:///outside.md',
    ],
)
def test_nothing_else_is_served(server: SkillsServer, uri: str) -> None:
    with pytest.raises(MCPError, match='There is no such file'):
        ask(server, lambda client: client.read_resource(uri))


def test_a_file_that_became_a_link_is_not_served(server: SkillsServer, folder: Path) -> None:
    rules = folder / 'pdf/references/deep/rules.md'
    ask(server, lambda client: client.list_skills())
    rules.unlink()
    rules.symlink_to(folder.parent / 'outside.md')
    with pytest.raises(MCPError):
        ask(server, lambda client: client.read_resource('skill://pdf/references/deep/rules.md'))


def test_folders_can_be_listed(server: SkillsServer) -> None:
    def names(uri: str) -> list[tuple[str, str | None]]:
        request = FolderRequest(params=FolderParams(uri=uri))
        result = ask(server, lambda client: client.session.send_request(request, FolderResult))
        return [(child.name, child.mime_type) for child in result.resources]

    folder_type = 'inode/directory'
    assert names('skill://pdf') == [
        ('SKILL.md', 'text/markdown'),
        ('references', folder_type),
        ('scripts', folder_type),
        ('tools.py', 'text/x-python'),
    ]
    assert names('skill://pdf/references/') == [('deep', folder_type), ('logo.png', 'image/png')]
    for uri in ('skill://pdf/tools.py', 'skill://pdf/missing', 'skill://other'):
        with pytest.raises(MCPError, match='There is no such folder'):
            names(uri)


def test_one_skill_can_be_asked_for(server: SkillsServer) -> None:
    assert ask(server, lambda client: client.get_skill('skill://pdf/SKILL.md')).frontmatter.name == 'pdf'
    with pytest.raises(MCPError) as caught:
        ask(server, lambda client: client.get_skill('skill://other/SKILL.md'))
    assert caught.value.code == -32602


def test_a_long_list_comes_in_pages(tmp_path: Path) -> None:
    for number in range(201):
        write_skill(tmp_path / f'skill-{number}')
    server = serve_skills(SkillsToolset(tmp_path))
    assert len(ask(server, lambda client: client.list_skills())) == 201
    for cursor in ('x', '-1', '9' * 30):
        request = ListSkillsRequest(params=ListSkillsParams(cursor=cursor))
        with pytest.raises(MCPError, match='There is no such page'):
            ask(server, partial(_send, request))


def test_what_cannot_be_offered_is_left_out_and_told_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_skill(folder / 'many', files={f'{number}.md': 'x' for number in range(513)})
    write_skill(folder / 'large', files={f'{number}.md': 'x' * 1_000_000 for number in range(20)})
    write_skill(folder / 'Odd_Name')
    (write_skill(folder / 'person') / 'SKILL.md').write_text(
        '---\nname: person\ndescription: Does it.\ndisable-model-invocation: true\n---\nx'
    )
    in_python = Skill('mine', 'Does it. Use it.', 'Do it.')
    server = serve_skills(SkillsToolset(skills=[in_python], directories=[SkillsDirectory(folder, validate=False)]))
    for _ in range(2):
        listed = ask(server, lambda client: client.list_skills())
        assert [entry.frontmatter.name for entry in listed] == ['pdf']
    told = [record.getMessage() for record in caplog.records if 'is not offered' in record.getMessage()]
    assert len(told) == 3
    assert "The skill 'many' is not offered: it has more than 512 files" in told


def test_changes_are_served_at_once_and_a_round_trip_keeps_the_hash(folder: Path, tmp_path: Path) -> None:
    server = serve_skills(SkillsToolset(folder), name='Acme')
    registry = MCPSkillsRegistry(server, cache_dir=tmp_path / 'cache', trusted=True)
    (skill,) = registry.find().skills
    assert skill.content == 'Do it.'
    assert skill.source is not None
    assert 'ran' in str(anyio.run(skill.scripts[0].run, None))
    write_skill(folder / 'new')
    assert [each.name for each in registry.refresh().skills] == ['new', 'pdf']
    registry.close()
    registry.close()
