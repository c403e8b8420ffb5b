"""One agent and one toolset for `run_sync` in many threads, each with an event loop of its own."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, Literal

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

from pydantic_ai_skills import Skill, SkillLoaded, SkillsCapability, SkillsToolset
from tests.folders import write_skill
from tests.toolset.test_copies import TOOLS

THREADS = 8
RUNS = 4


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Load both skills, use what they have, then tell all results. It has no state, so threads can share it."""
    loader = next(tool for tool in info.function_tools if tool.name in ('load_skill', 'load_capability'))
    key = 'id' if loader.name == 'load_capability' else 'skill_name'
    script = {'skill_name': 'greeter', 'script_name': 'greet'}
    steps: list[list[tuple[str, dict[str, Any]]]] = [
        [(loader.name, {key: 'adder'}), (loader.name, {key: 'greeter'})],
        [('adder__add', {'a': 1, 'b': 2}), ('double', {'number': 4}), ('run_skill_script', script)],
    ]
    done = sum(isinstance(message, ModelResponse) for message in messages)
    if done < len(steps):
        return ModelResponse(parts=[ToolCallPart(name, args) for name, args in steps[done]])
    returns = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return ModelResponse(parts=[TextPart(' '.join(str(part.content) for part in returns[2:]))])


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def greeter() -> Skill[str]:
    def write(ctx: RunContext[str]) -> str:
        return f'Greet {ctx.deps}.'

    skill = Skill[str]('greeter', 'Greets.', write, toolsets=[FunctionToolset([double])])

    @skill.script
    async def greet(ctx: RunContext[str]) -> str:
        await asyncio.sleep(0)
        return f'Hello {ctx.deps}'

    return skill


@pytest.mark.parametrize('kind', ['toolset', 'capability', 'on-demand'])
def test_threads_share_an_agent_and_never_what_belongs_to_a_run(
    kind: Literal['toolset', 'capability', 'on-demand'], tmp_path: Path
):
    write_skill(tmp_path / 'adder', 'Adds.', 'Call `add`.', {'tools.py': TOOLS})
    options: Any = {'directories': [tmp_path], 'skills': [greeter()], 'auto_reload': True}
    capability = SkillsCapability[str](**options, disclosure='on-demand' if kind == 'on-demand' else 'tools')
    toolset = SkillsToolset[str](**options) if kind == 'toolset' else capability.toolset
    brought: Any = {'toolsets': [toolset]} if kind == 'toolset' else {'capabilities': [capability]}
    agent = Agent(FunctionModel(answer), deps_type=str, **brought)
    loads: list[str] = []
    toolset.on(SkillLoaded)(lambda _, event: loads.append(event.skill_name))
    start = Barrier(THREADS)

    def work(number: int) -> list[str]:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        start.wait()
        try:
            outputs: list[str] = []
            for run in range(RUNS):
                # A change for the others to pick up while they run.
                write_skill(tmp_path / f'new-{number}-{run}')
                outputs.append(agent.run_sync('Go.', deps=f'tenant-{number}').output)
            return outputs
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(work, range(THREADS)))
    assert results == [[f'3 8 Hello tenant-{number}'] * RUNS for number in range(THREADS)]
    assert (loads.count('adder'), loads.count('greeter')) == (THREADS * RUNS, THREADS * RUNS)
    toolset.reload()
    assert len(toolset.skills) == 2 + THREADS * RUNS
    assert toolset.problems == []
