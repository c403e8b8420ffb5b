from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from pydantic_ai_skills import (
    FetchProgress,
    MarketplaceSkillsRegistry,
    SkillRegistryError,
    SkillRegistryRefusedError,
    SkillsToolset,
    SkillValidationError,
)
from tests.folders import write, write_skill
from tests.registries.asked import codes, given
from tests.registries.marketplaces import CODEX, SCHEMA, Market, folders, told
from tests.registries.repositories import GitServer, Repository, basic


def requests_to(market: Market, repository: str) -> list[str]:
    return [request.path for request in market.server.requests if request.path.startswith(f'/{repository}/')]


class TestSources:
    def test_a_path_is_a_folder_of_the_marketplace(self, market: Market):
        market.skill('plugins/office/skills', 'pdf', files={'forms.md': 'Forms.'})
        write(market.main.path, {'plugins/office/README.md': 'Not a skill.'})
        market.publish({'name': 'office', 'source': './plugins/office'})
        registry = market()
        assert (given(registry), folders(registry)) == (['pdf'], ['office/skills/pdf'])
        assert registry.get_skills()[0].files.resources[0].name == 'forms.md'
        assert codes(registry) == []

    @pytest.mark.parametrize(
        'source', ['office', './office', './plugins/office', {'source': 'local', 'path': './plugins/office'}]
    )
    def test_the_plugin_root_may_be_left_out_of_paths(self, market: Market, source: Any):
        market.skill('plugins/office/skills', 'pdf')
        market.publish({'name': 'office', 'source': source}, metadata={'pluginRoot': './plugins'})
        assert given(market()) == ['pdf']

    @pytest.mark.parametrize('kind', ['url', 'git-subdir'])
    def test_a_plugin_may_be_in_a_folder_of_another_repository(self, market: Market, kind: str):
        other = market.repository('monorepo')
        write_skill(other.path / 'tools/office/skills/pdf')
        write_skill(other.path / 'skills/not-of-the-plugin')
        other.commit()
        market.publish(
            {'name': 'office', 'source': {'source': kind, 'url': market.url('monorepo'), 'path': 'tools/office'}}
        )
        assert folders(market()) == ['office/skills/pdf']

    @pytest.mark.parametrize('pin', ['sha', 'ref'])
    def test_a_commit_pins_a_plugin_which_nobody_has_to_be_asked_for(self, market: Market, pin: str):
        plugin = market.plugin('office', 'pdf')
        source = {'source': 'url', 'url': market.url('office'), 'sha': plugin.head, 'ref': 'gone'}
        market.publish({'name': 'office', 'source': {**source, pin: plugin.head}})
        plugin.skill('newer')
        plugin.commit()
        registry = market()
        assert given(registry) == ['pdf']
        assert registry.commit == market.main.head
        before = len(requests_to(market, 'office'))
        assert market().remote_commit() == market.main.head
        assert len(requests_to(market, 'office')) == before

    def test_a_branch_is_followed_and_makes_another_revision(self, market: Market):
        plugin = market.plugin('office', 'pdf')
        plugin.git('checkout', '--quiet', '-b', 'stable')
        market.publish({'name': 'office', 'source': {'source': 'url', 'url': market.url('office'), 'ref': 'stable'}})
        registry = market()
        first = registry.find()
        assert registry.commit is not None
        assert registry.commit.endswith(market.main.head)
        plugin.skill('docx')
        plugin.commit()
        assert market().remote_commit() != registry.commit
        assert sorted(skill.name for skill in registry.refresh().skills) == ['docx', 'pdf']
        assert registry.find() is not first

    def test_a_repository_on_github_is_named_by_its_owner_and_its_name(self, market: Market):
        market.publish({'name': 'a', 'source': {'source': 'github', 'repo': 'does not/exist'}})
        assert told(market()) == [('plugin-invalid', "The 'repo' of its source is not of the form 'owner/repository'.")]

    def test_plugins_of_one_repository_and_commit_are_fetched_at_one_visit(self, market: Market):
        other = market.repository('monorepo')
        for name in ('a', 'b', 'c'):
            write_skill(other.path / f'{name}/skills' / f'skill-{name}')
        sha = other.commit()
        source = {'source': 'git-subdir', 'url': market.url('monorepo'), 'sha': sha}
        market.publish(*({'name': name, 'source': {**source, 'path': name}} for name in ('a', 'b', 'c')))
        assert given(market()) == ['skill-a', 'skill-b', 'skill-c']
        posts = [path for path in requests_to(market, 'monorepo') if path.endswith('upload-pack')]
        refs = [path for path in requests_to(market, 'monorepo') if 'info/refs' in path]
        # First the names of the files, then the files of all plugins. Git asks what there is before it fetches.
        assert (len(posts), len(refs)) == (4, 2)

    @pytest.mark.parametrize(
        ('source', 'message'),
        [
            ({'source': 'npm', 'package': 'x'}, "Its source 'npm' is not supported"),
            ({'source': 'url'}, "Its source has no 'url'"),
            ({'source': 'git-subdir', 'url': 'https://example.com/a'}, "Its source has no 'path'"),
            ({'source': 'url', 'url': 'https://example.com/a', 'path': 7}, "The 'path' of its source is not a text"),
            ({'source': 'url', 'url': 'https://example.com/a', 'ref': 7}, "The 'ref' of its source is not a text"),
            ({'source': 'url', 'url': 'https://example.com/a', 'sha': 'abc'}, 'is not a full commit'),
            ({'source': 'url', 'url': 'https://example.com/a', 'sha': 7}, 'is not a full commit'),
            ({'source': 'url', 'url': 'https://example.com/a', 'ref': '--x'}, 'is not the name of a branch'),
            ('./gone', "has no folder 'gone'"),
            (7, 'the entry is invalid'),
        ],
    )
    def test_an_entry_that_leads_nowhere_costs_its_plugin_only(self, market: Market, source: Any, message: str):
        market.skill('good/skills', 'pdf')
        market.publish({'name': 'bad', 'source': source}, {'name': 'good', 'source': './good'})
        registry = market(allowed_protocols=('http', 'https', 'local'))
        assert given(registry) == ['pdf']
        assert codes(registry) == ['plugin-invalid']
        assert message in registry.problems[0].message
        assert registry.problems[0].path.endswith(':bad')

    @pytest.mark.parametrize('name', ['../x', '.hidden', '', 'a' * 65, 'a\x1b[31m'])
    def test_an_entry_whose_name_cannot_be_shown_is_told_by_its_place(self, market: Market, name: str):
        market.skill('good/skills', 'pdf')
        market.publish({'name': 'good', 'source': './good'}, {'name': name, 'source': './good'})
        registry = market()
        (problem,) = registry.problems
        assert given(registry) == ['pdf']
        assert (problem.code, problem.path) == ('plugin-invalid', f'{registry.url}@{market.main.head[:12]}:plugins[1]')


