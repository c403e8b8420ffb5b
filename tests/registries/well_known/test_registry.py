from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import FetchProgress, SkillRegistryError, SkillValidationError, WellKnownSkillsRegistry
from tests.folders import skill_md
from tests.registries.asked import codes, names
from tests.registries.web_server import WebServer, make_tar, make_zip, raw, redirect, sha256, stall

INDEX = '/.well-known/agent-skills/index.json'
OLD_INDEX = '/.well-known/skills/index.json'
TRAVEL = make_zip({'SKILL.md': skill_md('travel'), 'scripts/book.py': 'print(1)\n'}, executable=('scripts/book.py',))
SKILLS = {'notes': skill_md('notes'), 'travel': TRAVEL}
Make = Callable[..., WellKnownSkillsRegistry]


@pytest.fixture
def web() -> Iterator[WebServer]:
    server = WebServer()
    server.publish(SKILLS)
    yield server
    server.stop()


@pytest.fixture
def make(web: WebServer, tmp_path: Path) -> Make:
    """Makes registries of the site, with one cache and one lock file."""

    def registry(site: str = web.url, **options: Any) -> WellKnownSkillsRegistry:
        fixed: dict[str, Any] = {'cache_dir': tmp_path / 'cache', 'lock_file': tmp_path / 'skills.lock', 'timeout': 20}
        given: dict[str, Any] = {**fixed, 'allowed_protocols': ('http', 'local'), **options}
        return WellKnownSkillsRegistry(site, **given)

    return registry


def message(registry: WellKnownSkillsRegistry) -> str:
    (problem,) = registry.find().problems
    return problem.message


def test_a_site_is_asked_when_the_skills_are_needed(make: Make, web: WebServer):
    registry = make(f'{web.url}/')
    assert web.requests == []
    assert (names(registry), codes(registry), registry.url) == (['notes', 'travel'], [], web.url)
    assert web.paths[0] == INDEX
    travel = registry.get_skills()[1]
    assert travel.path is not None
    assert (Path(travel.path) / 'scripts/book.py').stat().st_mode & 0o111
    source = travel.source
    assert source is not None
    assert (source.kind, source.path, source.commit, source.trusted) == ('well-known', 'travel', registry.commit, False)


def test_only_skills_that_have_changed_are_downloaded_again(make: Make, web: WebServer):
    registry = make()
    registry.find()
    first = registry.commit
    web.requests.clear()
    assert make().find().problems == ()
    assert web.paths == [INDEX]
    web.publish({**SKILLS, 'notes': skill_md('notes', 'Writes notes.')})
    web.requests.clear()
    registry.refresh()
    assert web.paths == [INDEX, '/.well-known/agent-skills/notes/SKILL.md']
    assert registry.commit != first
    assert [skill.description for skill in registry.get_skills()] == ['Writes notes.', 'Does things.']


def test_a_skill_that_was_renamed_or_came_back_is_taken_from_the_cache(make: Make, web: WebServer):
    web.publish({'notes': skill_md('notes'), 'travel': make_tar({'t/SKILL.md': skill_md('travel'), 't/.git/x': 'x'})})
    before = make().find()
    web.publish({'notes': skill_md('notes')})
    assert names(make()) == ['notes']
    web.publish({'notes': skill_md('notes'), 'trips': make_tar({'t/SKILL.md': skill_md('travel'), 't/.git/x': 'x'})})
    web.requests.clear()
    after = make().find()
    assert web.paths == [INDEX]
    assert [problem.code for problem in before.problems] == ['file-link']
    assert sorted(problem.code for problem in after.problems) == ['file-link', 'name-mismatch']


def test_a_damaged_cache_is_not_reused(make: Make, web: WebServer, tmp_path: Path):
    make().find()
    (file,) = tmp_path.glob('cache/well-known-v1/entries/*/*/*/notes/SKILL.md')
    file.write_text('damaged')
    assert (names(make()), codes(make())) == (['notes', 'travel'], [])
    assert file.read_text() == skill_md('notes')


