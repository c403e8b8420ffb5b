"""Has an agent call a script for `run`, and asks the person at the terminal to approve calls."""

from __future__ import annotations

import sys
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied

from .event_loop import event_loop
from .output import Failure, Output
from .run_files import CONVERSATION


def call_script(toolset: Any, out: Output, skill: str, script: str, arguments: object, *, yes: bool) -> ToolReturnPart:
    """Have an agent call the tool once."""
    returned: list[ToolReturnPart] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned.extend(part for message in messages for part in message.parts if isinstance(part, ToolReturnPart))
        if returned:
            return ModelResponse(parts=[TextPart('done')])
        if 'run_skill_script' not in [tool.name for tool in info.function_tools]:
            raise Failure(f'The skill {skill!r} has no scripts.')
        call = {'skill_name': skill, 'script_name': script, 'args': arguments}
        return ModelResponse(parts=[ToolCallPart('run_skill_script', call)])

    agent = Agent(FunctionModel(model, model_name='none'), toolsets=[toolset], output_type=[str, DeferredToolRequests])
    with event_loop() as runner:
        result = runner.run(agent.run('Run it.', conversation_id=CONVERSATION))
        if isinstance(result.output, DeferredToolRequests):
            answers = ask(out, result.output, yes)
            runner.run(agent.run(message_history=result.all_messages(), deferred_tool_results=answers))
    return returned[-1]


def ask(out: Output, requests: DeferredToolRequests, yes: bool) -> DeferredToolResults:
    """Ask the person at the terminal to approve calls. With `yes` all are approved, without a terminal all denied."""
    results = DeferredToolResults()
    for call in requests.approvals:
        what = requests.metadata.get(call.tool_call_id, {}).get('command') or call.tool_name
        out.note(('asks to run: ', 'yellow'), str(what))
        approved = yes
        if not yes and sys.stdin.isatty():
            out.errors.print('Run it? [y/N] ', end='')
            approved = sys.stdin.readline().strip().lower() in ('y', 'yes')
        results.approvals[call.tool_call_id] = approved or ToolDenied('It was not approved.')
    return results
