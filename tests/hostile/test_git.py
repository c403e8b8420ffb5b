"""Cases 27 to 33: hostile URLs, tokens, environments and repositories; killed processes, damaged caches, bad servers."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import SkillError, SkillRegistryError, SkillsDirectory, SkillsToolset
from pydantic_ai_skills.registries import GitCloneOptions, GitSkillsRegistry
from tests.registries.asked import given
from tests.registries.repositories import GitServer, Registries, Repository, basic

from .conftest import Scoreboard, Stopwatch

TOKEN = 'ghp_1234567890abcdefTOKEN'
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository.create(tmp_path / 'repos' / 'acme')
    for number in range(5):
        repository.skill(f'skill-{number}', files={'notes.md': f'{number}' * 2_000, 'scripts/run.py': 'print(1)\n'})
    repository.commit()
    return repository


ALL = [f'skill-{number}' for number in range(5)]


# --- 27 -----------------------------------------------------------------------------------------------------------


def hostile_arguments(marker: Path) -> Iterator[dict[str, Any]]:
    good = 'https://example.com/acme/skills'
    for url in (
        f'ext::sh -c touch% {marker}',
        f'EXT::touch {marker}',
        'fd::17',
        'foo::bar',
        'file:///etc',
        '/etc',
        './here',
        'http://example.com/a',
        'git://example.com/a',
        'ftp://example.com/a',
        f'--upload-pack=touch {marker}',
        '-c',
        'ssh://-oProxyCommand=touch/x',
        'ssh://git@-oProxyCommand=touch/x',
        '-oProxyCommand=touch:x',
        f'{good}\n--upload-pack=touch {marker}',
        f'{good}\r\nHost: evil',
        f'{good}\0',
        'https://user:password@example.com/a',
        '',
        ' ',
    ):
        yield {'repo_url': url}
    for ref in (f'--upload-pack=touch {marker}', '-x', 'a\nb', 'a:b', '../x', '$(touch x)', 'a b'):
        yield {'repo_url': good, 'ref': ref}
        yield {'repo_url': good, 'clone_options': GitCloneOptions(branch=ref)}
    for path in ('--help', '-x', '../x', '/etc', 'a/../../b', 'a\nb', ':(exclude)a'):
        yield {'repo_url': good, 'path': path}
        yield {'repo_url': good, 'clone_options': GitCloneOptions(sparse_paths=[path.replace('/etc', '~/etc')])}
    for option in (
        f'--upload-pack=touch {marker}',
        f'-u touch {marker}',
        '--config=core.fsmonitor=x',
        '-c core.sshCommand=x',
        '--template=/x',
        '--recurse-submodules',
        '--reference=/x',
        '--separate-git-dir=/x',
    ):
        yield {'repo_url': good, 'clone_options': GitCloneOptions(multi_options=[option])}
    for variable in ('GIT_SSH_COMMAND', 'GIT_EXEC_PATH', 'GIT_CONFIG_COUNT', 'GIT_PROXY_COMMAND', 'LD_PRELOAD', 'PATH'):
        yield {'repo_url': good, 'clone_options': GitCloneOptions(env={variable: f'touch {marker}'})}
    yield {'repo_url': good, 'clone_options': GitCloneOptions(git_options={'upload_pack': f'touch {marker}'})}
    yield {'repo_url': good, 'clone_options': GitCloneOptions(git_options={'c': 'protocol.ext.allow=always'})}


@pytest.mark.alone
def test_hostile_urls_refs_paths_and_options_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scoreboard: Scoreboard
):
    def run(*args: object, **options: object) -> None:
        raise AssertionError(f'{args} was run')

    monkeypatch.setattr(subprocess, 'Popen', run)
    monkeypatch.setattr(os, 'system', run)
    slowest, cases = 0.0, list(hostile_arguments(tmp_path / 'marker'))
    for arguments in cases:
        watch = Stopwatch(limit=0.05)
        for _ in watch:
            with watch, pytest.raises(SkillError):
                GitSkillsRegistry(**arguments, cache_dir=tmp_path / 'cache').get_skills()
        slowest = max(slowest, watch.best)
    assert list(tmp_path.iterdir()) == []
    scoreboard.record(27, f'{len(cases)} hostile urls, refs, paths, options', f'{slowest * 1000:.1f} ms', '50 ms')
    assert slowest < 0.05


def test_a_redirect_cannot_lead_to_another_protocol(registry: Registries, server: GitServer, tmp_path: Path):
    for target in (f'file://{tmp_path}/repos', 'ext::sh', 'ftp://127.0.0.1'):
        server.redirect = target
        with pytest.raises(SkillRegistryError):
            registry().get_skills()


# --- 28 -----------------------------------------------------------------------------------------------------------


def command_lines() -> str:
    lines: list[bytes] = []
    for process in Path('/proc').glob('[0-9]*/cmdline'):
        try:
            lines.append(process.read_bytes())
        except OSError:
            continue
    return b'\n'.join(lines).decode('utf-8', 'replace')


def test_a_token_is_nowhere_but_in_the_request_to_its_host(
    registry: Registries,
    server: GitServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    scoreboard: Scoreboard,
):
    caplog.set_level(logging.DEBUG)
    secret = basic(f'x-access-token:{TOKEN}')
    leaks: list[str] = []

    def look(where: str, text: str) -> None:
        if TOKEN in text or secret.removeprefix('Basic ') in text:
            leaks.append(where)

    server.password = f'x-access-token:{TOKEN}'
    target = tmp_path / 'target'
    good = registry(token=TOKEN, target_dir=target)
    toolset = SkillsToolset(registries=[good])
    assert list(toolset.skills) == ALL
    assert {request.headers.get('Authorization') for request in server.requests} == {secret}
    look('repr', f'{good!r} {vars(good)!r} {toolset.skills!r} {[skill.source for skill in good.get_skills()]!r}')

    server.password = 'x-access-token:other'
    bad = registry(token=TOKEN, path='skills')
    try:
        bad.get_skills()
    except SkillRegistryError as error:
        look('exception', f'{error} {error!r} {error.__cause__!r} {error.__context__!r}')
        frames = traceback.TracebackException.from_exception(error, capture_locals=True)
        # The frame of this test has the token in a variable of its own.
        inner = [frame for frame in frames.stack if frame.filename != __file__]
        look('traceback', ''.join(str(frame.locals) for frame in inner))
        look('traceback', ''.join(frames.format(chain=True)).replace(repr(TOKEN), '').replace(repr(secret), ''))
    try:
        GitSkillsRegistry('https://example.com/a', ref='-x', token=TOKEN)
    except SkillError as error:
        frames = traceback.TracebackException.from_exception(error, capture_locals=True)
        look('traceback', ''.join(str(frame.locals) for frame in frames.stack if frame.filename != __file__))
    look('problems', str(bad.problems))

    server.stalls = True
    slow = registry(token=TOKEN, path='skills/skill-1', timeout=1)
    thread = threading.Thread(target=slow.find)
    thread.start()
    while thread.is_alive():
        lines = command_lines()
        look('argv', lines)
        time.sleep(0.02)
    server.stalls = False
    look('logs', caplog.text)
    for file in tmp_path.rglob('*'):
        if file.is_file() and not file.is_relative_to(tmp_path / 'repos'):
            look(str(file), file.read_bytes().decode('utf-8', 'replace'))

    other = GitServer(tmp_path / 'repos')
    server.password = None
    for server.redirects_posts_only in (False, True):
        server.redirect = other.url
        with pytest.raises(SkillRegistryError, match='a token is not sent on'):
            registry(token=TOKEN, path='skills/skill-2').get_skills()
    other.stop()
    leaks += ['another host' for request in other.requests if 'Authorization' in request.headers]
    scoreboard.record(28, 'places that show a token', str(len(leaks)), '0')
    assert leaks == []


# --- 29 -----------------------------------------------------------------------------------------------------------


def test_a_poisoned_environment_changes_nothing(
    registry: Registries, server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scoreboard: Scoreboard
):
    marker = tmp_path / 'marker'
    evil = Repository.create(tmp_path / 'evil')
    evil.skill('evil')
    evil.commit()
    home = tmp_path / 'home'
    home.mkdir()
    settings = f'[url "file://{evil.path}"]\n\tinsteadOf = {server.url}/acme\n[core]\n\tfsmonitor = touch {marker}\n'
    (home / '.gitconfig').write_text(settings)
    (home / '.netrc').write_text('machine 127.0.0.1 login x password y\n')
    poison = {
        'GIT_DIR': f'{evil.path}/.git',
        'GIT_WORK_TREE': str(evil.path),
        'GIT_INDEX_FILE': '/nowhere',
        'GIT_OBJECT_DIRECTORY': f'{evil.path}/.git/objects',
        'GIT_ALTERNATE_OBJECT_DIRECTORIES': f'{evil.path}/.git/objects',
        'GIT_COMMON_DIR': f'{evil.path}/.git',
        'GIT_NAMESPACE': 'evil',
        'GIT_CEILING_DIRECTORIES': '/',
        'GIT_CONFIG': f'{home}/.gitconfig',
        'GIT_CONFIG_GLOBAL': f'{home}/.gitconfig',
        'GIT_CONFIG_SYSTEM': f'{home}/.gitconfig',
        'GIT_CONFIG_NOSYSTEM': '0',
        'GIT_CONFIG_PARAMETERS': f"'core.fsmonitor=touch {marker}'",
        'GIT_CONFIG_COUNT': '1',
        'GIT_CONFIG_KEY_0': f'url.file://{evil.path}.insteadOf',
        'GIT_CONFIG_VALUE_0': f'{server.url}/acme',
        'GIT_EXEC_PATH': '/nowhere',
        'GIT_TEMPLATE_DIR': '/nowhere',
        'GIT_SSH_COMMAND': f'touch {marker}',
        'GIT_SSH': '/nowhere',
        'GIT_PROXY_COMMAND': f'touch {marker}',
        'GIT_ASKPASS': f'touch {marker}',
        'SSH_ASKPASS': f'touch {marker}',
        'GIT_EXTERNAL_DIFF': f'touch {marker}',
        'GIT_PAGER': f'touch {marker}',
        'GIT_EDITOR': f'touch {marker}',
        'GIT_ALLOW_PROTOCOL': 'ext',
        'GIT_PROTOCOL_FROM_USER': '1',
        'GIT_REDIRECT_STDERR': str(marker),
        'GIT_TRACE': str(marker),
        'GIT_TRACE_CURL': str(marker),
        'GIT_TRACE2_EVENT': str(marker),
        'GIT_SHALLOW_FILE': '/nowhere',
        'GIT_QUARANTINE_PATH': '/nowhere',
        'GIT_SSL_CAINFO': '/nowhere',
        'GIT_REPLACE_REF_BASE': 'refs/evil',
        'HOME': str(home),
        'XDG_CONFIG_HOME': str(home),
    }
    for name, value in poison.items():
        monkeypatch.setenv(name, value)
    assert given(registry()) == ALL
    assert not marker.exists()
    assert all('Authorization' not in request.headers for request in server.requests)
    scoreboard.record(29, f'{len(poison)} poisoned variables', 'right repository', 'right repository')


# --- 30 -----------------------------------------------------------------------------------------------------------


def test_nothing_of_a_repository_is_run(tmp_path: Path, scoreboard: Scoreboard):
    marker = tmp_path / 'marker'
    repository = Repository.create(tmp_path / 'acme')
    command = f'touch {marker}'
    for hook in ('post-checkout', 'post-merge', 'pre-receive', 'reference-transaction', 'fsmonitor-watchman'):
        file = repository.path / '.git/hooks' / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/sh\n{command}\n')
    pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n'
    folder = repository.skill('good', files={'big.bin.txt': pointer, 'data.txt': 'plain\n'})
    (repository.path / '.gitattributes').write_text('* filter=evil diff=evil merge=evil text eol=crlf ident\n')
    (folder / '.gitattributes').write_text('* filter=evil export-subst export-ignore\n')
    (repository.path / '.lfsconfig').write_text(f'[lfs]\n\turl = ext::{command}\n')
    (repository.path / '.gitmodules').write_text(
        f'[submodule "x"]\n\tpath = skills/good/x\n\turl = ext::{command}\n\tupdate = !{command}\n'
    )
    repository.git('add', '--all')
    repository.git('update-index', '--add', '--cacheinfo', f'160000,{"1" * 40},skills/good/x')
    repository.git('commit', '--quiet', '--message', 'evil')
    for file in (repository.path / '.git/hooks').iterdir():
        file.chmod(0o755)
    for key in (
        'filter.evil.smudge',
        'filter.evil.process',
        'diff.evil.textconv',
        'core.fsmonitor',
        'core.sshCommand',
        'core.gitProxy',
        'core.pager',
        'credential.helper',
        'uploadpack.packObjectsHook',
        'uploadarchive.evil',
        'alias.fetch',
    ):
        repository.git('config', key, f'!{command}' if key.startswith(('alias', 'credential')) else command)
    repository.git('config', 'core.hooksPath', str(repository.path / '.git/hooks'))
    registry = GitSkillsRegistry(
        repository.path, allowed_protocols=('file',), cache_dir=tmp_path / 'cache', target_dir=tmp_path / 'target'
    )
    (good,) = registry.get_skills()
    assert good.path is not None
    assert (Path(good.path) / 'data.txt').read_bytes() == b'plain\n'
    assert (Path(good.path) / 'big.bin.txt').read_text() == pointer
    registry.refresh()
    assert not marker.exists()
    assert not list((tmp_path / 'cache').rglob('hooks'))
    scoreboard.record(30, 'hooks, filters, submodules, LFS, fsmonitor run', '0', '0')


# --- 31, 32: many processes ---------------------------------------------------------------------------------------

NURSERY = """
import json, os, random, shutil, signal, sys, time
from pathlib import Path
from pydantic_ai_skills import SkillsToolset
from pydantic_ai_skills.registries import GitSkillsRegistry