class TestManifests:
    @pytest.mark.parametrize('file', ['.claude-plugin/plugin.json', '.codex-plugin/plugin.json'])
    def test_a_manifest_may_name_more_folders_of_skills(self, market: Market, file: str):
        market.skill('a/skills', 'usual')
        market.skill('a/more', 'one')
        market.skill('a/more', 'two')
        market.skill('a/single', 'three')
        market.skill('a/not-named', 'four')
        write(market.main.path, {f'a/{file}': json.dumps({'name': 'a', 'skills': ['./more/', './single/three']})})
        market.publish({'name': 'a', 'source': './a'})
        assert sorted(given(market())) == ['one', 'three', 'two', 'usual']

    def test_what_the_marketplace_names_is_all_it_wants(self, market: Market):
        for name in ('pdf', 'docx', 'art'):
            market.skill('skills', name)
        market.publish(
            {'name': 'office', 'source': './', 'strict': False, 'skills': ['./skills/pdf', './skills/docx']},
            {'name': 'fun', 'source': './', 'strict': False, 'skills': './skills/art'},
        )
        assert folders(market()) == ['fun/skills/art', 'office/skills/docx', 'office/skills/pdf']

    def test_without_strict_the_manifest_of_the_plugin_does_not_count(self, market: Market):
        market.skill('a/skills', 'pdf')
        market.skill('a/more', 'docx')
        write(market.main.path, {'a/.claude-plugin/plugin.json': '{broken', 'a/.mcp.json': '{}'})
        market.publish({'name': 'a', 'source': './a', 'strict': False, 'hooks': {'x': 1}})
        registry = market()
        assert given(registry) == ['pdf']
        assert told(registry) == [
            ('plugin-partly-used', 'Only the skills of plugins are used, not what else these have: a (hooks).')
        ]

    def test_only_folders_right_in_the_skills_folder_are_skills(self, market: Market):
        market.skill('a/skills', 'pdf')
        market.skill('a/skills/drafts', 'unfinished')
        market.skill('a/docs', 'example')
        market.publish({'name': 'a', 'source': './a'})
        assert given(market()) == ['pdf']

    def test_a_plugin_without_a_skills_folder_may_be_a_skill_itself(self, market: Market):
        market.skill('.', 'pdf')
        market.publish({'name': 'a', 'source': './pdf'})
        registry = market()
        assert (given(registry), folders(registry)) == (['pdf'], ['a'])

    def test_named_folders_without_skills_are_reported(self, market: Market):
        market.publish({'name': 'a', 'source': './', 'skills': ['./gone']})
        assert told(market()) == [
            ('plugin-without-skills', "It names 'gone' as skills, but no SKILL.md is there."),
            ('plugin-without-skills', 'These plugins have no skills: a.'),
        ]

    def test_an_agent_plugin_has_its_skills_in_one_folder(self, market: Market):
        market.skill('a/skills', 'pdf')
        market.skill('a/more', 'docx')
        manifest = {'$schema': SCHEMA, 'name': 'a', 'skills': './more', 'author': {'name': 'A', 'x': 1}, 'version': '1'}
        write(market.main.path, {'a/plugin.json': json.dumps(manifest), 'a/mcp.json': '{}'})
        market.publish({'name': 'a', 'source': './a'})
        registry = market()
        assert given(registry) == ['pdf']
        keys = "plugin.json has keys that Agent Plugins 1.0 does not have, which are ignored: 'author.x', 'skills'."
        assert told(registry) == [
            ('plugin-key-unknown', keys),
            ('plugin-partly-used', 'Only the skills of plugins are used, not what else these have: a (MCP servers).'),
        ]

    @pytest.mark.parametrize(
        'change',
        [
            {'$schema': None},
            {'$schema': 'https://agent-plugins.org/schemas/2.0.0/plugin.schema.json'},
            {'name': ''},
            {'name': 'A'},
            {'name': 'a--b'},
            {'name': 'a..b'},
            {'name': 'a' * 65},
            {'name': 7},
            {'version': 1},
            {'author': 'A'},
            {'author': {'name': 1}},
            {'keywords': 'pdf'},
            {'extensions': []},
        ],
    )
    def test_any_other_violation_rejects_an_agent_plugin(self, market: Market, change: dict[str, Any]):
        market.skill('a/skills', 'pdf')
        market.skill('b/skills', 'docx')
        write(market.main.path, {'a/plugin.json': json.dumps({'$schema': SCHEMA, 'name': 'a', **change})})
        market.publish({'name': 'a', 'source': './a'}, {'name': 'b', 'source': './b'})
        registry = market()
        assert (given(registry), codes(registry)) == (['docx'], ['plugin-invalid'])

    @pytest.mark.parametrize(('other', 'expected'), [('{"id": "x"}', ['docx']), ('[]', ['docx']), ('{', ['docx'])])
    def test_a_plugin_json_of_something_else_does_not_count_beside_another_manifest(
        self, market: Market, other: str, expected: list[str]
    ):
        market.skill('a/skills', 'docx')
        write(market.main.path, {'a/plugin.json': other, 'a/.claude-plugin/plugin.json': '\ufeff{"name": "a"}'})
        market.publish({'name': 'a', 'source': './a'})
        assert given(market()) == expected

    @pytest.mark.parametrize(
        ('file', 'manifest'),
        [
            ('plugin.json', {'$schema': SCHEMA, 'name': 'office'}),
            ('.claude-plugin/plugin.json', {'name': 'office'}),
            ('.codex-plugin/plugin.json', {'name': 'office', 'skills': './skills/'}),
        ],
    )
    def test_a_repository_may_be_one_plugin(self, market: Market, file: str, manifest: dict[str, Any]):
        market.skill('skills', 'pdf')
        market.publish_text(json.dumps(manifest), file)
        registry = market()
        assert (folders(registry), registry.commit) == (['office/skills/pdf'], market.main.head)

    def test_the_marketplace_of_claude_comes_before_that_of_codex_and_before_plugins(self, market: Market):
        for name in ('a', 'b'):
            market.skill(f'{name}/skills', f'skill-{name}')
        market.publish({'name': 'b', 'source': {'source': 'local', 'path': './b'}}, file=CODEX)
        write(market.main.path, {'.claude-plugin/plugin.json': '{"name": "c"}'})
        market.main.commit()
        assert given(market()) == ['skill-b']
        market.publish({'name': 'a', 'source': './a'})
        assert given(market()) == ['skill-a']

    @pytest.mark.parametrize(
        ('file', 'text', 'message'),
        [
            ('README.md', 'x', 'It has no manifest of a marketplace or plugin'),
            ('.claude-plugin/marketplace.json', '{', 'is not JSON'),
            ('.claude-plugin/marketplace.json', '[]', 'is invalid'),
            ('.claude-plugin/marketplace.json', '{"name": "a"}', 'plugins: Field required'),
            ('.claude-plugin/plugin.json', '{}', 'has no name'),
            ('plugin.json', '{}', '$schema: Field required'),
        ],
    )
    def test_a_repository_that_is_neither_fails(self, market: Market, file: str, text: str, message: str):
        market.publish_text(text, file)
        with pytest.raises(SkillRegistryError) as caught:
            market().get_skills()
        assert message in str(caught.value)


