"""A program with a DBOS workflow that runs two scripts, to be killed between them and started again.

Usage: `python dbos_program.py FOLDER toolset|capability start|resume`. `start` waits before the second script.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID, WorkflowHandleAsync
from pydantic_ai import Agent, RunContext
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import SkillEvent, SkillsCapability, SkillsToolset
from tests.toolset.durable.sqlite import teach_fractions_of_seconds

FOLDER, KIND, MODE = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

CALLS: list[tuple[str, dict[str, Any]]] = [
    ('load_skill', {'skill_name': 'alpha'}),
    ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'first'}),
    ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'second'}),
    ('read_skill_resource', {'skill_name': 'alpha', 'resource_name': 'report.txt'}),
]


def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if len(returns) == 2 and MODE == 'start':
        (FOLDER / 'waiting').touch()
        time.sleep(600)
    if len(returns) < len(CALLS):
        name, args = CALLS[len(returns)]
        return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f'call-{len(returns) + 1}')])
    return ModelResponse(parts=[TextPart(json.dumps([part.model_response_str() for part in returns[1:]]))])


capability = SkillsCapability(directories=[FOLDER / 'skills'], work_dir=FOLDER / 'work')
toolset: SkillsToolset[Any] = capability.toolset


@toolset.on(SkillEvent)
def note(ctx: RunContext[Any], event: SkillEvent) -> None:
    with (FOLDER / 'events').open('a') as file:
        file.write(f'{type(event).__name__}\n')


agent = Agent(
    FunctionModel(respond),
    name='assistant',
    toolsets=[toolset] if KIND == 'toolset' else [],
    capabilities=[DBOSDurability()] if KIND == 'toolset' else [capability, DBOSDurability()],
)


@DBOS.workflow(name='assist')
async def assist(prompt: str) -> str:
    return (await agent.run(prompt)).output


async def main() -> None:
    await toolset.load()
    teach_fractions_of_seconds()
    DBOS(
        config={
            'name': 'assistant',
            'system_database_url': f'sqlite:///{FOLDER / "dbos.sqlite"}',
            'application_version': '1',
            'log_level': 'ERROR',
        }
    )
    DBOS.launch()
    if MODE == 'start':
        with SetWorkflowID('run'):
            await assist('Go.')
    handle: WorkflowHandleAsync[str] = await DBOS.retrieve_workflow_async('run')
    output = await handle.get_result()
    steps = [step['function_name'] for step in await DBOS.list_workflow_steps_async('run')]
    sys.stdout.write(json.dumps({'output': json.loads(output), 'steps': steps}))
    DBOS.destroy()


asyncio.run(main())
