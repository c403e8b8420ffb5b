from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import MarketplaceSkillsRegistry, SkillValidationError
from pydantic_ai_skills.registries.marketplace.manifests import Marketplace, MarketplaceEntry
from pydantic_ai_skills.registries.marketplace.sources import Reach, read_source
from pydantic_ai_skills.registries.marketplace.upstream import MarketplaceUpstream
from tests.registries.asked import given
from tests.registries.marketplaces import GOOD, Market, bad


@pytest.mark.parametrize('address', ['127.0.0.1', 'localhost', '[::1]', '0.0.0.0', '10.0.0.1', '169.254.169.254'])
@pytest.mark.parametrize('pin', [{}, {'sha': '1' * 40}])
def test_a_marketplace_cannot_send_us_into_private_networks(market: Market, address: str, pin: dict[str, str]):
    market.skill('good/skills', 'pdf')
    market.publish(bad(f'https://{address}/a', **pin), GOOD)
    registry = market(allowed_protocols=('http', 'https'))
    assert given(registry) == ['pdf']
    (problem,) = registry.problems
    assert problem.code == 'plugin-failed'
    assert 'is refused: ' in problem.message


def reach_of(address: str) -> Reach:
    """What a marketplace at this address may reach if the developer says nothing more."""
    upstream = MarketplaceSkillsRegistry(address)._fetcher.upstream  # pyright: ignore[reportPrivateUsage] # noqa: SLF001
    assert isinstance(upstream, MarketplaceUpstream)
    return Reach(marketplace=upstream.git, allowed=upstream.allowed)


def test_without_a_word_of_the_developer_plugins_are_reached_by_https_only(tmp_path: Path):
    reach = reach_of('git@example.com:acme/market')
    for allowed in ('https://example.org/a', 'owner/repository', 'git@example.com:acme/plugin'):
        assert reach.parse(allowed).url
    for refused in ('git@example.org:acme/plugin', 'http://example.org/a', str(tmp_path), f'file://{tmp_path}'):
        with pytest.raises(SkillValidationError, match='is not among the allowed protocols'):
            reach.parse(refused)


@pytest.mark.parametrize(
    ('url', 'settings'),
    [
        ('https://example.org/a', {'http.curloptResolve': 'example.org:443:[2001:4860:4860::8888],8.8.8.8'}),
        ('https://example.org:8443/a', {'http.curloptResolve': 'example.org:8443:[2001:4860:4860::8888],8.8.8.8'}),
        ('https://8.8.8.8/a', {}),
        ('https://[2001:4860:4860::8888]/a', {}),
        ('https://does-not-exist.invalid/a', {}),
    ],
)
def test_the_name_of_a_host_cannot_lead_elsewhere_once_it_was_looked_up(
    url: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    look_up = socket.getaddrinfo

    def answer(host: str, port: None) -> list[Any]:
        if host.endswith('.invalid'):
            raise socket.gaierror(socket.EAI_NONAME, 'Name or service not known')
        public = ('8.8.8.8', '2001:4860:4860::8888') if host == 'example.org' else (host,)
        return [info for address in public for info in look_up(address, port)]

    monkeypatch.setattr(socket, 'getaddrinfo', answer)
    reach = reach_of('acme/market')
    assert reach.git(reach.parse(url)).options.config == settings


def test_a_local_repository_has_no_host(tmp_path: Path):
    reach = Reach(marketplace=reach_of('acme/market').marketplace, allowed=frozenset({'file'}))
    git = reach.git(reach.parse(f'file://{tmp_path}'))
    assert (git.allowed, git.options.config, git.secret) == ({'file'}, {}, None)


def test_github_is_reached_by_https():
    entry = MarketplaceEntry(name='a', source={'source': 'github', 'repo': 'owner/plugin', 'ref': 'v1', 'path': 'x'})
    source = read_source(entry, Marketplace(plugins=[]), reach_of('acme/market'))
    assert (source.url, source.ref, source.paths) == ('https://github.com/owner/plugin', 'v1', ('x',))