class TestSelection:
    def test_only_the_named_plugins_are_fetched(self, market: Market):
        market.plugin('a', 'skill-a')
        market.plugin('b', 'skill-b')
        market.publish(*({'name': name, 'source': {'source': 'url', 'url': market.url(name)}} for name in ('a', 'b')))
        assert given(market(plugins='b')) == ['skill-b']
        assert requests_to(market, 'a') == []
        assert given(market(plugins=['a', 'b'])) == ['skill-a', 'skill-b']

    def test_a_plugin_that_is_not_there_is_a_problem_that_lists_the_closest(self, market: Market):
        market.skill('office/skills', 'pdf')
        market.publish({'name': 'art', 'source': './art'}, {'name': 'office', 'source': './office'})
        registry = market(plugins=['offices', 'office'])
        assert given(registry) == ['pdf']
        assert told(registry) == [('plugin-missing', "There is no plugin 'offices'. The plugins are: 'office', 'art'.")]

    def test_a_renamed_plugin_keeps_the_name_it_was_asked_for_by(self, market: Market):
        market.skill('office/skills', 'pdf')
        market.publish({'name': 'office', 'source': './office'}, renames={'old': 'older', 'older': 'office', 'x': 7})
        assert folders(market(plugins=['old'])) == ['old/skills/pdf']
        assert codes(market(plugins=['x'])) == ['plugin-missing']

    @pytest.mark.parametrize('plugins', ['', '../a', ['a', 'b/c'], ['a\n'], 'a' * 65, '.hidden'])
    def test_names_that_no_plugin_can_have_are_refused_at_once(self, plugins: Any):
        with pytest.raises(SkillValidationError, match='plugins has'):
            MarketplaceSkillsRegistry('acme/market', plugins=plugins)

    def test_of_two_plugins_with_one_name_the_first_is_used(self, market: Market):
        market.skill('a/skills', 'one')
        market.skill('b/skills', 'two')
        market.publish({'name': 'x', 'source': './a'}, {'name': 'x', 'source': './b'})
        registry = market()
        assert given(registry) == ['one']
        assert told(registry) == [('plugin-invalid', "There are two plugins 'x'; the first one is used.")]

    def test_what_plugins_have_besides_skills_is_told_once(self, market: Market):
        for number in range(22):
            market.skill(f'p{number:02}/skills', f's{number:02}')
            write(market.main.path, {f'p{number:02}/commands/go.md': 'Go.', f'p{number:02}/hooks/hooks.json': '{}'})
        write(market.main.path, {'p00/.claude-plugin/plugin.json': '{"name": "p00", "mcpServers": {"x": {}}}'})
        market.publish(*({'name': f'p{number:02}', 'source': f'./p{number:02}'} for number in range(22)))
        (problem,) = market().problems
        assert problem.code == 'plugin-partly-used'
        assert 'p00 (MCP servers, commands, hooks), p01 (commands, hooks)' in problem.message
        assert problem.message.endswith('p19 (commands, hooks) and 2 more.')


