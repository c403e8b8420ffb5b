from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import obstore
import pytest
from obstore.store import AzureStore, GCSStore, HTTPStore, LocalStore, MemoryStore, S3Store

from pydantic_ai_skills import (
    FetchProgress,
    FetchSession,
    ObjectStoreSkillsRegistry,
    SkillRegistryError,
    SkillsToolset,
    SkillValidationError,
)
from pydantic_ai_skills.registries.objects.access import StoreAccess
from pydantic_ai_skills.registries.objects.upstream import ObjectUpstream
from pydantic_ai_skills.registries.store import SourceStore
from pydantic_ai_skills.registries.upstream import Deadline
from tests.conversations import converse
from tests.folders import skill_md, write_skill
from tests.registries.asked import messages, names
from tests.registries.buckets import SECRET, Buckets, BucketServer, Fault, answering

PDF = {
    'skills/pdf/SKILL.md': skill_md('pdf'),
    'skills/pdf/references/forms.md': b'# Forms\n',
    'skills/pdf/scripts/fill.py': b'print("filled")\n',
    'skills/README.md': b'Not a skill.\n',
    'other/xlsx/SKILL.md': skill_md('xlsx'),
}


@pytest.fixture
def server() -> Iterator[BucketServer]:
    server = BucketServer()
    server.put(PDF)
    yield server
    server.stop()


@pytest.fixture
def registry(server: BucketServer, tmp_path: Path) -> Buckets:
    return Buckets(server, tmp_path / 'cache')


class TestWhatIsFetched:
    def test_the_constructor_opens_nothing(self, tmp_path: Path):
        code = (
            'import sys; from pydantic_ai_skills import ObjectStoreSkillsRegistry as R; '
            'r = R("s3://acme/skills"); print(r, "obstore" in sys.modules)'
        )
        done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
        assert done.stdout == "ObjectStoreSkillsRegistry('s3://acme/skills') False\n"

    def test_skills_with_their_files_come_from_a_prefix(self, registry: Buckets, server: BucketServer):
        fetched = registry()
        (skill,) = fetched.find().skills
        assert (skill.name, [resource.name for resource in skill.resources]) == ('pdf', ['references/forms.md'])
        assert [script.name for script in skill.scripts] == ['scripts/fill.py']
        assert (fetched.find().problems, fetched.commit) == ((), fetched.remote_commit())
        assert sorted(server.gets) == sorted(key for key in PDF if key.startswith('skills/pdf/'))

    def test_each_skill_knows_where_it_comes_from(self, registry: Buckets, server: BucketServer):
        fetched = registry('')
        sources = {skill.name: skill.source for skill in fetched.find().skills}
        assert sources['xlsx'] is not None
        assert (sources['xlsx'].kind, sources['xlsx'].url) == ('objects', f's3://{server.bucket}')
        assert (sources['xlsx'].path, sources['xlsx'].trusted) == ('other/xlsx', False)

    @pytest.mark.parametrize(
        ('prefix', 'path', 'found'),
        [
            ('', '', ['pdf', 'xlsx']),
            ('', 'other', ['xlsx']),
            ('other/xlsx', '', ['xlsx']),
            ('skills/', 'pdf', ['pdf']),
            ('skill', '', []),
        ],
    )
    def test_a_prefix_and_a_path_are_folders(self, registry: Buckets, prefix: str, path: str, found: list[str]):
        assert sorted(names(registry(prefix, path=path))) == found

    def test_two_paths_of_a_store_are_two_sources_of_a_lock_file(self, registry: Buckets, tmp_path: Path):
        lock = tmp_path / 'skills.lock'
        for path in ('skills', 'other'):
            registry('', path=path).lock(lock)
        locked = [registry('', path=path, locked=True, lock_file=lock) for path in ('skills', 'other')]
        assert [(names(each), each.find().problems) for each in locked] == [(['pdf'], ()), (['xlsx'], ())]

    def test_a_prefix_without_keys_is_a_failure(self, registry: Buckets, server: BucketServer):
        assert messages(registry('nothing')) == (
            f's3://{server.bucket}/nothing has no keys; check the bucket and the prefix.'
        )

    def test_keys_without_skills_have_none(self, registry: Buckets, server: BucketServer):
        server.put({'notes/a.md': 'A'})
        assert registry('notes').find() == ((), (), '')

    def test_empty_objects_that_stand_for_folders_are_not_files(self, registry: Buckets, server: BucketServer):
        server.put({'skills/pdf/references/': '', 'skills/pdf/': '', 'skills/': ''})
        fetched = registry()
        assert (names(fetched), fetched.find().problems) == (['pdf'], ())
        assert fetched.find().skills[0].resources[0].name == 'references/forms.md'

    def test_unusual_names_are_kept(self, registry: Buckets, server: BucketServer):
        server.put({'skills/pdf/a b/ü%41+~.md': 'odd'})
        (skill,) = registry().find().skills
        assert 'a b/ü%41+~.md' in [resource.name for resource in skill.resources]

    def test_max_depth_says_how_deep_skills_are_looked_for(self, registry: Buckets):
        assert names(registry('', max_depth=1)) == []
        assert sorted(names(registry('', max_depth=2))) == ['pdf', 'xlsx']

    def test_progress_is_told_until_the_callback_fails(
        self, registry: Buckets, server: BucketServer, caplog: pytest.LogCaptureFixture
    ):
        told: list[FetchProgress] = []

        def progress(now: FetchProgress) -> None:
            told.append(now)
            if len(told) == 2:
                raise RuntimeError('no more')

        assert names(registry(progress=progress)) == ['pdf']
        assert [(now.stage, now.done, now.total) for now in told] == [
            ('Receiving objects', 1, 3),
            ('Receiving objects', 2, 3),
        ]
        assert caplog.messages == ['The progress callback failed and is not called again.']

    async def test_it_can_be_asked_where_an_event_loop_runs(self, registry: Buckets):
        toolset = SkillsToolset[Any](registries=[registry()])
        model = await converse(toolset, ('load_skill', {'skill_name': 'pdf'}))
        assert model.results[0][1] == 'success'


