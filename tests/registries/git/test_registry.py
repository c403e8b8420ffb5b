from __future__ import annotations

import errno
import gc
import hashlib
import logging
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pydantic import SecretStr
from pydantic_ai import Agent

import pydantic_ai_skills.registries.git.registry as git_module
from pydantic_ai_skills import Skill, SkillRegistryError, SkillRegistryRefusedError, SkillsToolset, SkillValidationError
from pydantic_ai_skills.registries import GitCloneOptions, GitProgress, GitSkillsRegistry
from pydantic_ai_skills.registries.git.address import parse_address
from pydantic_ai_skills.registries.git.fetch import Fetch, new_repository
from pydantic_ai_skills.registries.git.options import Selection, check_options
from pydantic_ai_skills.registries.git.process import Git
from pydantic_ai_skills.registries.manifest import FileSink
from pydantic_ai_skills.registries.upstream import Deadline
from pydantic_ai_skills.types import SkillProvenance
from tests.conversations import ScriptedModel
from tests.folders import write, write_skill
from tests.registries.asked import given
from tests.registries.repositories import GitServer, Registries, Repository


def messages(registry: GitSkillsRegistry) -> list[str]:
    return [problem.message for problem in registry.problems]


def fetch(repository: Repository, tmp_path: Path, **limits: int) -> list[str]:
    """The files of the repository's skills, fetched from its folder with other limits than usual."""
    address = parse_address(repository.path, {'file'})
    options = check_options(GitCloneOptions(), allow_unsafe=False)
    git = Git(address=address, allowed=frozenset({'file'}), options=options, max_bytes=10**8)
    bare = tmp_path / 'bare'
    bare.mkdir()
    sink = FileSink(tmp_path / 'files')
    Fetch(git=git, commit=repository.head, repository=new_repository(bare), deadline=Deadline(20), **limits).files(
        Selection(path='', max_depth=3), sink=sink, reuse=lambda blob: None
    )
    return list(sink.files)


