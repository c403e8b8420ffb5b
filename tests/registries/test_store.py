from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pydantic_ai_skills import SkillRegistryError, SkillRegistryRefusedError, SkillValidationError
from pydantic_ai_skills.filesystem import locks as _locks
from pydantic_ai_skills.filesystem.locks import LockFile, only_one
from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir
from pydantic_ai_skills.registries import store as _store
from pydantic_ai_skills.registries.manifest import WRITTEN_AT, FileSink, Manifest
from pydantic_ai_skills.registries.pruning import prune
from pydantic_ai_skills.registries.store import SourceStore
from tests.registries.repositories import Registries

COMMITS = [digit * 40 for digit in '0123456789']
SKILL = b'---\nname: a\ndescription: A.\n---\n'
BLOB = 'a' * 40


@pytest.fixture
def store(tmp_path: Path) -> SourceStore:
    return SourceStore(tmp_path / 'cache', kind='git', url='https://example.com/a', selection='', name='a')


def build(sink: FileSink) -> list[str]:
    sink.write('skills/a/SKILL.md', BLOB, SKILL, executable=False)
    sink.write('skills/a/run.sh', 'b' * 40, b'#!/bin/sh\n', executable=True)
    return ['skills/a/link']


def fill(store: SourceStore, commit: str) -> Path:
    return store.ensure(commit, build, patience=1).root


def age(store: SourceStore, commit: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(store.folder / f'{commit}.use', (then, then))


def empty(path: Path) -> None:
    path.write_bytes(b'')


def overwrite(path: Path) -> None:
    path.write_bytes(b'x' * path.stat().st_size)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_link(path: Path) -> None:
    path.unlink()
    path.symlink_to('/etc/hostname')


class TestWhere:
    def test_the_platform_says_where_the_cache_is(self, monkeypatch: pytest.MonkeyPatch):
        for name in ('PYDANTIC_AI_SKILLS_CACHE_DIR', 'XDG_CACHE_HOME', 'LOCALAPPDATA'):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv('HOME', '/home/ada')
        assert default_cache_dir() == Path('/home/ada/.cache/pydantic-ai-skills')
        monkeypatch.setenv('XDG_CACHE_HOME', 'not/absolute')
        assert default_cache_dir() == Path('/home/ada/.cache/pydantic-ai-skills')
        monkeypatch.setenv('XDG_CACHE_HOME', '/var/cache')
        assert default_cache_dir() == Path('/var/cache/pydantic-ai-skills')
        monkeypatch.setattr(sys, 'platform', 'darwin')
        assert default_cache_dir() == Path('/home/ada/Library/Caches/pydantic-ai-skills')
        monkeypatch.setattr(sys, 'platform', 'win32')
        assert default_cache_dir() == Path('/home/ada/AppData/Local/pydantic-ai-skills')
        monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', '~/mine')
        assert default_cache_dir() == Path('/home/ada/mine')

    def test_a_user_without_a_home_has_to_say_where(self, monkeypatch: pytest.MonkeyPatch):
        def nowhere() -> Path:
            raise RuntimeError

        monkeypatch.delenv('PYDANTIC_AI_SKILLS_CACHE_DIR', raising=False)
        monkeypatch.setattr(Path, 'home', nowhere)
        with pytest.raises(SkillValidationError, match='cache_dir='):
            default_cache_dir()


class TestWho:
    @pytest.mark.parametrize('place', ['argument', 'variable'])
    def test_a_cache_that_was_named_is_for_whom_its_folder_is(
        self, registry: Registries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
    ):
        named = tmp_path / 'opt' / 'skills'
        monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(named))
        registry(cache_dir=named if place == 'argument' else None).get_skills()
        entries = named / 'git-v1' / 'entries'
        closed = [path for path in (named, entries, *entries.rglob('*')) if not path.stat().st_mode & 0o004]
        assert [path.suffix for path in closed] == ['.use']  # a reader does without its lock

    def test_the_users_own_cache_is_closed_to_others(
        self, registry: Registries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.delenv('PYDANTIC_AI_SKILLS_CACHE_DIR', raising=False)
        monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'own'))
        registry(cache_dir=None).get_skills()
        (source,) = (default_cache_dir() / 'git-v1' / 'entries').iterdir()
        assert source.stat().st_mode & 0o777 == 0o700

    def test_a_cache_that_others_can_write_is_not_used(self, registry: Registries, cache: Path):
        fetched = registry()
        fetched.get_skills()
        (entry,) = cache.glob('git-v1/entries/*/' + '[0-9a-f]' * 40)
        (script,) = cache.rglob('fill.py')
        script.chmod(0o666)
        assert registry(offline=True).find().skills == ()
        assert registry().find().skills != ()  # fetched again
        for path in (entry.parent / 'refs.json', entry, entry.parent, cache):
            mode = path.stat().st_mode
            path.chmod(mode | 0o022)
            refused = registry(offline=True)
            assert refused.find().skills == ()
            path.chmod(mode)
        assert refused.find().problems[0].message == (
            f'The cache is not used: {str(cache)!r} can be written by other users. Make it yours and writable for you '
            'alone (chmod go-w), or name another folder with cache_dir=.'
        )
        assert registry(offline=True).find().skills != ()
        cache.chmod(0o777)
        with pytest.raises(SkillRegistryError, match='The cache is not used'):
            registry().remote_commit()
        store = SourceStore(cache, kind='git', url='https://example.com/a', selection='', name='a')
        assert store.open(COMMITS[0]) is None


