from __future__ import annotations

import gc
import pickle
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.tools import DeferredToolRequests

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    CombinedRegistry,
    FetchProgress,
    LocalSkillScriptExecutor,
    MCPSkillsRegistry,
    Skill,
    SkillRegistryError,
    SkillRegistryRefusedError,
    SkillResourceLoadError,
    SkillScriptExecutionError,
    SkillsToolset,
    SkillValidationError,
)
from pydantic_ai_skills.registries.mcp.limits import AnswerRefused, checked_addresses
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import write_skill
from tests.registries.asked import codes

from .conftest import Open
from .servers import REFUNDS, SkillServer, Wrapped, never, refunds_server, serving, skill_md, status

SERVER_COMMAND = [sys.executable, '-m', 'pydantic_ai_skills', 'serve']
HTTP: dict[str, Any] = {'allowed_protocols': ['http', 'local']}


def only_skill(registry: MCPSkillsRegistry) -> Skill[Any]:
    (skill,) = registry.find().skills
    return skill


async def told(toolset: SkillsToolset[None], *calls: Call) -> str:
    """All that was said in a conversation with these calls."""
    return '\n'.join(str(part) for message in (await converse(toolset, *calls)).saved for part in message.parts)


# --- What is read, and when -----------------------------------------------------------------------------------------


def test_no_file_is_read_before_its_skill_is_loaded(server: SkillServer, open_server: Open) -> None:
    toolset = SkillsToolset(registries=[open_server(server)])
    assert list(toolset.skills) == ['refunds']
    assert [resource.name for resource in toolset.skills['refunds'].resources] == ['references/policy.md']
    assert (server.lists, server.reads) == (1, [])
    assert toolset.skills['refunds'].content == 'Ask for the receipt.'
    assert server.reads == ['skill://refunds/SKILL.md']


async def test_a_conversation_with_a_served_skill(server: SkillServer, open_server: Open) -> None:
    server.files['skill://refunds/logo.png'] = b'\x89PNG\0'
    server.entries.clear()
    server.add('refunds', {**REFUNDS, 'logo.png': b'\x89PNG\0'})
    calls = [
        ('load_skill', {'skill_name': 'refunds'}),
        ('read_skill_resource', {'skill_name': 'refunds', 'resource_name': 'references/policy.md'}),
        ('read_skill_resource', {'skill_name': 'refunds', 'resource_name': 'scripts/refund.py'}),
        ('read_skill_resource', {'skill_name': 'refunds', 'resource_name': 'logo.png'}),
        ('run_skill_script', {'skill_name': 'refunds', 'script_name': 'scripts/refund.py'}),
    ]
    sent = await told(SkillsToolset(registries=[open_server(server)]), *calls)
    assert '<skill name="refunds" location="mcp:Acme skill://refunds">' in sent
    assert 'Thirty days.' in sent
    assert 'print("refunded"' in sent.replace('\\', '')
    assert 'image/png' in sent
    assert 'code of strangers runs in a sandbox only' in sent
    assert len(server.reads) == 4  # a script that may not run is not fetched


@pytest.mark.parametrize('spoil', ['text', 'longer', 'gone', 'frontmatter'])
def test_a_file_that_is_not_the_listed_one_is_refused(server: SkillServer, open_server: Open, spoil: str) -> None:
    skill = only_skill(open_server(server))
    uri = 'skill://refunds/SKILL.md'
    good = str(server.files[uri])
    if spoil == 'gone':
        del server.files[uri]
    elif spoil == 'frontmatter':
        server.entries.clear()
        server.add('refunds', {'SKILL.md': good.replace('Handles', 'Grants')})
        skill = only_skill(open_server(server))
    else:
        server.files[uri] = good.replace('receipt', 'invoice' if spoil == 'text' else 'password')
    reason = {
        'text': 'its digest is another one',
        'longer': 'more bytes than are listed',
        'gone': 'no such file',
        'frontmatter': 'its frontmatter is not the one that the server lists',
    }
    with pytest.raises(SkillResourceLoadError, match=reason[spoil]):
        _ = skill.content


def test_a_shorter_file_and_one_of_several_contents_are_refused(server: SkillServer, open_server: Open) -> None:
    resource = only_skill(open_server(server)).resources[0]
    server.files[str(resource.uri)] = 'Thirty.'
    assert _load_error(resource).endswith('it is not used.')
    server.copies = 2
    assert 'the server sent 2 contents' in _load_error(resource)


