"""Skills as deferred capabilities: in pydantic-ai's own catalogue, loaded with `load_capability`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from inline_snapshot import snapshot
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability, Caching, Capability
from pydantic_ai.messages import (
    InstructionBaselinePart,
    InstructionDeltaPart,
    LoadCapabilityReturnPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import Tool

from pydantic_ai_skills import Skill, SkillLoaded, SkillsCapability, SkillsDirectory
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import CONTEXT, write, write_skill
from tests.toolset.test_approvals import Remote
from tests.toolset.typed_tools.test_typed_tools import CALLS, KINDS, Kind, adder

pytestmark = pytest.mark.anyio

LOAD: Call = ('load_capability', {'id': 'adder'})


def capability_of(folder: Path, kind: Kind) -> SkillsCapability[Any]:
    skills, directories = adder(folder, kind)
    return SkillsCapability(skills=skills, directories=directories, disclosure='on-demand')


def spoken_by_the_system(messages: Sequence[ModelMessage]) -> str:
    """All that the model was sent in the words of the system."""
    texts: list[str] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            texts.append(message.instructions or '')
            for part in message.parts:
                if isinstance(part, SystemPromptPart):
                    texts.append(part.content)
                elif isinstance(part, (InstructionDeltaPart, InstructionBaselinePart)):
                    texts.append(str(part))
    return '\n'.join(texts)


@pytest.mark.parametrize('kind', KINDS)
async def test_a_skill_brings_its_instructions_and_tools_when_it_is_loaded(tmp_path: Path, kind: Kind):
    script = await converse(capability_of(tmp_path, kind), LOAD, *CALLS)
    history = script.saved
    before, *after = script.tools
    assert before[0] == 'load_capability'
    assert 'adder__add' not in before
    assert after == [[*before, 'adder__add']] * 4
    assert script.results[:3] == snapshot(
        [
            ('load_capability', 'success', {'message': "Capability 'adder' loaded. Its instructions, if any, follow."}),
            ('adder__add', 'success', '5\n'),
            (
                'adder__add',
                'failed',
                'The arguments of adder__add do not fit. a: Input should be a valid integer, unable to parse string as an integer. It takes: a (integer), b (integer, optional).',
            ),
        ]
    )
    assert script.results[3][1] == 'failed'
    assert 'too large' in script.results[3][2]
    assert 'Call `add`.' in spoken_by_the_system(history)
    assert len(set(script.instructions)) == 1

    fresh = await converse(capability_of(tmp_path, kind))
    assert fresh.tools == [before]
    resumed = await converse(capability_of(tmp_path, kind), CALLS[0], history=history)
    assert resumed.tools == [[*before, 'adder__add']] * 2
    assert resumed.results[-1] == ('adder__add', 'success', '5\n')


async def test_the_whole_conversation(tmp_path: Path):
    write_skill(tmp_path / 'alpha', 'Does alpha.\nUse it.', 'Read `a.md`.', {'a.md': 'A', 'go.py': 'print("gone")'})
    script = await converse(
        SkillsCapability(directories=[tmp_path], disclosure='on-demand'),
        ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'a.md'}),
        ('load_capability', {'id': 'alpha'}),
        ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'a.md'}),
        ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'go.py'}),
    )
    assert script.instructions[-1] == snapshot("""\
<context id="capability:deferred_capabilities">
The following capabilities are deferred and can be loaded using the `load_capability` tool. A capability's tools stay hidden until it is loaded:
- alpha: Does alpha. Use it.
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")
    assert script.tools[0] == snapshot(['load_capability', 'read_skill_resource', 'run_skill_script'])
    assert script.results == snapshot(
        [
            (
                'read_skill_resource',
                'failed',
                "The skill 'alpha' is not loaded. Call `load_capability` with id 'alpha' first.",
            ),
            ('load_capability', 'success', {'message': "Capability 'alpha' loaded. Its instructions, if any, follow."}),
            ('read_skill_resource', 'success', 'A'),
            ('run_skill_script', 'success', 'gone\n'),
        ]
    )


