"""A hostile checkout: each command run in it. Nothing is executed, nothing is sent, and the message says how to trust it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from pydantic_ai_skills import UserTrust
from pydantic_ai_skills.cli.app import COMMANDS
from tests.cli.conftest import Cli, cli, here, site, untrusted  # noqa: F401  # pyright: ignore[reportUnusedImport] - fixtures
from tests.folders import skill_md, write
from tests.hostile.conftest import Scoreboard, Stopwatch
from tests.registries.repositories import GitServer, Repository, basic

HOW_TO_TRUST = 'pydantic-ai-skills trust /'
SECRET = 'ghp_very_secret'

# What a person types for each command; `URL` is the source that the checkout names.
TYPED = {
    'list': [['list'], ['list', '--standard']],
    'show': [['show', 'x'], ['show', 'x', '--standard']],
    'search': [['search', 'things']],
    'validate': [['validate'], ['validate', '--fix'], ['validate', '--format', 'sarif']],
    'scan': [['scan'], ['scan', 'x', '--record'], ['scan', '--standard']],
    'explain': [['explain', 'things'], ['explain', '--overlaps'], ['explain', 'things', '--standard']],
    'eval': [
        ['eval'],
        ['eval', 'x', '--model', 'stand-in', '--yes'],
        ['eval', 'x', '--model', 'stand-in', '--yes', '--standard'],
        ['eval', 'x', '--model', 'stand-in', '--yes', '-d', '.claude/skills', '--baseline', 'HEAD'],
        ['eval', 'x', '--model', 'stand-in', '--yes', '--baseline', 'locked'],
    ],
    'prompt': [['prompt'], ['prompt', 'x'], ['prompt', 'x', '--standard'], ['prompt', 'x', '--packages']],
    'run': [
        ['run', 'x', 'scripts/run.py'],
        ['run', 'x', 'scripts/run.py', '--yes', '--no-sandbox'],
        ['run', 'x', 'scripts/run.py', '--yes', '--standard'],
        ['run', 'x', 'scripts/run.py', '--yes', '-d', '.claude/skills'],
        ['run', 'x', 'scripts/run.py', '--yes', '-d', '.claude/skills', '--sandbox'],
    ],
    'new': [['new', 'fresh', '--script']],
    'add': [['add', 'URL', '--allow', 'http'], ['add', 'URL', '--allow', 'http', '--token-env', 'SECRET_TOKEN']],
    'import': [['import', 'skills-lock.json']],
    'serve': [['serve'], ['serve', '--http', '127.0.0.1:8000']],
    'sync': [['sync'], ['sync', '--frozen'], ['sync', 'URL']],
    'lock': [['lock'], ['lock', 'URL']],
    'outdated': [['outdated'], ['outdated', 'URL']],
    'remove': [['remove', 'URL']],
    'trust': [['trust', '--list']],
    'chat': [['chat', 'load x'], ['chat', '--yes', 'run scripts/run.py', '-d', '.claude/skills']],
    'doctor': [['doctor']],
}
SHOWING = ('list', 'show', 'prompt', 'search', 'explain', 'validate', 'scan', 'doctor', 'serve')
MORE_SOURCES = """
[[tool.pydantic-ai-skills.mcp]]
url = "touch {marker}"

[[tool.pydantic-ai-skills.well-known]]
url = "{url}"
token-env = "SECRET_TOKEN"
allow = ["http", "local"]
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    repository = Repository.create(tmp_path / 'served/acme')
    repository.skill('theirs')
    repository.commit()
    server = GitServer(tmp_path / 'served')
    yield server
    server.stop()


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """What code of the checkout would write."""
    return tmp_path / 'executed'


