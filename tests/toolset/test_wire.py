"""What the provider classes send, offline: loads, typed tools, notices and schemas as each provider receives them."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from anyio import to_thread
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import Hooks, PrepareTools, ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
)
from pydantic_ai.models.anthropic import AnthropicModelSettings
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import Tool, ToolDefinition

from pydantic_ai_skills import Skill, SkillsCapability, SkillsToolset
from tests.conversations import Call
from tests.folders import write, write_skill
from tests.providers import PROVIDERS, recording
from tests.toolset.test_request_bodies import declared, load, names_of, prefix_of, said

pytestmark = pytest.mark.anyio

Disclosure = Literal['tools', 'on-demand']

LOAD: Call = ('load_skill', {'skill_name': 'alpha'})
GO: Call = ('alpha__go', {})
TICK: Call = ('tick', {})


def tick() -> str:
    return 'tock'


def alpha() -> Skill[Any]:
    return Skill('alpha', 'Alpha.', 'Do alpha.', tools=[Tool(lambda: 'gone', name='go')])


async def send(provider: str, *calls: Call, **options: Any) -> list[dict[str, Any]]:
    """The bodies of a run in which the model makes these calls."""
    with recording(provider, calls) as (model, bodies):
        prompt, history = options.pop('prompt', 'Go.'), options.pop('history', None)
        settings, deps = options.pop('model_settings', None), options.pop('deps', None)
        agent = Agent[Any, str](model, instructions='Be brief.', **options)
        await agent.run(prompt, message_history=history, model_settings=settings, deps=deps)
    return bodies


def by_the_system(body: dict[str, Any]) -> str:
    """The words that the provider presents as the system's."""
    roles = ('system', 'developer')
    own = [message for message in said(body) if message.get('role') in roles]
    marked = [message for message in said(body) if '<system>' in json.dumps(message)]
    return prefix_of(body) + json.dumps([*own, *marked])


# --- Loads --------------------------------------------------------------------------------------------------------

hooks = Hooks[Any]()


@hooks.on.after_tool_execute
async def add_a_line(ctx: RunContext[Any], *, result: Any, **_: Any) -> Any:
    if isinstance(result, ToolReturn):
        returned = cast(ToolReturn[Any], result)
        return replace(returned, return_value=f'Here it is:\n{returned.return_value}\n')
    return f'{result}\n'


@pytest.mark.parametrize('provider', PROVIDERS)
async def test_what_a_hook_adds_to_the_text_does_not_unload_a_skill(provider: str):
    bodies = await send(provider, LOAD, LOAD, GO, capabilities=[SkillsCapability(skills=[alpha()]), hooks])
    text = json.dumps(said(bodies[-1]))
    assert text.count('Do alpha.') == 1
    assert 'loaded already' in text
    assert 'Here it is:' in text
    assert 'gone' in text
    assert 'again before you use' not in json.dumps(bodies)


@pytest.mark.parametrize('provider', PROVIDERS)
async def test_metadata_are_not_sent(provider: str):
    bodies = await send(provider, LOAD, capabilities=[SkillsCapability(skills=[alpha()])])
    assert 'pydantic_ai_skills' not in json.dumps(bodies)


