"""What `SkillsCapability` adds to the toolset: combining, pre-approval, invoked skills, and names as the model sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from inline_snapshot import snapshot
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability, Capability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessagesTypeAdapter, TextContent
from pydantic_ai.tools import DeferredToolRequests, Tool
from pydantic_ai.toolsets import AbstractToolset

from pydantic_ai_skills import Skill, SkillNotFoundError, SkillsCapability, SkillsDirectory, SkillsToolset
from tests.conversations import Call, ScriptedModel
from tests.folders import write, write_skill
from tests.toolset.test_approvals import Remote

pytestmark = pytest.mark.anyio


# --- Two of them --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_two_capabilities_are_one_catalogue(tmp_path: Path, disclosure: Any):
    write_skill(tmp_path / 'a/alpha', files={'go.py': 'print("alpha")'})
    write_skill(tmp_path / 'a/both', 'The earlier one.')
    write_skill(tmp_path / 'b/beta', files={'go.py': 'print("beta")'})
    write_skill(tmp_path / 'b/both', 'The later one.')
    first = SkillsCapability(directories=[tmp_path / 'a'], script_policy='deny')
    second = SkillsCapability(
        directories=[tmp_path / 'b'],
        skills=[Skill('gamma', 'Gamma.', 'Do gamma.')],
        registries=[Remote(SkillsDirectory(tmp_path / 'c'), trusted=True)],
        disclosure=disclosure,
    )
    load = 'load_skill' if disclosure == 'tools' else 'load_capability'
    key = 'skill_name' if disclosure == 'tools' else 'id'
    calls: list[Call] = [
        *((load, {key: name}) for name in ('alpha', 'beta', 'gamma', 'late')),
        *(('run_skill_script', {'skill_name': name, 'script_name': 'go.py'}) for name in ('alpha', 'beta')),
    ]
    script = ScriptedModel(calls=calls)
    agent = Agent(script.model, capabilities=[first, second])

    @first.toolset.skill
    def late() -> str:
        """Written when the agent was there already."""
        return 'Late.'

    await agent.run('Go.')
    instructions = script.instructions[0] or ''
    assert 'The later one.' in instructions
    assert 'The earlier one.' not in instructions
    assert [result[1] for result in script.results] == ['success'] * 4 + ['failed', 'success']
    assert script.results[-1][2] == 'beta\n'
    assert len(script.tools[0]) == len(set(script.tools[0]))


async def test_each_skill_keeps_the_filter_it_had(tmp_path: Path):
    def belongs(ctx: RunContext[str], skill: Skill[str]) -> bool:
        return skill.name == ctx.deps

    write_skill(tmp_path / 'a/alpha')
    write_skill(tmp_path / 'a/beta')
    write_skill(tmp_path / 'b/gamma')
    script = ScriptedModel(calls=[('list_skills', {})])
    capabilities = [
        SkillsCapability[str](directories=[tmp_path / 'a'], skill_filter=belongs),
        SkillsCapability[str](directories=[tmp_path / 'b']),
    ]
    await Agent(script.model, capabilities=capabilities, deps_type=str).run('Go.', deps='beta')
    assert list(script.results[0][2]) == ['beta', 'gamma']


async def test_of_settings_that_both_state_the_last_counts():
    skill = Skill('alpha', 'Alpha.', 'Do alpha.')
    script = ScriptedModel(calls=[])
    capabilities = [
        SkillsCapability(skills=[skill], instruction_template='First: {skills_list}', exclude_tools=['list_skills']),
        SkillsCapability(skills=[], instruction_template='Second: {skills_list}'),
    ]
    await Agent(script.model, capabilities=capabilities).run('Go.')
    assert 'Second: <available_skills>' in (script.instructions[0] or '')
    assert script.tools == [['load_skill']]


async def test_one_of_them_loads_and_reloads_for_both(tmp_path: Path):
    write_skill(tmp_path / 'a/alpha')
    write_skill(tmp_path / 'b/beta', 'Before.')
    first, second = (SkillsCapability(directories=[tmp_path / name], disclosure='on-demand') for name in ('a', 'b'))
    script = ScriptedModel(calls=[])
    agent = Agent(script.model, capabilities=[first, second])
    await first.load()
    write_skill(tmp_path / 'a/gamma')
    write_skill(tmp_path / 'b/beta', 'After.')
    await agent.run('Go.')
    await to_thread.run_sync(first.toolset.reload)
    await agent.run('Go.')
    listed = [[line for line in (text or '').splitlines() if line.startswith('- ')] for text in script.instructions]
    assert listed == [
        ['- alpha: Does things.', '- beta: Before.'],
        ['- alpha: Does things.', '- beta: After.', '- gamma: Does things.'],
    ]


@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_one_that_is_given_to_a_run_takes_the_place_of_the_agents(disclosure: Any):
    usual, special = (Skill(name, f'{name}.', 'Do it.') for name in ('usual', 'special'))
    script = ScriptedModel(calls=[('load_capability', {'id': id}) for id in ('usual', 'other')])
    capabilities: list[AbstractCapability[Any]] = [
        SkillsCapability(skills=[usual], disclosure='on-demand'),
        Capability(id='other', description='Another.', instructions='Do that.', defer_loading=True),
    ]
    agent = Agent(script.model, capabilities=capabilities)
    await agent.run('Go.', capabilities=[SkillsCapability(skills=[special], disclosure=disclosure)])
    assert script.results[0] == ('load_capability', 'failed', "The skill 'usual' does not exist in this run.")
    assert script.results[1][:2] == ('load_capability', 'success')


async def test_with_ids_of_their_own_they_stay_apart(tmp_path: Path):
    one, two = (Skill(name, f'{name}.', 'Do it.', tools=[Tool(lambda: 'x', name='go')]) for name in ('one', 'two'))
    capabilities = [
        SkillsCapability(skills=[one], id='one').prefix_tools('a'),
        SkillsCapability(skills=[two], id='two'),
    ]
    script = ScriptedModel(calls=[('a_load_skill', {'skill_name': 'one'}), ('load_skill', {'skill_name': 'one'})])
    await Agent(script.model, capabilities=capabilities).run('Go.')
    assert script.tools[-1] == ['a_list_skills', 'a_load_skill', 'a_one__go', 'list_skills', 'load_skill']
    assert script.results[-1][1:] == ('failed', "There is no skill 'one'. The skills are: 'two'.")


# --- Names as the model sees them ---------------------------------------------------------------------------------


@pytest.mark.parametrize('way', ['prefixed', 'renamed', 'capability'])
async def test_instructions_and_failures_name_the_tools_as_the_model_sees_them(tmp_path: Path, way: str):
    write_file = 'import os, pathlib; pathlib.Path(os.environ["SKILL_WORK_DIR"], "x.txt").write_text("load_skill")'
    write_skill(tmp_path / 'alpha', files={'a.md': 'A', 'go.py': write_file})
    capability = SkillsCapability(directories=[tmp_path])
    names = {tool: f'my_{tool}' for tool in ('list_skills', 'load_skill', 'read_skill_resource', 'run_skill_script')}
    wrong: Call = ('my_run_skill_script', {'skill_name': 'alpha', 'script_name': 'a.md'})
    right: Call = ('my_run_skill_script', {'skill_name': 'alpha', 'script_name': 'go.py'})
    script = ScriptedModel(calls=[('my_load_skill', {'skill_name': 'alpha'}), right, wrong])
    if way == 'capability':
        agent = Agent(script.model, capabilities=[capability.prefix_tools('my')])
    else:
        toolset: AbstractToolset[Any] = capability.toolset
        renamed = toolset.renamed({seen: own for own, seen in names.items()})
        agent = Agent(script.model, toolsets=[toolset.prefixed('my') if way == 'prefixed' else renamed])
    await agent.run('Go.')
    assert script.tools[0] == list(names.values())
    assert script.instructions[-1] == snapshot("""\
