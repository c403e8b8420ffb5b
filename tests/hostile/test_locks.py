"""Cases 42 to 44, 46 and 53 for registries: predicates, tokens, locks, owners of caches, and servers without measure."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from pydantic_ai_skills import SkillsDirectory, SkillsToolset
from pydantic_ai_skills.registries.manifest import WRITTEN_AT
from tests.conversations import ScriptedModel
from tests.folders import write_skill
from tests.registries.asked import names
from tests.registries.repositories import GitServer, Registries, Repository

from .conftest import CPU_TIME, Scoreboard

# --- 44 -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checkout:
    """The files of a locked skill on disk, in the cache or in a `target_dir`."""

    root: Path
    """The folder that stands for the root of the repository."""

    manifest: Path
    outside: Path
    """A folder that has nothing to do with it."""

    @property
    def skill(self) -> Path:
        return self.root / 'skills' / 'pdf'

    @property
    def script(self) -> Path:
        return self.skill / 'scripts' / 'fill.py'

    @property
    def evil(self) -> str:
        """A program that leaves a sign when it was run."""
        return f'open({str(self.outside / "was-run")!r}, "w").close()\n'

    def add(self, path: str, content: str | bytes | None = None) -> None:
        file = self.skill / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content or self.evil.encode())

    def move_out(self, path: Path) -> None:
        """Put something outside and a link in its place."""
        moved = self.outside / path.name
        shutil.move(path, moved)
        path.symlink_to(moved)


def edit(text: str) -> Callable[[Checkout], object]:
    def change(at: Checkout) -> None:
        file = at.skill / text
        file.write_text(file.read_text() + at.evil)

    return change


def edit_with_the_same_size_and_time(at: Checkout) -> None:
    size = at.script.stat().st_size
    at.script.write_text('print("evil")'.ljust(size))
    os.utime(at.script, (WRITTEN_AT, WRITTEN_AT))


def match_manifest(change: Callable[[Checkout], object]) -> Callable[[Checkout], object]:
    """The same change, with a manifest made to match what is on disk then."""

    def both(at: Checkout) -> None:
        change(at)
        fields = json.loads(at.manifest.read_bytes().partition(b'\n')[2])
        known: dict[str, list[Any]] = fields['files']
        files: dict[str, list[Any]] = {}
        for file in sorted(path for path in at.root.rglob('*') if path.is_file()):
            path = str(file.relative_to(at.root))
            if not path.startswith('.pydantic'):
                data = file.read_bytes()
                blob = known.get(path, [0, 0, 0, 'b' * 40])[3]
                digest = hashlib.sha256(data).hexdigest()
                files[path] = [len(data), digest, bool(file.stat().st_mode & 0o100), blob]
        body = json.dumps({**fields, 'files': files}).encode()
        at.manifest.write_bytes(hashlib.sha256(body).hexdigest().encode() + b'\n' + body)

    return both


def rename(at: Checkout) -> None:
    at.script.rename(at.script.with_name('other.py'))


def as_folder(at: Checkout) -> None:
    at.script.unlink()
    at.script.mkdir()


def link_beside(at: Checkout) -> None:
    (at.skill / 'scripts' / 'more.py').symlink_to(at.script)


def linked_folder_beside(at: Checkout) -> None:
    (at.skill / 'lib').symlink_to(at.outside)


TAMPERINGS: dict[str, Callable[[Checkout], object]] = {
    'SKILL.md edited': edit('SKILL.md'),
    'script edited': edit('scripts/fill.py'),
    'resource edited': edit('references/forms.md'),
    'same size and time': edit_with_the_same_size_and_time,
    'script edited, manifest too': match_manifest(edit('scripts/fill.py')),
    'SKILL.md edited, manifest too': match_manifest(edit('SKILL.md')),
    'script added': lambda at: at.add('scripts/more.py'),
    'script added, manifest too': match_manifest(lambda at: at.add('scripts/more.py')),
    'tools.py added': lambda at: at.add('tools.py', 'import pydantic_ai\n' + at.evil),
    'compiled file added': lambda at: at.add('scripts/__pycache__/json.cpython-311.pyc', b'\0' * 20),
    'hidden file added': lambda at: at.add('.env'),
    'file in a hidden folder added': lambda at: at.add('.config/x/y/z'),
    'file in vendor/ added': lambda at: at.add('vendor/json.py'),
    'file deep below added': lambda at: at.add('/'.join('abcdefghij')),
    'file with an odd name added': lambda at: at.add('scripts/\n\x1b'),
    'key file added': lambda at: at.add('id_rsa'),
    'pipe added': lambda at: os.mkfifo(at.skill / 'pipe'),
    'link added': link_beside,
    'link to a folder added': linked_folder_beside,
    'script is a link': lambda at: at.move_out(at.script),
    'SKILL.md is a link': lambda at: at.move_out(at.skill / 'SKILL.md'),
    'folder in the skill is a link': lambda at: at.move_out(at.skill / 'scripts'),
    'folder of the skill is a link': lambda at: at.move_out(at.skill),
    'folder of the skills is a link': lambda at: at.move_out(at.root / 'skills'),
    'made executable': lambda at: at.script.chmod(0o755),
    'made setuid': lambda at: at.script.chmod(0o4644),
    'script removed': lambda at: at.script.unlink(),
    'script renamed': rename,
    'script is a folder': as_folder,
    'resource removed, manifest too': match_manifest(lambda at: (at.skill / 'references/forms.md').unlink()),
}  # fmt: skip
"""Ways to change what is on disk."""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository.create(tmp_path / 'repos' / 'acme')
    repository.skill('pdf', files={'references/forms.md': '# Forms\n', 'scripts/fill.py': 'print("filled")\n'})
    repository.commit('first')
    return repository


USES = [
    ('load_skill', {'skill_name': 'pdf'}),
    ('read_skill_resource', {'skill_name': 'pdf', 'resource_name': 'references/forms.md'}),
    ('run_skill_script', {'skill_name': 'pdf', 'script_name': 'scripts/fill.py'}),
]


def outcomes(toolset: SkillsToolset) -> list[str]:
    scripted = ScriptedModel(calls=USES)
    Agent(scripted.model, toolsets=[toolset]).run_sync('Hello')
    return [outcome for _, outcome, _ in scripted.results]


@pytest.mark.usefixtures('loop_of_run_sync')
@pytest.mark.parametrize('place', ['cache', 'target_dir'])
def test_whatever_is_changed_on_disk_a_locked_skill_is_refused(
    registry: Registries, tmp_path: Path, scoreboard: Scoreboard, place: str
):
    pristine = tmp_path / 'pristine'
    options: dict[str, Any] = {'lock_file': tmp_path / 'skills.lock', 'trusted': True}
    if place == 'target_dir':
        options['target_dir'] = tmp_path / 'target'
    registry(**options).lock()
    disk = tmp_path / ('cache' if place == 'cache' else 'target')
    if place == 'target_dir':
        shutil.rmtree(registry.cache)
    shutil.move(disk, pristine)

    def restore(kind: str) -> Checkout:
        shutil.rmtree(disk, ignore_errors=True)
        shutil.copytree(pristine, disk, symlinks=True)
        outside = tmp_path / f'outside {kind}'.replace('/', '-')
        shutil.rmtree(outside, ignore_errors=True)
        outside.mkdir()
        manifest = next(disk.rglob('manifest.json'))
        return Checkout(manifest.with_name('acme') if place == 'cache' else disk, manifest, outside)

    held = 0
    for kind, tamper in TAMPERINGS.items():
        at = restore(kind)
        tamper(at)
        assert names(registry(locked=True, offline=True, **options)) == [], f'{kind}, before the first look'
        assert not (at.outside / 'was-run').exists()

        at = restore(kind)
        locked = registry(locked=True, offline=True, **options)
        toolset = SkillsToolset(registries=[locked.renamed({})])
        skill = toolset.skills['pdf']
        skill.check_unchanged()
        tamper(at)
        assert outcomes(toolset) == ['failed'] * 3, f'{kind}, after the first look'
        assert names(locked) == [], f'{kind}, at the second look'
        assert not (at.outside / 'was-run').exists(), kind
        held += 2
    restore('nothing')
    assert outcomes(SkillsToolset(registries=[registry(locked=True, offline=True, **options)])) == ['success'] * 3
    scoreboard.record(44, f'changed in the {place}, before and after the first look', f'{held} refused', 'all')


# --- 53 -----------------------------------------------------------------------------------------------------------

MEASURE = (
    CPU_TIME
    + """