def cut_texts(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Cut the results of tools to half their length, but for those of the last request."""
    return [
        replace(
            message,
            parts=[
                replace(part, content=part.content[: len(part.content) // 2])
                if isinstance(part, ToolReturnPart) and isinstance(part.content, str)
                else part
                for part in message.parts
            ],
        )
        if isinstance(message, ModelRequest) and message is not messages[-1]
        else message
        for message in messages
    ]


def drop_text(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Of a long conversation, keep the first prompt and the last exchange."""
    return [messages[0], *messages[-2:]] if len(messages) > 4 else messages


@pytest.mark.parametrize('provider', PROVIDERS)
@pytest.mark.parametrize('processor', [cut_texts, drop_text])
async def test_the_system_tells_which_skills_were_cut_out_of_the_conversation(provider: str, processor: Any):
    capabilities = [ProcessHistory(processor), SkillsCapability(skills=[alpha()])]
    bodies = await send(provider, LOAD, TICK, TICK, LOAD, GO, capabilities=capabilities, tools=[tick])
    note = "no longer in the conversation: 'alpha'"
    assert note not in json.dumps(bodies[:2])
    assert note in by_the_system(bodies[3])
    assert json.dumps(said(bodies[4])).count('Do alpha.') == 1
    assert 'gone' in json.dumps(said(bodies[-1]))


@pytest.mark.parametrize('provider', PROVIDERS)
async def test_who_goes_on_from_an_earlier_point_of_the_conversation_is_told_nothing(provider: str):
    capability = SkillsCapability(skills=[alpha()])
    with recording(provider, [TICK, LOAD, TICK]) as (model, _):
        messages = (await Agent(model, capabilities=[capability], tools=[tick]).run('Go.')).all_messages()
    for end in (1, 3):
        bodies = await send(provider, history=messages[:end], prompt=None, capabilities=[capability], tools=[tick])
        assert 'again before you use' not in json.dumps(bodies)
        assert 'alpha__go' not in names_of(bodies[-1])


@pytest.mark.parametrize('provider', PROVIDERS)
@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_a_reload_that_changes_a_loaded_skill_is_told(tmp_path: Path, provider: str, disclosure: Disclosure):
    folder = write_skill(tmp_path / 'alpha', body='Do it the old way.')
    capability = SkillsCapability(directories=[tmp_path], disclosure=disclosure)
    with recording(provider, [load(disclosure, 'alpha')]) as (model, _):
        messages = (await Agent(model, capabilities=[capability]).run('Go.')).all_messages()
    bodies = await send(provider, history=messages, capabilities=[capability])
    assert 'changed' not in json.dumps(bodies)
    write(folder, {'SKILL.md': '---\nname: alpha\ndescription: Does things.\n---\nDo it the new way.'})
    await to_thread.run_sync(capability.toolset.reload)
    if disclosure == 'tools':
        (body,) = await send(provider, history=messages, capabilities=[capability])
        assert "have changed since you loaded them: 'alpha'" in by_the_system(body)
        *_, body = await send(provider, LOAD, TICK, history=messages, capabilities=[capability], tools=[tick])
    else:
        (body,) = await send(provider, history=messages, capabilities=[capability])
        assert 'Do it the new way.' in by_the_system(body)
    assert 'Do it the new way.' in json.dumps(body)


async def test_a_toolset_tells_of_a_changed_skill_too(tmp_path: Path):
    folder = write_skill(tmp_path / 'alpha', body='Do it the old way.')
    toolset = SkillsToolset(directories=[tmp_path])
    with recording('openai-chat', [LOAD]) as (model, _):
        messages = (await Agent(model, toolsets=[toolset]).run('Go.')).all_messages()
    write(folder, {'SKILL.md': '---\nname: alpha\ndescription: Does things.\n---\nDo it the new way.'})
    await to_thread.run_sync(toolset.reload)
    (body,) = await send('openai-chat', history=messages, toolsets=[toolset])
    assert "have changed since you loaded them: 'alpha'" in by_the_system(body)


# --- Two loads at once --------------------------------------------------------------------------------------------


async def test_two_equal_loads_in_one_response_send_the_text_once():
    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart('done')])
        return ModelResponse(parts=[ToolCallPart(*LOAD, tool_call_id=str(number)) for number in range(3)])

    result = await Agent(FunctionModel(respond), toolsets=[SkillsToolset(skills=[alpha()])]).run('Go.')
    text = result.all_messages_json().decode()
    assert (text.count('Do alpha.'), text.count('loaded already')) == (1, 2)


# --- Typed tools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('provider', PROVIDERS)
@pytest.mark.parametrize('disclosure', ['tools', 'on-demand'])
async def test_a_tool_called_before_its_skill_is_loaded_is_answered(provider: str, disclosure: Disclosure):
    capability = SkillsCapability(skills=[alpha()], disclosure=disclosure)
    bodies = await send(provider, GO, GO, GO, load(disclosure, 'alpha'), GO, capabilities=[capability])
    name = load(disclosure, 'alpha')[0]
    assert f'all `{name}`' in json.dumps(said(bodies[3]))
    assert 'search_tools' not in names_of(bodies[0])
    assert 'gone' in json.dumps(said(bodies[-1]))
    assert 'gone' not in json.dumps(said(bodies[-2]))
    if disclosure == 'tools':
        assert 'alpha__go' not in names_of(bodies[0])