@pytest.mark.parametrize('chosen', ['travel', ['travel'], {'travel'}])
def test_only_skills_that_are_named_are_fetched(make: Make, web: WebServer, chosen: Any):
    registry = make(names=chosen)
    assert (names(registry), registry.ref) == (['travel'], 'travel')
    assert web.paths == [INDEX, '/.well-known/agent-skills/travel.zip']


def test_a_name_that_the_index_does_not_have_is_a_problem(make: Make):
    registry = make(names=['travel', 'pdf'])
    assert names(registry) == ['travel']
    assert message(registry) == "The index has no skill 'pdf'. It has: notes, travel."
    with pytest.raises(SkillValidationError, match='is not a skill name'):
        make(names=['../x'])


def test_a_name_that_looks_like_a_revision_is_a_name(make: Make, web: WebServer):
    name = 'a' * 64
    web.publish({name: skill_md(name)})
    assert names(make(names=name)) == [name]


def test_the_address_may_be_that_of_an_index_or_have_a_path(make: Make, web: WebServer):
    assert names(make(f'{web.url}{INDEX}')) == ['notes', 'travel']
    web.files |= {f'/docs{path}': answer for path, answer in web.files.items()}
    assert names(make(f'{web.url}/docs/')) == ['notes', 'travel']
    assert '/docs/.well-known/agent-skills/travel.zip' in web.paths
    with pytest.raises(SkillValidationError, match='has a query in it'):
        make(f'{web.url}/?a=b')


def test_an_index_that_moved_is_the_base_of_its_urls(make: Make, web: WebServer):
    www = WebServer(dict(web.files))
    web.files = {INDEX: redirect(f'{www.url}{INDEX}')}
    registry = make(token='tok_1')
    assert names(registry) == ['notes', 'travel']
    assert [request.headers.get('Authorization') for request in web.requests] == ['Bearer tok_1']
    assert all('Authorization' not in request.headers for request in www.requests)
    www.stop()


# --- Version 0.1.0 ------------------------------------------------------------------------------------------------


def publish_old(web: WebServer, **changes: Any) -> None:
    entry = {'name': 'notes', 'description': 'x', 'files': ['SKILL.md', 'references/a b.md'], **changes}
    web.files = {
        '/.well-known/skills/notes/SKILL.md': skill_md('notes').encode(),
        '/.well-known/skills/notes/references/a%20b.md': b'# Forms',
    }
    web.index({'skills': [entry]}, 'skills')


def test_an_index_of_version_0_1_0_lists_files(make: Make, web: WebServer):
    publish_old(web)
    registry = make()
    assert (names(registry), codes(registry)) == (['notes'], [])
    assert sorted(web.paths[:2]) == sorted([INDEX, OLD_INDEX])
    assert [resource.name for resource in registry.get_skills()[0].resources] == ['references/a b.md']
    first = registry.commit
    registry.refresh()
    assert registry.commit == first
    web.files['/.well-known/skills/notes/references/a%20b.md'] = b'# Others'
    registry.refresh()
    assert registry.commit != first


def test_files_may_have_digests_as_in_an_earlier_draft(make: Make, web: WebServer):
    publish_old(web)
    texts = {'SKILL.md': skill_md('notes').encode(), 'references/a b.md': b'# Forms'}
    publish_old(web, files=[{'path': path, 'digest': f'sha256:{sha256(text)}'} for path, text in texts.items()])
    registry = make()
    assert (names(registry), codes(registry)) == (['notes'], [])
    web.requests.clear()
    assert names(make()) == ['notes']
    assert web.paths == [INDEX, OLD_INDEX]
    publish_old(web, files=[{'path': 'SKILL.md', 'digest': f'sha256:{"0" * 64}'}])
    registry.refresh()
    assert (names(registry), codes(registry)) == (['notes'], ['source-failed'])
    assert 'not that of the index. The skill from before is kept.' in message(registry)


