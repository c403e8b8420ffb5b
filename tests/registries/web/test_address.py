from __future__ import annotations

import pytest

from pydantic_ai_skills import SkillValidationError
from pydantic_ai_skills.registries.web.address import check_query, folder_name, parse_web_address, refusal_of


@pytest.mark.parametrize(
    ('text', 'origin', 'target', 'name'),
    [
        ('https://acme.example', 'https://acme.example', '/', 'acme.example'),
        ('https://ACME.example:443/a/office-1.2.tar.gz', 'https://acme.example', '/a/office-1.2.tar.gz', 'office-1.2'),
        ('https://acme.example:8443/get?file=a.zip', 'https://acme.example:8443', '/get?file=a.zip', 'get'),
        ('HTTPS://[2606:4700::1]/pdf.skill', 'https://[2606:4700::1]', '/pdf.skill', 'pdf'),
        ('https://acme.example/%2e%2e%2f', 'https://acme.example', '/%2e%2e%2f', 'acme.example'),
        ('https://_/', 'https://_', '/', '_'),
    ],
)
def test_an_address_has_an_origin_a_target_and_a_name_for_a_folder(text: str, origin: str, target: str, name: str):
    address = parse_web_address(text, ('https',))
    assert (address.origin, address.target, address.name) == (origin, target, name)
    assert address.url == origin + target
    assert address.shown == origin + target.partition('?')[0]


@pytest.mark.parametrize(
    ('text', 'why'),
    [
        ('http://acme.example/a.zip', r"'http' is not among the allowed protocols \['https'\].*--allow http"),
        ('ftp://acme.example/a.zip', 'not a way to reach a web server'),
        ('acme.example', 'not a way to reach a web server'),
        ('https://user:hunter2@acme.example/a', 'has a user, a password or a fragment'),
        ('https://acme.example/a#part', 'has a user, a password or a fragment'),
        ('https:///a', 'names no host'),
        ('https://acme.example:0/a', 'names no host'),
        ('https://-acme.example/a', 'names no host'),
        ('https://[fe80::1%25eth0]/a', 'names no host|cannot be parsed'),
        ('https://acme.example:99999/a', 'cannot be parsed'),
        ('https://[::1/a', 'cannot be parsed'),
        ('https://acme.example/a b', 'plain ASCII without spaces'),
        ('https://acme.example/a\r\nHost: evil', 'plain ASCII without spaces'),
        ('https://acme.example\\@evil.example/', 'plain ASCII without spaces'),
        ('https://аcme.example/', 'plain ASCII'),
        (f'https://acme.example/{"a" * 5000}', 'at most 4,096 characters'),
    ],
)
def test_what_is_not_an_address_on_the_web_is_refused_without_repeating_secrets(text: str, why: str):
    with pytest.raises(SkillValidationError, match=why) as error:
        parse_web_address(text, ('https',))
    assert 'hunter2' not in str(error.value)


@pytest.mark.parametrize('name', ['token', 'X-Amz-Signature', 'sig', 'private_token', 'apikey', 'api_key', 'password'])
def test_a_credential_in_a_query_is_refused(name: str):
    with pytest.raises(SkillValidationError, match='has a credential in it, it seems') as error:
        check_query(parse_web_address(f'https://acme.example/a.zip?ref=v1&{name}=hunter2', ('https',)))
    assert 'hunter2' not in str(error.value)


def test_another_query_is_fine():
    address = parse_web_address('https://acme.example/archive.zip?sha=v1', ('https',))
    assert check_query(address) is address


@pytest.mark.parametrize(
    ('file', 'name'), [('Office Tools.ZIP', 'Office-Tools'), ('a.tgz', 'a'), ('..', ''), ('x' * 99, 'x' * 64)]
)
def test_a_folder_is_called_like_the_archive(file: str, name: str):
    assert folder_name(file) == name


PUBLIC = ('8.8.8.8', '93.184.216.34', '2606:4700::1', '64:ff9b::8.8.8.8', '2002:808:808::1')
NOT_PUBLIC = (
    *('127.0.0.1', '10.1.2.3', '172.31.0.1', '192.168.1.1', '0.0.0.0', '100.64.0.1', '169.254.1.1', '192.0.2.1'),
    *('198.18.0.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', '192.88.99.1', '203.0.113.9'),
    *('::', '::1', '::127.0.0.1', 'fe80::1', 'fe80::1%eth0', 'fc00::1', 'fec0::1', 'ff02::1', '2001:db8::1', '100::1'),
    *('::ffff:127.0.0.1', '::ffff:8.8.8.8', '64:ff9b::10.0.0.1', '64:ff9b:1::808:808', '2002:a00:1::', '3fff::1'),
    *('2001:0:4136:e378:8000:63bf:3fff:fdd2', '2606:4700::5efe:10.0.0.1', '2606:4700::200:5efe:192.168.0.1'),
)
METADATA = (
    *('169.254.169.254', '169.254.170.2', '168.63.129.16', '100.100.100.200', 'fd00:ec2::254'),
    *('::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::'),
)


@pytest.mark.parametrize('address', PUBLIC)
def test_a_public_address_may_be_reached(address: str):
    assert refusal_of(address, local=False) is None


@pytest.mark.parametrize('address', NOT_PUBLIC)
def test_an_address_that_is_not_public_has_to_be_allowed(address: str):
    assert refusal_of(address, local=False) == f'{address} is not a public address'
    assert refusal_of(address, local=True) is None


@pytest.mark.parametrize('address', METADATA)
def test_where_clouds_hand_out_credentials_is_never_asked(address: str):
    for local in (False, True):
        assert refusal_of(address, local=local) == f'{address} hands out credentials of a cloud, and is never asked'