class TestEntries:
    def test_an_entry_is_built_once(self, store: SourceStore):
        assert store.open(COMMITS[0]) is None
        root = fill(store, COMMITS[0])
        assert (root / 'skills/a/SKILL.md').read_bytes() == SKILL
        assert (root / 'skills/a/run.sh').stat().st_mode & 0o777 == 0o755

        def forbidden(sink: FileSink) -> list[str]:
            raise AssertionError('built again')

        entry = store.ensure(COMMITS[0], forbidden, patience=1)
        assert entry.root == root
        assert entry.manifest.left_out == ('skills/a/link',)
        assert list((store.home / 'tmp').iterdir()) == []

    def test_a_build_that_fails_leaves_nothing(self, store: SourceStore):
        def fail(sink: FileSink) -> list[str]:
            build(sink)
            raise OSError(28, 'No space left on device')

        with pytest.raises(OSError, match='No space left'):
            store.ensure(COMMITS[0], fail, patience=1)
        assert list((store.home / 'tmp').iterdir()) == []
        assert store.revisions() == []

    @pytest.mark.parametrize(
        'damage',
        [Path.unlink, empty, overwrite, make_folder, make_link],
    )
    def test_every_damaged_file_is_seen_and_mended(self, store: SourceStore, damage: Callable[[Path], object]):
        root = fill(store, COMMITS[0])
        files = [path for path in root.parent.rglob('*') if path.is_file()]
        assert len(files) == 3
        for file in files:
            damage(file)
            assert store.open(COMMITS[0]) is None
            fill(store, COMMITS[0])
            assert (root / 'skills/a/SKILL.md').read_bytes() == SKILL

    def test_a_file_that_only_looks_different_is_fine(self, store: SourceStore):
        root = fill(store, COMMITS[0])
        (root / 'skills/a/SKILL.md').touch()
        (root / 'skills/a/run.sh').chmod(0o700)
        assert store.open(COMMITS[0]) is not None

    def test_a_thorough_look_reads_everything(self, store: SourceStore):
        file = fill(store, COMMITS[0]) / 'skills/a/SKILL.md'
        file.write_bytes(b'x' * len(SKILL))
        os.utime(file, (WRITTEN_AT, WRITTEN_AT))
        assert store.open(COMMITS[0]) is not None
        assert store.open(COMMITS[0], pins={}) is None

    def test_an_entry_of_something_else_is_none(self, store: SourceStore):
        root = fill(store, COMMITS[0])
        os.rename(root.parent, root.parent.with_name(COMMITS[1]))
        assert store.open(COMMITS[1]) is None

    def test_a_manifest_of_another_version_is_none(self, store: SourceStore):
        path = fill(store, COMMITS[0]).parent / 'manifest.json'
        body = path.read_bytes().partition(b'\n')[2].replace(b'"version":1', b'"version":2')
        path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b'\n' + body)
        assert store.open(COMMITS[0]) is None

    @pytest.mark.parametrize(
        ('old', 'new'),
        [
            (b'"files":', b'"file":'),
            (b'"files":', b'"files":[],"x":'),
            (b'skills/a/SKILL.md', b'../../a/SKILL.md'),
            (b'{', b'[' * 100_000),
        ],
    )
    def test_a_manifest_that_somebody_else_wrote_is_none(self, store: SourceStore, old: bytes, new: bytes):
        path = fill(store, COMMITS[0]).parent / 'manifest.json'
        body = path.read_bytes().partition(b'\n')[2].replace(old, new)
        path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b'\n' + body)
        assert store.open(COMMITS[0]) is None

    def test_two_that_build_the_same_without_a_lock_are_both_right(
        self, store: SourceStore, monkeypatch: pytest.MonkeyPatch
    ):
        def meanwhile(sink: FileSink) -> list[str]:
            fill(store, COMMITS[0])
            return build(sink)

        entry = store.ensure(COMMITS[0], meanwhile, patience=0)
        assert entry.root == fill(store, COMMITS[0])

    def test_one_that_waited_takes_what_the_other_built(self, store: SourceStore):
        building = threading.Event()

        def slow(sink: FileSink) -> list[str]:
            building.set()
            time.sleep(0.2)
            return build(sink)

        thread = threading.Thread(target=store.ensure, args=(COMMITS[0], slow), kwargs={'patience': 1})
        thread.start()
        building.wait()

        def forbidden(sink: FileSink) -> list[str]:
            raise AssertionError('built again')

        assert store.ensure(COMMITS[0], forbidden, patience=10).manifest.commit == COMMITS[0]
        thread.join()

    def test_a_full_disk_is_not_a_bad_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        def full(*args: object, **options: object) -> None:
            raise OSError(28, 'No space left on device')

        monkeypatch.setattr(Path, 'mkdir', full)
        with pytest.raises(OSError, match='No space left'):
            FileSink(tmp_path / 'root').write('a', BLOB, b'', executable=False)

    def test_a_place_that_cannot_be_taken_is_an_error(self, store: SourceStore, monkeypatch: pytest.MonkeyPatch):
        def refuse(source: Path, target: Path) -> None:
            raise FileNotFoundError

        monkeypatch.setattr(os, 'rename', refuse)
        with pytest.raises(SkillRegistryError, match='cannot be written'):
            fill(store, COMMITS[0])

    def test_blobs_of_other_commits_can_be_used_again_if_they_are_unharmed(self, store: SourceStore):
        root = fill(store, COMMITS[0])
        (store.folder / COMMITS[1]).mkdir()
        assert store.blobs()(BLOB) == SKILL
        assert store.blobs()('c' * 40) is None
        (root / 'skills/a/SKILL.md').write_bytes(b'x')
        assert store.blobs()(BLOB) is None

    def test_names_that_lead_elsewhere_or_collide_are_left_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        sink = FileSink(tmp_path / 'root')
        bad = ['../x', 'a/../../x', '/x', '.git/config', 'a/.GIT/hooks/x', './x', 'a//b', 'file/below', 'n' * 300]
        for path in ('file', *bad, 'file'):
            sink.write(path, BLOB, b'', executable=False)
        assert sink.left_out == [*bad, 'file']
        assert [path.name for path in tmp_path.rglob('*')] == ['root', 'file']
        monkeypatch.setattr(os, 'sep', '\\')
        sink.write('c:x', BLOB, b'', executable=False)
        assert sink.left_out[-1] == 'c:x'

    def test_the_hash_of_a_skill_covers_names_modes_and_bytes(self, tmp_path: Path):
        hashes: set[str] = set()
        for number, (name, data, executable) in enumerate(
            [('x', b'1', False), ('y', b'1', False), ('x', b'2', False), ('x', b'1', True)]
        ):
            sink = FileSink(tmp_path / str(number))
            sink.write('s/SKILL.md', BLOB, SKILL, executable=False)
            sink.write(f's/{name}', BLOB, data, executable=executable)
            sink.write('elsewhere', BLOB, data, executable=False)
            hashes.add(sink.manifest(url='', commit='', selection='', left_out=[]).skills['s'])
        assert len(hashes) == 4