# --- Schemas ------------------------------------------------------------------------------------------------------

TOOLS_OF_ALPHA = """\
tools:
  go:
    script: go.py
    pass: json-stdin
    args:
      options: object
      items: {type: array, required: false}
      mode: {type: string, enum: [a, b], required: false}
"""
ECHO = 'import sys; print(sys.stdin.read())'


def turn_on_strict(ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
    return [replace(tool_def, strict=True) for tool_def in tool_defs]


def declare_tools(folder: Path) -> None:
    head = f'---\nname: alpha\ndescription: Alpha.\n{TOOLS_OF_ALPHA}---\nDo alpha.'
    write(folder / 'alpha', {'SKILL.md': head, 'go.py': ECHO, 'scripts/run.py': 'print(1)'})


@pytest.mark.parametrize('provider', PROVIDERS)
async def test_a_declared_object_may_have_any_keys(tmp_path: Path, provider: str):
    declare_tools(tmp_path)
    go: Call = ('alpha__go', {'options': {'colour': 'red'}})
    bodies = await send(provider, LOAD, go, capabilities=[SkillsCapability(directories=[tmp_path])])
    assert 'colour' in json.dumps(said(bodies[-1])[-1])
    sent = json.dumps(bodies[-1])
    if provider in ('openai-chat', 'anthropic'):
        (schema,) = [tool for tool in declared(bodies[-1]) if tool['name'] == 'alpha__go']
        parameters = schema.get('parameters') or schema['input_schema']
        assert parameters['properties']['options']['anyOf'][0]['additionalProperties'] is True
    assert '"alpha__go"' in sent


@pytest.mark.parametrize('provider', ['openai-chat', 'openai-responses', 'anthropic'])
async def test_every_tool_can_be_filled_in_strict_mode(tmp_path: Path, provider: str):
    declare_tools(tmp_path)
    calls: list[Call] = [
        LOAD,
        ('alpha__go', {'options': '{"colour": "red"}', 'items': [1, 'x', True], 'mode': None}),
        ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'run.py', 'args': '["--loud"]'}),
        ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'run.py', 'args': ['--loud']}),
        ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'SKILL.md', 'args': '{"page": 1}'}),
    ]
    capabilities = [SkillsCapability(directories=[tmp_path], search_tool='always'), PrepareTools(turn_on_strict)]
    with warnings.catch_warnings():
        # For Anthropic, pydantic-ai warns of objects, which may be given as text as well.
        warnings.filterwarnings('ignore', message='`dict` fields are not supported by Anthropic in strict mode')
        bodies = await send(provider, *calls, capabilities=capabilities)
    text = json.dumps(said(bodies[-1]))
    assert 'do not fit' not in text
    assert text.count('colour') == 2
    for tool in declared(bodies[-1]):
        parameters = tool.get('parameters') or tool['input_schema']
        assert parameters['additionalProperties'] is False
        if provider != 'anthropic':
            assert sorted(parameters['required']) == sorted(parameters['properties'])


# --- The cached prefix --------------------------------------------------------------------------------------------


async def test_tenants_share_the_cached_prefix_before_the_list():
    skills = [Skill(name, f'{name}.', 'Do it.') for name in ('one', 'two')]
    capability = SkillsCapability[str](skills=skills, skill_filter=lambda ctx, skill: skill.name == ctx.deps)
    settings = AnthropicModelSettings(anthropic_cache_instructions=True)
    bodies = [
        (await send('anthropic', capabilities=[capability], deps=tenant, model_settings=settings))[0]
        for tenant in ('one', 'two')
    ]
    one, two = (body['system'] for body in bodies)
    assert one[:-1] == two[:-1]
    assert one[-2]['text'] == 'Be brief.'
    assert 'cache_control' in one[-2]
    assert ('name="one"' in one[-1]['text'], 'name="two"' in two[-1]['text']) == (True, True)
    assert bodies[0]['tools'] == bodies[1]['tools']