@pytest.fixture
def hostile(
    untrusted: Path,  # noqa: F811
    tmp_path: Path,
    server: GitServer,
    marker: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    monkeypatch.setenv('SECRET_TOKEN', SECRET)
    (tmp_path / 'outside').mkdir()
    code = f'import pydantic_ai\nopen({str(marker)!r}, "w").close()\n'
    declared = 'tools:\n  go:\n    description: Goes.\n    script: scripts/run.py'
    write(
        untrusted,
        {
            'pyproject.toml': f"""
[tool.pydantic-ai-skills]
packages = "all"
trusted-packages = ["typer"]
policy = "allow"
sandbox = false
pass-env = ["SECRET_TOKEN"]

[[tool.pydantic-ai-skills.git]]
url = "{server.url}/acme"
trusted = true
token-env = "SECRET_TOKEN"
allow = ["http", "file"]
into = "linked/theirs"
""",
            'skills-lock.json': json.dumps(
                {'version': 1, 'skills': {'x': {'source': f'{server.url}/acme', 'sourceType': 'git'}}}
            ),
            '.claude/skills/x/SKILL.md': skill_md('x', f'Does things.\n{declared}'),
            '.claude/skills/x/tools.py': code,
            '.claude/skills/x/evals/triggers.json': '[{"query": "do things", "should_trigger": true}]',
            '.claude/skills/x/evals/evals.json': json.dumps(
                {'evals': [{'id': 1, 'prompt': 'Do things.', 'checks': [{'type': 'contains', 'text': 'x'}]}]}
            ),
            '.claude/skills/x/scripts/run.py': code,
            # What Python, a shell with `.` in its path or git might find here.
            **dict.fromkeys(('typer.py', 'sitecustomize.py', 'git.py', 'yaml.py'), code),
            **dict.fromkeys(('git', 'node', 'uv', 'bwrap'), f'#!/bin/sh\ntouch {marker}\n'),
        },
    )
    for name in ('git', 'node', 'uv', 'bwrap'):
        (untrusted / name).chmod(0o755)
    (untrusted / 'skills.lock').symlink_to('/dev/zero')
    (untrusted / 'linked').symlink_to(tmp_path / 'outside')
    return untrusted


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob('*')) if path.is_file()}


def test_every_command_is_tried():
    assert set(TYPED) == set(COMMANDS)


@pytest.mark.parametrize('as_json', [False, True], ids=['text', 'json'])
@pytest.mark.parametrize('name', TYPED)
def test_in_a_hostile_checkout_nothing_is_executed_and_nothing_sent(
    cli: Cli,  # noqa: F811
    hostile: Path,
    tmp_path: Path,
    server: GitServer,
    marker: Path,
    scoreboard: Scoreboard,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    as_json: bool,
):
    monkeypatch.setattr('mcp.server.mcpserver.MCPServer.run', Mock())
    with (hostile / 'pyproject.toml').open('a') as project:
        project.write(MORE_SOURCES.format(marker=marker, url=server.url))
    before = files(hostile)
    slowest = 0.0
    for typed in TYPED[name]:
        args = [arg.replace('URL', f'{server.url}/acme') for arg in typed] + (['--json'] if as_json else [])
        watch = Stopwatch(limit=2, clock=time.process_time)
        with watch:
            done = cli(*args, stdin='y\n')
        slowest = max(slowest, watch.best)
        assert 'Traceback' not in done.err, args
        said = done.out + done.err
        if not (name == 'new' and as_json):
            assert HOW_TO_TRUST in said, (args, said)
        assert SECRET not in said
        shows = name in (*SHOWING, 'new', 'trust') or typed == ['eval']  # without tasks, which run scripts
        assert (done.status in (0, 1)) == shows, (args, done)
        assert not marker.exists(), args
        assert server.requests == [], args
        shutil.rmtree(hostile / '.claude/skills/fresh', ignore_errors=True)
    assert files(hostile) == before
    assert list((tmp_path / 'outside').iterdir()) == []
    assert slowest <= 2
    case = 38 if name in (*SHOWING, 'outdated') else 39
    scoreboard.record(case, f'{name} in a hostile checkout', f'0 run, 0 sent, {slowest:.2f} s', '0, 0, 2 s')


@pytest.mark.parametrize('name', [*SHOWING])
def test_what_only_shows_something_runs_and_fetches_nothing_in_a_trusted_checkout_either(
    cli: Cli,  # noqa: F811
    hostile: Path,
    server: GitServer,
    marker: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
):
    monkeypatch.setattr('mcp.server.mcpserver.MCPServer.run', Mock())
    (hostile / 'skills.lock').unlink()
    text = (hostile / 'pyproject.toml').read_text() + MORE_SOURCES.format(marker=marker, url=server.url)
    write(hostile, {'pyproject.toml': text.replace('linked/theirs', 'vendor')})
    UserTrust().trust(hostile)
    for args in TYPED[name]:
        done = cli(*args)
        assert done.status in (0, 1), (args, done)
        assert HOW_TO_TRUST not in done.out + done.err
    assert (marker.exists(), server.requests) == (False, [])


def test_the_programs_and_modules_of_the_checkout_are_not_those_of_the_command(
    hostile: Path, marker: Path, server: GitServer, scoreboard: Scoreboard
):
    command = Path(sys.executable).with_name('pydantic-ai-skills')
    env = {**os.environ, 'PATH': f'.:{os.environ["PATH"]}'}
    for args in (['doctor'], ['prompt', 'x'], ['sync']):
        done = subprocess.run([command, *args], cwd=hostile, env=env, capture_output=True, text=True, timeout=120)
        assert HOW_TO_TRUST in done.stdout + done.stderr, done
    assert (marker.exists(), server.requests) == (False, [])
    scoreboard.record(38, 'programs and modules beside the current folder', '0 run', '0')


