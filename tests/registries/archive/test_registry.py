from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import ArchiveSkillsRegistry, FetchProgress, SkillRegistryError, SkillValidationError
from tests.registries.asked import codes, names
from tests.registries.web_server import (
    Handler,
    WebServer,
    make_tar,
    make_zip,
    raw,
    redirect,
    sha256,
    skill_files,
    skill_md,
)

FIRST = make_zip(skill_files('pdf', 'docx'))
SECOND = make_zip({**skill_files('pdf', 'xlsx'), 'pdf/SKILL.md': skill_md('pdf', 'Does more.')})
Make = Callable[..., ArchiveSkillsRegistry]


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer({'/skills.zip': FIRST})
    yield server
    server.stop()


@pytest.fixture
def make(web: WebServer, tmp_path: Path) -> Make:
    """Makes registries of the archive on the server, with one cache and one lock file."""

    def registry(address: str | Path = f'{web.url}/skills.zip', **options: Any) -> ArchiveSkillsRegistry:
        fixed: dict[str, Any] = {'cache_dir': tmp_path / 'cache', 'lock_file': tmp_path / 'skills.lock', 'timeout': 20}
        given: dict[str, Any] = {**fixed, 'allowed_protocols': ('http', 'local'), **options}
        return ArchiveSkillsRegistry(address, **given)

    return registry


def test_nothing_is_asked_before_the_skills_are_needed(make: Make, web: WebServer):
    registry = make()
    assert (web.requests, registry.commit) == ([], None)
    assert names(registry) == ['docx', 'pdf']
    assert web.paths == ['/skills.zip']


def test_the_revision_is_the_hash_of_the_archive_and_skills_say_where_they_are_from(make: Make, web: WebServer):
    registry = make()
    (_, skill) = registry.get_skills()
    assert registry.commit == registry.remote_commit() == sha256(FIRST)
    source = skill.source
    assert source is not None
    assert (source.kind, source.url, source.ref, source.commit) == (
        'archive',
        f'{web.url}/skills.zip',
        None,
        sha256(FIRST),
    )
    assert (source.path, source.trusted) == ('pdf', False)
    assert make(trusted=True).get_skills()[0].is_trusted


def test_an_archive_that_has_not_changed_is_not_sent_again(make: Make, web: WebServer):
    make().find()
    again = make()
    assert names(again) == ['docx', 'pdf']
    assert 'If-None-Match' not in web.requests[0].headers
    assert 'If-None-Match' in web.requests[1].headers
    web.files['/skills.zip'] = SECOND
    assert [skill.name for skill in again.refresh().skills] == ['pdf', 'xlsx']
    assert again.commit == sha256(SECOND)


def test_a_server_without_versions_is_asked_for_the_whole_archive(make: Make, web: WebServer):
    web.has_etags = False
    assert names(make()) == names(make()) == ['docx', 'pdf']
    assert [set(request.headers) & {'If-None-Match', 'If-Modified-Since'} for request in web.requests] == [set(), set()]


def test_a_cache_that_lost_the_files_is_filled_again(make: Make, web: WebServer, tmp_path: Path):
    make().find()
    (file,) = tmp_path.glob('cache/archive-v1/entries/*/*/skills/pdf/SKILL.md')
    file.write_text('damaged')
    assert (names(make()), codes(make())) == (['docx', 'pdf'], [])
    assert file.read_text() == skill_md('pdf')


def test_what_was_noted_about_a_version_is_not_believed_when_it_is_damaged(make: Make, web: WebServer, tmp_path: Path):
    make().find()
    (noted,) = tmp_path.glob('cache/archive-v1/entries/*/validators.json')
    for text in ('junk', '{"etag": "x", "revision": "../../x"}', '{"etag": 1}'):
        noted.write_text(text)
        assert names(make()) == ['docx', 'pdf']
    noted.write_text('{}')
    noted.chmod(0o666)
    assert names(make()) == ['docx', 'pdf']
    assert 'If-None-Match' not in web.requests[-1].headers


