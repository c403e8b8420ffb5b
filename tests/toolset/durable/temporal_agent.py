"""An agent with skills for a Temporal workflow, in a module of its own, which the workflow's sandbox passes through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.durable_exec.temporal import TemporalDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import SkillEvent, SkillsCapability

SKILLS = Path(__file__).parents[3] / 'examples/skills'

CONVERTER = {'skill_name': 'unit-converter'}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ('load_skill', CONVERTER),
    ('read_skill_resource', {**CONVERTER, 'resource_name': 'references/units.md'}),
    ('run_skill_script', {**CONVERTER, 'script_name': 'convert', 'args': {'_': ['26.2', 'mi', 'km']}}),
    ('run_skill_script', {**CONVERTER, 'script_name': 'convert', 'args': {'_': ['26.2', 'mi', 'kg']}}),
]


def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if len(returns) < len(CALLS):
        name, args = CALLS[len(returns)]
        return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f'call-{len(returns) + 1}')])
    return ModelResponse(parts=[TextPart(', '.join(part.outcome for part in returns))])


skills = SkillsCapability(directories=[SKILLS])
agent = Agent(FunctionModel(respond), name='assistant', capabilities=[skills, TemporalDurability()])

heard: list[str] = []
skills.toolset.on(SkillEvent)(lambda ctx, event: heard.append(type(event).__name__))