import json, sys, threading, time
from pathlib import Path
from pydantic_ai_skills.registries import GitSkillsRegistry
import pydantic_ai_skills.registries.git.upstream

url, cache, options = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
registry = GitSkillsRegistry(url, cache_dir=cache, allowed_protocols=('http',), timeout=60, **options)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

# Not `ru_maxrss` of the children, which counts this process too: they begin as copies of it.
git, over, watching = [0], threading.Event(), []
def watch():
    while not over.wait(0.005):
        for folder in Path('/proc').glob('[0-9]*'):
            try:
                if folder.joinpath('comm').read_text().startswith('git'):
                    if os.fsencode(cache) in folder.joinpath('environ').read_bytes():
                        status = folder.joinpath('status').read_text()
                        git.append(int(status.partition('VmHWM:')[2].split()[0]) // 1024)
            except (OSError, IndexError):
                pass
    watching.append(time.thread_time())
watcher = threading.Thread(target=watch)
before, started = peak(), cpu_time()
watcher.start()
found = registry.find()
over.set()
watcher.join()
print(json.dumps({
    'seconds': cpu_time() - started - sum(watching),
    'python': peak() - before,
    'git': max(git),
    'skills': [skill.name for skill in found.skills],
    'messages': [problem.message for problem in found.problems],
}))
"""
)
"""Fetches a repository in a process of its own, and prints what it took."""


def measure(url: str, cache: Path, **options: Any) -> dict[str, Any]:
    command = [sys.executable, '-c', MEASURE, url, str(cache), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def tree_of_many_paths(repository: Repository, wide: int, levels: int) -> int:
    """Commit trees that all have the same tree in them many times, and return how many paths that makes."""
    blob = repository.git('hash-object', '-w', '--stdin', stdin='---\nname: x\ndescription: x\n---\n')
    tree = repository.git('mktree', stdin=''.join(f'100644 blob {blob}\tf{n}\n' for n in range(wide)))
    for _ in range(levels - 1):
        tree = repository.git('mktree', stdin=''.join(f'040000 tree {tree}\td{n}\n' for n in range(wide)))
    commit = repository.git('commit-tree', tree, '-m', 'many')
    repository.git('update-ref', 'refs/heads/main', commit)
    return wide**levels


def test_a_tree_of_ten_million_paths_is_refused(
    repository: Repository, server: GitServer, tmp_path: Path, scoreboard: Scoreboard
):
    count = tree_of_many_paths(repository, wide=10, levels=7)
    for options in ({}, {'path': 'd0'}, {'clone_options': None, 'max_depth': None}):
        took = measure(f'{server.url}/acme', tmp_path / 'cache', **options)
        assert took['skills'] == []
        limit = 'at most 1,000,000 (max_paths)'
        assert limit in took['messages'][0] or options == {'path': 'd0'}, took
        assert took['python'] <= 64, took
        assert 0 < took['git'] <= 64, took
        assert took['seconds'] <= 5, took
        text = f'{took["python"]} MB, git {took["git"]} MB, {took["seconds"]:.1f} s'
        scoreboard.record(53, f'{count:,} paths {options or ""}', text, '64 MB, 5 s')


class ManyRefs(BaseHTTPRequestHandler):
    """A server that lists more refs than there can be, in either version of the protocol."""

    protocol_version = 'HTTP/1.1'
    version = 0
    name = 'refs/heads/{:050d}'

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    def packet(self, text: str) -> bytes:
        return f'{len(text) + 4:04x}{text}'.encode()

    def refs(self) -> bytes:
        lines = (self.packet(f'{"a" * 40} {self.name.format(number)}\n') for number in range(REFS))
        return b''.join(lines) + b'0000'

    def answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        with suppress(OSError):  # git was ended meanwhile
            self.wfile.write(body)

    def do_GET(self) -> None:
        service = self.packet('# service=git-upload-pack\n') + b'0000'
        if self.version == 2:
            capabilities = ('version 2\n', 'agent=x\n', 'ls-refs\n', 'fetch=shallow filter\n', 'object-format=sha1\n')
            body = service + b''.join(map(self.packet, capabilities)) + b'0000'
        else:
            body = service + self.packet(f'{"a" * 40} HEAD\0agent=x\n') + self.refs()
        self.answer('application/x-git-upload-pack-advertisement', body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        self.answer('application/x-git-upload-pack-result', self.refs())


REFS = 540_000
"""How many refs take 60 MB."""


@pytest.mark.parametrize('version', [0, 2])
@pytest.mark.parametrize('name', ['refs/heads/{:050d}', 'refs/heads/{:034d}/refs/heads/main'])
def test_sixty_megabytes_of_refs_are_refused(tmp_path: Path, scoreboard: Scoreboard, version: int, name: str):
    handler = type('Handler', (ManyRefs,), {'version': version, 'name': name})
    http = ThreadingHTTPServer(('127.0.0.1', 0), handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True)
    thread.start()
    try:
        took = measure(f'http://127.0.0.1:{http.server_address[1]}/acme', tmp_path / 'cache', ref='main')
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
    assert took['skills'] == []
    assert took['python'] <= 64, took
    assert 0 < took['git'] <= 64, took
    assert took['seconds'] <= 5, took
    assert took['messages'], took
    text = f'{took["python"]} MB, git {took["git"]} MB, {took["seconds"]:.1f} s'
    asked = 'asked for' if name.endswith('main') else 'not asked for'
    scoreboard.record(53, f'60 MB of refs, version {version}, {asked}', text, '64 MB, 5 s')


# --- 42 -----------------------------------------------------------------------------------------------------------

PREDICATES = """
import asyncio, json
from functools import partial
from pydantic_ai_skills import Skill, SkillRegistry, SkillsToolset

class Shelf(SkillRegistry):
    def get_skills(self):
        return [Skill(name, 'x', 'x') for name in ('a', 'b')]

async def nobody(skill, *more):
    await asyncio.sleep(0)
    return False

class Policy:
    async def __call__(self, skill):
        return False

async def maybe(skill):
    return skill.name == 'b'

def predicates():
    return nobody, partial(nobody), Policy(), lambda skill: nobody(skill), maybe

def shown(predicate):
    return list(SkillsToolset(registries=[Shelf().filtered(predicate).prefixed('x-')]).skills)

async def inside(predicate):
    toolset = SkillsToolset(registries=[Shelf().filtered(predicate).prefixed('x-')])
    await toolset.load()
    return list(toolset.skills), shown(predicate), await asyncio.to_thread(shown, predicate)

print(json.dumps([[shown(predicate), *asyncio.run(inside(predicate))] for predicate in predicates()]))
"""
"""Prints what is shown to sync code, after `load`, in the thread of a running loop, and in a worker thread."""


def test_an_async_predicate_that_says_no_shows_nothing(scoreboard: Scoreboard):
    done = subprocess.run([sys.executable, '-c', PREDICATES], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, '')
    *refusing, maybe = json.loads(done.stdout)
    assert refusing == [[[], [], [], []]] * 4
    assert maybe == [['x-b']] * 4
    scoreboard.record(42, 'async predicates of registries that say no', '0 shown of 32', '0')


# --- 43 -----------------------------------------------------------------------------------------------------------


def test_a_cache_is_for_the_credential_that_filled_it(
    registry: Registries, server: GitServer, repository: Repository, tmp_path: Path, scoreboard: Scoreboard
):
    server.password = 'x-access-token:of-tenant-a'
    target = tmp_path / 'target'
    lock: dict[str, Any] = {'locked': True, 'lock_file': tmp_path / 'skills.lock'}
    mine = registry(token='of-tenant-a', target_dir=target, lock_file=tmp_path / 'skills.lock')
    mine.lock()
    assert names(mine) == ['pdf']
    tried = 0
    for token in ('of-tenant-b', None, lambda: None, lambda: 'of-tenant-b'):
        for options in ({}, {'ref': repository.head}, {'target_dir': target}, lock):
            for offline in (False, True):
                theirs = registry(token=token, offline=offline, **options)
                assert theirs.find().skills == (), (token, options, offline)
                if not offline:
                    assert [problem.code for problem in theirs.find().problems] == ['source-refused']
                tried += 1
    server.password = 'x-access-token:changed'
    kept = SkillsToolset(registries=[mine.cached(ttl=0)])
    assert list(kept.skills) == ['pdf']
    kept.reload(include_registries=True)
    assert list(kept.skills) == []
    for offline in (False, True):
        assert names(registry(token='of-tenant-a', offline=offline)) == []
    server.stop()
    assert names(registry(token='of-tenant-a')) == []
    for path in (*registry.cache.rglob('*'), *target.rglob('*')):
        assert 'of-tenant' not in str(path)
        assert not path.is_file() or b'of-tenant' not in path.read_bytes()
    scoreboard.record(43, 'other credentials, and a refused one, against a full cache', f'0 served in {tried + 4}', '0')


# --- 46 -----------------------------------------------------------------------------------------------------------

NOBODY = 65534


def give_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def let_all_write(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o002)


def let_group_write(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o020)


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can give a file away')
@pytest.mark.parametrize('change', [give_away, let_all_write, let_group_write])
def test_what_another_user_can_change_is_not_used(
    registry: Registries, tmp_path: Path, scoreboard: Scoreboard, change: Callable[[Path], object]
):
    above = tmp_path / 'above'
    above.mkdir(mode=0o755)
    registry.cache = above / 'cache'
    lock_file = above / 'skills.lock'
    registry(lock_file=lock_file).lock()
    pristine = tmp_path / 'pristine'
    shutil.copytree(above, pristine)
    refused = 0
    paths = sorted((above, *above.rglob('*')))
    assert lock_file in paths
    for path in paths:
        # The locks between processes only save work, and are done without.
        if path.suffix == '.use' or path.name == 'tmp' or 'locks' in path.parts:
            continue
        shutil.rmtree(above)
        shutil.copytree(pristine, above)
        assert names(registry(offline=True)) == ['pdf']
        change(path)
        locked = registry(locked=True, lock_file=lock_file, offline=True)
        if path.name != 'refs.json':  # a lock file says which commit it is
            assert names(locked) == [], path
        if path != lock_file:
            assert names(registry(offline=True)) == [], path
        refused += 1
    skills = tmp_path / 'skills'
    write_skill(skills / 'own')
    index = above / 'index.sqlite'
    for path in (above, index):
        shutil.rmtree(above)
        above.mkdir(mode=0o755)
        assert not SkillsDirectory(skills, disk_index=index).problems
        change(path)
        directory = SkillsDirectory(skills, disk_index=index)
        assert [problem.code for problem in directory.problems] == ['index-failed'], path
        assert list(directory.get_skills()) == ['own']
        refused += 1
    what = change.__name__.replace('_', ' ')
    scoreboard.record(46, f'caches, indexes and locks of others ({what})', f'{refused} not used', 'all')