# --- Digests ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('digest', [sha256(FIRST), f'sha256:{sha256(FIRST)}', f'SHA256:{sha256(FIRST).upper()}'])
def test_a_digest_pins_the_archive_and_needs_no_network_once_it_is_cached(make: Make, web: WebServer, digest: str):
    assert names(make(digest=digest)) == ['docx', 'pdf']
    web.stop()
    registry = make(digest=digest)
    assert (names(registry), codes(registry), registry.ref) == (['docx', 'pdf'], [], sha256(FIRST))
    assert registry.remote_commit() == sha256(FIRST)


def test_another_archive_than_the_pinned_one_is_refused_before_it_is_unpacked(make: Make, web: WebServer):
    web.files['/skills.zip'] = b'PK\3\4 this would not unpack'
    registry = make(digest=sha256(FIRST))
    (problem,) = registry.find().problems
    assert problem.code == 'source-failed'
    assert f'not sha256:{sha256(FIRST)}, so it is not unpacked' in problem.message
    with pytest.raises(SkillRegistryError, match='so it is not unpacked'):
        registry.get_skills()


@pytest.mark.parametrize('digest', ['sha256:abc', 'md5:d41d8cd98f00b204e9800998ecf8427e', '', 'x' * 64])
def test_a_digest_that_is_none_is_refused(make: Make, digest: str):
    with pytest.raises(SkillValidationError, match='is not a SHA-256'):
        make(digest=digest)


# --- Locks --------------------------------------------------------------------------------------------------------


def test_a_lock_pins_the_archive_and_each_skill(make: Make, web: WebServer, tmp_path: Path):
    text = make().lock().read_text()
    assert 'kind = "archive"' in text
    assert f'commit = "{sha256(FIRST)}"' in text
    assert '"pdf" = "sha256:' in text
    registry = make(locked=True)
    assert (names(registry), codes(registry)) == (['docx', 'pdf'], [])


def test_of_an_archive_that_has_changed_the_locked_copy_is_used(make: Make, web: WebServer):
    make().lock()
    web.files['/skills.zip'] = SECOND
    registry = make(locked=True)
    assert (names(registry), codes(registry)) == (['docx', 'pdf'], ['lock-mismatch'])
    (problem,) = registry.find().problems
    assert f'skills.zip is {sha256(SECOND)[:12]} now; it was {sha256(FIRST)[:12]} when it was locked' in problem.message
    registry.lock()
    assert (names(registry), codes(registry)) == (['pdf', 'xlsx'], [])


def test_without_the_locked_copy_only_skills_that_are_the_same_are_used(make: Make, web: WebServer, tmp_path: Path):
    web.files['/skills.zip'] = make_zip({**skill_files('pdf', 'docx'), 'pdf/SKILL.md': skill_md('pdf', 'Does more.')})
    make(cache_dir=tmp_path / 'other').lock()
    web.files['/skills.zip'] = FIRST
    registry = make(locked=True)
    assert names(registry) == ['docx']
    messages = ' '.join(problem.message for problem in registry.find().problems)
    assert 'is not in the cache any more. Review the change' in messages
    assert "The skill 'pdf' in 'pdf' has changed since it was locked" in messages
    assert len(web.requests) == 2