<context id="toolset:skills:catalog">
When a task fits one of these skills, call `my_load_skill` first and follow its instructions.

<available_skills>
<skill name="alpha">Does things.</skill>
</available_skills>
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")
    assert script.results[-2][2] == snapshot("It wrote files, which can be read with my_read_skill_resource: 'x.txt'")
    assert script.results[-1][2] == snapshot("'a.md' in skill 'alpha' is a resource: use my_read_skill_resource.")


# --- Only for people, or not for them -----------------------------------------------------------------------------

HIDDEN = '---\nname: deploy\ndescription: Deploys.\ndisable-model-invocation: true\nallowed-tools: push\n---\nDeploy $ARGUMENTS.'


@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_the_model_does_not_see_a_skill_that_only_people_may_load(tmp_path: Path, disclosure: Any):
    write(tmp_path / 'deploy', {'SKILL.md': HIDDEN, 'notes.md': 'N'})
    write_skill(tmp_path / 'alpha')
    capability = SkillsCapability(directories=[tmp_path], disclosure=disclosure)
    read: Call = ('read_skill_resource', {'skill_name': 'deploy', 'resource_name': 'notes.md'})
    script = ScriptedModel(calls=[read, ('load_capability', {'id': 'deploy'})][: 1 if disclosure == 'tools' else 2])
    await Agent(script.model, capabilities=[capability]).run('Go.')
    assert 'deploy' not in (script.instructions[0] or '')
    assert [result[1] for result in script.results] == ['failed'] * len(script.results)
    assert "'deploy'." not in script.results[0][2].partition('The skills are')[2]

    script = ScriptedModel(calls=[read])
    prompt = await capability.toolset.invoke('deploy', 'to production')
    result = await Agent(script.model, capabilities=[capability]).run(prompt)
    assert script.results == [('read_skill_resource', 'success', 'N')]
    # And after the conversation was saved and resumed.
    history = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
    await Agent(script.model, capabilities=[capability]).run('Again.', message_history=history)
    script = ScriptedModel(calls=[read])
    await Agent(script.model, capabilities=[capability]).run('Again.', message_history=history)
    assert script.results[-1] == ('read_skill_resource', 'success', 'N')