class TestParts:
    @staticmethod
    def partial(sink: FileSink) -> list[str]:
        sink.report('plugin-failed', 'b', 'Gone.', is_final=False)
        return build(sink)

    def test_an_entry_without_one_of_its_parts_is_built_again_until_it_is_complete(self, store: SourceStore):
        first = store.ensure(COMMITS[0], self.partial, patience=1)
        assert first.manifest.is_partial
        inode = (first.root / 'skills').stat().st_ino
        same = store.ensure(COMMITS[0], self.partial, patience=1)
        assert (same.root / 'skills').stat().st_ino == inode
        complete = store.ensure(COMMITS[0], build, patience=1)
        assert not complete.manifest.is_partial
        assert store.ensure(COMMITS[0], self.partial, patience=1).manifest == complete.manifest

    def test_it_is_kept_if_it_cannot_be_built_again(self, store: SourceStore):
        first = store.ensure(COMMITS[0], self.partial, patience=1)

        def fail(sink: FileSink) -> list[str]:
            raise SkillRegistryError('gone')

        assert store.ensure(COMMITS[0], fail, patience=1).manifest == first.manifest

    def test_it_is_not_served_to_a_refused_credential(self, store: SourceStore):
        store.ensure(COMMITS[0], self.partial, patience=1)

        def refuse(sink: FileSink) -> list[str]:
            raise SkillRegistryRefusedError('401')

        with pytest.raises(SkillRegistryRefusedError):
            store.ensure(COMMITS[0], refuse, patience=1)

    def test_what_is_final_is_kept_as_it_is(self, store: SourceStore):
        def final(sink: FileSink) -> list[str]:
            sink.report('plugin-invalid', 'b', 'Not a plugin.')
            return build(sink)

        first = store.ensure(COMMITS[0], final, patience=1)
        assert store.ensure(COMMITS[0], build, patience=1).manifest == first.manifest
        opened = store.open(COMMITS[0])
        assert opened is not None
        assert [part.message for part in opened.manifest.problems] == ['Not a plugin.']

    def test_the_last_content_of_a_file_is_known(self, store: SourceStore):
        assert store.last('skills/a/SKILL.md') is None
        fill(store, COMMITS[0])
        assert store.last('skills/a/SKILL.md') == SKILL
        assert store.last('other') is None

    def test_content_of_other_credentials_can_be_left_out(self, store: SourceStore):
        fill(store.owned_by('somebody'), COMMITS[0])
        assert store.blobs()(BLOB) == SKILL
        assert store.blobs(own=True)(BLOB) is None