async def test_a_repeated_or_unknown_load_does_not_end_a_run(tmp_path: Path):
    write_skill(tmp_path / 'alpha')
    other = Capability[Any](id='other', description='Another.', instructions='Other.', defer_loading=True)
    script = ScriptedModel(
        calls=[
            ('load_capability', {'id': 'alpha'}),
            *[('load_capability', {'id': 'alpha'})] * 3,
            *[('load_capability', {'id': 'alhpa'})] * 3,
            *[('load_capability', {'id': 'skills'})] * 3,
            *[('load_capability', {'name': 'alpha'})] * 3,
            ('load_capability', {'id': 'other'}),
            *[('load_capability', {'id': 'other'})] * 3,
        ]
    )
    skills = SkillsCapability(directories=[tmp_path], disclosure='on-demand')
    await Agent(script.model, capabilities=[skills, other]).run('Go.')
    assert [result[1:] for result in script.results[0::3][:6]] == snapshot(
        [
            ('success', {'message': "Capability 'alpha' loaded. Its instructions, if any, follow."}),
            ('success', {'message': "'alpha' is loaded already: its instructions are there and have not changed."}),
            ('failed', "There is no capability 'alhpa' to load. The skills are: 'alpha', 'other'."),
            ('failed', "There is no capability 'skills' to load. The skills are: 'alpha', 'other'."),
            ('failed', 'The arguments do not fit. It takes: id (string), the name of what to load.'),
            ('success', {'message': "'other' is loaded already: its instructions are there and have not changed."}),
        ]
    )


@pytest.mark.parametrize(
    ('module', 'outcomes', 'second'),
    [
        ('', ['success', 'success'], 'is loaded already'),
        ('import pydantic_ai_skills, gone', ['failed', 'failed'], "No module named 'gone'"),
    ],
)
async def test_two_loads_of_one_skill_at_once_are_one(tmp_path: Path, module: str, outcomes: list[str], second: str):
    write_skill(tmp_path / 'alpha', files={'tools.py': module})
    script = ScriptedModel(calls=[])

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        script.messages = messages
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart('done')])
        return ModelResponse(parts=[ToolCallPart('load_capability', {'id': 'alpha'}) for _ in range(2)])

    skills = SkillsCapability(directories=[tmp_path], disclosure='on-demand')
    await Agent(FunctionModel(respond), capabilities=[skills]).run('Go.')
    assert [result[1] for result in script.results] == outcomes
    assert second in str(script.results[1][2])


async def test_what_a_stranger_wrote_is_never_said_by_the_system(tmp_path: Path):
    write_skill(tmp_path / 'own/own-one', 'Mine.', 'MY-INSTRUCTIONS')
    tools = 'tools:\n  go: {script: go.py, description: STRANGE-TOOL}\n'
    head = f'---\nname: strange\ndescription: STRANGE-DESCRIPTION\n{tools}---\nSTRANGE-INSTRUCTIONS'
    write(
        tmp_path / 'theirs' / 'strange',
        {'SKILL.md': head, 'STRANGE-FILE.md': 'STRANGE-CONTENT', 'go.py': '"""STRANGE-USAGE"""'},
    )
    capability = SkillsCapability(
        directories=[tmp_path / 'own'],
        registries=[Remote(SkillsDirectory(tmp_path / 'theirs'), trusted=False)],
        disclosure='on-demand',
    )
    use = {'skill_name': 'strange', 'resource_name': 'STRANGE-FILE.md'}
    script = await converse(
        capability,
        ('read_skill_resource', use),
        ('load_capability', {'id': 'strange'}),
        ('load_skill', {'skill_name': 'strange'}),
        ('load_skill', {'skill_name': 'own-one'}),
        ('load_capability', {'id': 'own-one'}),
        ('load_skill', {'skill_name': 'own-one'}),
        ('read_skill_resource', use),
        ('strange__go', {}),
    )
    history = script.saved
    assert [(name, outcome) for name, outcome, _ in script.results] == snapshot(
        [
            ('read_skill_resource', 'failed'),
            ('load_capability', 'failed'),
            ('load_skill', 'success'),
            ('load_skill', 'failed'),
            ('load_capability', 'success'),
            ('load_skill', 'success'),
            ('read_skill_resource', 'success'),
            ('strange__go', 'failed'),
        ]
    )
    assert [script.results[i][2] for i in (0, 1, 3, 5)] == snapshot(
        [
            "The skill 'strange' is not loaded. Call `load_skill` with skill_name 'strange' first.",
            "There is no capability 'strange' to load. The skills are: 'own-one'.",
            "The skill 'own-one' is not loaded. Call `load_capability` with id 'own-one' first.",
            "The skill 'own-one' is loaded already: its instructions are above and have not changed.",
        ]
    )
    said = spoken_by_the_system(history)
    assert 'MY-INSTRUCTIONS' in said
    for text in ('INSTRUCTIONS', 'FILE', 'CONTENT', 'TOOL', 'USAGE'):
        assert f'STRANGE-{text}' not in said
    assert '<skill name="strange">STRANGE-DESCRIPTION</skill>' in said
    assert '- own-one: Mine.' in said
    assert '- strange' not in said

    resumed = await converse(capability, ('strange__go', {}), history=history)
    assert 'strange__go' in resumed.tools[0]