@pytest.mark.parametrize(
    'files',
    [
        [{'path': 'SKILL.md', 'digest': 'md5:x'}],
        [{'digest': f'sha256:{"0" * 64}'}],
        None,
        [],
        'SKILL.md',
        ['notes.md'],
        ['SKILL.md', 'SKILL.md'],
        ['SKILL.md', '../x'],
        ['SKILL.md', '/x'],
        ['SKILL.md', 'a\\b'],
        ['SKILL.md', 7],
        ['SKILL.md', ''],
        ['SKILL.md', '\u202e'],
        ['SKILL.md', *(f'{number}' for number in range(512))],
    ],
)
def test_a_list_of_files_that_cannot_be_used_costs_its_skill(make: Make, web: WebServer, files: Any):
    publish_old(web, files=files)
    assert (names(make()), codes(make())) == ([], ['skill-unavailable'])
    assert web.paths[-1] == OLD_INDEX


def test_an_older_index_is_read_only_if_there_is_no_other(make: Make, web: WebServer):
    publish_old(web)
    web.files[INDEX] = lambda handler: handler.say(500)
    assert 'answered 500' in message(make())
    assert web.paths == [INDEX]


def test_a_file_that_is_missing_costs_its_skill(make: Make, web: WebServer):
    publish_old(web, files=['SKILL.md', 'missing.md'])
    assert 'gave no skill. notes: ' in message(make())


# --- What an index may be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('index', 'why'),
    [
        (b'<html>', 'it is not valid JSON'),
        (b'[' * 100_000, 'it is not valid JSON'),
        (b'[]', "it has no list 'skills'"),
        (b'{"skills": {}}', "it has no list 'skills'"),
        (b'{"$schema": "https://schemas.agentskills.io/discovery/0.9.0/schema.json"}', 'a version that is not known'),
        (b'{"$schema": 2, "skills": []}', 'a version that is not known'),
        (json.dumps({'skills': [{}] * 5_001}).encode(), 'lists 5,001 skills, at most 5,000 are read'),
        (b' ' * (4 * 1024 * 1024 + 1), 'sends more than 4,194,304 bytes'),
    ],
)
def test_what_is_not_an_index_is_an_error(make: Make, web: WebServer, index: bytes, why: str):
    web.files[INDEX] = index
    registry = make()
    assert codes(registry) == ['source-failed']
    assert why in message(registry)


def test_an_index_without_skills_is_fine(make: Make, web: WebServer):
    web.publish({})
    assert make().find() == ((), (), '')


@pytest.mark.parametrize(
    ('change', 'why'),
    [
        ({'type': 'wasm'}, "Its type 'wasm' is not known; skill-md and archive are."),
        ({'type': None}, "Its 'type' is missing, or not a text."),
        ({'digest': 'md5:x'}, "Its digest is not 'sha256:' and 64 hexadecimal digits."),
        ({'digest': f'sha256:{"0" * 64}'}, 'not that of the index'),
        ({'name': '../evil'}, 'is not a skill name'),
        ({'name': 'notes'}, 'The index lists it twice; the first entry is used.'),
        ({'name': 7}, "Its 'name' is missing, or not a text."),
        ({'url': 'missing.zip'}, 'answered 404 Not Found. Check the address.'),
        ({'url': 'ftp://acme.example/x'}, 'is not a way to reach a web server'),
        ({'url': 'http://user:hunter2@acme.example/x'}, 'has a user, a password'),
        ({'url': 'http://[::1'}, 'cannot be parsed'),
        ({'url': 'http://127.0.0.2/x'}, 'on another host, and does not begin with https://'),
        ({'url': 'https://127.0.0.1/x'}, 'is not a public address'),
        ({'url': 'https://169.254.169.254/x'}, 'hands out credentials of a cloud'),
    ],
)
def test_an_entry_that_cannot_be_used_does_not_hide_the_others(
    make: Make, web: WebServer, change: dict[str, Any], why: str
):
    web.publish(SKILLS, travel=change)
    registry = make()
    found = registry.find()
    assert (names(registry), [problem.code for problem in found.problems]) == (['notes'], ['skill-unavailable'])
    assert why in message(registry)
    assert 'hunter2' not in message(registry)