class TestFetching:
    def test_the_constructor_reads_and_writes_nothing(self, tmp_path: Path):
        url = 'https://does-not-exist.invalid/acme/skills'
        registry = GitSkillsRegistry(url, cache_dir=tmp_path / 'cache', target_dir=tmp_path / 'target')
        assert (registry.latest, registry.commit) == (None, None)
        assert list(tmp_path.iterdir()) == []
        assert repr(registry) == f"GitSkillsRegistry('{url}')"

    def test_skills_with_their_files_come_from_the_default_branch(
        self, registry: Registries, repository: Repository, server: GitServer
    ):
        fetched = registry(path='skills')
        (skill,) = fetched.get_skills()
        assert (skill.name, skill.content) == ('pdf', 'Do it.')
        assert [resource.name for resource in skill.resources] == ['references/forms.md']
        assert [script.name for script in skill.scripts] == ['scripts/fill.py']
        assert fetched.problems == []
        assert fetched.commit == repository.head
        assert repr(fetched) == f"GitSkillsRegistry('{server.url}/acme', path='skills')"

    def test_each_skill_knows_where_it_comes_from(
        self, registry: Registries, repository: Repository, server: GitServer
    ):
        (skill,) = registry(ref='main', trusted=True).get_skills()
        assert skill.source is not None
        assert skill.source == SkillProvenance(
            kind='git',
            url=f'{server.url}/acme',
            ref='main',
            commit=repository.head,
            path='skills/pdf',
            content_hash=skill.source.content_hash,
            trusted=True,
        )
        assert skill.renamed('other').source is skill.source
        repository.skill('pdf', body='Do it otherwise.')
        repository.commit()
        (changed,) = registry().get_skills()
        assert changed.source is not None
        assert changed.source.content_hash != skill.source.content_hash

    def test_a_repository_can_be_one_skill(self, tmp_path: Path, cache: Path):
        repository = Repository.create(tmp_path / 'pdf-tools')
        (repository.path / 'SKILL.md').write_text('---\nname: pdf-tools\ndescription: Does PDFs.\n---\nHi.\n')
        repository.commit()
        registry = GitSkillsRegistry(repository.path, allowed_protocols=('file',), cache_dir=cache)
        assert given(registry) == ['pdf-tools']
        assert registry.problems == []
        (skill,) = registry.get_skills()
        assert skill.source is not None
        assert skill.source.path == ''

    def test_a_path_can_be_one_skill(self, registry: Registries):
        assert given(registry(path='skills/pdf')) == ['pdf']

    def test_only_the_files_of_skills_are_fetched(self, registry: Registries, repository: Repository, cache: Path):
        repository.skill('deep/er/and/deeper')
        write_skill(repository.path / 'node_modules/vendored')
        repository.commit()
        given(registry(max_depth=3))
        files = {path.name for path in cache.rglob('*') if path.is_file()}
        assert {'SKILL.md', 'forms.md', 'fill.py'} <= files
        assert 'README.md' not in files
        assert not list(cache.rglob('deeper')) + list(cache.rglob('vendored'))
        assert not list(cache.rglob('*.pack'))

    def test_skills_are_found_in_every_folder_of_a_repository(
        self, registry: Registries, repository: Repository, cache: Path
    ):
        layouts = {
            'plugins/office/skills': 'docx',
            'skills/.curated': 'linear',
            '.claude/skills': 'review',
            '.agents/skills': 'release',
            '.github/skills': 'triage',
            'packages/a/b/c/d/skills': 'deep',
        }
        for folder, name in layouts.items():
            write_skill(repository.path / folder / name)
        for folder in ('.cache', '.venv/lib', 'node_modules/x', 'packages/.tox'):
            write_skill(repository.path / folder / 'hidden')
        repository.commit()
        assert sorted(given(registry())) == sorted(('pdf', *layouts.values()))
        assert not list(cache.rglob('hidden'))

    def test_a_repository_may_be_a_skill(self, registry: Registries, repository: Repository):
        write_skill(repository.path.parent / repository.path.name, files={'scripts/x.py': 'print(1)'})
        repository.commit()
        assert given(registry()) == [repository.path.name, 'pdf']

    def test_only_the_chosen_skills_are_offered_and_locked(
        self, registry: Registries, repository: Repository, tmp_path: Path
    ):
        for name in ('docx', 'xlsx'):
            repository.skill(name, files={'a.md': 'x'})
        (repository.path / 'skills/docx/link').symlink_to('a.md')
        write(repository.path, {'skills/broken/SKILL.md': 'Nothing.'})
        repository.commit()
        chosen = registry(only=['xlsx', 'pdf', 'pdf'])
        assert (given(chosen), chosen.problems) == (['pdf', 'xlsx'], [])
        chosen.lock(tmp_path / 'skills.lock')
        assert '"skills/docx"' not in (tmp_path / 'skills.lock').read_text()
        locked = registry(only=['xlsx', 'pdf'], locked=True, lock_file=tmp_path / 'skills.lock')
        assert (given(locked), locked.problems) == (['pdf', 'xlsx'], [])
        assert given(registry(only='pdf', locked=True, lock_file=tmp_path / 'skills.lock')) == ['pdf']

    def test_a_chosen_skill_that_is_not_there_is_a_problem(self, registry: Registries, repository: Repository):
        write(repository.path, {'skills/broken/SKILL.md': 'Nothing.'})
        repository.commit()
        chosen = registry(only=['pdf', 'broken'])
        assert given(chosen) == ['pdf']
        missing, broken = sorted(chosen.problems, key=lambda problem: problem.code, reverse=True)
        assert (missing.code, broken.code) == ('skill-missing', 'no-frontmatter')
        assert missing.message.startswith("No skill 'broken' in ")
        assert missing.message.endswith('It has: pdf.')

    def test_sparse_paths_bring_everything_below_them(self, registry: Registries, repository: Repository, cache: Path):
        (repository.path / 'shared').mkdir()
        (repository.path / 'shared/notes.txt').write_text('x')
        repository.commit()
        options = GitCloneOptions(sparse_paths=['skills', 'shared/'])
        assert given(registry(clone_options=options)) == ['pdf']
        assert len(list(cache.rglob('notes.txt'))) == 1

    def test_a_folder_that_is_not_there_is_a_failure(self, registry: Registries):
        with pytest.raises(SkillRegistryError, match=r"has no skills in 'nowhere' at \w{12} \(found 0 SKILL.md\)\.$"):
            registry(path='nowhere').get_skills()

    def test_a_repository_without_skills_has_none(self, tmp_path: Path, cache: Path):
        repository = Repository.create(tmp_path / 'empty')
        registry = partial(GitSkillsRegistry, repository.path, allowed_protocols=('file',), cache_dir=cache)
        with pytest.raises(SkillRegistryError, match='has no commits'):
            registry().get_skills()
        (repository.path / 'README.md').write_text('Nothing.')
        repository.commit()
        assert registry().get_skills() == []

    def test_modes_and_unusual_names_are_kept(self, registry: Registries, repository: Repository):
        folder = repository.skill('odd', files={'références/ü "x".md': 'ü', 'scripts/run': '#!/bin/sh\n'})
        (folder / 'scripts/run').chmod(0o755)
        repository.commit()
        (odd,) = (skill for skill in registry().get_skills() if skill.name == 'odd')
        assert [resource.name for resource in odd.resources] == ['références/ü "x".md']
        (script,) = odd.scripts
        assert script.path is not None
        assert os.access(script.path, os.X_OK)

    def test_links_submodules_and_impossible_names_are_left_out_with_a_problem(
        self, registry: Registries, repository: Repository, monkeypatch: pytest.MonkeyPatch
    ):
        folder = repository.skill('odd')
        for number in range(25):
            (folder / f'link-{number:02}').symlink_to('/etc/passwd')
        repository.git('add', '--all')
        repository.git('update-index', '--add', '--cacheinfo', f'160000,{repository.head},skills/odd/sub')
        blob = repository.git('hash-object', '-w', '--stdin', stdin='x')
        repository.git('update-index', '--add', '--cacheinfo', f'100644,{blob},skills/odd/{"n" * 300}')
        repository.git('commit', '--quiet', '--message', 'odd')
        fetched = registry()
        assert given(fetched) == ['odd', 'pdf']
        problems = [problem for problem in fetched.problems if problem.code == 'file-link']
        assert len(problems) == 21
        assert problems[-1].message == '7 more files were not fetched for this reason.'

    def test_names_that_are_not_text_are_left_out_with_a_problem_and_the_rest_can_be_locked(
        self, registry: Registries, repository: Repository, tmp_path: Path
    ):
        folder = repository.skill('odd', files={os.fsdecode(b'a\xff.md'): 'x', 'b.md': 'x'})
        folder.with_name(os.fsdecode(b'z\xff')).mkdir()
        (folder.with_name(os.fsdecode(b'z\xff')) / 'SKILL.md').write_text((folder / 'SKILL.md').read_text())
        repository.commit()
        fetched = registry()
        assert given(fetched) == ['odd', 'pdf']
        assert [problem.path.rpartition(':')[2] for problem in fetched.problems] == [
            'skills/odd/a\udcff.md',
            'skills/z\udcff/SKILL.md',
        ]
        fetched.lock(tmp_path / 'skills.lock')
        assert given(registry(locked=True, lock_file=tmp_path / 'skills.lock')) == ['odd', 'pdf']

    def test_too_much_is_refused(self, registry: Registries, repository: Repository, tmp_path: Path):
        repository.skill('big', files={'data.md': 'x' * 300_000})
        repository.commit()
        with pytest.raises(SkillRegistryError, match='at most 100,000 are fetched; see max_bytes='):
            registry(max_bytes=100_000).get_skills()
        with pytest.raises(SkillRegistryError, match='has 5 files in its skills, at most 3 are fetched'):
            fetch(repository, tmp_path, max_files=3)

    def test_a_commit_with_too_many_paths_is_not_listed_to_its_end(self, repository: Repository, tmp_path: Path):
        with pytest.raises(SkillRegistryError, match=r'at most 2 \(max_paths\), each of 65,536 bytes'):
            fetch(repository, tmp_path, max_paths=2)

    def test_what_git_prints_is_read_up_to_a_limit(self, registry: Registries, repository: Repository, tmp_path: Path):
        program = tmp_path / 'git'
        program.write_text(f'#!{sys.executable}\nwhile True: print("x" * 100_000)\n')
        program.chmod(0o755)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr('git.Git.GIT_PYTHON_GIT_EXECUTABLE', str(program))
            with pytest.raises(SkillRegistryError, match='git ls-remote printed more than 1,048,576 bytes'):
                registry().get_skills()
            patch.setattr('pydantic_ai_skills.registries.git.process._SHELL', '/does/not/exist')
            with pytest.raises(SkillRegistryError, match='git ls-remote printed more than 1,048,576 bytes'):
                registry().get_skills()

    def test_a_git_that_cannot_be_started_is_told(self, registry: Registries, monkeypatch: pytest.MonkeyPatch):
        full = Mock(side_effect=OSError(errno.EMFILE, 'Too many open files'))
        monkeypatch.setattr('pydantic_ai_skills.registries.git.process.subprocess.Popen', full)
        with pytest.raises(SkillRegistryError, match='Too many open files'):
            registry().get_skills()

    def test_a_refusal_while_files_are_fetched_is_a_refusal(
        self, registry: Registries, monkeypatch: pytest.MonkeyPatch
    ):
        refused = Mock(side_effect=SkillRegistryRefusedError('refused'))
        monkeypatch.setattr('pydantic_ai_skills.registries.fetcher.Fetcher._obtain', refused)
        assert [problem.code for problem in registry().find().problems] == ['source-refused']

    def test_a_file_that_was_changed_in_the_cache_is_not_used_again(
        self, registry: Registries, repository: Repository, cache: Path
    ):
        given(registry())
        (manifest,) = cache.rglob('manifest.json')
        (script,) = cache.rglob('fill.py')
        old, evil = script.read_bytes(), b'print("evil!!")\n'
        script.write_bytes(evil)
        body = manifest.read_bytes().partition(b'\n')[2]
        body = body.replace(hashlib.sha256(old).hexdigest().encode(), hashlib.sha256(evil).hexdigest().encode())
        body = body.replace(f'[{len(old)},'.encode(), f'[{len(evil)},'.encode())
        manifest.write_bytes(hashlib.sha256(body).hexdigest().encode() + b'\n' + body)
        repository.skill('new')
        repository.commit()
        again = registry()
        assert given(again) == ['new', 'pdf']
        (pdf,) = (skill for skill in again.get_skills() if skill.name == 'pdf')
        assert Path(pdf.path or '', 'scripts/fill.py').read_bytes() == old

    def test_a_fetch_that_brings_too_much_is_ended(
        self, registry: Registries, repository: Repository, server: GitServer
    ):
        repository.skill('big', files={'data.bin': os.urandom(300_000)})
        repository.commit()
        server.stalls_after = 250_000
        with pytest.raises(SkillRegistryError, match='fetched more than 100,000 bytes and was ended'):
            registry(max_bytes=100_000).get_skills()

    def test_a_git_that_does_not_give_what_it_fetched_is_a_failure(
        self, registry: Registries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        program = tmp_path / 'git'
        program.write_text(
            '#!/bin/sh\ncase "$1 $2" in "cat-file --batch") sed "s/$/ missing/";; *) exec git "$@";; esac\n'
        )
        program.chmod(0o755)
        monkeypatch.setattr('git.Git.GIT_PYTHON_GIT_EXECUTABLE', str(program))
        with pytest.raises(SkillRegistryError, match='did not send 3 of the files'):
            registry().get_skills()

    def test_where_processes_have_no_groups_git_is_ended_alone(
        self, registry: Registries, server: GitServer, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.delattr(os, 'killpg')
        monkeypatch.delattr(os, 'waitid')
        assert given(registry()) == ['pdf']
        server.stalls = True
        with pytest.raises(SkillRegistryError, match='took longer than 0.5 s'):
            registry(timeout=0.5, path='skills').get_skills()

    def test_a_filter_of_ones_own_will_do(self, registry: Registries):
        assert given(registry(clone_options=GitCloneOptions(multi_options=['--filter=blob:limit=1k']))) == ['pdf']

    def test_threads_that_ask_at_once_fetch_once(self, registry: Registries, server: GitServer):
        fetched = registry()
        threads = [threading.Thread(target=fetched.find) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert given(fetched) == ['pdf']
        assert len(server.requests) == 6

    def test_many_bytes_are_read_in_batches(self, repository: Repository, tmp_path: Path):
        repository.skill('more', files={f'{number}.txt': f'{number}' * 90 for number in range(5)})
        repository.commit()
        files = fetch(repository, tmp_path, batch_bytes=1)
        assert len([path for path in files if path.startswith('skills/more/')]) == 6

    def test_a_server_without_partial_clones_will_do(self, registry: Registries, repository: Repository):
        for setting in ('allowFilter', 'allowAnySHA1InWant'):
            repository.git('config', f'uploadpack.{setting}', 'false')
        assert given(registry()) == ['pdf']

    def test_progress_is_reported(self, registry: Registries):
        seen: list[GitProgress] = []
        registry(progress=seen.append).get_skills()
        assert {'Counting objects', 'Receiving objects'} <= {progress.stage for progress in seen}
        assert seen[-1].done == seen[-1].total

    def test_a_progress_callback_that_fails_stops_nothing(self, registry: Registries, caplog: pytest.LogCaptureFixture):
        def fail(progress: GitProgress) -> None:
            raise RuntimeError('no terminal')

        with caplog.at_level(logging.ERROR, 'pydantic_ai_skills'):
            assert given(registry(progress=fail)) == ['pdf']
        assert 'The progress callback failed' in caplog.text


class TestRefs:
    def test_a_branch_a_tag_and_a_commit_are_what_they_are(self, registry: Registries, repository: Repository):
        first = repository.head
        repository.git('tag', '--annotate', 'v1', '--message', 'one')
        repository.git('tag', 'light')
        repository.git('checkout', '--quiet', '-b', 'dev')
        repository.skill('dev-only')
        second = repository.commit()
        repository.git('checkout', '--quiet', 'main')
        for ref, commit in {
            'main': first,
            'v1': first,
            'light': first,
            first: first,
            'refs/tags/v1': first,
            'HEAD': first,
            'dev': second,
            'refs/heads/dev': second,
        }.items():
            fetched = registry(ref=ref)
            assert len(fetched.get_skills()) == 1 + (commit == second)
            assert fetched.commit == commit
        assert given(registry(clone_options=GitCloneOptions(branch='dev'))) == ['dev-only', 'pdf']

    def test_a_ref_that_is_not_there_is_a_failure(self, registry: Registries):
        with pytest.raises(SkillRegistryError, match="no branch or tag 'nope'; a commit has to be written in full"):
            registry(ref='nope').get_skills()
        with pytest.raises(SkillRegistryError, match='git fetch failed: .*not our ref'):
            registry(ref='0' * 40).get_skills()

    def test_a_repository_that_is_not_there_is_told_as_such(self, tmp_path: Path, cache: Path):
        registry = GitSkillsRegistry(tmp_path / 'nowhere', allowed_protocols=('file',), cache_dir=cache)
        with pytest.raises(
            SkillRegistryError, match=r"failed: fatal: '.*/nowhere' does not appear to be a git repository\.$"
        ):
            registry.get_skills()

    @pytest.mark.parametrize(
        ('said', 'told'),
        [
            ('ssh: Could not resolve hostname x: Unknown', 'ssh: Could not resolve hostname x: Unknown.'),
            (
                (
                    "fatal: detected dubious ownership in repository at '/srv/x'\n"
                    'To add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /srv/x'
                ),
                (
                    "fatal: detected dubious ownership in repository at '/srv/x'. It belongs to another user, and your git "
                    'settings are not read: reach it over ssh or https, or make a copy of your own.'
                ),
            ),
            ('', 'fatal: Could not read from remote repository.'),
        ],
    )
    def test_the_reason_is_told_and_not_what_git_adds_to_every_one(
        self, registry: Registries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
    ):
        program = tmp_path / 'git'
        added = (
            'fatal: Could not read from remote repository.\n\n'
            'Please make sure you have the correct access rights\nand the repository exists.'
        )
        program.write_text(f'#!/bin/sh\ncat >&2 <<"END"\n{said}\n{added}\nEND\nexit 128\n')
        program.chmod(0o755)
        monkeypatch.setattr('git.Git.GIT_PYTHON_GIT_EXECUTABLE', str(program))
        with pytest.raises(SkillRegistryError) as raised:
            registry().get_skills()
        assert str(raised.value).partition('git ls-remote failed: ')[2] == told

    def test_two_different_refs_are_refused(self, registry: Registries):
        with pytest.raises(SkillValidationError, match="ref='a' and branch='b'"):
            registry(ref='a', clone_options=GitCloneOptions(branch='b'))
        assert registry(ref='a', clone_options=GitCloneOptions(branch='a')).ref == 'a'


class TestRefresh:
    def test_nothing_new_fetches_nothing_and_gives_the_same_object(self, registry: Registries, server: GitServer):
        fetched = registry()
        found = fetched.find()
        asked = len(server.requests)
        assert fetched.find() is found is fetched.latest
        assert len(server.requests) == asked
        assert fetched.refresh() is found
        assert len(server.requests) == asked + 2

    def test_a_new_commit_brings_only_files_that_are_new(
        self, registry: Registries, repository: Repository, server: GitServer
    ):
        repository.skill('big', files={'data.md': os.urandom(100_000).hex()})
        repository.commit()
        fetched = registry()
        assert given(fetched) == ['big', 'pdf']
        sent = server.sent
        assert sent > 100_000
        repository.skill('new')
        repository.commit()
        fetched.refresh()
        assert given(fetched) == ['big', 'new', 'pdf']
        assert server.sent - sent < 5_000
        repository.git('rm', '--quiet', '-r', 'skills/new', 'skills/big')
        repository.commit()
        sent = server.sent
        fetched.refresh()
        assert given(fetched) == ['pdf']
        assert server.sent - sent < 5_000

    def test_on_failure_the_last_skills_stay_and_say_so(
        self, registry: Registries, repository: Repository, server: GitServer
    ):
        fetched = registry()
        first = fetched.find()
        server.stop()
        second = fetched.refresh()
        assert second.skills == first.skills
        (message,) = messages(fetched)
        assert message.endswith(f"Couldn't connect to server. Its skills of commit {repository.head[:12]} are kept.")
        assert fetched.refresh() == second
        offline = registry()
        assert given(offline) == ['pdf']
        assert messages(offline) == [message]

    def test_a_fetch_that_fails_after_the_ref_moved_keeps_the_last_commit(
        self, registry: Registries, repository: Repository, server: GitServer
    ):
        given(registry())
        repository.skill('new')
        repository.commit()
        server.dies_after = 30
        late = registry()
        assert given(late) == ['pdf']
        assert 'git fetch failed' in messages(late)[0]
        server.dies_after = None
        late.refresh()
        assert given(late) == ['new', 'pdf']
        assert late.problems == []

    def test_a_first_failure_is_told_and_a_later_refresh_mends_it(self, registry: Registries, server: GitServer):
        server.password = 'a:b'
        fetched = registry()
        with pytest.raises(SkillRegistryError, match='give a token as token='):
            fetched.get_skills()
        assert fetched.latest is not None
        assert fetched.latest.skills == ()
        asked = len(server.requests)
        fetched.find()
        assert len(server.requests) == asked
        server.password = None
        fetched.refresh()
        assert given(fetched) == ['pdf']

    def test_reloading_a_toolset_asks_the_server_only_on_request(
        self, registry: Registries, repository: Repository, server: GitServer
    ):
        toolset = SkillsToolset(registries=[registry()], auto_reload=True)
        assert list(toolset.skills) == ['pdf']
        repository.skill('new')
        repository.commit()
        asked = len(server.requests)
        toolset.reload()
        assert (list(toolset.skills), len(server.requests)) == (['pdf'], asked)
        toolset.reload(include_registries=True)
        assert list(toolset.skills) == ['new', 'pdf']

    def test_in_the_background_it_refreshes_until_it_is_closed_or_gone(
        self, registry: Registries, repository: Repository, server: GitServer
    ):
        fetched = registry(refresh_interval=0.05)
        toolset = SkillsToolset(registries=[fetched])
        assert list(toolset.skills) == ['pdf']
        repository.skill('new')
        repository.commit()
        deadline = time.monotonic() + 120
        while list(toolset.skills) == ['pdf'] and time.monotonic() < deadline:
            time.sleep(0.02)
            toolset.reload()
        assert list(toolset.skills) == ['new', 'pdf']
        fetched.close()
        other = registry(refresh_interval=0.05)
        other.find()
        del other, fetched, toolset
        gc.collect()
        while any(thread.name == 'pydantic-ai-skills-refresh' for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        asked = len(server.requests)
        time.sleep(0.3)
        assert len(server.requests) == asked


class TestOffline:
    def test_a_cached_commit_needs_no_network(self, registry: Registries, repository: Repository, server: GitServer):
        pinned = repository.head
        given(registry(ref=pinned))
        server.stop()
        again = registry(ref=pinned)
        assert given(again) == ['pdf']
        assert again.problems == []

    def test_offline_uses_what_is_there_and_complains_about_nothing(self, registry: Registries, server: GitServer):
        given(registry())
        asked = len(server.requests)
        offline = registry(offline=True)
        assert given(offline) == ['pdf']
        assert offline.problems == []
        assert len(server.requests) == asked

    def test_offline_with_nothing_there_is_a_failure(self, registry: Registries, repository: Repository):
        with pytest.raises(SkillRegistryError, match='was never fetched, and offline=True forbids it now'):
            registry(offline=True).get_skills()
        with pytest.raises(SkillRegistryError, match='is not in the cache, and offline=True'):
            registry(offline=True, ref=repository.head).get_skills()

    def test_two_registries_share_one_checkout(self, registry: Registries, cache: Path, server: GitServer):
        first = registry().get_skills()[0]
        sent = server.sent
        second = registry().get_skills()[0]
        assert first.path == second.path
        assert server.sent - sent < 1_000

    def test_a_cache_that_cannot_be_written_can_be_read(
        self, registry: Registries, cache: Path, monkeypatch: pytest.MonkeyPatch
    ):
        given(registry())

        def refuse(*args: Any, **options: Any) -> None:
            raise PermissionError(13, 'Permission denied', str(cache))

        monkeypatch.setattr(Path, 'mkdir', refuse)
        fetched = registry()
        assert given(fetched) == ['pdf']
        assert messages(fetched)[0].startswith(f'{cache} cannot be written: Permission denied.')
        with pytest.raises(SkillRegistryError, match='cannot be written: Permission denied'):
            registry(path='skills').get_skills()


class TestCredentials:
    def test_a_token_opens_a_private_repository(self, registry: Registries, server: GitServer):
        server.password = 'x-access-token:secret'
        assert given(registry(token='secret')) == ['pdf']
        assert given(registry(token=SecretStr('secret'))) == ['pdf']
        server.password = 'ci:secret'
        assert given(registry(token=lambda: 'secret', token_user='ci', path='skills')) == ['pdf']

    def test_a_token_can_be_in_a_variable(
        self, registry: Registries, server: GitServer, monkeypatch: pytest.MonkeyPatch
    ):
        server.password = 'x-access-token:secret'
        fetched = registry(token_env='ACME_TOKEN')
        with pytest.raises(
            SkillRegistryError, match='The environment variable ACME_TOKEN, which holds the token, is not set'
        ):
            fetched.get_skills()
        monkeypatch.setenv('ACME_TOKEN', 'secret')
        fetched.refresh()
        assert given(fetched) == ['pdf']

    def test_what_one_token_fetched_is_for_that_token_only(
        self, registry: Registries, server: GitServer, repository: Repository, cache: Path, tmp_path: Path
    ):
        server.password = 'x-access-token:secret'
        assert given(registry(token='secret', target_dir=tmp_path / 'target')) == ['pdf']
        assert not [path for path in cache.rglob('*') if 'secret' in str(path)]
        for options in ({}, {'ref': repository.head}, {'target_dir': tmp_path / 'target'}):
            for token in ('other', None):
                with pytest.raises(SkillRegistryError, match='offline=True'):
                    registry(token=token, offline=True, **options).get_skills()
                refused = registry(token=token, **options)
                assert refused.find().skills == ()
                assert [problem.code for problem in refused.problems] == ['source-refused']
                with pytest.raises(SkillRegistryRefusedError):
                    registry(token=token, **options)._fetcher.check_out(None)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        server.stop()
        assert given(registry(token='secret')) == ['pdf']
        assert given(registry(token='secret', offline=True, ref=repository.head)) == ['pdf']

    def test_another_token_that_is_accepted_fetches_no_file_again(
        self, registry: Registries, server: GitServer, repository: Repository
    ):
        repository.skill('big', files={'data.md': os.urandom(100_000).hex()})
        repository.commit()
        given(registry(token='first'))
        sent = server.sent
        assert given(registry(token='second')) == ['big', 'pdf']
        assert server.sent - sent < 5_000

    def test_a_token_that_is_refused_later_gets_nothing_more(
        self, registry: Registries, server: GitServer, repository: Repository
    ):
        server.password = 'x-access-token:secret'
        fetched = registry(token='secret')
        kept = fetched.cached(ttl=0)
        toolset = SkillsToolset(registries=[kept])
        assert list(toolset.skills) == ['pdf']
        server.password = 'x-access-token:changed'
        toolset.reload(include_registries=True)
        assert (list(toolset.skills), fetched.find().skills) == ([], ())
        (problem,) = toolset.problems
        assert (problem.code, 'was not accepted' in problem.message) == ('source-refused', True)
        pinned = registry(token='secret', ref=repository.head)
        for options in ({'offline': True}, {}):
            again = registry(token='secret', **options)
            assert [problem.code for problem in again.problems] == ['source-refused']
            assert [problem.code for problem in pinned.problems] == ['source-refused']
        server.password = 'x-access-token:secret'
        pinned.refresh()
        assert (given(pinned), pinned.problems) == (['pdf'], [])
        server.stop()
        assert given(registry(token='secret')) == ['pdf']

    def test_after_a_refusal_an_outage_brings_nothing_back(
        self, registry: Registries, server: GitServer, repository: Repository
    ):
        assert given(registry()) == ['pdf']
        server.password = 'a:b'
        assert registry().find().skills == ()
        server.stop()
        late = registry()
        assert late.find().skills == ()
        assert 'refused the credentials when it was last asked, and now: ' in messages(late)[0]
        assert 'connect to server' in messages(late)[0]

    def test_a_repository_that_a_server_hides_is_refused_to_a_token(self, registry: Registries, server: GitServer):
        assert given(registry(token='secret')) == ['pdf']
        server.root = server.root.parent
        refused = registry(token='secret')
        assert [problem.code for problem in refused.problems] == ['source-refused']

    def test_a_key_file_and_unsafe_options_are_credentials_too(self, tmp_path: Path, cache: Path):
        def owner(url: str = 'git@example.com:acme/skills.git', **options: Any) -> str:
            registry = GitSkillsRegistry(url, cache_dir=cache, allow_unsafe_options=True, **options)
            return registry._fetcher.upstream.owner  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

        (tmp_path / 'key').write_text('one')
        first = owner(ssh_key_file=tmp_path / 'key')
        (tmp_path / 'key').write_text('two')
        second = owner(ssh_key_file=tmp_path / 'key')
        third = owner(ssh_key_file=tmp_path / 'missing')
        header = owner(clone_options=GitCloneOptions(multi_options=['-c http.extraHeader=X']))
        helper = owner(clone_options=GitCloneOptions(env={'GIT_ASKPASS': 'x', 'HTTPS_PROXY': 'y'}))
        assert len({first, second, third, header, helper, ''}) == 6
        assert owner() == owner(clone_options=GitCloneOptions(env={'HTTPS_PROXY': 'y'})) == ''
        assert owner('https://example.com/acme', ssh_key_file=tmp_path / 'key') == ''

    def test_a_variable_of_github_is_for_github(self, registry: Registries):
        with pytest.raises(SkillValidationError, match='GITHUB_TOKEN is a token for github.com'):
            registry(token_env='GITHUB_TOKEN')
        with pytest.raises(SkillValidationError, match='either token= or token_env='):
            registry(token_env='A', token='b')

    def test_a_key_is_given_to_ssh(self, tmp_path: Path, cache: Path):
        program = tmp_path / 'bin' / 'ssh'
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\nexit 1\n')
        program.chmod(0o755)
        options = GitCloneOptions(env={'PATH': f'{program.parent}:{os.environ["PATH"]}'})
        registry = GitSkillsRegistry(
            'git@example.com:acme/skills.git',
            ssh_key_file=tmp_path / 'my key',
            clone_options=options,
            allow_unsafe_options=True,
            cache_dir=cache,
        )
        with pytest.raises(SkillRegistryError, match='git ls-remote failed'):
            registry.get_skills()
        arguments = (tmp_path / 'arguments').read_text().splitlines()
        assert ['-o', 'BatchMode=yes', '-o', 'IdentitiesOnly=yes', '-i', str(tmp_path / 'my key')] == arguments[:6]


class TestWithoutGit:
    def test_without_gitpython_the_error_names_the_extra(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(sys.modules, 'git', None)
        with pytest.raises(ImportError, match=r"pip install 'pydantic-ai-skills\[git\]'"):
            GitSkillsRegistry('https://github.com/acme/skills')

    def test_without_git_there_is_a_failure_and_what_is_cached_still_serves(
        self, registry: Registries, repository: Repository, monkeypatch: pytest.MonkeyPatch
    ):
        given(registry())
        monkeypatch.setattr('git.Git.GIT_PYTHON_GIT_EXECUTABLE', '/does/not/exist')
        cached = registry()
        assert given(cached) == ['pdf']
        assert messages(cached)[0].startswith('Git cannot be started: No such file or directory.')
        monkeypatch.setitem(sys.modules, 'git', None)
        monkeypatch.setattr(git_module, 'find_spec', str)
        with pytest.raises(SkillRegistryError, match='GitPython is needed for progress'):
            registry(path='skills', progress=print).get_skills()

    def test_importing_the_package_does_not_import_what_git_needs(self):
        code = (
            'import sys, pydantic_ai_skills.registries as r; print("git" in sys.modules, '
            '"pydantic_ai_skills.registries.git" in sys.modules); r.GitSkillsRegistry; print("git" in sys.modules)'
        )
        done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
        assert done.stdout == 'False False\nFalse\n'

    def test_other_names_are_not_made_up(self):
        import pydantic_ai_skills.registries as registries

        with pytest.raises(AttributeError, match="has no attribute 'SvnRegistry'"):
            getattr(registries, 'SvnRegistry')  # noqa: B009 - that is the point


def test_seconds_are_more_than_none(registry: Registries):
    for wrong in ({'timeout': 0}, {'refresh_interval': -1}):
        with pytest.raises(SkillValidationError, match='more than 0'):
            registry(**wrong)


async def test_an_agent_with_all_three_kinds_of_source_follows_the_priority(
    registry: Registries, repository: Repository, tmp_path: Path
):
    for name in ('one', 'two', 'three'):
        repository.skill(name, 'From git.', body=f'{name} from git')
    repository.commit()
    for name in ('one', 'two'):
        write_skill(tmp_path / 'local' / name, 'From a directory.', body=f'{name} from a directory')
    toolset = SkillsToolset(
        skills=[Skill('one', 'From Python.', 'one from Python')],
        directories=[tmp_path / 'local'],
        registries=[registry(trusted=True)],
    )
    calls = [('load_skill', {'skill_name': name}) for name in ('one', 'two', 'three', 'pdf')]
    calls.append(('run_skill_script', {'skill_name': 'pdf', 'script_name': 'scripts/fill.py'}))
    scripted = ScriptedModel(calls=calls)
    await Agent(scripted.model, toolsets=[toolset]).run('Hello')
    results = [str(content) for _, outcome, content in scripted.results if outcome == 'success']
    for text, expected in zip(
        results, ('one from Python', 'two from a directory', 'three from git', 'Do it.', 'filled'), strict=True
    ):
        assert expected in text
    assert sorted(problem.code for problem in toolset.problems) == ['shadowed'] * 3


class TestAskingTheServer:
    def test_it_says_which_commit_a_ref_is_and_fetches_nothing(
        self, registry: Registries, repository: Repository, cache: Path
    ):
        assert registry(ref='main').remote_commit() == repository.head
        second = repository.commit('second')
        assert registry().remote_commit() == second
        assert not list(cache.glob('git-v1/entries/*/*'))

    def test_a_commit_is_what_it_is(self, registry: Registries, server: GitServer):
        server.stop()
        assert registry(ref='c' * 40).remote_commit() == 'c' * 40

    def test_what_goes_wrong_is_told(self, registry: Registries, server: GitServer, tmp_path: Path):
        (tmp_path / 'file').touch()
        with pytest.raises(SkillRegistryError, match='cannot be written'):
            registry(cache_dir=tmp_path / 'file').remote_commit()
        with pytest.raises(SkillRegistryError, match='nothing'):
            registry(ref='nothing').remote_commit()
        server.stop()
        with pytest.raises(SkillRegistryError, match='ls-remote failed'):
            registry().remote_commit()