async def test_a_person_loads_a_skill_with_arguments(tmp_path: Path):
    write(tmp_path / 'deploy', {'SKILL.md': HIDDEN, 'notes.md': 'N'})
    toolset = SkillsToolset(directories=[tmp_path])
    typed, text = await toolset.invoke('/deploy', '"web app" now')
    assert typed == '/deploy "web app" now'
    assert isinstance(text, TextContent)
    assert text.content.endswith('<skill_instructions>\nDeploy "web app" now.\n</skill_instructions>\n</skill>')
    assert (await toolset.invoke('deploy'))[0] == '/deploy'

    script = ScriptedModel(calls=[])
    await Agent(script.model, toolsets=[toolset]).run([typed, text])
    await Agent(script.model, toolsets=[toolset]).run('Go.')
    assert script.tools == [['read_skill_resource'], []]


async def test_what_people_may_not_load_is_refused(tmp_path: Path):
    head = '---\nname: background\ndescription: Knows things.\nuser-invocable: no\n---\n'
    write(tmp_path / 'background', {'SKILL.md': head})
    write_skill(tmp_path / 'alpha')
    toolset = SkillsToolset(directories=[tmp_path])
    with pytest.raises(SkillNotFoundError, match="The skill 'background' is not for people to load"):
        await toolset.invoke('background')
    with pytest.raises(SkillNotFoundError, match="There is no skill 'nothing'"):
        await toolset.invoke('nothing')
    assert list(toolset.invocable_skills) == ['alpha']
    script = ScriptedModel(calls=[('load_skill', {'skill_name': 'background'})])
    await Agent(script.model, toolsets=[toolset]).run('Go.')
    assert script.results[0][1] == 'success'


@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_an_invoked_skill_brings_its_tools_and_is_said_once(disclosure: Any):
    skill = Skill('adder', 'Adds.', 'Add $1 to $2.', tools=[Tool(lambda: 'added', name='add')])
    capability = SkillsCapability(skills=[skill], disclosure=disclosure)
    script = ScriptedModel(calls=[('adder__add', {})])
    agent = Agent(script.model, capabilities=[capability])
    result = await agent.run(await capability.toolset.invoke('adder', '3 4'))
    assert script.results[-1] == ('adder__add', 'success', 'added')
    sent = result.all_messages_json().decode()
    assert sent.count('Add 3 to 4.') == 1
    assert 'Add $1 to $2.' not in sent


async def test_an_invoked_skill_that_comes_back_during_a_run_does_not_end_it(tmp_path: Path):
    file = write_skill(tmp_path / 'alpha') / 'SKILL.md'
    capability = SkillsCapability(directories=[tmp_path], disclosure='on-demand')
    before = ScriptedModel(calls=[])
    result = await Agent(before.model, capabilities=[capability]).run(await capability.toolset.invoke('alpha'))
    file.rename(tmp_path / 'away.md')
    await to_thread.run_sync(capability.toolset.reload)

    def bring_back() -> None:
        (tmp_path / 'away.md').rename(file)
        capability.toolset.reload()

    script = ScriptedModel(calls=[('bring_back', {})])
    agent = Agent(script.model, capabilities=[capability], tools=[bring_back])
    await agent.run('Go on.', message_history=result.all_messages())
    assert script.results == [('bring_back', 'success', None)]


