"""Records what a model is sent, for `prompt`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import pydantic_ai_skills as api


@dataclass
class Seen:
    """What a model was sent."""

    instructions: str = ''
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    loaded: dict[str, str] = field(default_factory=dict[str, str])


async def look(toolset: api.SkillsToolset[Any], names: list[str]) -> Seen:
    """Run an agent whose model records what it is sent, and loads some skills."""
    seen = Seen()

    def note(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        seen.loaded.update({part.tool_call_id: part.model_response_str() for part in returned})
        if not returned:
            seen.instructions = info.instructions or ''
            seen.tools = [
                {'name': tool.name, 'description': tool.description, 'parameters': tool.parameters_json_schema}
                for tool in info.function_tools
            ]
            if names:
                calls = (ToolCallPart('load_skill', {'skill_name': name}, tool_call_id=name) for name in names)
                return ModelResponse(parts=list(calls))
        return ModelResponse(parts=[TextPart('done')])

    await Agent(FunctionModel(note, model_name='none'), toolsets=[toolset]).run('Hello')
    return seen