class TestRequests:
    def test_a_warm_start_with_a_thousand_skills_takes_a_request_for_each_thousand_keys(
        self, registry: Buckets, server: BucketServer
    ):
        server.put({f'many/s{number}/SKILL.md': skill_md(f's{number}') for number in range(1000)})
        server.put({f'many/s{number}/notes.md': f'Notes {number}' for number in range(1000)})
        assert len(names(registry('many', timeout=600))) == 1000  # 2,000 requests, perhaps on a busy machine
        assert (len(server.lists), len(server.gets)) == (2, 2000)
        server.forget_requests()
        warm = registry('many', timeout=600)
        assert len(names(warm)) == 1000
        assert (len(server.lists), len(server.gets)) == (2, 0)

        server.put({'many/s7/notes.md': 'Other notes'})
        server.forget_requests()
        warm.refresh()
        assert (len(server.lists), server.gets) == (2, ['many/s7/notes.md'])
        assert warm.find().problems == ()

    def test_nothing_new_gives_the_same_object(self, registry: Buckets, server: BucketServer):
        fetched = registry()
        found = fetched.find()
        server.put({'skills/README.md': 'Still not a skill.', **PDF})
        server.forget_requests()
        assert fetched.refresh() is found
        assert (len(server.lists), server.gets) == (1, [])

    def test_sixteen_files_are_fetched_at_once(self, registry: Buckets, server: BucketServer):
        server.put({f'skills/pdf/{number}.md': 'x' for number in range(40)})
        at_once = threading.Barrier(16, timeout=300)
        first = iter(range(16))  # the next request may come before the sixteenth of these has left the barrier
        counted: list[int] = []

        def wait_for_others(environ: WSGIEnvironment, start_response: StartResponse) -> None:
            if 'list-type' not in environ['QUERY_STRING'] and next(first, None) is not None:
                counted.append(at_once.wait())

        server.fault = wait_for_others
        assert names(registry()) == ['pdf']
        assert sorted(counted) == list(range(16))

    def test_a_file_that_was_damaged_in_the_cache_is_fetched_again(self, registry: Buckets, server: BucketServer):
        registry().find()
        (kept,) = registry.cache.rglob('forms.md')
        kept.write_text('tampered')
        server.forget_requests()
        (skill,) = registry().find().skills
        assert server.gets == ['skills/pdf/references/forms.md']
        assert skill.path is not None
        assert Path(skill.path, 'references/forms.md').read_text() == '# Forms\n'