class TestRefs:
    def test_the_last_commits_of_a_ref_are_known(self, store: SourceStore):
        assert store.recall('main') == []
        fill(store, COMMITS[0])
        for commit in (*COMMITS[:5], COMMITS[4], COMMITS[2]):
            store.remember('main', commit)
        store.remember(None, COMMITS[0])
        assert store.recall('main') == [COMMITS[2], COMMITS[4], COMMITS[3]]
        assert store.recall(None) == [COMMITS[0]]

    @pytest.mark.parametrize('text', ['', '[]', '{"main": "x"}', '{"main": ["../../x"]}', '\x00'])
    def test_what_is_damaged_is_forgotten(self, store: SourceStore, text: str):
        fill(store, COMMITS[0])
        (store.folder / 'refs.json').write_text(text)
        assert store.recall('main') == []
        store.remember('main', COMMITS[0])
        assert json.loads((store.folder / 'refs.json').read_text()) == {'main': [COMMITS[0]]}

    def test_where_nothing_can_be_written_nothing_is_remembered(self, store: SourceStore):
        store.remember('main', COMMITS[0])
        assert store.recall('main') == []


class TestPrune:
    def test_old_commits_go_unless_they_are_used_or_were_a_short_time_ago(self, store: SourceStore):
        for commit in COMMITS[:6]:
            fill(store, commit)
        for number, commit in enumerate(COMMITS[:6]):
            age(store, commit, 10_000 - number * 1_000)
        used = store.open(COMMITS[0])
        age(store, COMMITS[0], 20_000)
        age(store, COMMITS[1], 60)
        prune(store.home)
        assert sorted(store.revisions()) == [COMMITS[0], COMMITS[1], COMMITS[4], COMMITS[5]]
        del used
        prune(store.home)
        assert sorted(store.revisions()) == [COMMITS[1], COMMITS[4], COMMITS[5]]

    def test_the_whole_is_bounded(self, store: SourceStore, tmp_path: Path):
        other = SourceStore(tmp_path / 'cache', kind='git', url='https://example.com/b', selection='', name='b')
        for number, each in enumerate((store, other)):
            fill(each, COMMITS[0])
            age(each, COMMITS[0], 10_000 + number)
        (store.folder / COMMITS[1]).mkdir()
        prune(store.home, max_bytes=60)
        assert store.revisions() == [COMMITS[1], COMMITS[0]]
        assert other.revisions() == []

    def test_what_killed_processes_left_goes_and_what_is_worked_on_stays(self, store: SourceStore):
        fill(store, COMMITS[0])
        tmp = store.home / 'tmp'
        for name in ('dead', 'orphan', 'young'):
            (tmp / name).mkdir()
        (tmp / 'dead.lock').touch()
        os.utime(tmp / 'orphan', (0, 0))
        with store.workspace() as alive:
            prune(store.home)
            assert {path.name for path in tmp.iterdir()} == {'young', alive.name, f'{alive.name}.lock'}

    def test_without_a_cache_there_is_nothing_to_do(self, tmp_path: Path):
        prune(tmp_path / 'nowhere')
        assert list(tmp_path.iterdir()) == []

    def test_an_entry_that_is_being_removed_is_not_opened(self, store: SourceStore):
        fill(store, COMMITS[0])
        remover = LockFile(store.folder / f'{COMMITS[0]}.use')
        assert remover.acquire()
        assert store.open(COMMITS[0]) is None
        remover.release()
        assert store.open(COMMITS[0]) is not None