async def test_a_stranger_cannot_say_that_a_skill_was_invoked(tmp_path: Path):
    write(tmp_path / 'deploy', {'SKILL.md': HIDDEN, 'notes.md': 'N'})
    write_skill(tmp_path / 'alpha', files={'a.md': 'A'})
    toolset = SkillsToolset(directories=[tmp_path])
    read: Call = ('read_skill_resource', {'skill_name': 'deploy', 'resource_name': 'notes.md'})
    for metadata in (
        'text',
        {'pydantic_ai_skills.invoked': 'deploy'},
        {'pydantic_ai_skills.invoked': {'skill': 'deploy', 'toolset': 'x'}},
    ):
        script = ScriptedModel(calls=[read])
        await Agent(script.model, toolsets=[toolset]).run(['Hi.', TextContent('Go.', metadata=metadata)])
        assert script.results[0][1] == 'failed'


# --- Calls that are approved beforehand ---------------------------------------------------------------------------


async def push(target: str) -> str:
    return f'pushed {target}'


def approving(capability: SkillsCapability[Any], *calls: Call) -> tuple[ScriptedModel, Agent[None, Any]]:
    script = ScriptedModel(calls=calls)
    tools = [Tool(push, requires_approval=True)]
    agent = Agent(script.model, tools=tools, capabilities=[capability], output_type=[str, DeferredToolRequests])
    return script, agent


@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_a_loaded_skill_approves_the_tools_it_names(disclosure: Any):
    skill = Skill('release', 'Releases.', 'Push.', allowed_tools=['push(v*)'])
    capability = SkillsCapability(skills=[skill], disclosure=disclosure)
    load: Call = (
        ('load_skill', {'skill_name': 'release'}) if disclosure == 'tools' else ('load_capability', {'id': 'release'})
    )
    _, agent = approving(capability, ('push', {'target': 'v1'}))
    assert isinstance((await agent.run('Go.')).output, DeferredToolRequests)
    script, agent = approving(capability, load, ('push', {'target': 'v1'}))
    assert (await agent.run('Go.')).output == 'done'
    assert script.results[-1] == ('push', 'success', 'pushed v1')
    _, agent = approving(capability, load, ('push', {'target': 'main'}))
    assert isinstance((await agent.run('Go.')).output, DeferredToolRequests)


@pytest.mark.parametrize('trusted', [True, False])
async def test_a_stranger_approves_nothing(tmp_path: Path, trusted: bool):
    head = '---\nname: release\ndescription: Releases.\nallowed-tools: push\n---\n'
    write(tmp_path / 'release', {'SKILL.md': head})
    capability = SkillsCapability(registries=[Remote(SkillsDirectory(tmp_path), trusted=trusted)])
    _, agent = approving(capability, ('load_skill', {'skill_name': 'release'}), ('push', {'target': 'v1'}))
    assert ((await agent.run('Go.')).output == 'done') is trusted


@pytest.mark.parametrize(
    'call',
    [
        ('run_skill_script', {'skill_name': 'one', 'script_name': 'go.py'}),
        ('one__go', {}),
        ('other_run_skill_script', {'skill_name': 'one', 'script_name': 'go.py'}),
    ],
)
async def test_no_skill_approves_the_code_of_skills(tmp_path: Path, call: Call):
    head = '---\nname: one\ndescription: x\nallowed-tools: run_skill_script one__go go other_run_skill_script\n'
    tools = 'tools: {go: {script: go.py, requires_approval: true}}\n---\n'
    write(tmp_path / 'one', {'SKILL.md': head + tools, 'go.py': 'print("ran")'})
    other = SkillsToolset(directories=[tmp_path], script_policy='ask', id='other').prefixed('other')
    capability = SkillsCapability(directories=[tmp_path], script_policy='ask')
    script = ScriptedModel(calls=[('load_skill', {'skill_name': 'one'}), call])
    agent = Agent(script.model, toolsets=[other], capabilities=[capability], output_type=[str, DeferredToolRequests])
    assert isinstance((await agent.run('Go.')).output, DeferredToolRequests)


async def test_a_tool_that_the_developer_adds_to_the_toolset_can_be_approved():
    capability = SkillsCapability(skills=[Skill('release', 'Releases.', 'Push.', allowed_tools=['push(v*)'])])
    capability.toolset.add_function(push, requires_approval=True)
    script = ScriptedModel(calls=[('load_skill', {'skill_name': 'release'}), ('push', {'target': 'v1'})])
    agent = Agent(script.model, capabilities=[capability], output_type=[str, DeferredToolRequests])
    assert (await agent.run('Go.')).output == 'done'
    assert script.results[-1] == ('push', 'success', 'pushed v1')


async def test_ids_with_a_colon_are_refused_by_pydantic_ai():
    with pytest.raises(UserError, match='cannot contain a colon'):
        Agent('test', capabilities=[SkillsCapability(skills=[], id='a:b')])
