"""Run in the environment of another skills library: what it costs to find skills, and what each run costs again.

It is a program of its own, `python peer.py NAME FOLDER`, and imports nothing of this package.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

ROUNDS = 3


class Costs(NamedTuple):
    """How a library finds skills, and what it does for a run."""

    discover: Callable[[], int]
    """Find all skills; how many there are."""

    run: Callable[[], Awaitable[object]]
    """What is done for one run more, as far as skills are concerned."""

    bare_run: Callable[[], Awaitable[object]] | None = None
    """The same without skills, where a run does more than that."""


def get(path: str) -> Any:
    module, _, name = path.rpartition('.')
    return getattr(import_module(module), name)


def pydantic_ai_runs(**options: Any) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]:
    """A run of an agent of pydantic-ai with these options, and one without."""
    messages = import_module('pydantic_ai.messages')
    usage = get('pydantic_ai.usage.RequestUsage')(input_tokens=1, output_tokens=1)

    async def answer(history: Any, info: Any) -> Any:
        return messages.ModelResponse(parts=[messages.TextPart('Hello')], usage=usage)

    agent_type, model_type = get('pydantic_ai.Agent'), get('pydantic_ai.models.function.FunctionModel')
    skilled, bare = agent_type(model_type(answer), **options), agent_type(model_type(answer))
    return lambda: skilled.run('Hello'), lambda: bare.run('Hello')


def ours(root: str) -> Costs:
    toolset, directory = get('pydantic_ai_skills.SkillsToolset'), get('pydantic_ai_skills.SkillsDirectory')
    run, bare = pydantic_ai_runs(toolsets=[toolset(directories=[root], auto_reload=True)])
    return Costs(lambda: len(directory(root).get_skills()), run, bare)


def pydantic_ai_skills_1(root: str) -> Costs:
    toolset = get('pydantic_ai_skills.SkillsToolset')
    run, bare = pydantic_ai_runs(toolsets=[toolset(directories=[root], auto_reload=True)])
    return Costs(lambda: len(toolset(directories=[root]).skills), run, bare)


def pydantic_ai_skills_2(root: str) -> Costs:
    capability = get('pydantic_ai_skills.SkillsCapability')
    run, bare = pydantic_ai_runs(capabilities=[capability(root)])

    def discover() -> int:
        agent_run, _ = pydantic_ai_runs(capabilities=[capability(root)])
        asyncio.run(as_coroutine(agent_run()))
        return -1

    return Costs(discover, run, bare)


def pydantic_ai_harness(root: str) -> Costs:
    capability = get('pydantic_ai_harness.skills.Skills')
    workspace = get('pydantic_ai.workspaces.LocalWorkspaceBackend')
    run, bare = pydantic_ai_runs(capabilities=[capability(root, workspace=workspace(root))])

    def discover() -> int:
        return len(asyncio.run(capability(root, workspace=workspace(root)).load()).skills)

    return Costs(discover, run, bare)


def deepagents(root: str) -> Costs:
    backend = get('deepagents.backends.FilesystemBackend')(root_dir=root, virtual_mode=True)
    middleware = get('deepagents.middleware.skills.SkillsMiddleware')

    def discover() -> int:
        return len(middleware(backend=backend, sources=['/']).before_agent({}, None, {})['skills_metadata'])

    return Costs(discover, in_thread(discover))


def google_adk(root: str) -> Costs:
    load, toolset = get('google.adk.skills.load_skills_from_dir'), get('google.adk.tools.skill_toolset.SkillToolset')
    skills = toolset(skills=load(root))

    async def run() -> object:
        return await skills.get_tools()

    return Costs(lambda: len(load(root)), run)


def strands_agents(root: str) -> Costs:
    skill = get('strands.vended_plugins.skills.Skill')

    async def run() -> None:
        return None

    return Costs(lambda: len(skill.from_directory(root)), run)


def agno(root: str) -> Costs:
    skills, local = get('agno.skills.Skills'), get('agno.skills.LocalSkills')
    loaded = skills(loaders=[local(root)])

    async def run() -> object:
        return loaded.get_system_prompt_snippet()

    return Costs(lambda: len(skills(loaders=[local(root)]).get_all_skills()), run)


def openai_agents(root: str) -> Costs:
    source = get('agents.sandbox.capabilities.skills.LocalDirLazySkillSource')
    local, grant = get('agents.sandbox.entries.LocalDir'), get('agents.sandbox.SandboxPathGrant')

    def discover() -> int:
        grants = (grant(path=root),)
        return len(source(source=local(src=root)).list_skill_metadata(skills_path='skills', source_grants=grants))

    return Costs(discover, in_thread(discover))


def agent_framework_core(root: str) -> Costs:
    source, context = get('agent_framework.FileSkillsSource'), get('agent_framework.SkillsSourceContext')

    async def look() -> int:
        return len(await source(root).get_skills(context(agent=None)))

    return Costs(lambda: asyncio.run(look()), look)


PEERS: dict[str, Callable[[str], Costs]] = {
    'ours': ours,
    'pydantic-ai-skills==1.4.0': pydantic_ai_skills_1,
    'pydantic-ai-skills==2.1.0': pydantic_ai_skills_2,
    'pydantic-ai-harness': pydantic_ai_harness,
    'deepagents': deepagents,
    'google-adk': google_adk,
    'strands-agents': strands_agents,
    'agno': agno,
    'openai-agents': openai_agents,
    'agent-framework-core': agent_framework_core,
}


def in_thread(work: Callable[[], object]) -> Callable[[], Awaitable[object]]:
    return lambda: asyncio.to_thread(work)


async def as_coroutine(given: Awaitable[Any]) -> Any:
    return await given


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


async def timed_run(work: Callable[[], Awaitable[object]]) -> float:
    gc.collect()
    start = time.perf_counter()
    await work()
    return (time.perf_counter() - start) * 1000


async def runs(costs: Costs) -> float:
    """The shortest time of a run, without that of a run without skills; after one that may have to prepare things."""
    await costs.run()
    skilled = min([await timed_run(costs.run) for _ in range(ROUNDS)])
    bare = min([await timed_run(costs.bare_run) for _ in range(2 * ROUNDS)]) if costs.bare_run else 0
    return max(skilled - bare, 0)


def main(peer: str, root: str) -> None:
    warnings.simplefilter('ignore')
    logging.disable(logging.CRITICAL)
    costs = PEERS[peer](root)
    found = costs.discover()
    result = {
        'version': version('pydantic-ai-skills' if peer == 'ours' else peer.partition('==')[0]),
        'found': found,
        'cold': min(timed(costs.discover) for _ in range(ROUNDS)),
        'run': asyncio.run(runs(costs)),
    }
    print(json.dumps(result))


if __name__ == '__main__':
    main(*sys.argv[1:])