def test_an_entry_that_is_no_object_does_not_hide_the_others(make: Make, web: WebServer):
    web.publish(SKILLS)
    content = web.files[INDEX]
    assert isinstance(content, bytes)
    index = json.loads(content)
    index['skills'].insert(0, 'junk')
    web.index(index)
    registry = make()
    assert (names(registry), message(registry)) == (['notes', 'travel'], 'The entry is not an object.')
    assert registry.find().problems[0].path.endswith(':skills[0]')


@pytest.mark.parametrize(
    ('data', 'why'),
    [
        (make_zip({'README.md': 'x'}), 'has no SKILL.md at its root'),
        (make_zip({'a/SKILL.md': skill_md('travel'), 'b/SKILL.md': skill_md('b')}), 'has no SKILL.md at its root'),
        (make_zip({'SKILL.md': skill_md('travel'), '../evil': 'x'}), 'which leads out of the archive'),
        (TRAVEL[:-20], 'is damaged or cut off'),
        (b'junk', 'is not an archive of a kind that is read'),
        (make_zip({'SKILL.md': skill_md('travel'), 'x': bytes(40 << 20)}), 'unpacks to more than'),
    ],
)
def test_an_archive_that_is_not_in_order_costs_its_skill(make: Make, web: WebServer, data: bytes, why: str):
    web.publish({**SKILLS, 'travel': data})
    registry = make()
    assert (names(registry), codes(registry)) == (['notes'], ['skill-unavailable'])
    assert why in message(registry)


def test_the_other_names_of_a_skill_are_a_problem(make: Make, web: WebServer):
    web.publish({'notes': skill_md('others')})
    assert codes(make()) == ['name-mismatch']


def test_a_problem_of_a_skill_that_is_not_wanted_is_not_told(make: Make, web: WebServer):
    web.publish(SKILLS, travel={'type': 'wasm'})
    assert codes(make(only='notes')) == []
    assert codes(make(only='travel')) == ['skill-missing', 'skill-unavailable']
    assert codes(make(names='notes')) == []
    assert codes(make(names='travel')) == ['skill-unavailable']


# --- Skills that cannot be got ------------------------------------------------------------------------------------


def test_a_skill_that_cannot_be_got_now_is_kept_as_it_was(make: Make, web: WebServer):
    registry = make()
    registry.find()
    web.publish({**SKILLS, 'travel': make_zip({'SKILL.md': skill_md('travel', 'Books.')})})
    good = web.files['/.well-known/agent-skills/travel.zip']
    web.files['/.well-known/agent-skills/travel.zip'] = b'not this'
    registry.refresh()
    assert (names(registry), codes(registry)) == (['notes', 'travel'], ['source-failed'])
    assert message(registry).endswith('not that of the index. The skill from before is kept.')
    web.files['/.well-known/agent-skills/travel.zip'] = good
    registry.refresh()
    assert ([skill.description for skill in registry.get_skills()], codes(registry)) == (['Does things.', 'Books.'], [])


def test_a_skill_that_is_refused_is_not_kept(make: Make, web: WebServer):
    registry = make()
    registry.find()
    web.publish({**SKILLS, 'travel': make_zip({'SKILL.md': skill_md('travel', 'Books.')})})
    web.files['/.well-known/agent-skills/travel.zip'] = lambda handler: handler.say(403)
    registry.refresh()
    assert (names(registry), codes(registry)) == (['notes'], ['skill-unavailable'])


def test_one_skill_that_stalls_does_not_hide_the_others(make: Make, web: WebServer):
    web.files['/.well-known/agent-skills/travel.zip'] = stall
    registry = make(timeout=6)
    assert (names(registry), codes(registry)) == (['notes'], ['skill-unavailable'])
    assert 'took longer than' in message(registry)


