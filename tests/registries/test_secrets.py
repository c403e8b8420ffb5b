from __future__ import annotations

import copy
import pickle

import pytest
from pydantic import SecretStr

from pydantic_ai_skills import SkillRegistryError, SkillValidationError
from pydantic_ai_skills.registries.git.address import parse_address
from pydantic_ai_skills.registries.secrets import HostSecret, TokenSource, env_token
from tests.registries.repositories import basic

GITHUB = parse_address('https://github.com/acme/skills', ('https',))
GITLAB = parse_address('https://gitlab.com/acme/skills.git', ('https',))
TOKEN = 'ghp_secret'


@pytest.mark.parametrize('token', [TOKEN, SecretStr(TOKEN), lambda: TOKEN, lambda: SecretStr(TOKEN)])
def test_a_token_is_a_header_for_its_host_only(token: TokenSource):
    assert HostSecret(token, GITHUB, None).config() == {
        'http.followRedirects': 'false',
        'http.https://github.com/.extraHeader': f'Authorization: {basic(f"x-access-token:{TOKEN}")}',
    }


def test_the_user_is_the_one_the_host_wants_or_the_one_given():
    (_, header) = HostSecret(TOKEN, GITLAB, None).config().values()
    assert header == f'Authorization: {basic(f"oauth2:{TOKEN}")}'
    (_, header) = HostSecret(TOKEN, GITLAB, 'ci').config().values()
    assert header == f'Authorization: {basic(f"ci:{TOKEN}")}'


def test_without_a_value_or_without_http_nothing_is_sent():
    assert HostSecret(lambda: None, GITHUB, None).config() == {}
    assert HostSecret(TOKEN, parse_address('git@github.com:a/b', ('ssh',)), None).config() == {}


def test_it_cannot_be_printed_pickled_or_copied_out():
    secret = HostSecret(TOKEN, GITHUB, None)
    assert repr(secret) == str(secret) == 'HostSecret(for https://github.com)'
    assert copy.deepcopy(secret) is secret
    with pytest.raises(TypeError, match='cannot be pickled'):
        pickle.dumps(secret)


def test_a_fingerprint_tells_tokens_users_and_hosts_apart_and_gives_none_away():
    secrets = [
        HostSecret(TOKEN, GITHUB, None),
        HostSecret('other', GITHUB, None),
        HostSecret(TOKEN, GITHUB, 'ci'),
        HostSecret(TOKEN, GITLAB, None),
    ]
    fingerprints = {secret.fingerprint() for secret in secrets}
    assert len(fingerprints) == 4
    assert secrets[0].fingerprint() in fingerprints
    assert TOKEN not in ''.join(fingerprints)
    assert HostSecret(lambda: None, GITHUB, None).fingerprint() == ''
    assert HostSecret(TOKEN, parse_address('git@github.com:a/b', ('ssh',)), None).fingerprint() == ''


def test_a_fixed_secret_stays_what_it_was():
    tokens = iter(['first', 'second'])
    fixed = HostSecret(lambda: next(tokens), GITHUB, None).fixed()
    assert fixed.config() == fixed.config() == HostSecret('first', GITHUB, None).config()
    assert HostSecret(lambda: None, GITHUB, None).fixed().config() == {}


def test_it_is_removed_from_text_in_either_form():
    secret = HostSecret(TOKEN, GITHUB, None)
    secret.config()
    assert secret.redact(f'{TOKEN} {basic(f"x-access-token:{TOKEN}")}') == '*** Basic ***'
    assert HostSecret(lambda: None, GITHUB, None).redact('text') == 'text'


def test_a_token_that_would_break_the_header_is_refused():
    with pytest.raises(SkillRegistryError, match='characters that are not allowed in a token'):
        HostSecret('a\nb', GITHUB, None).config()


def test_what_a_function_that_fails_says_is_not_repeated():
    def fail() -> str:
        raise LookupError(f'{TOKEN} has expired')

    with pytest.raises(SkillRegistryError, match='cannot be read: the function failed with LookupError$') as error:
        HostSecret(fail, GITHUB, None).config()
    assert error.value.__context__ is None


def test_a_variable_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch):
    read = env_token('ACME_TOKEN', GITLAB)
    assert read() is None
    monkeypatch.setenv('ACME_TOKEN', TOKEN)
    assert read() == TOKEN


def test_the_token_of_a_forge_is_for_that_forge():
    env_token('GITHUB_TOKEN', GITHUB)
    with pytest.raises(
        SkillValidationError, match=r"GITHUB_TOKEN is a token for github.com; it is not sent to 'gitlab"
    ):
        env_token('GITHUB_TOKEN', GITLAB)