class TestNames:
    def test_skills_that_would_clash_get_the_name_of_their_plugin_before_theirs(self, market: Market):
        for plugin in ('office', 'code'):
            market.skill(f'{plugin}/skills', 'review')
            market.skill(f'{plugin}/skills', plugin)
        market.publish({'name': 'office', 'source': './office'}, {'name': 'code', 'source': './code'})
        registry = market()
        assert given(registry) == ['code', 'code-review', 'office', 'office-review']
        originals = {skill.name: skill.source.original_name for skill in registry.get_skills() if skill.source}
        assert originals == {'code': None, 'code-review': 'review', 'office': None, 'office-review': 'review'}
        skill = SkillsToolset(registries=[registry]).skills['code-review']
        assert skill.content == 'Do it.'
        assert skill.source == next(each.source for each in registry.get_skills() if each.name == 'code-review')

    def test_names_that_clash_even_so_get_digits_that_stay(self, market: Market):
        market.skill('a/skills', 'b-c')
        market.skill('a-b/skills', 'c')
        market.skill('x/skills', 'c')
        market.skill('x/skills', 'b-c')
        plugins = [{'name': name, 'source': f'./{name}'} for name in ('a', 'a-b', 'x')]
        market.publish(*plugins)
        first = given(market())
        market.publish(*reversed(plugins))
        assert given(market()) == first
        assert [name[:5] for name in first] == ['a-b-c', 'a-b-c', 'x-b-c', 'x-c']

    def test_long_and_odd_names_stay_within_the_rules(self, market: Market):
        long = 'a' * 60
        for plugin in ('Word_Press.com', 'b'):
            market.skill(f'{plugin}/skills', long)
        market.publish(*({'name': name, 'source': f'./{name}'} for name in ('Word_Press.com', 'b')))
        assert sorted(given(market())) == [f'b-{long}', 'word-press-com']

    def test_only_takes_the_names_that_are_offered(self, market: Market):
        for plugin in ('office', 'code'):
            market.skill(f'{plugin}/skills', 'review')
        market.publish({'name': 'office', 'source': './office'}, {'name': 'code', 'source': './code'})
        assert given(market(only='code-review')) == ['code-review']
        registry = market(only='review')
        assert [message for code, message in told(registry) if code == 'skill-missing'] == [
            f"No skill 'review' in {registry.url}@{market.main.head[:12]}. It has: code-review, office-review."
        ]

    def test_an_unchanged_marketplace_gives_the_same_objects_again(self, market: Market, tmp_path: Path):
        for plugin in ('office', 'code'):
            market.skill(f'{plugin}/skills', 'review')
        market.publish({'name': 'office', 'source': './office'}, {'name': 'code', 'source': './code'})
        lock = tmp_path / 'skills.lock'
        market().lock(lock)
        registry = market(locked=True, lock_file=lock)
        assert registry.refresh() is registry.find()
        assert given(registry) == ['code-review', 'office-review']