async def test_a_skill_with_the_name_of_the_capability_stays_on_the_tools():
    capability = SkillsCapability(skills=[Skill('skills', 'About skills.', 'Read.')], disclosure='on-demand')
    script = await converse(capability, ('load_skill', {'skill_name': 'skills'}))
    assert script.results[0][1] == 'success'


async def test_a_skill_with_the_name_of_another_capability_stays_on_the_tools():
    skills = [Skill(name, f'About {name}.', 'Read.') for name in ('caching', 'thinking')]
    script = ScriptedModel(calls=[('load_skill', {'skill_name': 'caching'}), ('load_capability', {'id': 'thinking'})])
    capabilities: list[AbstractCapability[Any]] = [
        SkillsCapability(skills=skills, disclosure='on-demand'),
        Caching(),
        Capability(instructions='Be brief.'),
    ]
    await Agent(script.model, capabilities=capabilities).run('Go.')
    assert [(tool, outcome) for tool, outcome, _ in script.results] == [
        ('load_skill', 'success'),
        ('load_capability', 'success'),
    ]


async def test_what_is_beside_the_skills_of_one_agent_does_not_concern_another():
    capability = SkillsCapability(skills=[Skill('caching', 'About caching.', 'Read.')], disclosure='on-demand')
    await Agent(ScriptedModel(calls=[]).model, capabilities=[capability, Caching()]).run('Go.')
    script = await converse(capability, ('load_capability', {'id': 'caching'}))
    assert script.results[0][:2] == ('load_capability', 'success')


async def test_without_an_agent_only_its_own_id_is_taken():
    skills = [Skill(name, f'About {name}.', 'Read.') for name in ('caching', 'skills')]
    resolved = await SkillsCapability(skills=skills, disclosure='on-demand').for_run(CONTEXT)
    ids: list[str | None] = []
    resolved.apply(lambda capability: ids.append(capability.id))
    assert ids == ['skills', 'caching']


async def test_a_prefix_is_no_hindrance(tmp_path: Path):
    prefixed = capability_of(tmp_path, 'manifest').prefix_tools('my')
    script = await converse(prefixed, LOAD, ('my_adder__add', {'a': 1}))
    assert script.tools[0] == ['load_capability', 'my_read_skill_resource', 'my_run_skill_script']
    assert script.results[1] == ('my_adder__add', 'success', '2\n')


async def test_a_trusted_registry_may_speak(tmp_path: Path):
    write_skill(tmp_path / 'strange', 'Trusted.', 'INSTRUCTIONS')
    remote = Remote(SkillsDirectory(tmp_path), trusted=True)
    capability = SkillsCapability(registries=[remote], disclosure='on-demand')
    script = await converse(capability, ('load_capability', {'id': 'strange'}))
    history = script.saved
    assert 'INSTRUCTIONS' in spoken_by_the_system(history)
    assert 'load_skill' not in script.tools[0]


async def test_the_list_has_a_budget_and_its_text_stays_on_its_line():
    skills = [Skill(f'skill-{i}', f'Short {i}.' if i % 2 else f'Long {i}.\n- fake: {"x" * 500}', '') for i in range(4)]
    whole = await converse(SkillsCapability(skills=skills, disclosure='on-demand', catalog_budget=None))
    assert '\n- fake' not in (whole.instructions[0] or '')
    short = await converse(SkillsCapability(skills=skills, disclosure='on-demand', catalog_budget=200))
    assert short.instructions[0] == snapshot("""\
<context id="capability:deferred_capabilities">
The following capabilities are deferred and can be loaded using the `load_capability` tool. A capability's tools stay hidden until it is loaded:
- skill-0: Long 0. - fake: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
- skill-1: Short 1.
- skill-2: Long 2. - fake: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
- skill-3: Short 3.
</context>
A later <context> element with the same id replaces the earlier one and stays in effect until replaced again.\
""")
    names = await converse(SkillsCapability(skills=skills, disclosure='on-demand', catalog_budget=40))
    assert '- skill-0\n- skill-1\n' in (names.instructions[0] or '')


