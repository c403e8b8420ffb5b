"""Loaded skills and real history processors: what is taken out of a conversation can be loaded again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    CompactionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo
from pydantic_ai.tools import Tool

from pydantic_ai_skills import Skill, SkillsCapability, SkillsToolset
from tests.conversations import Call, ScriptedModel
from tests.folders import write_skill

pytestmark = pytest.mark.anyio

TICK: Call = ('tick', {})


def tick() -> str:
    return 'tock'


def keep_two(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Of a long conversation, keep the first prompt and the last exchange."""
    return [messages[0], *messages[-2:]] if len(messages) > 4 else messages


def keep_last(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Keep nothing but the last exchange."""
    return messages[-2:]


def clear_results(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Empty all results of tools but the last ones."""
    return [
        replace(message, parts=[replace(p, content='[cleared]') if isinstance(p, ToolReturnPart) else p for p in message.parts])
        if isinstance(message, ModelRequest) and message is not messages[-1]
        else message
        for message in messages
    ]  # fmt: skip


def alpha() -> Skill[Any]:
    return Skill('alpha', 'Alpha.', 'Do alpha.', tools=[Tool(lambda: 'gone', name='go')])


def prompts(messages: list[ModelMessage]) -> list[Any]:
    return [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]


def told(script: ScriptedModel) -> list[str]:
    """What the system says about skills that have to be loaded again, in its instructions or later."""
    later = [prompt for prompt in prompts(script.messages) if str(prompt).startswith('<system>')]
    return [text for text in [script.instructions[-1] or '', *later] if 'again before you use' in text]


class Watching(ScriptedModel):
    """Notes for each request whether the instructions of the skill and the note about it were in it."""

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        text = ModelMessagesTypeAdapter.dump_json(messages).decode() + (info.instructions or '')
        self.seen = [*getattr(self, 'seen', []), ('Do alpha.' in text, 'no longer in the conversation' in text)]
        return super()._respond(messages, info)


LOADS: dict[str, Call] = {
    'tools': ('load_skill', {'skill_name': 'alpha'}),
    'on-demand': ('load_capability', {'id': 'alpha'}),
}


@pytest.mark.parametrize(
    ('disclosure', 'processor'),
    # On demand, instructions are no result of a tool, so they stay when those are cleared.
    [('tools', keep_two), ('tools', clear_results), ('on-demand', keep_two)],
)
async def test_a_capability_tells_at_once_which_skills_were_lost(disclosure: Any, processor: Any):
    load = LOADS[disclosure]
    script = Watching(calls=[load, TICK, TICK, load, ('alpha__go', {})])
    capability = SkillsCapability(skills=[alpha()], disclosure=disclosure)
    agent = Agent(script.model, tools=[tick], capabilities=[ProcessHistory(processor), capability])
    await agent.run('Go.')
    # Whenever the instructions were loaded and are not there, the model is told so in the very same request.
    first_load, *later = script.seen[1:]
    assert first_load == (True, False)
    assert all(has_text or is_told for has_text, is_told in later)
    assert (False, True) in later
    assert script.results[-1] == ('alpha__go', 'success', 'gone')
    assert 'loaded already' not in str(script.results)


async def test_the_note_names_the_skills_and_the_tool():
    script = ScriptedModel(calls=[LOADS['tools'], TICK])
    capability = SkillsCapability(skills=[alpha()])
    await Agent(script.model, tools=[tick], capabilities=[capability, ProcessHistory(keep_two)]).run('Go.')
    assert told(script) == snapshot(
        [
            """\
<system><context id="toolset:skills:notice">
These skills were loaded earlier, but their instructions are no longer in the conversation: 'alpha'. Call `load_skill` again before you use one of them.
</context></system>\
"""
        ]
    )
    assert len(told(script)) == str(script.messages).count('no longer')


async def test_a_toolset_tells_it_in_its_instructions_at_the_next_request():
    script = ScriptedModel(calls=[('load_skill', {'skill_name': 'alpha'}), TICK, TICK, TICK])
    agent = Agent(
        script.model, tools=[tick], toolsets=[SkillsToolset(skills=[alpha()])], capabilities=[ProcessHistory(keep_two)]
    )
    result = await agent.run('Go.')
    assert 'alpha__go' in script.tools[1]
    assert 'alpha__go' not in script.tools[-1]
    told = result.all_messages_json().decode()
    assert 'no longer in the conversation' in told


async def test_a_conversation_that_was_compacted_by_the_provider_has_lost_its_skills():
    load: Call = ('load_skill', {'skill_name': 'alpha'})
    capability = SkillsCapability(skills=[alpha()])
    script = ScriptedModel(calls=[load])
    agent = Agent(script.model, capabilities=[capability])
    history = (await agent.run('Go.')).all_messages()
    compacted = [
        *history,
        ModelResponse(parts=[CompactionPart(content='A summary.', provider_name='scripted'), TextPart('ok')]),
    ]
    script = ScriptedModel(calls=[load, load])
    await Agent(script.model, capabilities=[capability]).run('More.', message_history=compacted)
    assert 'alpha__go' not in script.tools[0]
    assert 'alpha__go' in script.tools[-1]
    assert 'no longer in the conversation' in str(script.instructions[0])
    assert [result[2].startswith('<skill name="alpha">') for result in script.results] == [True, True, False]


@pytest.mark.parametrize('processor', [keep_two, keep_last])
async def test_what_was_lost_is_told_in_another_process_too(processor: Any):
    script = ScriptedModel(calls=[LOADS['tools'], TICK, TICK])
    agent = Agent(
        script.model, tools=[tick], capabilities=[SkillsCapability(skills=[alpha()]), ProcessHistory(processor)]
    )
    saved = (await agent.run('Go.')).all_messages_json()
    assert b'Do alpha.' not in saved
    elsewhere = ScriptedModel(calls=[])
    history = ModelMessagesTypeAdapter.validate_json(saved)
    for message in history:
        message.parts = [part for part in message.parts if 'no longer' not in str(part)]  # pyright: ignore[reportAttributeAccessIssue]
    agent = Agent(elsewhere.model, tools=[tick], capabilities=[SkillsCapability(skills=[alpha()])])
    await agent.run('More.', message_history=history)
    assert "no longer in the conversation: 'alpha'" in ''.join(told(elsewhere))


async def test_another_conversation_has_lost_nothing():
    capability = SkillsCapability(skills=[alpha()])
    load: Call = ('load_skill', {'skill_name': 'alpha'})

    async def run(calls: list[Call], history: list[ModelMessage]) -> list[ModelMessage]:
        script = ScriptedModel(calls=calls)
        result = await Agent(script.model, capabilities=[capability]).run('Go.', message_history=history)
        return result.all_messages()

    first = (await run([load], []))[:1]
    for _ in range(3):
        assert prompts(await run([], [])) == ['Go.']
    for _ in range(2):
        assert prompts(await run([load], [])) == ['Go.']
    # Who goes on from an earlier point has lost nothing.
    assert 'no longer in the conversation' not in str(await run([], first))


async def test_conversations_that_begin_with_the_same_messages_do_not_mix():
    capability = SkillsCapability(skills=[alpha()])
    beginning = [ModelRequest(parts=[UserPromptPart('Hi.')]), ModelResponse(parts=[TextPart('Hello.')])]
    await Agent(ScriptedModel(calls=[LOADS['tools']]).model, capabilities=[capability]).run(
        'Go.', message_history=beginning
    )
    other = ScriptedModel(calls=[])
    await Agent(other.model, capabilities=[capability]).run('Go.', message_history=beginning)
    assert prompts(other.messages) == ['Hi.', 'Go.']


@pytest.mark.parametrize('metadata', [{'pydantic_ai_skills.loaded': 1}, {'pydantic_ai_skills.loaded': {'skills': 1}}])
async def test_notes_that_are_not_as_they_should_be_are_ignored(metadata: dict[str, Any]):
    script = ScriptedModel(calls=[])
    history = [ModelRequest(parts=[UserPromptPart('Go.')], metadata=metadata), ModelResponse(parts=[TextPart('ok')])]
    await Agent(script.model, capabilities=[SkillsCapability(skills=[alpha()])]).run('More.', message_history=history)
    assert prompts(script.messages) == ['Go.', 'More.']


async def test_a_skill_that_is_gone_is_not_asked_for(tmp_path: Path):
    folder = write_skill(tmp_path / 'alpha')
    write_skill(tmp_path / 'beta')
    capability = SkillsCapability(directories=[tmp_path], auto_reload=True)
    load: Call = ('load_skill', {'skill_name': 'alpha'})
    script = ScriptedModel(calls=[load])
    result = await Agent(script.model, capabilities=[capability]).run('Go.')
    (folder / 'SKILL.md').unlink()
    folder.rmdir()
    other = ScriptedModel(calls=[])
    await Agent(other.model, capabilities=[capability]).run('More.', message_history=result.all_messages()[:1])
    assert 'no longer in the conversation' not in str(other.instructions + other.messages)
