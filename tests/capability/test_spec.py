"""Agents from YAML files, with skills from directories and git, executors and policies."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from anyio import to_thread
from inline_snapshot import snapshot
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.agent.spec import AgentSpec

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    FolderSkillsRegistry,
    LocalSkillScriptExecutor,
    SkillsCapability,
    SkillScriptExecutor,
    SkillsToolset,
    SkillValidationError,
    WorkspaceSkillScriptExecutor,
)
from pydantic_ai_skills.capability.spec import read_registries
from pydantic_ai_skills.registries.address import KINDS
from tests.conversations import Call, ScriptedModel
from tests.folders import write_skill
from tests.registries.repositories import GitServer, Repository
from tests.registries.signing import Key

pytestmark = pytest.mark.anyio

GO: Call = ('run_skill_script', {'skill_name': 'local', 'script_name': 'go'})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_skill(tmp_path / 'skills/local', files={'scripts/go.py': 'import os; print("ran", os.environ.get("KEY"))'})
    return tmp_path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    repository = Repository.create(tmp_path / 'repos' / 'acme')
    for name in ('pdf', 'excel', 'slides'):
        repository.skill(name, files={'scripts/go.py': 'print("from git")'})
    repository.commit('first')
    server = GitServer(repository.path.parent)
    yield server
    server.stop()


def load_agent(folder: Path, text: str) -> Agent[None, Any]:
    file = folder / 'agent.yaml'
    file.write_text(text)
    return Agent.from_file(file, custom_capability_types=[SkillsCapability], output_type=[str, DeferredToolRequests])


def toolset_of(agent: Agent[None, Any]) -> SkillsToolset[Any]:
    found: list[SkillsToolset[Any]] = []
    for toolset in agent.toolsets:
        toolset.apply(lambda leaf: found.append(leaf) if isinstance(leaf, SkillsToolset) else None)
    (toolset,) = found
    return toolset


async def results(agent: Agent[None, Any], *calls: Call) -> list[tuple[str, str, Any]]:
    script = ScriptedModel(calls=calls)
    with agent.override(model=script.model):
        await agent.run('Go.')
    return script.results


async def test_a_file_names_directories_registries_an_executor_and_a_policy(folder: Path, server: GitServer):
    text = f"""\
model: test
capabilities:
  - SkillsCapability:
      directories:
        - ./skills
        - path: ./more
          max_depth: 1
      registries:
        - git: {server.url}/acme
          ref: main
          only: [pdf, excel]
          prefix: acme-
          rename: {{sheets: acme-excel}}
          allowed_protocols: [http]
          cache_dir: ./cache
      script_executor: {{bubblewrap: {{timeout: 20, limits: {{output: 1000}}}}}}
      script_policy: allow
"""
    write_skill(folder / 'more/near')
    write_skill(folder / 'more/deep/er/far')
    agent = await to_thread.run_sync(load_agent, folder, text)
    await toolset_of(agent).load()
    assert sorted(toolset_of(agent).skills) == ['acme-pdf', 'local', 'near', 'sheets']
    remote: Call = ('run_skill_script', {'skill_name': 'acme-pdf', 'script_name': 'go'})
    assert await results(agent, GO, remote) == [
        ('run_skill_script', 'success', 'ran None\n'),
        ('run_skill_script', 'success', 'from git\n'),
    ]
    executor = toolset_of(agent).skills['acme-pdf'].scripts[0].executor
    assert isinstance(executor, BubblewrapSkillScriptExecutor)
    assert (executor.limits.wall_time, executor.limits.output) == (20, 1000)


@pytest.mark.parametrize(('policy', 'outcome'), [('allow', 'success'), ('deny', 'failed')])
async def test_the_policy_decides(folder: Path, policy: str, outcome: str):
    text = f'{{model: test, capabilities: [SkillsCapability: {{directories: ./skills, script_policy: {policy}}}]}}'
    agent = await to_thread.run_sync(load_agent, folder, text)
    assert [happened for _, happened, _ in await results(agent, GO)] == [outcome]


async def test_a_policy_can_ask(folder: Path):
    text = '{model: test, capabilities: [SkillsCapability: {directories: [./skills], script_policy: ask}]}'
    agent = await to_thread.run_sync(load_agent, folder, text)
    with agent.override(model=ScriptedModel(calls=[GO]).model):
        assert isinstance((await agent.run('Go.')).output, DeferredToolRequests)


async def test_a_policy_can_be_about_paths(folder: Path):
    text = """\