@pytest.mark.parametrize('name', ['link to a device', 'huge', 'FIFO', 'long key', 'deep'])
def test_a_lock_file_that_is_none_is_refused_at_once(
    cli: Cli,  # noqa: F811
    hostile: Path,
    server: GitServer,
    scoreboard: Scoreboard,
    name: str,
):
    lock = hostile / 'skills.lock'
    text = (hostile / 'pyproject.toml').read_text()
    write(hostile, {'pyproject.toml': text.replace('into = "linked/theirs"', '').replace('token-env', '# token-env')})
    UserTrust().trust(hostile)
    if name != 'link to a device':
        lock.unlink()
    if name == 'huge':
        with open(lock, 'wb') as file:
            file.truncate(1 << 30)
    elif name == 'FIFO':
        os.mkfifo(lock)
    elif name == 'long key':
        lock.write_text(f'{".".join("a" * 500_000)} = 1')
    elif name == 'deep':
        lock.write_text(f'x = {"[" * 1_000_000}')
    slowest = 0.0
    for args in (['list'], ['sync'], ['outdated'], ['doctor'], ['remove', f'{server.url}/acme']):
        watch = Stopwatch(limit=2, clock=time.process_time)
        with watch:
            done = cli(*args)
        slowest = max(slowest, watch.best)
        refused = 'is not used: ' if name == 'link to a device' else 'cannot be read as a lock file'
        assert refused in done.out + done.err, (args, done)
    assert server.requests == []
    assert slowest <= 2
    scoreboard.record(38, f'skills.lock: {name}', f'{slowest:.2f} s', '2 s')


@pytest.mark.parametrize(
    'text',
    [f'{".".join("a" * 100_000)} = 1', f'a = {"1" * 100_000}', f'x = {"[" * 200_000}', f'[{".".join("a" * 30)}]\n', '#' * (1 << 20)],
    ids=['long key', 'long number', 'deep', 'long heading', 'long'],
)  # fmt: skip
def test_a_project_file_cannot_hold_a_command_up(
    cli: Cli,  # noqa: F811
    hostile: Path,
    scoreboard: Scoreboard,
    text: str,
):
    write(hostile, {'pyproject.toml': text})
    watch = Stopwatch(limit=2, clock=time.process_time)
    with watch:
        done = cli('list')
    assert (done.status, 'Traceback' in done.err) == (2, False)
    assert watch.best <= 2
    scoreboard.record(38, 'pyproject.toml that holds tomllib up', str(watch), '2 s')


def test_directories_outside_the_checkout_are_not_looked_at(cli: Cli, hostile: Path, tmp_path: Path):  # noqa: F811
    write(tmp_path / 'outside', {'theirs/SKILL.md': skill_md('theirs')})
    outside = (str(tmp_path / 'outside'), '../outside', 'linked', 'skills')
    (hostile / 'skills').symlink_to(tmp_path / 'outside')
    (hostile / '.agents').mkdir()
    (hostile / '.agents/skills').symlink_to(tmp_path / 'outside')
    for directories in (*(f'directories = ["{each}"]' for each in outside), 'directories = "standard"', ''):
        write(hostile, {'pyproject.toml': f'[tool.pydantic-ai-skills]\n{directories}\n'})
        for args in (
            ['list', '--json'],
            ['list', '--standard', '--json'],
            ['prompt', '--json'],
            ['validate', '--json'],
        ):
            assert 'theirs' not in cli(*args).out, (directories, args)