def test_a_locked_archive_is_used_offline_and_in_another_process(make: Make, web: WebServer, tmp_path: Path):
    make().lock()
    web.stop()
    registry = make(locked=True, offline=True)
    assert (names(registry), codes(registry)) == (['docx', 'pdf'], [])
    code = (
        'from pydantic_ai_skills import ArchiveSkillsRegistry as R; import sys;'
        'r = R(sys.argv[1], locked=True, offline=True, cache_dir="cache", allowed_protocols=("http",));'
        'print([s.name for s in r.find().skills], r.find().problems)'
    )
    done = subprocess.run(
        [sys.executable, '-c', code, f'{web.url}/skills.zip'], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "['docx', 'pdf'] ()\n"


def test_a_lock_file_cannot_name_a_folder_as_a_revision(make: Make, tmp_path: Path):
    lock = make().lock()
    lock.write_text(lock.read_text().replace(sha256(FIRST), '../../elsewhere'))
    (problem,) = make(locked=True).find().problems
    assert "The lock file says '../../elsewhere', which is no revision of" in problem.message


# --- Servers that fail --------------------------------------------------------------------------------------------


def test_when_the_server_is_gone_the_last_copy_is_used(make: Make, web: WebServer):
    make().find()
    web.stop()
    registry = make()
    assert (names(registry), codes(registry)) == (['docx', 'pdf'], ['source-failed'])
    with pytest.raises(SkillRegistryError, match='cannot be reached'):
        registry.remote_commit()


def test_an_archive_that_is_broken_now_does_not_replace_the_last_copy(make: Make, web: WebServer):
    registry = make()
    assert names(registry) == ['docx', 'pdf']
    web.files['/skills.zip'] = SECOND[:-10]
    registry.refresh()
    assert (names(registry), codes(registry)) == (['docx', 'pdf'], ['source-failed'])
    web.files['/skills.zip'] = SECOND
    registry.refresh()
    assert (names(registry), codes(registry)) == (['pdf', 'xlsx'], [])


def test_an_archive_that_changes_while_it_is_fetched_is_not_used(make: Make, web: WebServer, tmp_path: Path):
    make().find()
    shutil.rmtree(next(tmp_path.glob(f'cache/archive-v1/entries/*/{sha256(FIRST)}')))

    def change(handler: Handler) -> None:
        handler.send(FIRST)  # which is known
        web.files['/skills.zip'] = SECOND

    web.files['/skills.zip'] = change
    registry = make()
    (problem,) = registry.find().problems
    assert 'changed while it was fetched. It is asked again at the next reload.' in problem.message
    registry.refresh()
    assert (names(registry), codes(registry)) == (['pdf', 'xlsx'], [])


def test_a_file_that_is_too_large_is_refused_early(make: Make, web: WebServer):
    web.files['/skills.zip'] = raw(b'HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n', repeat=b'x' * 65536)
    (problem,) = make(max_bytes=1_000_000).find().problems
    assert 'sends more than 1,000,000 bytes; see max_bytes=' in problem.message


def test_a_token_is_sent_and_a_refusal_empties_the_registry(make: Make, web: WebServer):
    web.token = 'tok_1'
    registry = make(token='tok_1')
    assert names(registry) == ['docx', 'pdf']
    web.token = 'tok_2'
    registry.refresh()
    assert (names(registry), codes(registry)) == ([], ['source-refused'])
    assert (names(make(token='tok_1', offline=True)), codes(make())) == ([], ['source-refused'])
    assert names(make(token=lambda: 'tok_2')) == ['docx', 'pdf']


def test_a_pinned_archive_is_not_served_after_a_refusal_until_the_server_accepts_again(make: Make, web: WebServer):
    web.token = 'tok_1'
    pinned = {'digest': sha256(FIRST), 'token': 'tok_1'}
    assert names(make(**pinned)) == ['docx', 'pdf']
    web.token = 'tok_2'
    assert codes(make(token='tok_1')) == ['source-refused']
    assert codes(make(**pinned)) == ['source-refused']
    web.token = 'tok_1'
    assert (names(make(**pinned)), codes(make(**pinned))) == (['docx', 'pdf'], [])


def test_a_variable_holds_the_token(make: Make, web: WebServer, monkeypatch: pytest.MonkeyPatch):
    web.token = 'tok_1'
    registry = make(token_env='ACME_TOKEN')
    (problem,) = registry.find().problems
    assert 'The environment variable ACME_TOKEN, which holds the token, is not set.' in problem.message
    monkeypatch.setenv('ACME_TOKEN', 'tok_1')
    assert [skill.name for skill in registry.refresh().skills] == ['docx', 'pdf']
    with pytest.raises(SkillValidationError, match='GITHUB_TOKEN is a token for github.com'):
        make(token_env='GITHUB_TOKEN')
    with pytest.raises(SkillValidationError, match='either token= or token_env='):
        make(token='x', token_env='ACME_TOKEN')


def test_a_redirect_is_followed_without_the_token(make: Make, web: WebServer):
    storage = WebServer({'/stored': FIRST})
    web.files['/skills.zip'] = redirect(f'{storage.url}/stored')
    assert names(make(token='tok_1')) == ['docx', 'pdf']
    assert 'Authorization' not in storage.requests[0].headers
    storage.stop()


def test_progress_is_told(make: Make):
    told: list[FetchProgress] = []
    make(progress=told.append).find()
    assert told[-1] == FetchProgress(stage='Downloading', done=len(FIRST), total=len(FIRST))


def test_an_address_that_is_not_allowed_is_refused_at_once():
    for address, why in (
        ('http://acme.example/a.zip', "'http' is not among the allowed protocols"),
        ('https://user:hunter2@acme.example/a.zip', 'has a user, a password'),
        ('https://acme.example/a.zip?token=hunter2', 'has a credential in it'),
        ('./a.zip', "'file' is not among the allowed protocols"),
        ('file:///srv/a.zip', "'file' is not among the allowed protocols"),
    ):
        with pytest.raises(SkillValidationError, match=why) as error:
            ArchiveSkillsRegistry(address)
        assert 'hunter2' not in str(error.value)
    with pytest.raises(SkillValidationError, match='is not a folder in the source'):
        ArchiveSkillsRegistry('https://acme.example/a.zip', path='../x')


# --- Files on this machine ----------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / 'office tools.skill'
    file.write_bytes(make_tar(skill_files('pdf', 'docx')))
    return file


def test_a_path_needs_no_permission_and_a_string_does(make: Make, file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(file.parent)
    local = {'allowed_protocols': ('file',)}
    for registry in (make(file), make(str(file), **local), make(f'file://{file}', **local), make(file.name, **local)):
        assert (names(registry), codes(registry), registry.url) == (['docx', 'pdf'], [], f'file://{file}')
    with pytest.raises(SkillValidationError, match='A token is for an https address'):
        make(file, token='x')


def test_a_file_is_followed_pinned_and_locked_like_one_on_the_web(make: Make, file: Path):
    registry = make(file)
    registry.lock()
    file.write_bytes(SECOND)
    registry.refresh()
    assert (names(registry), registry.remote_commit()) == (['pdf', 'xlsx'], sha256(SECOND))
    locked = make(file, locked=True)
    assert (names(locked), codes(locked)) == (['docx', 'pdf'], ['lock-mismatch'])
    assert codes(make(file, digest=sha256(FIRST))) == ['source-failed']
    file.unlink()
    assert names(make(file, digest=sha256(SECOND))) == ['pdf', 'xlsx']
    assert codes(make(file)) == ['source-failed']


@pytest.mark.parametrize('kind', ['missing', 'folder', 'pipe', 'too large'])
def test_what_is_not_a_file_of_a_sensible_size_is_an_error_at_once(make: Make, tmp_path: Path, kind: str):
    path = tmp_path / 'a.zip'
    if kind == 'folder':
        path.mkdir()
    elif kind == 'pipe':
        os.mkfifo(path)
    elif kind == 'too large':
        path.write_bytes(bytes(2_000))
    why = {
        'missing': 'cannot be read or copied: No such file',
        'folder': 'cannot be read or copied: it is not a regular file',
        'pipe': 'cannot be read or copied: it is not a regular file',
        'too large': 'has more than 1,000 bytes; see max_bytes=',
    }
    (problem,) = make(path, max_bytes=1_000).find().problems
    assert why[kind] in problem.message