class TestCache:
    def test_a_warm_start_asks_once_and_fetches_nothing(self, market: Market):
        plugin = market.plugin('office', 'pdf')
        market.publish({'name': 'a', 'source': {'source': 'url', 'url': market.url('office'), 'sha': plugin.head}})
        market().get_skills()
        market.server.requests.clear()
        assert given(market()) == ['pdf']
        assert {request.path.partition('?')[0] for request in market.server.requests} == {
            '/market/info/refs',
            '/market/git-upload-pack',
        }
        assert len(market.server.requests) == 2

    def test_at_a_commit_that_pins_all_plugins_nobody_is_asked(self, market: Market):
        plugin = market.plugin('office', 'pdf')
        market.publish({'name': 'a', 'source': {'source': 'url', 'url': market.url('office'), 'sha': plugin.head}})
        market(ref=market.main.head).get_skills()
        market.server.requests.clear()
        assert given(market(ref=market.main.head)) == ['pdf']
        assert market.server.requests == []

    def test_plugins_that_did_not_move_are_not_visited_again(self, market: Market):
        plugins = {name: market.plugin(name, f'skill-{name}') for name in ('a', 'b')}

        def entries() -> list[dict[str, Any]]:
            return [
                {'name': name, 'source': {'source': 'url', 'url': market.url(name), 'sha': plugin.head}}
                for name, plugin in plugins.items()
            ]

        market.publish(*entries())
        market().get_skills()
        plugins['b'].skill('more')
        plugins['b'].commit()
        market.publish(*entries())
        market.server.requests.clear()
        assert sorted(given(market())) == ['more', 'skill-a', 'skill-b']
        assert requests_to(market, 'a') == []
        assert requests_to(market, 'b') != []

    def test_offline_it_has_what_it_had(self, market: Market):
        market.plugin('office', 'pdf')
        market.publish({'name': 'a', 'source': {'source': 'url', 'url': market.url('office')}})
        market().get_skills()
        market.server.stop()
        assert given(market(offline=True)) == ['pdf']
        kept = market()
        assert (given(kept), codes(kept)) == (['pdf'], ['source-failed'])

    def test_a_file_that_was_damaged_in_the_cache_is_fetched_again(self, market: Market):
        plugin = market.plugin('office', 'pdf')
        entry = {'name': 'a', 'source': {'source': 'url', 'url': market.url('office'), 'sha': plugin.head}}
        market.publish(entry)
        (skill,) = market().get_skills()
        Path(skill.path or '', 'SKILL.md').write_bytes(b'other')
        market.publish(entry, version='2')
        (skill,) = market().get_skills()
        assert skill.content == 'Do it.'

    def test_a_git_that_does_not_give_a_manifest_is_a_failure(
        self, market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        market.publish()
        program = tmp_path / 'git'
        program.write_text(
            '#!/bin/sh\ncase "$1 $2" in "cat-file --batch") sed "s/$/ missing/";; *) exec git "$@";; esac\n'
        )
        program.chmod(0o755)
        monkeypatch.setattr('git.Git.GIT_PYTHON_GIT_EXECUTABLE', str(program))
        with pytest.raises(SkillRegistryError, match='did not send 1 of the files'):
            market().get_skills()

    def test_the_files_can_be_kept_in_a_folder(self, market: Market, tmp_path: Path):
        market.skill('a/skills', 'pdf')
        market.publish({'name': 'a', 'source': './a'})
        assert given(market(target_dir=tmp_path / 'here')) == ['pdf']
        assert (tmp_path / 'here/a/skills/pdf/SKILL.md').is_file()
        assert given(market(target_dir=tmp_path / 'here')) == ['pdf']

    def test_what_is_allowed_now_is_not_answered_by_what_was_not_allowed_before(self, market: Market):
        market.plugin('office', 'pdf')
        source = {'source': 'url', 'url': market.url('office').replace('127.0.0.1', 'localhost')}
        market.publish({'name': 'a', 'source': source})
        with pytest.raises(SkillRegistryError, match='is not a public address'):
            market(allowed_protocols=('http',)).get_skills()
        assert given(market()) == ['pdf']


class TestLock:
    def entries(self, market: Market, *names: str) -> list[dict[str, Any]]:
        return [{'name': name, 'source': {'source': 'url', 'url': market.url(name)}} for name in names]

    def test_a_locked_start_elsewhere_has_the_locked_skills(self, market: Market, tmp_path: Path):
        plugin = market.plugin('a', 'pdf')
        market.publish({'name': 'a', 'source': {'source': 'url', 'url': market.url('a'), 'sha': plugin.head}})
        lock = tmp_path / 'skills.lock'
        market().lock(lock)
        plugin.skill('pdf', 'Does other things.')
        sha = plugin.commit()
        market.publish({'name': 'a', 'source': {'source': 'url', 'url': market.url('a'), 'sha': sha}})
        registry = market(locked=True, lock_file=lock, cache_dir=tmp_path / 'elsewhere')
        assert [skill.description for skill in registry.get_skills()] == ['Does things.']
        assert [problem.code for problem in registry.problems] == ['lock-mismatch']
        assert '/market is ' in registry.problems[0].message
        registry.lock()
        assert [skill.description for skill in registry.get_skills()] == ['Does other things.']

    def test_a_plugin_that_is_not_pinned_and_moved_is_a_mismatch(self, market: Market, tmp_path: Path):
        plugin = market.plugin('a', 'pdf')
        market.plugin('b', 'docx')
        market.publish(*self.entries(market, 'a', 'b'))
        lock = tmp_path / 'skills.lock'
        market().lock(lock)
        plugin.skill('pdf', 'Does other things.')
        plugin.commit()
        here = market(locked=True, lock_file=lock)
        assert sorted(given(here)) == ['docx', 'pdf']  # the cache has the locked revision
        elsewhere = market(locked=True, lock_file=lock, cache_dir=tmp_path / 'elsewhere')
        assert given(elsewhere) == ['docx']
        assert any('has changed since it was locked' in problem.message for problem in elsewhere.problems)
        assert any('they have moved on' in problem.message for problem in elsewhere.problems)

    def test_a_locked_start_without_one_of_the_plugins_is_a_mismatch(self, market: Market, tmp_path: Path):
        gone = {name: market.plugin(name, f'skill-{name}') for name in ('a', 'b')}
        entries = [
            {'name': name, 'source': {'source': 'url', 'url': market.url(name), 'sha': plugin.head}}
            for name, plugin in gone.items()
        ]
        market.publish(*entries)
        lock = tmp_path / 'skills.lock'
        market().lock(lock)
        gone['b'].path.rename(tmp_path / 'away')
        registry = market(locked=True, lock_file=lock, cache_dir=tmp_path / 'elsewhere')
        assert given(registry) == ['skill-a']
        assert sorted(codes(registry)) == ['lock-mismatch', 'plugin-failed']
        (tmp_path / 'away').rename(gone['b'].path)
        assert sorted(skill.name for skill in registry.refresh().skills) == ['skill-a', 'skill-b']
        assert codes(registry) == []

    def test_other_plugins_in_the_lock_file_are_not_missed(self, market: Market, tmp_path: Path):
        for name in ('a', 'b'):
            market.skill(f'{name}/skills', f'skill-{name}')
        market.publish(*({'name': name, 'source': f'./{name}'} for name in ('a', 'b')))
        lock = tmp_path / 'skills.lock'
        market().lock(lock)
        registry = market(plugins='a', locked=True, lock_file=lock)
        assert (given(registry), codes(registry)) == (['skill-a'], [])

    def test_nothing_is_locked_while_a_plugin_is_missing(self, market: Market, tmp_path: Path):
        market.skill('a/skills', 'pdf')
        market.publish({'name': 'a', 'source': './a'}, *self.entries(market, 'gone'))
        with pytest.raises(SkillRegistryError, match='is not locked, because parts of it are missing'):
            market().lock(tmp_path / 'skills.lock')
        assert not (tmp_path / 'skills.lock').exists()


class TestFailures:
    @pytest.mark.parametrize('pinned', [False, True])
    def test_a_plugin_that_fails_does_not_hide_the_others_and_is_fetched_again(
        self, market: Market, tmp_path: Path, pinned: bool
    ):
        plugin = market.plugin('b', 'docx')
        market.skill('a/skills', 'pdf')
        pin = {'sha': plugin.head} if pinned else {}
        source = {'source': 'url', 'url': market.url('b'), **pin}
        market.publish({'name': 'a', 'source': './a'}, {'name': 'b', 'source': source})
        plugin.path.rename(tmp_path / 'away')
        registry = market(target_dir=tmp_path / 'target')
        assert (given(registry), codes(registry)) == (['pdf'], ['plugin-failed'])
        again = market(target_dir=tmp_path / 'target')
        assert (given(again), codes(again)) == (['pdf'], ['plugin-failed'])
        (tmp_path / 'away').rename(plugin.path)
        later = market(target_dir=tmp_path / 'target')
        assert (sorted(given(later)), codes(later)) == (['docx', 'pdf'], [])

    def test_a_plugin_that_fails_keeps_the_skills_it_had(self, market: Market, tmp_path: Path):
        plugin = market.plugin('b', 'docx')
        market.skill('a/skills', 'pdf')
        market.publish(
            {'name': 'a', 'source': './a'}, {'name': 'b', 'source': {'source': 'url', 'url': market.url('b')}}
        )
        registry = market()
        assert sorted(given(registry)) == ['docx', 'pdf']
        market.skill('a/skills', 'new')
        market.main.commit()
        plugin.path.rename(tmp_path / 'away')
        found = registry.refresh()
        assert sorted(skill.name for skill in found.skills) == ['docx', 'new', 'pdf']
        (problem,) = found.problems
        assert problem.code == 'plugin-failed'
        assert problem.message.endswith(f'Its skills of commit {Repository(tmp_path / "away").head[:12]} are kept.')

    def test_an_incomplete_revision_is_kept_when_the_server_is_gone(self, market: Market):
        market.skill('a/skills', 'pdf')
        entry = {'name': 'b', 'source': {'source': 'url', 'url': market.url('gone'), 'sha': '1' * 40}}
        market.publish({'name': 'a', 'source': './a'}, entry)
        assert codes(market()) == ['plugin-failed']
        market.server.stop()
        assert given(market()) == ['pdf']
        assert given(market(offline=True)) == ['pdf']

    def test_if_every_plugin_fails_the_last_revision_is_kept(self, market: Market, tmp_path: Path):
        plugin = market.plugin('b', 'docx')
        market.publish({'name': 'b', 'source': {'source': 'url', 'url': market.url('b'), 'sha': plugin.head}})
        assert given(market()) == ['docx']
        market.publish({'name': 'b', 'source': {'source': 'url', 'url': market.url('b'), 'sha': '1' * 40}})
        registry = market()
        assert (given(registry), codes(registry)) == (['docx'], ['plugin-failed'])
        with pytest.raises(SkillRegistryError, match=r'No plugin could be fetched. b: '):
            market(cache_dir=tmp_path / 'elsewhere').get_skills()

    def test_many_failures_are_counted(self, market: Market):
        market.skill('a/skills', 'pdf')
        gone = ({'name': f'g{number:02}', 'source': f'./gone/{number}'} for number in range(25))
        market.publish({'name': 'a', 'source': './a'}, *gone)
        registry = market()
        assert codes(registry) == ['plugin-invalid'] * 20 + ['plugin-failed']
        assert registry.problems[-1].message == 'g20, g21, g22, g23, g24 failed too.'

    def test_plugins_share_the_limit_of_bytes(self, market: Market):
        for name in ('a', 'b', 'c'):
            market.skill(f'{name}/skills', f'skill-{name}', files={'x.txt': name * (60_000 if name == 'b' else 10)})
        market.publish(*({'name': name, 'source': f'./{name}'} for name in ('a', 'b', 'c')))
        registry = market(max_bytes=50_000)
        assert (given(registry), codes(registry)) == (['skill-a', 'skill-c'], ['plugin-failed'])
        several = market(max_bytes=61_000)
        assert codes(several) == []

    def test_together_plugins_may_not_have_more_than_max_bytes(self, market: Market):
        for name in ('a', 'b'):
            plugin = market.plugin(name)
            plugin.skill(f'skill-{name}', files={'x.txt': name * 60_000})
            plugin.commit()
        market.publish(*({'name': name, 'source': {'source': 'url', 'url': market.url(name)}} for name in ('a', 'b')))
        registry = market(max_bytes=100_000)
        assert given(registry) == ['skill-a']
        assert 'With it, the plugins would have more than 100,000 bytes (max_bytes)' in registry.problems[0].message

    def test_a_server_that_does_not_answer_leaves_time_for_the_others(self, market: Market, tmp_path: Path):
        slow = GitServer(tmp_path / 'slow')
        slow.stalls = True
        market.skill('a/skills', 'pdf')
        market.publish(
            {'name': 'a', 'source': './a'}, {'name': 'b', 'source': {'source': 'url', 'url': f'{slow.url}/b'}}
        )
        try:
            registry = market(timeout=20)
            assert (given(registry), codes(registry)) == (['pdf'], ['plugin-failed'])
        finally:
            slow.stop()

    def test_progress_counts_plugins(self, market: Market, caplog: pytest.LogCaptureFixture):
        market.plugin('b', 'docx')
        market.publish({'name': 'b', 'source': {'source': 'url', 'url': market.url('b')}})
        seen: list[FetchProgress] = []
        market(progress=seen.append).get_skills()
        assert seen == [
            FetchProgress(stage='Asking for plugins', done=1, total=1),
            FetchProgress(stage='Fetching plugins', done=1, total=1),
        ]

        def fail(progress: FetchProgress) -> None:
            raise RuntimeError('no')

        with caplog.at_level(logging.ERROR):
            assert given(market(progress=fail, plugins='b')) == ['docx']
        assert 'The progress callback failed' in caplog.text


class TestTokens:
    def test_a_token_goes_to_the_host_of_the_marketplace_only(self, market: Market, tmp_path: Path):
        market.plugin('b', 'docx')
        other = GitServer(tmp_path / 'other')
        elsewhere = Market(other, tmp_path)
        elsewhere.plugin('c', 'pdf')
        market.server.password = 'x-access-token:secret'
        market.publish(
            {'name': 'b', 'source': {'source': 'url', 'url': market.url('b')}},
            {'name': 'c', 'source': {'source': 'url', 'url': elsewhere.url('c')}},
        )
        registry = market(token='secret')
        try:
            assert given(registry) == ['docx', 'pdf']
        finally:
            other.stop()
        sent = {request.headers.get('Authorization') for request in market.server.requests}
        assert sent == {basic('x-access-token:secret')}
        assert {request.headers.get('Authorization') for request in other.requests} == {None}
        stored = [path.read_bytes() for path in market.cache.rglob('*') if path.is_file()]
        assert not any(b'secret' in data for data in stored)

    def test_a_refused_token_empties_it(self, market: Market):
        market.skill('a/skills', 'pdf')
        market.publish({'name': 'a', 'source': './a'})
        commit = market.main.head
        assert given(market(ref=commit)) == ['pdf']
        market.server.password = 'x-access-token:secret'
        with pytest.raises(SkillRegistryError, match='The token is not set, or was not accepted'):
            market(ref=commit, token='wrong').get_skills()
        with pytest.raises(SkillRegistryRefusedError):
            market(token='wrong').remote_commit()
        assert given(market(ref=commit, token='secret')) == ['pdf']

    def test_after_a_refusal_the_server_is_asked_even_for_a_commit(self, market: Market):
        market.skill('a/skills', 'pdf')
        commit = market.publish({'name': 'a', 'source': './a'})
        token = ['secret']
        market.server.password = 'x-access-token:secret'
        assert given(market(ref=commit, token='secret')) == ['pdf']
        market.server.password = 'x-access-token:other'
        assert codes(market(token=lambda: token[0])) == ['source-refused']
        assert codes(market(ref=commit, token='secret')) == ['source-refused']
        market.server.password = 'x-access-token:secret'
        assert given(market(ref=commit, token='secret')) == ['pdf']

    def test_a_plugin_that_is_refused_does_not_keep_what_it_had(self, market: Market, tmp_path: Path):
        other = GitServer(tmp_path / 'other')
        plugin = Market(other, tmp_path).plugin('c', 'docx')
        market.skill('a/skills', 'pdf')
        entry = {'name': 'c', 'source': {'source': 'url', 'url': f'{other.url}/c'}}
        market.publish({'name': 'a', 'source': './a'}, entry)
        try:
            registry = market()
            assert sorted(given(registry)) == ['docx', 'pdf']
            other.password = 'somebody:else'
            plugin.skill('new')
            plugin.commit()
            found = registry.refresh()
        finally:
            other.stop()
        assert [skill.name for skill in found.skills] == ['pdf']
        assert [problem.code for problem in found.problems] == ['plugin-failed']