def stalling(server: BucketServer, *, objects_only: bool = False) -> Fault:
    """A server that takes requests and says nothing."""

    def stall(environ: WSGIEnvironment, start_response: StartResponse) -> None:
        if not objects_only or 'list-type' not in environ['QUERY_STRING']:
            server.released.wait()

    return stall


class TestFaults:
    @pytest.fixture
    def fetched(self, registry: Buckets) -> ObjectStoreSkillsRegistry:
        """A registry that has a good copy."""
        fetched = registry(timeout=8)
        assert names(fetched) == ['pdf']
        return fetched

    def test_a_server_that_is_gone_leaves_the_last_good_copy(
        self, fetched: ObjectStoreSkillsRegistry, registry: Buckets, server: BucketServer
    ):
        server.stop()
        fetched.refresh()
        place = f's3://{server.bucket}/skills'
        assert names(fetched) == ['pdf']
        assert messages(fetched).startswith(f'{place} cannot be reached: the connection was refused. Its skills of')
        later = registry(timeout=8)
        assert names(later) == ['pdf']
        assert [problem.code for problem in later.find().problems] == ['source-failed']

    @pytest.mark.parametrize('objects_only', [False, True])
    def test_a_slow_server_is_waited_for_until_the_timeout(
        self, registry: Buckets, server: BucketServer, objects_only: bool
    ):
        server.fault = stalling(server, objects_only=objects_only)
        assert messages(registry(timeout=0.3)) == f's3://{server.bucket}/skills did not answer within 0.3 s (timeout).'

    def test_a_server_that_is_busy_is_told_by_its_status(
        self, fetched: ObjectStoreSkillsRegistry, server: BucketServer
    ):
        server.fault = answering(503)
        fetched.refresh()
        assert names(fetched) == ['pdf']
        assert f's3://{server.bucket}/skills answered with HTTP 503. Its skills of' in messages(fetched)

    def test_a_bucket_that_is_not_there_is_told_as_such(self, server: BucketServer, registry: Buckets):
        server.bucket = 'no-such-bucket'
        assert messages(registry()) == 's3://no-such-bucket/skills answered with HTTP 404: there is no such bucket.'

    @pytest.mark.parametrize('how', ['changed', 'deleted', 'larger', 'ignores conditions'])
    def test_an_object_that_changes_after_the_listing_spoils_the_revision(
        self, fetched: ObjectStoreSkillsRegistry, server: BucketServer, how: str
    ):
        server.put({'skills/pdf/references/forms.md': '# New forms\n'})
        before = fetched.commit

        def change_first(environ: WSGIEnvironment, start_response: StartResponse) -> None:
            if environ['PATH_INFO'].endswith('forms.md'):
                if how == 'deleted':
                    server.delete('skills/pdf/references/forms.md')
                else:
                    server.put({'skills/pdf/references/forms.md': '# Newest for\n' if how == 'changed' else 'x' * 500})
                if how == 'ignores conditions':
                    environ.pop('HTTP_IF_MATCH')

        server.fault = change_first
        fetched.refresh()
        assert (names(fetched), fetched.commit) == (['pdf'], before)
        about = "'pdf/references/forms.md' is no longer what was listed. Its skills of"
        assert f's3://{server.bucket}/skills changed while it was fetched: {about}' in messages(fetched)

        server.fault = None
        server.put({'skills/pdf/references/forms.md': '# Newest forms\n'})
        fetched.refresh()
        assert (fetched.find().problems, fetched.commit == before) == ((), False)

    def test_a_rest_that_is_longer_than_was_listed_spoils_the_revision(
        self, fetched: ObjectStoreSkillsRegistry, server: BucketServer
    ):
        server.put({'skills/pdf/references/forms.md': '# New forms\n'})
        before = fetched.commit
        ranges: list[str] = []

        def lengthen(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes] | None:
            if not environ['PATH_INFO'].endswith('forms.md'):
                return None
            asked = environ.pop('HTTP_RANGE', None)
            status, headers, body = server.ask(environ)
            if asked is None:  # hang up after three bytes, so that the rest is asked for
                start_response(status, [*headers, ('Content-Length', str(len(body))), ('Connection', 'close')])
                return [body[:3]]
            ranges.append(asked)
            about, rest = ('Content-Range', f'bytes 3-{len(body) - 1}/{len(body)}'), body[3:] + b'More.'
            start_response('206 Partial Content', [*headers, about, ('Content-Length', str(len(rest)))])
            return [rest]

        server.fault = lengthen
        fetched.refresh()
        assert ranges == ['bytes=3-11']
        assert (names(fetched), fetched.commit) == (['pdf'], before)
        assert "'pdf/references/forms.md' is no longer what was listed. Its skills of" in messages(fetched)

    @pytest.mark.parametrize('status', [401, 403])
    @pytest.mark.parametrize('objects_only', [False, True])
    def test_a_refusal_empties_the_registry(
        self, registry: Buckets, server: BucketServer, status: int, objects_only: bool
    ):
        refuse = answering(status)
        fetched = registry()
        fetched.find()
        server.put({'skills/pdf/new.md': 'New'})
        server.fault = lambda environ, start: (
            None if objects_only and 'list-type' in environ['QUERY_STRING'] else refuse(environ, start)
        )
        fetched.refresh()
        assert names(fetched) == []
        assert [problem.code for problem in fetched.find().problems] == ['source-refused']
        assert messages(fetched) == (
            f's3://{server.bucket}/skills refused the credentials (HTTP {status}). Check the credentials in the '
            'environment of the store or in store_options=.'
        )
        server.fault = answering(503)
        assert names(registry()) == []

    def test_a_key_that_is_not_a_path_is_named(self, fetched: ObjectStoreSkillsRegistry, server: BucketServer):
        server.put({'skills/../evil/SKILL.md': skill_md('evil')})
        fetched.refresh()
        assert names(fetched) == ['pdf']
        assert "has a key that is not a path: 'skills/../evil/SKILL.md'. Delete or rename it." in messages(fetched)

    def test_too_many_bytes_are_refused_before_they_are_fetched(self, registry: Buckets, server: BucketServer):
        assert messages(registry(max_bytes=10)) == (
            f's3://{server.bucket}/skills has 75 bytes of skills, at most 10 are fetched; see max_bytes=.'
        )
        assert server.gets == []

    @pytest.mark.parametrize(
        ('limit', 'message'),
        [
            ({'max_files': 2}, 'has 3 files in its skills, at most 2; name a path='),
            ({'max_keys': 3}, 'has too many or too long keys: at most 3, each of 1,024 characters; name a path='),
        ],
    )
    def test_too_many_files_are_not_fetched(
        self, server: BucketServer, tmp_path: Path, limit: dict[str, Any], message: str
    ):
        url = f's3://{server.bucket}/skills'
        access = StoreAccess(url, server.options, None, timeout=20, allow_http=True)
        upstream = ObjectUpstream(url=url, access=access, path='', max_bytes=1000, max_depth=None, **limit)
        store = SourceStore(tmp_path / 'cache', kind='objects', url=url, selection='', name='objects')
        with pytest.raises(SkillRegistryError) as raised:
            upstream.fixed().ask(FetchSession(deadline=Deadline(20), store=store))
        assert str(raised.value) == f'{url} {message}'

    def test_http_has_to_be_allowed(self, registry: Buckets):
        assert "If you trust that, say so: allowed_protocols=('http',)." in messages(registry(allowed_protocols=()))

    @pytest.mark.parametrize(
        ('options', 'message'),
        [
            ({'nonsense': 'x'}, "cannot be used: Configuration key: 'nonsense' is not valid for store 'S3'."),
            ({'client_options': {'bogus': 1}}, 'cannot be used: Invalid key: bogus.'),
            ({'endpoint': 'http://no-such-host.invalid'}, 'cannot be reached: its host is not known.'),
        ],
    )
    def test_options_that_do_not_fit_are_told(self, registry: Buckets, options: dict[str, Any], message: str):
        given = {**registry.server.options, **options}
        assert messages(registry(store_options=given)) == f's3://{registry.server.bucket}/skills {message}'