async def test_a_description_that_fits_is_listed_whole_whatever_is_in_it():
    skills = [Skill('reports', 'Sums up R&D reports of <10 pages.', '')]
    script = await converse(SkillsCapability(skills=skills, disclosure='on-demand'))
    assert '\n- reports: Sums up R&D reports of <10 pages.\n' in (script.instructions[0] or '')


async def test_model_settings_hold_while_the_skill_is_loaded():
    seen: list[Any] = []

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(cast(dict[str, Any], info.model_settings or {}).get('temperature'))
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart('done')])
        tool = info.function_tools[0].name
        args = {'id': 'calm'} if tool == 'load_capability' else {'skill_name': 'calm'}
        return ModelResponse(
            parts=[ToolCallPart('load_capability' if tool == 'load_capability' else 'load_skill', args)]
        )

    for disclosure in ('tools', 'on-demand'):
        calm = Skill('calm', 'Calm.', 'Be calm.', model_settings={'temperature': 0.0})
        plain = Skill('plain', 'Plain.', 'Be plain.')
        capability = SkillsCapability(skills=[calm, plain], disclosure=disclosure)
        await Agent(FunctionModel(respond), capabilities=[capability]).run('Go.')
    assert seen == [None, 0.0, None, 0.0]


async def test_each_run_sees_its_own_skills(tmp_path: Path):
    def belongs(ctx: RunContext[str], skill: Skill[str]) -> bool:
        return skill.name == ctx.deps

    write_skill(tmp_path / 'alpha')
    write_skill(tmp_path / 'beta')
    capability = SkillsCapability[str](directories=[tmp_path], skill_filter=belongs, disclosure='on-demand')
    script = ScriptedModel(calls=[('load_capability', {'id': 'alpha'})])
    await Agent(script.model, capabilities=[capability], deps_type=str).run('Go.', deps='beta')
    assert script.results[0][1:] == snapshot(
        ('failed', "There is no capability 'alpha' to load. The skills are: 'beta'.")
    )
    await Agent(script.model, capabilities=[capability], deps_type=str).run('Go.', deps='none')
    assert script.tools[-1] == []


async def test_a_run_that_sees_other_skills_meanwhile_changes_nothing():
    skills = [Skill(f'skill-{i}', 'x' * 300, 'Do it.') for i in range(3)]
    capability = SkillsCapability[int](
        skills=skills,
        skill_filter=lambda ctx, skill: skill.name < f'skill-{ctx.deps}',
        catalog_budget=200,
        disclosure='on-demand',
    )
    loaded: list[tuple[int, str]] = []

    @capability.toolset.on(SkillLoaded)
    def note(ctx: RunContext[int], event: SkillLoaded) -> None:
        loaded.append((ctx.deps, event.skill_name))

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart('done')])
        if 'skill-2' in (info.instructions or ''):
            await agent.run('Go.', deps=1)
        return ModelResponse(parts=[ToolCallPart('load_capability', {'id': 'skill-0'})])

    agent = Agent(FunctionModel(respond), capabilities=[capability], deps_type=int)
    await agent.run('Go.', deps=3)
    assert loaded == [(1, 'skill-0'), (3, 'skill-0')]


async def test_skills_that_change_are_offered_as_they_are(tmp_path: Path):
    write_skill(tmp_path / 'alpha', body='One.')
    capability = SkillsCapability(directories=[tmp_path], disclosure='on-demand', auto_reload=True)
    load: Call = ('load_capability', {'id': 'alpha'})
    history = (await converse(capability, load)).saved
    assert 'One.' in spoken_by_the_system(history)
    write_skill(tmp_path / 'alpha', body='Another.')
    write_skill(tmp_path / 'beta')
    script = await converse(capability, load)
    history = script.saved
    assert 'Another.' in spoken_by_the_system(history)
    assert '- beta: Does things.' in (script.instructions[0] or '')