def _load_error(resource: Any) -> str:
    with pytest.raises(SkillResourceLoadError) as caught:
        anyio.run(resource.load, None)
    return str(caught.value)


@pytest.mark.parametrize(
    ('listed', 'written'),
    [
        ({'metadata': {'version': 1.1, 'beta': True, 'of': None}}, 'metadata:\n  version: 1.10\n  beta: yes\n  of: ~'),
        ({'tags': ['a', 2], 'n': 16}, 'tags: [a, 2]\nn: 0x10'),
        ({'license': 'MIT'}, 'license: MIT'),
    ],
)
def test_frontmatter_may_be_typed_by_the_server(open_server: Open, listed: dict[str, Any], written: str) -> None:
    server = SkillServer()
    text = skill_md('pdf').replace('---\nDo', f'{written}\n---\nDo')
    server.add('pdf', {'SKILL.md': text})['frontmatter'].update(listed)
    assert only_skill(open_server(server)).content == 'Do it.'


@pytest.mark.parametrize(
    'listed',
    [
        {'n': 3},
        {'n': 'two'},
        {'n': None},
        {'n': True},
        {'n': 2.5},
        {'n': ['2']},
        {'n': {'a': '2'}},
        {'m': '1'},
        {'l': '1'},
        {'w': 1},
    ],
)
def test_other_frontmatter_is_refused(open_server: Open, listed: dict[str, Any]) -> None:
    server = SkillServer()
    entry = server.add('pdf', {'SKILL.md': skill_md('pdf').replace('---\nDo', 'n: 2\nl: [1]\nw: word\n---\nDo')})
    entry['frontmatter'].update({'n': '2', 'l': ['1'], 'w': 'word', **listed})
    with pytest.raises(SkillResourceLoadError, match='frontmatter'):
        _ = only_skill(open_server(server)).content


@pytest.mark.parametrize('text', ['No frontmatter', '---\n- a\n- b\n---\n', '---\n[\n---\nx'])
def test_a_file_without_readable_frontmatter_is_refused(open_server: Open, text: str) -> None:
    server = SkillServer()
    server.add('pdf', {'SKILL.md': text})
    with pytest.raises(SkillResourceLoadError, match='frontmatter'):
        _ = only_skill(open_server(server)).content


# --- Names ----------------------------------------------------------------------------------------------------------


def test_two_servers_with_a_skill_of_the_same_name_both_stay_reachable(open_server: Open) -> None:
    toolset = SkillsToolset(registries=[open_server(refunds_server('Acme')), open_server(refunds_server('Beta Corp'))])
    assert list(toolset.skills) == ['beta-corp-refunds', 'refunds']
    assert toolset.skills['beta-corp-refunds'].content == 'Ask for the receipt.'
    assert [script.skill_name for script in toolset.skills['beta-corp-refunds'].scripts] == ['beta-corp-refunds']
    (renamed,) = (problem for problem in toolset.problems if problem.code == 'renamed')
    assert renamed.message == (
        "The skill 'refunds' is offered as 'beta-corp-refunds': another one, of mcp:Acme@"
        f'{toolset.skills["refunds"].source.commit[:12]}, has its name.'  # pyright: ignore[reportOptionalMemberAccess,reportOptionalSubscript]
    )


def test_a_served_skill_never_takes_the_name_of_another(open_server: Open, tmp_path: Path) -> None:
    other = write_skill(tmp_path / 'skills/refunds')
    write_skill(tmp_path / 'skills/acme-refunds')
    mine = Skill('billing', 'Bills. Use for bills.', 'Bill.')
    server = refunds_server()
    server.add('billing')
    toolset = SkillsToolset(skills=[mine], directories=[tmp_path / 'skills'], registries=[open_server(server)])
    assert list(toolset.skills) == ['acme-billing', 'acme-refunds', 'acme-refunds-2', 'billing', 'refunds']
    assert toolset.skills['refunds'].path == str(other)
    assert toolset.skills['billing'] is mine


def test_combined_registries_keep_both_too(open_server: Open) -> None:
    combined = CombinedRegistry([open_server(refunds_server()), open_server(refunds_server('Beta'), name='Other')])
    assert [skill.name for skill in combined.find().skills] == ['refunds', 'other-refunds']
    assert not combined.find().problems[0].is_source_failure