model: test
capabilities:
  - SkillsCapability:
      directories: [./skills]
      script_policy: {write: {target: [./out]}, otherwise: deny}
"""
    agent = await to_thread.run_sync(load_agent, folder, text)
    assert [outcome for _, outcome, _ in await results(agent, GO)] == ['failed']


@pytest.mark.parametrize(
    ('spec', 'kind'),
    [
        ('local', LocalSkillScriptExecutor),
        ('bubblewrap', BubblewrapSkillScriptExecutor),
        ('workspace', WorkspaceSkillScriptExecutor),
        ({'local': {'skill_env': {'local': ['KEY']}}}, LocalSkillScriptExecutor),
    ],
)
def test_an_executor_is_named_or_described(folder: Path, spec: Any, kind: type[SkillScriptExecutor]):
    capability = SkillsCapability[Any].from_spec(directories=['./skills'], script_executor=spec)
    assert type(capability.toolset.skills['local'].scripts[0].executor) is kind


async def test_a_variable_is_passed_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('KEY', 'value')
    text = """\
model: test
capabilities:
  - SkillsCapability:
      directories:
        - path: ./skills
          script_executor: {local: {skill_env: {local: [KEY]}}}
"""
    agent = await to_thread.run_sync(load_agent, folder, text)
    assert await results(agent, GO) == snapshot([('run_skill_script', 'success', 'ran value\n')])


def test_a_url_alone_is_a_git_repository(folder: Path):
    capability = SkillsCapability[Any].from_spec(registries='https://example.com/skills')
    assert capability.toolset.id == 'skills'
    assert SkillsCapability[Any].from_spec(registries=['https://example.com/skills'], id='more').toolset.id == 'more'


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (
            {'registries': [{'git': 'https://example.com/x', 'token': 'hunter2'}]},
            snapshot('A token does not belong in a spec. Name the environment variable that holds it, as `token_env`.'),
        ),
        (
            {'registries': [{'git': 'https://example.com/x', 'reff': 'hunter2'}]},
            snapshot(
                "`registries` of a spec does not fit. 'reff': is not a setting; there are source, folder, archive, objects, well-known, mcp, marketplace, git, ref, path, plugins, prefix, trusted, token_env, ssh_key_file, require, signers, timeout, offline, allowed_protocols, cache_dir, target_dir, token_user, locked, lock_file, refresh_interval, max_bytes, validate, max_depth, script_executor, only, rename."
            ),
        ),
        (
            {'registries': [{'path': 'skills'}]},
            snapshot(
                "`registries` of a spec does not fit. 'entry': the address is the value of `source`, or of one of folder, archive, objects, well-known, mcp, marketplace, git."
            ),
        ),
        *(
            (
                {'registries': [entry]},
                (
                    "`registries` of a spec does not fit. 'entry': the address is the value of `source`, or of one of "
                    'folder, archive, objects, well-known, mcp, marketplace, git.'
                ),
            )
            for entry in (
                {'git': 'https://example.com/x', 'kind': 'nonsense'},
                {'source': 'https://example.com/x', 'url': 'x'},
                {'kind': 'git', 'url': 'https://example.com/x'},
                {'kind': 'git'},
            )
        ),
        (
            {'registries': [{'git': 'https://example.com/x', 'ref': ['hunter2']}]},
            snapshot("`registries` of a spec does not fit. 'ref': Input should be a valid string."),
        ),
        (
            {'directories': [{'max_depth': 1}]},
            snapshot("`directories` of a spec does not fit. 'path': Field required."),
        ),
        (
            {'directories': [1]},
            snapshot("`directories` of a spec does not fit. 'entry': Input should be a valid dictionary."),
        ),
        (
            {'script_policy': 'maybe'},
            snapshot("A script policy is 'allow', 'ask', 'deny' or a function that returns one, not 'maybe'."),
        ),
        (
            {'script_policy': {'reed': {}}},
            snapshot(
                "`script_policy` of a spec does not fit. 'reed': is not a setting; there are read, write, otherwise, inside."
            ),
        ),
        (
            {'script_executor': 'docker'},
            snapshot('`script_executor` of a spec names one of local, bubblewrap, workspace, not docker.'),
        ),
        (
            {'script_executor': {'local': {}, 'bubblewrap': {}}},
            snapshot('`script_executor` of a spec names one of local, bubblewrap, workspace, not local, bubblewrap.'),
        ),
        (
            {'script_executor': {'local': {'env': {'KEY': 'hunter2'}}}},
            snapshot(
                "`script_executor` of a spec does not fit. 'env': is not a setting; there are timeout, python_executable, limits, pass_env, skill_env, cwd, dependencies, network, read, write, read_only."
            ),
        ),
        (
            {'script_executor': {'local': {'network': True}}},
            snapshot("`script_executor` of a spec got an unexpected keyword argument 'network'."),
        ),
        (
            {'script_executor': {'local': {'limits': {'hunger': 2}}}},
            snapshot("`limits` of a spec got an unexpected keyword argument 'hunger'."),
        ),
        (
            {'directories': {'path': './skills'}},
            snapshot('`directories` of a spec is a text or a list of texts and mappings, not dict.'),
        ),
        ({'directories': 5}, snapshot('`directories` of a spec is a text or a list of texts and mappings, not int.')),
        (
            {'registries': {'git': 'https://example.com/x'}},
            snapshot('`registries` of a spec is a text or a list of texts and mappings, not dict.'),
        ),
        (
            {'registries': [5]},
            snapshot(
                "`registries` of a spec does not fit. 'entry': Input should be a valid dictionary or instance of SourceSpec."
            ),
        ),
        (
            {'script_executor': ['local']},
            snapshot('`script_executor` of a spec names one of local, bubblewrap, workspace, not list.'),
        ),
        (
            {'script_executor': {}},
            snapshot('`script_executor` of a spec names one of local, bubblewrap, workspace, not nothing.'),
        ),
        (
            {'validate': 'hunter2'},
            snapshot(
                "`SkillsCapability` of a spec does not fit. 'validate': Input should be a valid boolean, unable to interpret input."
            ),
        ),
        (
            {'max_depth': 'deep'},
            snapshot(
                "`SkillsCapability` of a spec does not fit. 'max_depth': Input should be a valid integer, unable to parse string as an integer."
            ),
        ),
        ({'id': 5}, snapshot("`SkillsCapability` of a spec does not fit. 'id': Input should be a valid string.")),
        (
            {'exclude_tools': 3},
            snapshot(
                "`SkillsCapability` of a spec does not fit. 'exclude_tools': Input should be a valid string or Input should be a list."
            ),
        ),
        (
            {'auto_reload': 'sometimes'},
            snapshot(
                "`SkillsCapability` of a spec does not fit. 'auto_reload': Input should be a valid boolean, unable to interpret input or Input should be 'watch'."
            ),
        ),
        (
            {'catalog_budget': 'small'},
            snapshot(
                "`SkillsCapability` of a spec does not fit. 'catalog_budget': Input should be a valid integer, unable to parse string as an integer."
            ),
        ),
        (
            {'pinned': 3},
            snapshot(
                "`SkillsCapability` of a spec does not fit. 'pinned': Input should be a valid string or Input should be a list."
            ),
        ),
        (
            {'search_tool': 'never'},
            snapshot("`SkillsCapability` of a spec does not fit. 'search_tool': Input should be 'auto' or 'always'."),
        ),
        (
            {'disclosure': 'never'},
            snapshot(
                "`SkillsCapability` of a spec does not fit. 'disclosure': Input should be 'tools' or 'on-demand'."
            ),
        ),
    ],
)
def test_what_does_not_fit_is_said_without_quoting_secrets(folder: Path, options: dict[str, Any], message: str):
    given: dict[str, Any] = {'directories': ['./skills'], **options}
    with pytest.raises(SkillValidationError) as refused:
        SkillsCapability[Any].from_spec(**given)
    assert str(refused.value) == message
    assert 'hunter2' not in f'{refused.value} {refused.value.__cause__}'


def test_the_standard_places_of_trusted_projects(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('HOME', str(folder / 'home'))
    write_skill(folder / '.agents/skills/project')
    capability = SkillsCapability[Any].from_spec(directories='standard', trust=[str(folder)])
    assert list(capability.toolset.skills) == ['project']
    assert list(SkillsCapability[Any].from_spec(directories='standard').toolset.skills) == []


def test_every_parameter_that_can_be_written_down_can_be_in_a_spec():
    in_python = {'skills', 'ranker', 'skill_filter', 'schema_generator', 'instructions'}
    parameters = set(inspect.signature(SkillsCapability).parameters) - in_python
    assert set(inspect.signature(SkillsCapability[Any].from_spec).parameters) == parameters


def test_the_options_are_in_the_signature_with_their_defaults():
    parameters = inspect.signature(SkillsToolset).parameters
    assert [parameters[name].default for name in ('skills', 'validate', 'max_depth')] == [None, True, 3]
    assert set(inspect.signature(SkillsCapability).parameters) == {*parameters, 'disclosure', 'workspace_tools'}


@pytest.mark.parametrize('kind', [SkillsToolset, SkillsCapability])
def test_an_unknown_option_is_refused_with_the_closest_one(kind: Any):
    message = "SkillsToolset has no option 'directory'. The options are: 'directories', "
    with pytest.raises(TypeError, match=re.escape(message)):
        kind(directory='./skills')
    with pytest.raises(SkillValidationError, match="'directory': is not a setting; there are id, "):
        SkillsCapability[Any].from_spec(directory='./skills')  # pyright: ignore[reportCallIssue] - as in a file


@pytest.mark.parametrize('entry', ['PLACE', {'source': 'PLACE'}, {'folder': 'PLACE', 'prefix': ''}])
def test_every_kind_of_source_can_be_in_a_spec(tmp_path: Path, entry: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv('PYDANTIC_AI_SKILLS_CACHE_DIR', str(tmp_path / 'cache'))
    write_skill(tmp_path / 'shared/greeter')
    place = str(tmp_path / 'shared')
    given: Any = place if entry == 'PLACE' else {key: value.replace('PLACE', place) for key, value in entry.items()}
    registries = read_registries([given], executor=None)
    assert registries is not None
    assert [type(registry) for registry in registries] == [FolderSkillsRegistry]
    assert [skill.name for skill in registries[0].get_skills()] == ['greeter']


def test_the_schema_of_specs_knows_the_settings():
    schema = AgentSpec.model_json_schema_with_capabilities(custom_capability_types=[SkillsCapability])
    parameters = schema['$defs']['spec_params_SkillsCapability']['properties']
    assert list(parameters) == snapshot(
        [
            'id',
            'validate',
            'max_depth',
            'disk_index',
            'auto_reload',
            'instruction_template',
            'catalog_budget',
            'pinned',
            'search_tool',
            'exclude_tools',
            'max_on_demand',
            'max_work_dirs',
            'max_retries',
            'timeout',
            'docstring_format',
            'require_parameter_descriptions',
            'strict',
            'sequential',
            'requires_approval',
            'metadata',
            'defer_loading',
            'include_return_schema',
            'directories',
            'registries',
            'script_executor',
            'script_policy',
            'trust',
            'work_dir',
            'disclosure',
            'workspace_tools',
        ]
    )
    settings = schema['$defs']['SourceSpec']['properties']
    assert {'token', 'url', 'kind'}.isdisjoint(settings)
    assert list(settings)[:8] == ['source', *KINDS]


def test_a_source_can_require_what_its_skills_have(folder: Path, tmp_path: Path):
    key = Key(tmp_path)
    identity = {'identity': 'me@acme.dev', 'issuer': 'https://acme.dev'}
    given = {'folder': str(folder / 'skills'), 'require': ['signed', 'locked'], 'signers': [str(key.public), identity]}
    (registry,) = read_registries([cast('Any', given)], executor=None) or []
    assert isinstance(registry, FolderSkillsRegistry)
    assert registry.require == ('locked', 'signed')
    assert [(signer.pem, signer.sigstore) for signer in registry.signers] == [(key.public, None), (None, identity)]


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'require': ['tested']}, "'require.0': Input should be 'locked', 'signed', 'scanned' or 'evaluated'"),
        ({'signers': [3]}, "'signers.0': Input should be a valid string"),
        ({'signers': [{'identity': 'me'}]}, "'signers.0.SigstoreIdentity.issuer': Field required"),
        ({'require': ['signed']}, "require=['signed'] needs signers="),
    ],
)
def test_what_cannot_be_required_is_an_error(folder: Path, options: dict[str, Any], message: str):
    with pytest.raises(SkillValidationError) as refused:
        read_registries([cast('Any', {'folder': str(folder / 'skills'), **options})], executor=None)
    assert message in str(refused.value)