class TestCredentials:
    def test_they_come_from_the_environment_of_the_store(
        self, registry: Buckets, server: BucketServer, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv('AWS_ACCESS_KEY_ID', 'AKIDFROMENV')
        monkeypatch.setenv('AWS_SECRET_ACCESS_KEY', SECRET)
        monkeypatch.setenv('AWS_ENDPOINT_URL', server.url)
        assert names(registry(store_options={})) == ['pdf']
        assert all('Credential=AKIDFROMENV/' in sent['HTTP_AUTHORIZATION'] for sent in server.headers)

    def test_what_one_credential_fetched_is_for_that_credential_only(self, registry: Buckets, server: BucketServer):
        assert names(registry()) == ['pdf']
        other = {**server.options, 'access_key_id': 'AKIDOTHER'}
        assert names(registry(store_options=other, offline=True)) == []
        server.forget_requests()
        assert names(registry(store_options=other)) == ['pdf']
        assert (len(server.lists), server.gets) == (1, [])

    def test_another_endpoint_is_another_source(self, registry: Buckets, server: BucketServer):
        assert names(registry()) == ['pdf']
        elsewhere = {**server.options, 'endpoint': 'http://127.0.0.1:9'}
        assert names(registry(store_options=elsewhere)) == []

    def test_they_are_shown_nowhere(
        self, registry: Buckets, server: BucketServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ):
        caplog.set_level(0)
        fetched = registry()
        fetched.lock(tmp_path / 'skills.lock')
        server.fault = answering(403)
        fetched.refresh()
        shown = [repr(fetched), repr(vars(fetched)), messages(fetched), caplog.text]
        files = [path.read_bytes().decode('latin-1') for path in tmp_path.rglob('*') if path.is_file()]
        assert len(files) > 4
        assert not [text for text in [*shown, *files] if SECRET in text or 'AKIDEXAMPLE' in text]

    @pytest.mark.parametrize('options', [{'checksum_algorithm': SECRET}, {'config': {'checksum_algorithm': SECRET}}])
    def test_a_value_in_an_error_of_the_store_is_masked(
        self, server: BucketServer, registry: Buckets, options: dict[str, Any]
    ):
        text = messages(registry(store_options={**server.options, **options}))
        assert text.startswith(f's3://{server.bucket}/skills cannot be used: ')
        assert '***' in text
        assert SECRET not in text

    def test_a_registry_with_options_is_copied_and_not_pickled(self, registry: Buckets):
        fetched = registry()
        assert names(copy.deepcopy(fetched)) == ['pdf']
        with pytest.raises(TypeError, match='its credentials would be written to disk'):
            pickle.dumps(fetched)

    def test_a_registry_without_options_is_pickled(
        self, server: BucketServer, registry: Buckets, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv('AWS_ACCESS_KEY_ID', 'AKIDFROMENV')
        monkeypatch.setenv('AWS_SECRET_ACCESS_KEY', SECRET)
        monkeypatch.setenv('AWS_ENDPOINT_URL', server.url)
        pickled = pickle.dumps(registry(store_options=None))
        assert SECRET.encode() not in pickled
        assert names(pickle.loads(pickled)) == ['pdf']


class TestStores:
    def test_a_store_in_memory_is_passed_itself(self, tmp_path: Path):
        store = MemoryStore()
        obstore.put(store, 'skills/pdf/SKILL.md', skill_md('pdf').encode())
        registry = ObjectStoreSkillsRegistry(store, cache_dir=tmp_path / 'cache')
        assert (registry.url, names(registry)) == ('memory:', ['pdf'])
        obstore.put(store, 'skills/xlsx/SKILL.md', skill_md('xlsx').encode())
        registry.refresh()
        assert names(registry) == ['pdf', 'xlsx']
        registry.lock(tmp_path / 'skills.lock')
        options: dict[str, Any] = {'cache_dir': tmp_path / 'cache', 'lock_file': tmp_path / 'skills.lock'}
        assert names(ObjectStoreSkillsRegistry(store, locked=True, **options)) == ['pdf', 'xlsx']
        assert names(copy.deepcopy(registry)) == ['pdf', 'xlsx']

    def test_two_stores_in_memory_are_told_apart(self, tmp_path: Path):
        found: list[str] = []
        for text in ('One.', 'Two.'):
            store = MemoryStore()
            obstore.put(store, 'pdf/SKILL.md', skill_md('pdf', text).encode())
            (skill,) = ObjectStoreSkillsRegistry(store, cache_dir=tmp_path / 'cache').find().skills
            found.append(skill.description)
        assert found == ['One.', 'Two.']

    def test_a_store_of_ones_own_is_used_as_it_is(self, server: BucketServer, tmp_path: Path):
        store = S3Store(server.bucket, prefix='skills', client_options={'allow_http': True}, **server.options)
        registry = ObjectStoreSkillsRegistry(store, cache_dir=tmp_path / 'cache')
        assert (registry.url, names(registry)) == (f's3://{server.bucket}/skills', ['pdf'])
        with pytest.raises(TypeError, match='cannot be pickled'):
            pickle.dumps(registry)

    def test_a_folder_is_read_without_links(self, tmp_path: Path):
        outside = write_skill(tmp_path / 'outside/secret')
        folder = write_skill(tmp_path / 'skills/pdf').parent
        (folder / 'pdf' / 'link.md').symlink_to(outside / 'SKILL.md')
        (folder / 'secret').symlink_to(outside)
        options: dict[str, Any] = {'cache_dir': tmp_path / 'cache'}
        registries = [
            ObjectStoreSkillsRegistry(folder, **options),
            ObjectStoreSkillsRegistry(LocalStore(folder), **options),
            ObjectStoreSkillsRegistry(folder.as_uri(), allowed_protocols=('file',), **options),
        ]
        for registry in registries:
            assert (registry.kind, registry.url, names(registry)) == ('objects', folder.as_uri(), ['pdf'])
            assert [problem.code for problem in registry.find().problems] == ['file-link']

    @pytest.mark.parametrize(
        ('store', 'url'),
        [
            (GCSStore('acme', prefix='a/b', skip_signature=True), 'gs://acme/a/b'),
            (GCSStore('acme', skip_signature=True), 'gs://acme'),
            (AzureStore('box', account_name='acme', account_key='aGVsbG8='), 'az://box'),
        ],
    )
    def test_other_stores_have_addresses_too(self, store: Any, url: str):
        assert ObjectStoreSkillsRegistry(store).url == url

    @pytest.mark.parametrize(
        ('url', 'message'),
        [
            ('https://example.com/x', "'https' is not a kind of object store. Write s3://bucket/prefix, gs://"),
            ('skills', "'' is not a kind of object store"),
            ('memory://', 'A store in memory has no address. Pass the store itself'),
            (f's3://{SECRET}@acme/x', 'The s3:// URL has a user, a password, a query or a fragment in it'),
            (f'az://acme/x?sig={SECRET}', 'The az:// URL has a user, a password, a query or a fragment in it'),
            ('s3:///x', 'The s3:// URL names no bucket'),
            ('gs://acme/a/../b', 'is not a folder in the source'),
            ('file:///skills', "'file' is not among the allowed protocols"),
            (HTTPStore('https://example.com'), 'HTTPStore is not a store that can list its skills. Pass an S3Store'),
            (LocalStore(), 'LocalStore is not a store that can list its skills'),
            (3, 'int is not a store that can list its skills'),
        ],
    )
    def test_other_addresses_are_refused(self, url: Any, message: str):
        with pytest.raises(SkillValidationError) as raised:
            ObjectStoreSkillsRegistry(url)
        assert message in str(raised.value)
        assert SECRET not in str(raised.value)

    def test_a_path_that_leads_elsewhere_is_refused(self):
        with pytest.raises(SkillValidationError, match='is not a folder in the source'):
            ObjectStoreSkillsRegistry('s3://acme', path='../x')

    def test_without_obstore_the_error_names_the_extra(self, monkeypatch: pytest.MonkeyPatch):
        missing: dict[str, None] = {}
        monkeypatch.setattr('pydantic_ai_skills.registries.objects.registry.find_spec', missing.get)
        with pytest.raises(ImportError, match=r"pip install 'pydantic-ai-skills\[objects\]'"):
            ObjectStoreSkillsRegistry('s3://acme')

    def test_stores_with_weak_etags_go_by_time(self, server: BucketServer, registry: Buckets):
        server.fault = with_weak_etags(server)
        fetched = registry()
        assert (names(fetched), messages(fetched)) == (['pdf'], '')
        assert {sent.get('HTTP_IF_MATCH') for sent in server.headers} == {None}
        assert sum('HTTP_IF_UNMODIFIED_SINCE' in sent for sent in server.headers) == 3
        server.forget_requests()
        assert names(registry()) == ['pdf']
        assert (len(server.lists), server.gets) == (1, [])


def with_weak_etags(server: BucketServer) -> Fault:
    """A server that gives weak ETags only."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        status, headers, body = server.ask(environ)
        body = body.replace(b'<ETag>"', b'<ETag>W/"')
        weak = [(name, f'W/{value}' if name.lower() == 'etag' else value) for name, value in headers]
        start_response(status, [*weak, ('Content-Length', str(len(body)))])
        return [body]

    return answer


class TestArchives:
    @pytest.fixture
    def archive(self) -> bytes:
        written = BytesIO()
        with zipfile.ZipFile(written, 'w') as zipped:
            zipped.writestr('office/pdf/SKILL.md', skill_md('pdf'))
            zipped.writestr('home/garden/SKILL.md', skill_md('garden'))
        return written.getvalue()

    def test_an_archive_is_one_object(self, registry: Buckets, server: BucketServer, archive: bytes, tmp_path: Path):
        server.put({'packed/all.zip': archive})
        fetched = registry('packed/all.zip')
        assert names(fetched) == ['garden', 'pdf']
        assert (server.lists, server.gets) == ([], ['packed/all.zip'])
        assert names(registry('packed/all.zip', path='office')) == ['pdf']
        server.forget_requests()
        assert names(registry('packed/all.zip')) == ['garden', 'pdf']
        assert server.gets == []
        fetched.lock(tmp_path / 'skills.lock')
        locked = registry('packed/all.zip', locked=True, lock_file=tmp_path / 'skills.lock', path='home')
        assert (names(locked), locked.find().problems) == (['garden'], ())

    @pytest.mark.parametrize(
        ('content', 'options', 'message'),
        [
            (b'not an archive', {}, 'is not an archive of a kind that is read'),
            (b'PK\3\4broken', {}, 'all.skill '),
            (None, {}, 'answered with HTTP 404: there is no such object'),
            (b'x' * 50, {'max_bytes': 10}, 'has 50 bytes of skills, at most 10 are fetched'),
        ],
    )
    def test_a_bad_archive_is_a_problem(
        self, registry: Buckets, server: BucketServer, content: bytes | None, options: Any, message: str
    ):
        if content is not None:
            server.put({'packed/all.skill': content})
        fetched = registry('packed/all.skill', **options)
        assert names(fetched) == []
        assert message in messages(fetched)

    def test_an_archive_that_changes_meanwhile_leaves_the_last_copy(
        self, registry: Buckets, server: BucketServer, archive: bytes
    ):
        server.put({'packed/all.zip': archive})
        fetched = registry('packed/all.zip')
        assert names(fetched) == ['garden', 'pdf']
        server.put({'packed/all.zip': b'half'})
        fetched.refresh()
        assert names(fetched) == ['garden', 'pdf']
        assert [problem.code for problem in fetched.find().problems] == ['source-failed']