def test_one_server_may_have_two_skills_of_one_name(open_server: Open) -> None:
    server = SkillServer('!!!')
    server.add('pdf', folder='skill://a/pdf')
    server.add('pdf', folder='skill://b/pdf')
    found = open_server(server).find()
    assert [(skill.name, skill.source and skill.source.path) for skill in found.skills] == [
        ('pdf', 'skill://a/pdf'),
        ('mcp-pdf', 'skill://b/pdf'),
    ]


# --- Changes --------------------------------------------------------------------------------------------------------


async def test_a_list_that_may_have_changed_is_read_before_the_next_run(server: SkillServer, open_server: Open) -> None:
    registry = open_server(server)
    toolset = SkillsToolset(registries=[registry])
    await told(toolset, ('load_skill', {'skill_name': 'refunds'}))
    skill = toolset.skills['refunds']
    server.add('extra')
    model = await converse(toolset, ('load_skill', {'skill_name': 'extra'}))
    assert 'Do it.' in str(model.saved)
    assert 'extra' in str(model.instructions[0])
    assert toolset.skills['refunds'] is skill


@pytest.mark.parametrize('ttl_ms', [None, 60_000])
async def test_a_list_that_holds_is_not_read_again_unless_the_server_says_so(open_server: Open, ttl_ms: int) -> None:
    server = refunds_server()
    server.ttl_ms = ttl_ms
    registry = open_server(server)
    toolset = SkillsToolset(registries=[registry.prefixed('a-')])
    for _ in range(2):
        await converse(toolset)
    assert server.lists == 1
    server.announce = 1_000
    server.add('extra')
    calls: list[Call] = [('load_skill', {'skill_name': 'a-refunds'}), ('load_skill', {'skill_name': 'a-extra'})]
    assert "There is no skill 'a-extra'" in await told(toolset, *calls)  # not in the middle of a run
    server.announce = 0
    model = await converse(toolset)
    assert 'a-extra' in str(model.instructions)
    assert server.lists == 2


def test_a_stream_of_announcements_that_is_lost_leads_to_a_new_look(server: SkillServer, open_server: Open) -> None:
    server.ttl_ms = None
    with serving(server.streamable_http_app()) as port:
        registry = open_server(f'http://127.0.0.1:{port}/mcp', **HTTP)
        assert only_skill(registry).content
        assert not registry.is_stale
    while not registry.is_stale:
        time.sleep(0.01)


def test_a_server_may_not_announce_changes(open_server: Open) -> None:
    server = SkillServer(listens=False)
    server.ttl_ms = None
    server.add('pdf')
    registry = open_server(server)
    assert only_skill(registry).content == 'Do it.'
    assert not registry.is_stale
    assert open_server(server, refresh_interval=0.000001).find().skills


@pytest.mark.parametrize(('ttl', 'lists'), [(None, 1), (0, 2), (60, 1)])
async def test_a_cached_registry_is_asked_less_often(
    server: SkillServer, open_server: Open, ttl: float | None, lists: int
) -> None:
    toolset = SkillsToolset(registries=[CombinedRegistry([open_server(server).cached(ttl)])])
    for _ in range(2):
        await converse(toolset)
    assert server.lists == lists


def test_an_unchanged_list_gives_the_same_skills(server: SkillServer, open_server: Open) -> None:
    registry = open_server(server)
    assert not registry.is_stale
    found = registry.find()
    assert registry.is_stale
    assert registry.refresh() is found


# --- Servers that fail ----------------------------------------------------------------------------------------------


def test_a_server_that_is_gone_keeps_its_last_list_and_the_files_that_were_read(
    server: SkillServer, open_server: Open
) -> None:
    with serving(server.streamable_http_app()) as port:
        url = f'http://127.0.0.1:{port}/mcp'
        registry = open_server(url, **HTTP)
        skill = only_skill(registry)
        assert skill.content == 'Ask for the receipt.'
        assert registry.is_stale
    assert [skill.name for skill in registry.refresh().skills] == ['refunds']
    assert codes(registry) == ['source-failed']
    assert not registry.is_stale  # it is left alone for a while
    later = open_server(url, **HTTP)
    assert only_skill(later).content == 'Ask for the receipt.'
    assert 'Its list of 1 skills from before is kept.' in later.find().problems[0].message
    assert url in _load_error(only_skill(later).resources[0])
    offline = open_server(url, offline=True, **HTTP)
    assert only_skill(offline).content == 'Ask for the receipt.'
    assert (codes(offline), offline.is_stale) == ([], False)
    assert 'offline=True' in _load_error(only_skill(offline).resources[0])
    with pytest.raises(SkillRegistryError, match='not in the cache'):
        offline.remote_commit()
    with serving(server.streamable_http_app(), port):
        assert only_skill(later).resources[0].uri in server.files
        assert not registry.refresh().problems


