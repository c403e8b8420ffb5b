from __future__ import annotations

from pathlib import Path

import pytest

from pydantic_ai_skills import GitSkillsRegistry, SkillValidationError
from pydantic_ai_skills.registries.fetch_options import check_protocols
from pydantic_ai_skills.registries.git.address import check_path, check_ref, parse_address
from pydantic_ai_skills.registries.manifest import is_revision

ALL = ('file', 'http', 'https', 'ssh')


@pytest.mark.parametrize(
    ('url', 'protocol', 'origin', 'name'),
    [
        ('https://github.com/acme/skills.git', 'https', 'https://github.com', 'skills'),
        ('https://git.example.com:8443/a/b/', 'https', 'https://git.example.com:8443', 'b'),
        ('https://[::1]:8443/a', 'https', 'https://[::1]:8443', 'a'),
        ('HTTP://127.0.0.1/a.b', 'http', 'http://127.0.0.1', 'a.b'),
        ('ssh://git@github.com:22/acme/skills', 'ssh', 'ssh://github.com:22', 'skills'),
        ('git@github.com:acme/skills.git', 'ssh', 'ssh://github.com', 'skills'),
        ('github.com:acme/skills', 'ssh', 'ssh://github.com', 'skills'),
        ('file:///srv/skills.git', 'file', '', 'skills'),
        ('/srv/my skills', 'file', '', 'my-skills'),
        ('/srv/.git', 'file', '', 'repository'),
    ],
)
def test_what_a_url_means(url: str, protocol: str, origin: str, name: str):
    address = parse_address(url, ALL)
    assert (address.protocol, address.origin, address.name) == (protocol, origin, name)


def test_a_url_reaches_git_in_the_form_git_understands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert parse_address('HTTPS://github.com/a', ALL).url == 'https://github.com/a'
    assert parse_address('./here', ALL).url == f'file://{tmp_path}/here'
    assert parse_address(Path('ext::sh'), ALL).url == f'file://{tmp_path}/ext::sh'


@pytest.mark.parametrize(
    ('url', 'reason'),
    [
        ('', 'is empty'),
        ('https://github.com/a\nb', 'control characters'),
        ('https://github.com/a b', 'spaces'),
        ('--upload-pack=touch /tmp/x', 'hyphen'),
        ('ext::sh -c touch% /tmp/x', 'run a program'),
        ('fd::17', 'run a program'),
        ('::x', 'run a program'),
        ('ftp://host/a', "'ftp' is not a way"),
        ('https://user@github.com/a', 'token='),
        ('https://x:y@github.com/a', 'token='),
        ('ssh://git:pw@github.com/a', 'token='),
        ('https://github.com/a?x=1', 'token='),
        ('https://[::1/a', 'cannot be parsed'),
        ('https://github.com:port/a', 'cannot be parsed'),
        ('https:///a', 'names no host'),
        ('https://github.com/', 'names no host'),
        ('ssh://-oProxyCommand=x/a', 'names no host'),
        ('ssh://-x@host/a', 'is invalid'),
        ('file://host/a', 'no host'),
    ],
)
def test_what_is_no_url_of_a_repository(url: str, reason: str):
    with pytest.raises(SkillValidationError, match=reason) as error:
        parse_address(url, ALL)
    assert 'y@' not in str(error.value)
    assert 'pw' not in str(error.value)


@pytest.mark.parametrize('url', ['http://github.com/a', 'file:///a', '/a', 'git@github.com:a'])
def test_only_allowed_protocols_are_used(url: str):
    with pytest.raises(SkillValidationError, match="is not among the allowed protocols .'https'.. If you trust"):
        parse_address(url, ('https',))


def test_owner_and_name_are_a_repository_on_github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert parse_address('acme/skills', ('https',)).url == 'https://github.com/acme/skills'
    assert parse_address('acme/skills', ('https',)).origin == 'https://github.com'
    assert parse_address('acme/skills', ALL).url == f'file://{tmp_path}/acme/skills'
    assert GitSkillsRegistry('acme/skills').url == 'https://github.com/acme/skills'
    (tmp_path / 'acme/skills').mkdir(parents=True)
    with pytest.raises(SkillValidationError, match="'file' is not among the allowed protocols"):
        parse_address('acme/skills', ('https',))


def test_only_known_protocols_can_be_allowed():
    assert check_protocols(['https', 'file']) == {'https', 'file'}
    for wrong in (['ext'], 'https'):
        with pytest.raises(SkillValidationError, match='allowed_protocols takes'):
            check_protocols(wrong)


@pytest.mark.parametrize('ref', [None, 'main', 'v1.2', 'feature/x-y', 'refs/tags/v1', 'a' * 40, 'HEAD', 'ünïcode'])
def test_what_a_ref_is(ref: str | None):
    assert check_ref(ref) == ref


@pytest.mark.parametrize(
    'ref',
    [
        '',
        '-x',
        '--upload-pack=x',
        'a b',
        'a\nb',
        'a..b',
        'a~1',
        'a^',
        'a:b',
        'a@{1}',
        'x.lock',
        'a//b',
        '/a',
        'a/',
        '.a',
    ],
)
def test_what_no_ref_is(ref: str):
    with pytest.raises(SkillValidationError, match='not the name of a branch'):
        check_ref(ref)


def test_only_a_full_hash_is_a_commit():
    assert is_revision('0' * 40)
    assert is_revision('0' * 64)
    for other in (None, 'main', '0' * 39, 'A' * 40):
        assert not is_revision(other)


def test_what_a_path_is():
    assert [check_path(path) for path in ('', '.', 'a', './a//b/', 'a b')] == ['', '', 'a', 'a/b', 'a b']
    for path in ('/a', '../a', 'a/../b', '-x', 'a\0', 'a\n', '~/a', ':(top)a', 'a\\b'):
        with pytest.raises(SkillValidationError, match='not a folder in the source'):
            check_path(path)