async def test_a_module_that_cannot_be_imported_fails_the_load(tmp_path: Path):
    write_skill(tmp_path / 'alpha', files={'tools.py': 'import pydantic_ai_skills, gone'})
    capability = SkillsCapability(directories=[tmp_path], disclosure='on-demand')
    script = await converse(capability, ('load_capability', {'id': 'alpha'}))
    assert script.results == snapshot(
        [
            (
                'load_capability',
                'failed',
                "The tools of skill 'alpha' cannot be imported: ModuleNotFoundError: No module named 'gone'",
            )
        ]
    )


@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_instructions_that_cannot_be_made_fail_the_load(disclosure: Any):
    def instructions() -> str:
        raise ValueError('no text')

    capability = SkillsCapability(skills=[Skill('alpha', 'Does it.', instructions)], disclosure=disclosure)
    load: Call = (
        ('load_skill', {'skill_name': 'alpha'}) if disclosure == 'tools' else ('load_capability', {'id': 'alpha'})
    )
    script = await converse(capability, load, load)
    message = "The instructions of skill 'alpha' failed with ValueError: no text"
    assert script.results == [(load[0], 'failed', message)] * 2


async def test_instructions_that_cannot_be_read_any_more_do_not_end_a_conversation(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    write_skill(tmp_path / 'alpha', body='Do alpha.')
    write_skill(tmp_path / 'beta', body='Do beta.')
    history = (
        await converse(
            SkillsCapability(directories=[tmp_path], disclosure='on-demand'), ('load_capability', {'id': 'alpha'})
        )
    ).saved
    capability = SkillsCapability(directories=[tmp_path], disclosure='on-demand')
    await capability.toolset.load()
    (tmp_path / 'alpha/SKILL.md').unlink()
    await capability.load()
    (tmp_path / 'beta/SKILL.md').unlink()
    script = await converse(capability, ('load_capability', {'id': 'beta'}), history=history)
    history = script.saved
    assert script.results[-1][1] == 'success'
    assert "The instructions of the skill 'alpha' cannot be read at the moment." in spoken_by_the_system(history)
    assert "The instructions of skill 'alpha' cannot be read: 'SKILL.md' does not exist." in caplog.messages


async def test_all_can_be_read_up_front(tmp_path: Path):
    capability = capability_of(tmp_path, 'module')
    await capability.load()
    (tmp_path / 'adder/SKILL.md').write_text('changed')
    (tmp_path / 'adder/tools.py').write_text('changed')
    history = (await converse(capability)).saved
    assert 'adder__add' not in str(history)
    # A run that goes on reads nothing: what it needs was read before.
    load = ModelResponse(parts=[ToolCallPart(*LOAD, tool_call_id='x', tool_kind='capability-load')])
    loaded = ModelRequest(parts=[LoadCapabilityReturnPart(content={}, tool_call_id='x')])
    script = await converse(capability, CALLS[0], history=[*history[:1], load, loaded])
    history = script.saved
    assert script.results[-1] == ('adder__add', 'success', '5\n')
    assert 'Call `add`.' in spoken_by_the_system(history)


def test_another_disclosure_is_refused():
    with pytest.raises(ValueError, match="disclosure is 'tools' or 'on-demand', not 'all'"):
        SkillsCapability(skills=[], disclosure='all')  # pyright: ignore[reportArgumentType] - what is refused


async def test_more_skills_than_the_limit_are_offered_by_the_tools_and_a_problem_says_so():
    skills = [Skill(f'skill-{number}', 'Does.', 'Do it.', tools=[Tool(lambda: 'x', name='go')]) for number in range(4)]
    calls: list[Call] = [('load_skill', {'skill_name': 'skill-1'}), ('skill_1__go', {})]
    capability = SkillsCapability(skills=skills, disclosure='on-demand', max_on_demand=3)
    script = await converse(capability, *calls)
    assert script.tools[0] == ['list_skills', 'load_skill']
    assert '<skill name="skill-3">' in str(script.instructions[0])
    assert script.results[-1] == ('skill_1__go', 'success', 'x')
    assert [str(problem) for problem in capability.toolset.problems] == snapshot(
        ['skills: warning [too-many-on-demand] 4 skills are too many to be offered on demand (max_on_demand is 3).']
    )
    script = await converse(SkillsCapability(skills=skills[1:], disclosure='on-demand', max_on_demand=3))
    assert script.tools[0] == ['load_capability']