def test_a_server_that_comes_back_is_connected_to_again(server: SkillServer, open_server: Open) -> None:
    with serving(server.streamable_http_app()) as port:
        registry = open_server(f'http://127.0.0.1:{port}/mcp', **HTTP)
        assert only_skill(registry).content
    with serving(server.streamable_http_app(), port):
        assert not registry.refresh().problems
        assert server.lists == 2


def test_a_server_that_was_never_reached_has_no_skills(open_server: Open) -> None:
    registry = open_server('http://127.0.0.1:9/mcp', **HTTP)
    assert (registry.find().skills, codes(registry)) == ((), ['source-failed'])
    assert (registry.commit, registry.others) == (None, frozenset())
    assert registry.fetch_all() is registry.find()


@pytest.mark.parametrize('code', [401, 403])
def test_a_refused_token_serves_nothing(server: SkillServer, open_server: Open, code: int) -> None:
    app = Wrapped(server.streamable_http_app())
    with serving(app) as port:
        url = f'http://127.0.0.1:{port}/mcp'
        registry = open_server(url, token='geheim', **HTTP)
        skill = only_skill(registry)
        assert skill.content
        assert {each['authorization'] for each in app.headers} == {'Bearer geheim'}
        app.answer = status(code)
        assert registry.refresh().skills == ()
        assert codes(registry) == ['source-refused']
        assert 'geheim' not in str(registry.find().problems) + repr(registry)
        error = _load_error(skill.resources[0])
        app.answer = None
        registry.refresh()
        app.answer = status(code)
        with pytest.raises(SkillRegistryRefusedError):
            registry.fetch_all()
        registry.refresh()
        assert f'refused access ({code}). The token is not set, or was not accepted.' in error
    later = open_server(url, token='geheim', **HTTP)
    assert (later.find().skills, codes(later)) == ((), ['source-refused'])
    assert open_server(url, token='geheim', offline=True, **HTTP).find().skills == ()
    with serving(server.streamable_http_app(), port):
        assert not later.refresh().problems
        assert open_server(url, token='geheim', **HTTP).find().skills


def test_what_was_read_with_one_token_is_not_given_to_another(server: SkillServer, open_server: Open) -> None:
    app = Wrapped(server.streamable_http_app())
    tokens = iter(['one', 'one', 'two'])
    with serving(app) as port:
        url = f'http://127.0.0.1:{port}/mcp'
        registry = open_server(url, token=lambda: next(tokens), headers={'X-Team': 'a'}, **HTTP)
        assert registry.find().skills
        assert registry.refresh().skills
        assert registry.refresh().skills
        assert [each['authorization'] for each in app.headers][-1] == 'Bearer two'
        assert app.headers[-1]['x-team'] == 'a'
    for options in ({}, {'token': 'three'}, {'token': 'one'}):
        assert not open_server(url, offline=True, **options, **HTTP).find().skills
    assert open_server(url, token='one', headers={'X-Team': 'a'}, offline=True, **HTTP).find().skills


def test_a_server_without_credentials_that_wants_some(open_server: Open) -> None:
    with serving(Wrapped(SkillServer().streamable_http_app())) as port:
        app = Wrapped(None)
        app.answer = status(401)
        with serving(app) as port:
            registry = open_server(f'http://127.0.0.1:{port}/mcp', **HTTP)
            assert 'Give a token with token= or token_env=.' in registry.find().problems[0].message


def test_a_server_without_the_extension_has_no_skills(open_server: Open) -> None:
    registry = open_server(SkillServer(extension=False))
    assert 'does not offer skills' in registry.find().problems[0].message


def test_a_slow_server_is_given_up(server: SkillServer, open_server: Open) -> None:
    server.pause = never
    registry = open_server(server, timeout=0.3)
    assert 'did not answer within 0.3 seconds' in registry.find().problems[0].message