def test_a_skill_of_1_gb_does_not_hide_the_others(make: Make, web: WebServer):
    web.files['/.well-known/agent-skills/travel.zip'] = raw(b'HTTP/1.0 200 OK\r\n\r\n', repeat=b'x' * 65536)
    registry = make()
    assert (names(registry), codes(registry)) == (['notes'], ['skill-unavailable'])
    assert 'sends more than 33,554,432 bytes' in message(registry)


def test_skills_that_are_too_large_together_are_an_error(make: Make, web: WebServer):
    web.publish({f'skill-{number}': skill_md(f'skill-{number}', body='x' * 1_000) for number in range(20)})
    assert 'Its skills have more than 10,000 bytes; see max_bytes=' in message(make(max_bytes=10_000))
    assert len(names(make())) == 20


def test_when_the_site_is_gone_the_last_skills_are_used(make: Make, web: WebServer):
    make().find()
    web.stop()
    registry = make()
    assert (names(registry), codes(registry)) == (['notes', 'travel'], ['source-failed'])
    assert names(make(offline=True)) == ['notes', 'travel']


def test_a_refusal_of_the_index_empties_the_registry(make: Make, web: WebServer):
    web.token = 'tok_1'
    registry = make(token='tok_1')
    assert names(registry) == ['notes', 'travel']
    web.token = 'tok_2'
    registry.refresh()
    assert (names(registry), codes(registry)) == ([], ['source-refused'])
    assert codes(make(token='tok_1', offline=True)) == ['source-refused']


def test_problems_are_told_for_as_long_as_the_skills_are_used(make: Make, web: WebServer, tmp_path: Path):
    web.publish(SKILLS, travel={'type': 'wasm'})
    make().find()
    assert codes(make(offline=True)) == ['skill-unavailable']
    (manifest,) = tmp_path.glob('cache/well-known-v1/entries/*/*/manifest.json')
    body = manifest.read_bytes().partition(b'\n')[2].replace(b'skill-unavailable', b'from-the-future')
    manifest.write_bytes(sha256(body).encode() + b'\n' + body)
    assert codes(make(offline=True)) == ['source-failed']
    assert (names(make()), codes(make())) == (['notes'], ['skill-unavailable'])


# --- Locks --------------------------------------------------------------------------------------------------------


def test_a_lock_pins_what_the_index_says(make: Make, web: WebServer):
    registry = make()
    assert f'commit = "{registry.remote_commit()}"' in registry.lock().read_text()
    locked = make(locked=True)
    assert (names(locked), codes(locked)) == (['notes', 'travel'], [])
    web.publish({**SKILLS, 'notes': skill_md('notes', 'Writes notes.')})
    locked = make(locked=True)
    assert (names(locked), codes(locked)) == (['notes', 'travel'], ['lock-mismatch'])
    assert f'{web.url} is ' in message(locked)
    assert locked.get_skills()[0].description == 'Does things.'
    web.stop()
    assert names(make(locked=True, offline=True)) == ['notes', 'travel']


def test_without_the_locked_copy_only_skills_that_are_the_same_are_used(make: Make, web: WebServer, tmp_path: Path):
    make(cache_dir=tmp_path / 'other').lock()
    web.publish({**SKILLS, 'notes': skill_md('notes', 'Writes notes.')})
    registry = make(locked=True)
    assert names(registry) == ['travel']
    assert 'is not in the cache any more. Review the change' in ' '.join(
        each.message for each in registry.find().problems
    )
    web.stop()
    with pytest.raises(SkillRegistryError, match=r'cannot be asked now, and [0-9a-f]{12} is not in the cache'):
        make(locked=True, cache_dir=tmp_path / 'third').get_skills()


def test_each_choice_of_names_is_locked_by_itself(make: Make, tmp_path: Path):
    make(names='notes').lock()
    make(names='travel').lock()
    for name in ('notes', 'travel'):
        registry = make(names=name, locked=True)
        assert (names(registry), codes(registry)) == ([name], [])


def test_progress_is_told_in_skills(make: Make):
    told: list[FetchProgress] = []
    make(progress=told.append).find()
    assert told == [FetchProgress(stage='Fetching skills', done=number, total=2) for number in (1, 2)]
