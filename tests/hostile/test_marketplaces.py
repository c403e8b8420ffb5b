"""Hostile marketplaces and plugins: what they list, name and link to is a stranger's text (cases 27 to 33)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import SkillRegistryError
from tests.folders import write
from tests.registries.asked import codes, given
from tests.registries.marketplaces import GOOD, SCHEMA, Market, bad
from tests.registries.repositories import GitServer

from .conftest import Scoreboard


@pytest.fixture
def market(tmp_path: Path) -> Iterator[Market]:
    """A marketplace with the good plugin `good`."""
    server = GitServer(tmp_path / 'repos')
    market = Market(server, tmp_path / 'cache')
    market.skill('good/skills', 'pdf')
    yield market
    server.stop()


def git_subdir(path: str) -> dict[str, Any]:
    return {'name': 'bad', 'source': {'source': 'git-subdir', 'url': 'https://example.com/a', 'path': path}}


@pytest.mark.parametrize(
    'entry',
    [
        *({'name': 'bad', 'source': path} for path in ('../x', './a/../../x', '/tmp', '~/x', 'a\\..\\b', 'a\nb', '-x')),
        *(git_subdir(path) for path in ('../x', '/tmp', 'a/../../b', ':(exclude)a')),
        *({'name': 'bad', 'source': './good', 'skills': [path]} for path in ('../x', '/tmp', '~', 'a/../../x')),
        *(
            bad(address)
            for address in (
                'ext::sh -c touch% owned',
                'file:///tmp/x',
                '/tmp/x',
                './x',
                '../x',
                '~/x',
                'git://example.com/a',
                'ssh://git@example.com/a',
                'git@example.com:a/b',
                'https://user:s3cret@example.com/a',
                'https://example.com/a?token=s3cret',
                '--upload-pack=touch owned',
                '-oProxyCommand=touch:x',
                'https://example.com/a\n--upload-pack=x',
                'https:///a',
                '',
            )
        ),
        bad('https://example.com/a', ref='--upload-pack=x'),
        bad('https://example.com/a', sha='--upload-pack=x'),
        *(
            {'name': name, 'source': './good'}
            for name in ('../x', 'a/b', '.git', '..', 'a\x1b[31m', 'a\0', '', 'a' * 65)
        ),
        *({'name': name, 'source': './good'} for name in (7, None, ['a'])),
        {'source': './good'},
        {'name': 'bad'},
        {'name': 'bad', 'source': {'source': {'source': 'url'}}},
        {'name': 'bad', 'source': {'source': 'github', 'repo': '../../x'}},
        {'name': 'bad', 'source': {'source': 'github', 'repo': 'https://example.com/a'}},
        'bad',
        None,
        [],
    ],
    ids=repr,
)
def test_a_hostile_entry_is_refused_without_a_request_and_costs_its_plugin_only(
    market: Market, entry: Any, tmp_path: Path, scoreboard: Scoreboard
):
    market.publish(entry, GOOD)
    registry = market(allowed_protocols=('http', 'https', 'local'))
    assert given(registry) == ['pdf']
    assert codes(registry) == ['plugin-invalid']
    shown = str(registry.problems[0])
    assert 's3cret' not in shown
    assert shown.isprintable()
    assert len(shown) < 2_000
    assert not list(tmp_path.rglob('owned'))
    assert {request.path.split('/')[1] for request in market.server.requests} == {'market'}
    scoreboard.record(27, 'entry of a marketplace', 'refused', 'refused')


def test_deep_nesting_is_refused(market: Market):
    market.publish_text('{"plugins": ' + '[' * 500_000 + ']' * 500_000 + '}')
    with pytest.raises(SkillRegistryError, match='is not JSON'):
        market().get_skills()


def test_deep_nesting_in_the_manifest_of_a_plugin_costs_that_plugin(market: Market):
    write(market.main.path, {'bad/.claude-plugin/plugin.json': '[' * 500_000, 'bad/skills/x/SKILL.md': 'x'})
    market.publish({'name': 'bad', 'source': './bad'}, GOOD)
    assert (given(market()), codes(market())) == (['pdf'], ['plugin-invalid'])


@pytest.mark.parametrize(
    'renames', [{'x': 'x'}, {'x': 'y', 'y': 'z', 'z': 'x'}, {'x': None}, {'x': ['x']}, {'x': '../y'}]
)
def test_renames_that_lead_in_circles_end(market: Market, renames: dict[str, Any]):
    market.publish(GOOD, renames=renames)
    assert codes(market(plugins=['x'])) == ['plugin-missing']


def test_links_in_plugins_are_not_followed(market: Market):
    os.symlink('/tmp', market.main.path / 'good/skills/pdf/tmp')
    os.symlink('../../../good/skills/pdf', market.main.path / 'good/skills/again')
    (market.main.path / 'm/.claude-plugin').mkdir(parents=True)
    os.symlink('../../outside.json', market.main.path / 'm/.claude-plugin/plugin.json')
    market.skill('m/skills', 'docx')
    market.publish(GOOD, {'name': 'm', 'source': './m'})
    registry = market()
    assert (sorted(given(registry)), codes(registry)) == (['docx', 'pdf'], ['file-link'])


def test_a_catalogue_that_is_a_link_is_none(market: Market):
    (market.main.path / '.claude-plugin').mkdir()
    os.symlink('../good/skills/pdf/SKILL.md', market.main.path / '.claude-plugin/marketplace.json')
    market.main.commit()
    with pytest.raises(SkillRegistryError, match='It has no manifest'):
        market().get_skills()


def test_the_manifest_of_a_plugin_cannot_reach_other_folders(market: Market):
    manifest = {'name': 'bad', 'skills': ['../good/skills']}
    write(market.main.path, {'bad/.claude-plugin/plugin.json': json.dumps(manifest)})
    market.publish({'name': 'bad', 'source': './bad'}, GOOD)
    assert (given(market()), codes(market())) == (['pdf'], ['plugin-invalid'])


def test_text_in_manifests_is_shown_without_control_characters(market: Market):
    write(market.main.path, {'bad/plugin.json': json.dumps({'$schema': SCHEMA, 'name': 'bad', '\x1b[31m' * 500: 1})})
    market.publish({'name': 'bad', 'source': './bad'}, GOOD)
    registry = market()
    assert given(registry) == ['pdf']
    assert all(str(problem).isprintable() and len(str(problem)) < 2_000 for problem in registry.problems)