def test_a_command_that_cannot_be_started_is_a_problem(open_server: Open, tmp_path: Path) -> None:
    registry = open_server([str(tmp_path / 'missing'), '--stdio'])
    assert codes(registry) == ['source-failed']


# --- Ways to reach a server -----------------------------------------------------------------------------------------


def test_a_command_is_a_server(open_server: Open, tmp_path: Path) -> None:
    write_skill(tmp_path / 'skills/pdf', body='Read it.')
    command = [sys.executable, '-m', 'pydantic_ai_skills', 'serve', '-d', str(tmp_path / 'skills')]
    registry = open_server(command, timeout=60, env={'PYDANTIC_AI_SKILLS_CACHE_DIR': str(tmp_path / 'own')})
    assert only_skill(registry).content == 'Read it.'
    toolset = MCPToolset(Client(StdioTransport(command[0], command[1:])))
    other = open_server(toolset, timeout=60)
    assert only_skill(other).content == 'Read it.'
    assert other.url == registry.url


def test_a_toolset_and_a_client_are_servers(server: SkillServer, open_server: Open) -> None:
    with serving(server.streamable_http_app()) as port:
        url = f'http://127.0.0.1:{port}/mcp'
        transport = StreamableHttpTransport(url.replace('//', '//user:geheim@'))
        transport.url = url
        registry = open_server(MCPToolset(Client(transport)))
        assert (only_skill(registry).content, registry.url) == ('Ask for the receipt.', url)
    assert open_server(MCPToolset(Client(server))).url == 'mcp:Acme'


@pytest.mark.parametrize(
    ('server', 'options', 'message'),
    [
        ('http://example.com/mcp', {}, "allowed_protocols=\\('http',\\)"),
        ('https://me:geheim@example.com/mcp', {}, 'has a user, a password or a fragment in it'),
        ('https://', {}, 'names no host'),
        ('https://[::1/mcp', {}, 'cannot be parsed'),
        ('https://example.com/a b', {}, 'without spaces'),
        ('ftp://example.com/mcp', {}, 'is not an MCP server'),
        ('', {}, 'is not an MCP server'),
        (None, {}, 'is not an MCP server'),
        ('npx "open', {}, 'is not a command'),
        ([], {}, 'is not a command'),
        (['npx', 3], {}, 'is not a command'),
        ('https://example.com/mcp', {'token': 'a', 'token_env': 'B'}, 'Give either token= or token_env='),
        ('npx skills', {'token': 'a'}, 'are for a server with a URL'),
        ('npx skills', {'target_dir': 'x'}, 'has no target_dir'),
    ],
)
def test_a_server_that_cannot_be_one_is_refused(server: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SkillValidationError, match=message):
        MCPSkillsRegistry(server, **options)


@pytest.mark.parametrize(
    ('server', 'url'),
    [
        ('mcp+https://Example.com/mcp#x', 'https://example.com/mcp'),
        ('https://[::1]:8000/mcp', 'https://[::1]:8000/mcp'),
        ('npx -y @acme/skills', 'npx -y @acme/skills'),
        (('npx', 'a b'), "npx 'a b'"),
    ],
)
def test_the_address_of_a_server(server: Any, url: str) -> None:
    assert repr(MCPSkillsRegistry(server)) == f'MCPSkillsRegistry({url!r})'


def test_an_address_of_this_machine_is_allowed_on_request_only(server: SkillServer, open_server: Open) -> None:
    with serving(server.streamable_http_app()) as port:
        registry = open_server(f'http://127.0.0.1:{port}/mcp', allowed_protocols=['http'])
        assert (
            "is not a public address. If you trust it, say so: allowed_protocols=('https', 'local')"
            in registry.find().problems[0].message
        )
    assert server.lists == 0


def find_nothing(_name: str) -> None:
    """No package is installed."""


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('pydantic_ai_skills.registries.mcp.registry.find_spec', find_nothing)
    with pytest.raises(ImportError, match=r"pip install 'pydantic-ai-skills\[mcp\]'"):
        MCPSkillsRegistry('https://example.com/mcp')