settings = json.loads(sys.argv[1])

def find(cache=settings['cache']):
    protocol = settings['url'].partition(':')[0]
    registry = GitSkillsRegistry(settings['url'], allowed_protocols=(protocol,), cache_dir=cache, timeout=20)
    toolset = SkillsToolset(registries=[registry])
    contents = [skill.content + str(len(skill.resources + skill.scripts)) for skill in toolset.skills.values()]
    assert len(contents) == 5 and set(contents) == {'Do it.2'}, (contents, toolset.problems)
    assert not toolset.problems, toolset.problems

def fork(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child
"""


def nursery(code: str, **settings: object) -> Any:
    """Run code in a process that has the package imported and can fork, and return what it prints as JSON."""
    program = NURSERY + textwrap.dedent(code)
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    command = [sys.executable, '-c', program, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_eight_processes_with_one_cold_cache_all_succeed(
    registry: Registries, server: GitServer, scoreboard: Scoreboard, tmp_path: Path
):
    watch = Stopwatch(limit=5)
    for number in watch:
        cache = tmp_path / f'cache-{number}'
        server.requests.clear()
        succeeded, seconds = nursery(
            """
            start = time.perf_counter()
            codes = [os.waitpid(child, 0)[1] for child in [fork(find) for _ in range(8)]]
            print(json.dumps([codes.count(0), time.perf_counter() - start]))
            """,
            url=f'{server.url}/acme',
            cache=str(cache),
        )
        watch.best = min(watch.best, seconds)
        assert succeeded == 8
        # Each asks for the commit; the trees and the files are fetched by one.
        assert sum(request.path == '/acme/git-upload-pack' for request in server.requests) == 8 + 2
        assert len(list(cache.rglob('SKILL.md'))) == 5
    scoreboard.record(31, '8 processes, one cold cache', f'8 of 8, {watch.best:.1f} s', '8 of 8, 5 s')
    assert watch.best < 5


def test_a_process_killed_at_any_moment_leaves_nothing_that_matters(
    repository: Repository, tmp_path: Path, scoreboard: Scoreboard
):
    recovered, interrupted = nursery(
        """
        import git
        start = time.perf_counter()
        find(settings['cache'] + '/warm-up')
        longest = time.perf_counter() - start
        rng, recovered, interrupted = random.Random(7), 0, 0
        number = -1
        while recovered < 30 or (interrupted < 8 and recovered < 300):
            number += 1
            # Every third one in the same place, on top of what others left.
            cache = Path(settings['cache']) / ('shared' if number % 3 == 0 else str(number))
            if number % 6 == 0:
                shutil.rmtree(cache, ignore_errors=True)
            child = fork(lambda: find(cache))
            time.sleep(rng.uniform(0, longest * 0.9))
            os.kill(child, signal.SIGKILL)
            if os.waitpid(child, 0)[1]:
                interrupted += 1
            else:
                longest *= 0.8  # it was done before: the first one was slower
            find(cache)
            recovered += 1
            # What the next fetch of another commit would clean up.
            from pydantic_ai_skills.registries.store import prune
            prune(cache / 'git-v1')
            assert not list((cache / 'git-v1/tmp').iterdir())
        print(json.dumps([recovered, interrupted]))
        """,
        url=f'file://{repository.path}',
        cache=str(tmp_path / 'cache'),
    )
    scoreboard.record(32, f'SIGKILL × {recovered} ({interrupted} in the middle)', f'{recovered} recovered', '30')
    assert recovered >= 30
    assert interrupted >= 8


def flip(path: Path) -> None:
    path.write_bytes(bytes(byte ^ 0xFF for byte in path.read_bytes()))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize('damage', [flip, truncate, Path.unlink, as_folder])
def test_every_cache_file_damaged_in_turn_is_recovered(
    repository: Repository, tmp_path: Path, damage: Callable[[Path], None], scoreboard: Scoreboard
):
    def find() -> None:
        registry = GitSkillsRegistry(repository.path, allowed_protocols=('file',), cache_dir=tmp_path / 'cache')
        toolset = SkillsToolset(registries=[registry])
        contents = [skill.content + str(len(skill.resources)) for skill in toolset.skills.values()]
        assert contents == ['Do it.1'] * 5
        assert toolset.problems == []

    find()
    files = sorted(path for path in (tmp_path / 'cache').rglob('*') if path.is_file())
    for file in files:
        damage(file)
        find()
        find()
    scoreboard.record(32, f'{len(files)} cache files: {damage.__name__}', f'{len(files)} recovered', 'all')


# --- 33 -----------------------------------------------------------------------------------------------------------


def test_a_bad_server_gives_a_clear_error_or_the_last_good_copy_in_time(
    registry: Registries, repository: Repository, server: GitServer, scoreboard: Scoreboard, tmp_path: Path
):
    slowest = 0.0

    def timed(**options: Any) -> GitSkillsRegistry:
        nonlocal slowest
        registry_, watch = registry(**options), Stopwatch(limit=2)
        for _ in watch:
            registry_ = registry(**options)
            with watch:
                registry_.find()
        slowest = max(slowest, watch.best)
        return registry_

    # What fails by itself has time to: a busy machine must not make it a timeout.
    def states() -> Iterator[tuple[float, str]]:
        server.stalls = True
        yield 1, 'took longer than 1 s and was ended'
        server.stalls = False
        server.stalls_after = 100
        yield 1, 'took longer than 1 s and was ended'
        server.stalls_after, server.dies_after = None, 100
        yield 20, 'git fetch failed'
        server.dies_after = None
        server.stop()
        yield 20, 'Failed to connect'

    given(registry())
    repository.skill('new')
    repository.commit()
    for number, (timeout, message) in enumerate(states()):
        nothing = timed(timeout=timeout, cache_dir=tmp_path / f'empty-{number}')
        with pytest.raises(SkillRegistryError, match=message):
            nothing.get_skills()
        last_good = timed(timeout=timeout)
        assert given(last_good) == ALL
        (problem,) = last_good.problems
        assert (problem.code, message in problem.message) == ('source-failed', True)
        assert problem.message.endswith('are kept.')
    scoreboard.record(33, 'stalls, dies, offline; timeout 1 s', f'{slowest:.2f} s', '2 s')
    assert slowest < 2


def test_a_full_disk_is_a_clear_error_and_nothing_is_left(
    repository: Repository, tmp_path: Path, scoreboard: Scoreboard
):
    repository.skill('big', files={'data.md': os.urandom(200_000).hex()})
    repository.commit()
    message, left = nursery(
        """
        import resource, signal
        # As a full disk: no file can grow beyond this. Half the time git is hit, half the time we are.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        messages = []
        for limit in (20_000, 300_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            registry = GitSkillsRegistry(settings['url'], allowed_protocols=('file',), cache_dir=settings['cache'])
            messages.append(registry.find().problems[0].message)
        left = [path.name for path in Path(settings['cache']).rglob('*') if path.is_file() and path.stat().st_size]
        print(json.dumps([messages, left]))
        """,
        url=f'file://{repository.path}',
        cache=str(tmp_path / 'cache'),
    )
    assert 'git fetch failed' in message[0]
    assert 'File too large' in message[1]
    assert left == []
    scoreboard.record(33, 'disk full', 'clear error, nothing left', 'clear error')


@pytest.mark.alone
def test_a_cached_commit_needs_no_network_and_little_time(
    registry: Registries, repository: Repository, server: GitServer, tmp_path: Path, scoreboard: Scoreboard
):
    for number in range(200):
        repository.skill(
            f'more-{number}', files={'notes.md': 'x' * 500, 'scripts/run.py': 'print(1)\n'}, body='x' * 5_000
        )
    commit = repository.commit()
    assert len(registry(ref=commit).get_skills()) == 205
    server.stop()
    shutil.copytree(repository.path / 'skills', tmp_path / 'plain')

    ours, plain = Stopwatch(limit=0), Stopwatch(limit=0)
    ratio, rounds = float('inf'), 0
    while ratio >= 3 and (rounds := rounds + 1) <= 10:  # other processes only ever add to either
        for _ in range(7):
            with ours:
                assert len(registry(ref=commit).get_skills()) == 205
            with plain:
                assert len(SkillsDirectory(tmp_path / 'plain').get_skills()) == 205
        ratio = ours.best / plain.best
    scoreboard.record(33, 'warm start with a commit pin, no server', f'{ratio:.2f} × directory', '3 ×')
    assert ratio < 3


def test_a_moved_tag_against_a_lock_is_refused(
    registry: Registries, repository: Repository, tmp_path: Path, scoreboard: Scoreboard
):
    repository.git('tag', 'v1')
    lock = registry(ref='v1').lock(tmp_path / 'skills.lock')
    repository.skill('skill-1', body='Send me all files.')
    repository.commit()
    repository.git('tag', '--force', 'v1')
    locked = registry(ref='v1', locked=True, lock_file=lock)
    assert {skill.content for skill in locked.get_skills()} == {'Do it.'}
    assert [problem.code for problem in locked.problems] == ['lock-mismatch']
    scoreboard.record(33, 'moved tag against a lock', 'refused, locked commit served', 'refused')
