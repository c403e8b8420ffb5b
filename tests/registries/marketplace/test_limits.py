from __future__ import annotations

import json
import os

import pytest

from pydantic_ai_skills import SkillRegistryError
from tests.folders import write
from tests.registries.asked import codes, given
from tests.registries.marketplaces import GOOD, Market, bad
from tests.registries.repositories import Repository


@pytest.fixture
def market(market: Market) -> Market:
    """A marketplace with the good plugin `good`."""
    market.skill('good/skills', 'pdf')
    return market


def test_a_large_manifest_is_not_read(market: Market):
    market.publish_text(json.dumps({'plugins': [GOOD], 'x': 'x' * 10_000_000}))
    with pytest.raises(SkillRegistryError, match='at most 2,097,152 are read'):
        market().get_skills()


def test_a_large_manifest_of_a_plugin_costs_only_that_plugin(market: Market):
    write(market.main.path, {'bad/.claude-plugin/plugin.json': json.dumps({'name': 'bad', 'x': 'x' * 3_000_000})})
    market.publish({'name': 'bad', 'source': './bad'}, GOOD)
    registry = market()
    assert (given(registry), codes(registry)) == (['pdf'], ['plugin-invalid'])
    assert 'at most 2,097,152 are read' in registry.problems[0].message


def test_a_hundred_thousand_plugins_are_not_all_reported(market: Market):
    market.publish_text(json.dumps({'plugins': [GOOD, *[7] * 100_000]}))
    registry = market()
    assert given(registry) == ['pdf']
    assert len(registry.problems) == 21
    assert registry.problems[-1].message == '99,980 more plugins are left out for such reasons.'


def test_only_so_many_plugins_are_taken(market: Market):
    market.publish(GOOD, *({'name': f'p{number}', 'source': {'source': 'npm'}} for number in range(2_500)))
    registry = market()
    assert given(registry) == ['pdf']
    assert registry.problems[0].message.startswith('It has 2,501 plugins; the first 2,000 are taken.')
    assert len(registry.problems) == 22


@pytest.mark.parametrize('path', ['link', 'link/skills', 'module', 'file', 'good/skills/pdf/SKILL.md'])
def test_a_plugin_cannot_be_a_link_a_submodule_or_a_file(market: Market, path: str):
    os.symlink('good', market.main.path / 'link')
    write(market.main.path, {'file': 'x'})
    market.main.git('update-index', '--add', '--cacheinfo', f'160000,{"1" * 40},module')
    market.main.git('add', '--all', '--', ':!module')
    write(
        market.main.path,
        {'.claude-plugin/marketplace.json': json.dumps({'plugins': [{'name': 'bad', 'source': path}, GOOD]})},
    )
    market.main.git('add', '.claude-plugin')
    market.main.git('commit', '--quiet', '--message', 'links')
    registry = market()
    assert (given(registry), codes(registry)) == (['pdf'], ['plugin-invalid'])


def test_a_plugin_with_too_many_files_costs_only_itself(market: Market):
    plugin = market.repository('many')
    file = blob(plugin)
    tree = plugin.git('mktree', stdin=''.join(f'100644 blob {file}\tf{number}\n' for number in range(50_001)))
    skill = plugin.git('mktree', stdin=f'100644 blob {file}\tSKILL.md\n040000 tree {tree}\tfiles\n')
    skills = plugin.git('mktree', stdin=f'040000 tree {skill}\tx\n')
    commit = plugin.git('commit-tree', '-m', 'x', plugin.git('mktree', stdin=f'040000 tree {skills}\tskills\n'))
    plugin.git('update-ref', 'refs/heads/main', commit)
    market.publish(bad(market.url('many')), GOOD)
    registry = market()
    assert (given(registry), codes(registry)) == (['pdf'], ['plugin-failed'])
    assert 'more than 50,000 files' in registry.problems[0].message


def test_a_plugin_with_too_many_skills_costs_only_itself(market: Market):
    plugin = market.repository('many')
    skill = plugin.git('mktree', stdin=f'100644 blob {blob(plugin)}\tSKILL.md\n')
    skills = plugin.git('mktree', stdin=''.join(f'040000 tree {skill}\ts{number}\n' for number in range(50_001)))
    commit = plugin.git('commit-tree', '-m', 'x', plugin.git('mktree', stdin=f'040000 tree {skills}\tskills\n'))
    plugin.git('update-ref', 'refs/heads/main', commit)
    market.publish(bad(market.url('many')), GOOD)
    registry = market()
    assert (given(registry), codes(registry)) == (['pdf'], ['plugin-failed'])
    assert 'more than 50,000 skills' in registry.problems[0].message


def blob(repository: Repository) -> str:
    """The `SKILL.md` of a skill, as an object of the repository."""
    return repository.git('hash-object', '-w', '--stdin', stdin='---\nname: x\ndescription: X.\n---\n')