@pytest.mark.parametrize('host', ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', 'fe80::1%lo', 'localhost'])
async def test_private_addresses_are_told_from_others(host: str) -> None:
    assert await checked_addresses('93.184.216.34', 443, local=False) == ['93.184.216.34']
    with pytest.raises(AnswerRefused, match='not a public address|hands out credentials'):
        await checked_addresses(host, 443, local=False)


def test_a_registry_that_is_forgotten_disconnects(server: SkillServer, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    registry = MCPSkillsRegistry(server, cache_dir=tmp_path / 'cache')
    assert registry.find().skills
    (thread,) = set(threading.enumerate()) - before
    del registry
    gc.collect()
    thread.join(120)
    assert not thread.is_alive()


def test_a_copy_and_a_pickle_have_their_own_connection(open_server: Open) -> None:
    registry = pickle.loads(pickle.dumps(open_server(SERVER_COMMAND, timeout=60)))
    assert repr(registry) == repr(open_server(SERVER_COMMAND))


# --- Skills whose files are not listed ------------------------------------------------------------------------------


def test_a_skill_without_digests_is_read_but_not_run_and_not_locked(open_server: Open, tmp_path: Path) -> None:
    server = refunds_server()
    server.entries[0]['resources'] = 'dynamic'
    server.folders['skill://refunds'] = [
        {'uri': 'skill://refunds/SKILL.md', 'name': 'SKILL.md'},
        {'uri': 'skill://refunds/scripts', 'name': 'scripts', 'mimeType': 'inode/directory'},
        {'uri': 'skill://refunds/missing', 'name': 'missing', 'mimeType': 'inode/directory'},
        {'uri': 'skill://refunds/scripts', 'name': 'scripts again', 'mimeType': 'inode/directory'},
        {'uri': 'skill://other/SKILL.md', 'name': 'a file of another skill'},
    ]
    server.folders['skill://refunds/scripts'] = [{'uri': 'skill://refunds/scripts/refund.py', 'name': 'refund.py'}]
    registry = open_server(server)
    toolset = SkillsToolset(registries=[registry])
    skill = toolset.skills['refunds']
    assert server.reads == []
    assert [resource.name for resource in skill.resources] == ['scripts/refund.py']
    assert skill.scripts == []
    assert skill.content == 'Ask for the receipt.'
    server.files['skill://refunds/SKILL.md'] = REFUNDS['SKILL.md'].replace('receipt', 'invoice')
    assert skill.content == 'Ask for the invoice.'
    assert codes(registry) == ['skill-dynamic']
    registry.lock()
    server.add('pdf')
    registry = open_server(server)
    registry.lock()
    assert 'refunds' not in (tmp_path / 'skills.lock').read_text()
    locked = open_server(server, locked=True)
    assert [skill.name for skill in locked.find().skills] == ['pdf']
    assert 'cannot be locked' in locked.find().problems[-1].message


def test_a_folder_that_cannot_be_listed_is_a_failure(server: SkillServer, open_server: Open) -> None:
    server.entries[0]['resources'] = 'dynamic'
    server.folders['skill://refunds'] = []
    with pytest.raises(SkillResourceLoadError, match='out of order'):
        _ = only_skill(open_server(server)).resources
    server.files['skill://refunds/SKILL.md'] = b'x' * 20_000_000
    with pytest.raises(SkillResourceLoadError, match='cannot be used: it has more bytes than are listed'):
        _ = only_skill(open_server(server)).content


@pytest.mark.parametrize('directory_read', [True, False])
def test_a_skill_without_digests_and_without_folders_has_no_files(open_server: Open, directory_read: bool) -> None:
    server = refunds_server(directory_read=directory_read)
    server.entries[0]['resources'] = 'dynamic'
    skill = only_skill(open_server(server))
    assert skill.resources == []
    server.files['skill://refunds/SKILL.md'] = b'\xff'
    with pytest.raises(SkillResourceLoadError):
        _ = skill.content
    del server.files['skill://refunds/SKILL.md']
    with pytest.raises(SkillResourceLoadError, match='no such file'):
        _ = skill.content


# --- Locks ----------------------------------------------------------------------------------------------------------


def test_a_lock_offers_only_what_it_pins(open_server: Open) -> None:
    server = refunds_server()
    server.add('pdf')
    registry = open_server(server)
    registry.lock()
    assert registry.remote_commit() == registry.commit
    locked = open_server(server, locked=True)
    assert ([skill.name for skill in locked.find().skills], codes(locked)) == (['refunds', 'pdf'], [])
    server.remove('pdf')
    server.add('pdf', {'SKILL.md': skill_md('pdf', 'Steal it.')})
    server.add('extra')
    changed = open_server(server, locked=True, cache_dir=locked.lock_file.parent / 'other')
    assert [skill.name for skill in changed.find().skills] == ['refunds']
    messages = [problem.message for problem in changed.find().problems]
    assert 'is used' in messages[0]
    assert "The skill 'pdf' in 'skill://pdf' has changed since it was locked" in messages[1]
    assert "The skill 'extra' in 'skill://extra' is not in the lock file" in messages[2]
    # Where the locked list was kept, it is the one that counts, and a changed file is refused.
    assert [skill.name for skill in locked.refresh().skills] == ['refunds', 'pdf']
    with pytest.raises(SkillResourceLoadError, match='more bytes than are listed'):
        _ = locked.find().skills[1].content
    locked.lock()
    assert [skill.name for skill in locked.find().skills] == ['refunds', 'pdf', 'extra']
    assert locked.find().skills[1].content == 'Steal it.'


def test_only_some_skills_of_a_server(open_server: Open) -> None:
    server = refunds_server()
    server.add('pdf')
    registry = open_server(server, only=['pdf', 'missing'])
    assert [skill.name for skill in registry.find().skills] == ['pdf']
    assert registry.others == {'skill://refunds'}
    assert registry.find().problems[0].message == "No skill 'missing' at mcp:Acme. It has: refunds, pdf."
    registry.lock()
    locked = open_server(server, only='pdf', locked=True)
    assert ([skill.name for skill in locked.find().skills], codes(locked)) == (['pdf'], [])


def test_everything_can_be_fetched_for_an_offline_start(open_server: Open) -> None:
    server = refunds_server()
    server.add('pdf', {'SKILL.md': skill_md('pdf'), 'forms.md': 'Forms'})
    told: list[FetchProgress] = []
    with serving(server.streamable_http_app()) as port:
        url = f'http://127.0.0.1:{port}/mcp'
        registry = open_server(url, progress=told.append, **HTTP)
        assert not registry.fetch_all().problems
        assert (told[-1].done, told[-1].total, len(server.reads)) == (5, 5, 5)
        assert not open_server(url, **HTTP).fetch_all().problems
        assert len(server.reads) == 5
        registry.lock()
    offline = open_server(url, offline=True, locked=True, **HTTP)
    assert [skill.content for skill in offline.find().skills] == ['Ask for the receipt.', 'Do it.']
    assert codes(offline) == []


def test_a_skill_that_cannot_be_fetched_does_not_hide_the_others(server: SkillServer, open_server: Open) -> None:
    server.add('pdf')
    server.files['skill://refunds/references/policy.md'] = 'Never.'
    registry = open_server(server)
    (problem,) = registry.fetch_all().problems
    assert (problem.code, problem.path) == ('source-failed', 'skill://refunds/SKILL.md')
    assert len(registry.fetch_all().skills) == 2
    assert 'skill://pdf/SKILL.md' in server.reads


def test_old_files_are_forgotten(server: SkillServer, open_server: Open, tmp_path: Path) -> None:
    registry = open_server(server)
    registry.fetch_all()
    for number in range(5):
        server.entries.clear()
        server.add('pdf', {'SKILL.md': skill_md('pdf', f'Version {number}.')})
        registry.refresh()
        registry.fetch_all()
    (folder,) = (tmp_path / 'cache' / 'mcp-v1' / 'entries').iterdir()
    assert len(list((folder / 'listings').iterdir())) == 3
    assert len(list((folder / 'files').iterdir())) == 3
    for kept in (folder / 'files').iterdir():
        kept.write_text('damaged')
    server.files.clear()
    assert registry.fetch_all().problems
    for kept, text in zip((folder / 'listings').iterdir(), ('damaged', '{"version": 2}', '[]'), strict=True):
        kept.write_text(text)
    assert not open_server(server, offline=True).find().skills


def test_a_cache_that_others_can_write_is_not_used(server: SkillServer, open_server: Open, tmp_path: Path) -> None:
    open_server(server).fetch_all()
    (tmp_path / 'cache').chmod(0o777)
    assert 'The cache is not used' in open_server(server).find().problems[0].message
    (tmp_path / 'cache').chmod(0o700)
    registry = open_server(server)
    skill = only_skill(registry)
    (tmp_path / 'cache').chmod(0o777)
    server.files.clear()
    with pytest.raises(SkillResourceLoadError):
        _ = skill.content


# --- Scripts --------------------------------------------------------------------------------------------------------


def test_a_script_runs_from_a_verified_copy(server: SkillServer, open_server: Open, tmp_path: Path) -> None:
    registry = open_server(server, script_executor=BubblewrapSkillScriptExecutor())
    call = ('run_skill_script', {'skill_name': 'refunds', 'script_name': 'refund', 'args': ['7']})
    toolset = SkillsToolset(registries=[registry])
    script = toolset.skills['refunds'].scripts[0]
    assert (script.usage, script.required_packages) == (None, ())
    assert 'refunded 7' in anyio.run(told, toolset, call)
    assert sorted(server.reads) == sorted(server.files)
    assert script.path is not None
    assert script.path.is_file()
    assert 'refunded 7' in anyio.run(told, toolset, call)
    assert len(server.reads) == 3
    script.path.chmod(0o644)
    script.path.write_text('print("stolen")')
    assert 'refunded 7' in anyio.run(told, toolset, call)
    shutil.rmtree(tmp_path / 'cache')
    server.files['skill://refunds/scripts/refund.py'] = 'print("stolen")'
    sent = anyio.run(told, toolset, call)
    assert 'was not run' in sent
    assert 'not the file that is listed' in sent


def test_a_script_of_a_trusted_server_runs_here(server: SkillServer, open_server: Open) -> None:
    registry = open_server(server, trusted=True, script_executor=LocalSkillScriptExecutor())
    skill = only_skill(registry)
    result = anyio.run(skill.scripts[0].run, None, ['1'])
    assert 'refunded 1' in str(result)
    assert skill.scripts[0].usage is None


def test_names_that_cannot_be_used_here_keep_scripts_from_running(open_server: Open) -> None:
    server = SkillServer()
    server.add('pdf', {'SKILL.md': skill_md('pdf'), 'run.py': 'print(1)', f'{"x" * 300}.md': 'long'})
    (script,) = only_skill(open_server(server, trusted=True)).scripts
    with pytest.raises(SkillScriptExecutionError, match='cannot be used on this machine'):
        anyio.run(script.run, None)


@pytest.fixture
def sandboxed(server: SkillServer, open_server: Open) -> SkillsToolset[None]:
    registry = open_server(server, script_executor=BubblewrapSkillScriptExecutor())
    return SkillsToolset(registries=[registry], script_policy='ask')


async def test_an_approval_is_bound_to_the_digests(server: SkillServer, sandboxed: SkillsToolset[None]) -> None:
    call: Call = ('run_skill_script', {'skill_name': 'refunds', 'script_name': 'scripts/refund.py'})
    model = ScriptedModel(calls=[call]).model
    agent = Agent[Any, str | DeferredToolRequests](model, toolsets=[sandboxed], output_type=[str, DeferredToolRequests])
    asked = await agent.run('go')
    assert isinstance(asked.output, DeferredToolRequests)
    approved = asked.output.build_results(approve_all=True)
    server.entries.clear()
    server.add('refunds', {**REFUNDS, 'references/policy.md': 'Sixty days.\n'})
    changed = await agent.run(message_history=asked.all_messages(), deferred_tool_results=approved)
    assert 'is not what was approved' in str(changed.all_messages())
    server.entries.clear()
    server.add('refunds', REFUNDS)
    done = await agent.run(message_history=asked.all_messages(), deferred_tool_results=approved)
    assert 'refunded' in str(done.all_messages())


def test_a_name_leads_to_the_addresses_that_were_checked(
    server: SkillServer, open_server: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(host: str, port: int) -> list[str]:
        return ['127.9.9.9', '127.0.0.1'] if host == 'skills.invalid' else []

    monkeypatch.setattr('pydantic_ai_skills.registries.mcp.limits.network_addresses', look_up)
    server.add('refunds')
    with serving(server.streamable_http_app(host='skills.invalid')) as port:
        registry = open_server(f'http://skills.invalid:{port}/mcp', allowed_protocols=['http', 'local'])
        assert [skill.name for skill in registry.find().skills] == ['refunds']