@pytest.mark.parametrize(
    'args', [['sync'], ['lock'], ['outdated'], ['add', 'URL', '--allow', 'http', '--token-env', 'SECRET_TOKEN']]
)
def test_a_token_goes_only_to_the_host_the_user_bound_it_to(
    cli: Cli,  # noqa: F811
    hostile: Path,
    server: GitServer,
    scoreboard: Scoreboard,
    args: list[str],
):  # fmt: skip
    args = [arg.replace('URL', f'{server.url}/acme') for arg in args]
    text = (hostile / 'pyproject.toml').read_text()
    write(hostile, {'pyproject.toml': text.replace('into = "linked/theirs"', '')})
    (hostile / 'skills.lock').unlink()
    trust = UserTrust()
    trust.trust(hostile)
    bound = server.url.removeprefix('http://')
    elsewhere = f'http://127.0.0.1:{server.http.server_address[1] + 1}'
    for other in (None, bound, elsewhere, f'http://localhost:{server.http.server_address[1]}', 'http://127.0.0.1'):
        if other is not None:
            trust.bind_token('SECRET_TOKEN', other)  # another scheme, port or name
        trust.bind_token('OTHER_TOKEN', server.url)
        done = cli(*args)
        assert (done.status, server.requests) == (2, []), done
        assert f'pydantic-ai-skills trust --token SECRET_TOKEN={server.url}' in done.err
        assert SECRET not in done.out + done.err
    server.password = f'x-access-token:{SECRET}'
    assert cli('trust', '--token', f'SECRET_TOKEN={server.url}').status == 0
    done = cli(*args)
    if args == ['outdated']:  # nothing is locked yet
        assert cli('lock').status == 0
        done = cli(*args)
    assert done.status == 0, done
    assert {request.headers.get('Authorization') for request in server.requests} <= {None, basic(server.password)}
    scoreboard.record(39, f'token-env not bound to the host: {args[0]}', '0 sent', '0')


INTO = [
    'linked', 'linked/theirs', 'vendor/../linked/x', 'inner/up', 'file', 'file/x', '.', '..', '../x', 'a/../..', '/tmp/x',
    '.git', '.git/hooks', '.GIT/hooks', '.Git', '.git/', './.git', 'a/.git', '.git /x', '.git./x', 'git~1', '.g\u200cit',
    '.git::$INDEX_ALLOCATION', '\uff0egit', '.hg', '.svn', '.jj', 'CVS',
]  # fmt: skip


@pytest.mark.parametrize('command', ['sync', 'lock', 'add'])
def test_files_are_written_nowhere_but_into_the_project(
    cli: Cli,  # noqa: F811
    hostile: Path,
    tmp_path: Path,
    server: GitServer,
    scoreboard: Scoreboard,
    command: str,
):
    (hostile / 'skills.lock').unlink()
    write(hostile, {'file': '', 'inner/x': ''})
    (hostile / 'inner/up').symlink_to('..')
    UserTrust().trust(hostile)
    settings = f'[[tool.pydantic-ai-skills.git]]\nurl = "{server.url}/acme"\nallow = ["http"]\n'
    for into in INTO:
        write(hostile, {'pyproject.toml': '' if command == 'add' else f'{settings}into = "{into}"\n'})
        add = ['add', f'{server.url}/acme', '--allow', 'http', '--into', into]
        before = files(tmp_path)
        done = cli(*(add if command == 'add' else [command]))
        assert (done.status, f'into = {into!r}' in done.err or 'into = ' in done.err) == (2, True), (into, done)
        assert files(tmp_path) == before, into
    assert server.requests == []
    scoreboard.record(40, f'{command}: `into` that leads elsewhere', f'0 of {len(INTO)} written', '0')


@pytest.mark.parametrize('directory', ['linked', '.git/hooks', '../outside', '~/x'])
def test_a_new_skill_is_written_nowhere_else_either(
    cli: Cli,  # noqa: F811
    hostile: Path,
    tmp_path: Path,
    directory: str,
):
    write(hostile, {'pyproject.toml': f'[tool.pydantic-ai-skills]\ndirectories = ["{directory}"]\n'})
    for trusted in (False, True):
        if trusted:
            UserTrust().trust(hostile)
        before = files(tmp_path)
        done = cli('new', 'fresh')
        if trusted or directory == '.git/hooks':
            assert (done.status, 'directories = ' in done.err) == (2, True), done
            assert files(tmp_path) == before
        else:  # what leads outside is not looked at: it is the project's own folder
            assert (hostile / 'skills/fresh').is_dir()
            shutil.rmtree(hostile / 'skills')


def test_trust_ends_with_the_folder(cli: Cli, hostile: Path, tmp_path: Path, scoreboard: Scoreboard):  # noqa: F811
    trusted = 0
    for number in range(20):
        folder = tmp_path / 'clone'
        shutil.copytree(hostile, folder, symlinks=True)
        trusted += UserTrust().is_trusted(folder)
        UserTrust().trust(folder)
        assert UserTrust().is_trusted(folder)
        if number % 2:
            folder.rename(tmp_path / f'old{number}')  # its answer stays, for a folder that is elsewhere
            assert not UserTrust().is_trusted(tmp_path / f'old{number}')
        else:
            shutil.rmtree(folder)
    assert trusted == 0
    scoreboard.record(39, 'another folder in place of a trusted one', f'{trusted} of 20 trusted', '0')
