"""A Temporal workflow around one run of an agent with skills."""

from __future__ import annotations

from pydantic_ai.durable_exec.temporal import PydanticAIWorkflow
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from tests.toolset.durable.temporal_agent import agent


@workflow.defn(name='assist')
class Assist(PydanticAIWorkflow):
    __pydantic_ai_agents__ = (agent,)

    @workflow.run
    async def run(self, prompt: str) -> str:
        return (await agent.run(prompt)).output