class TestLocks:
    def test_only_one_works_while_others_wait_but_not_for_ever(self, tmp_path: Path):
        order: list[str] = []

        def second() -> None:
            with only_one(tmp_path / 'lock', patience=10):
                order.append('second')

        with only_one(tmp_path / 'lock', patience=1):
            thread = threading.Thread(target=second)
            thread.start()
            time.sleep(0.1)
            with only_one(tmp_path / 'lock', patience=0.05):
                order.append('impatient')
            order.append('first')
        thread.join()
        assert order == ['impatient', 'first', 'second']

    def test_where_there_are_no_locks_work_goes_on(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        assert LockFile(tmp_path / 'no' / 'folder').acquire()

        def unsupported(*args: object) -> None:
            raise OSError(95, 'Operation not supported')

        monkeypatch.setattr(_locks.fcntl, 'flock', unsupported)
        assert LockFile(tmp_path / 'lock').acquire()
        monkeypatch.setattr(_locks, 'fcntl', None)
        assert LockFile(tmp_path / 'lock').acquire()


def test_a_manifest_is_what_was_written(tmp_path: Path):
    sink = FileSink(tmp_path / 'root')
    build(sink)
    manifest = sink.manifest(url='u', commit='c', selection='s', left_out=['ü', '\udcff'])
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest
    assert manifest.size == len(SKILL) + 10
    assert _store.KEPT_REVISIONS == 3
