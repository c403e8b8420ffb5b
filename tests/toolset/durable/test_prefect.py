"""Agents with skills in real Prefect flows, on a server of their own."""
# pyright: basic, reportMissingImports=false
# Prefect is not in the environment of the type checker.

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect import flow
from prefect.testing.utilities import prefect_test_harness
from pydantic_ai import Agent
from pydantic_ai.durable_exec.prefect import PrefectDurability

from pydantic_ai_skills import SkillEvent, SkillsCapability
from tests.conversations import ScriptedModel
from tests.folders import write_skill

# The warnings of Prefect's server and of its clients are about themselves.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings('ignore')]


@pytest.fixture(autouse=True)
def nothing_blocks_the_event_loop() -> None:
    """Prefect does, below calls of this package."""


@pytest.fixture(autouse=True, scope='module')
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('DO_NOT_TRACK', '1')
        patch.setenv('PREFECT_LOGGING_TO_API_ENABLED', 'false')
        patch.setenv('PREFECT_SERVER_ANALYTICS_ENABLED', 'false')
        patch.setenv('PREFECT_HOME', str(tmp_path_factory.mktemp('prefect')))
        with prefect_test_harness(server_startup_timeout=240):
            yield


async def test_a_flow_that_is_tried_again_runs_no_script_twice(tmp_path: Path):
    count = f'open({str(tmp_path / "ran")!r}, "a").write("go\\n"); print("went")'
    write_skill(tmp_path / 'skills/alpha', files={'scripts/go.py': count, 'notes.md': 'Notes.'})
    skills = SkillsCapability(directories=[tmp_path / 'skills'])
    heard: list[str] = []
    skills.toolset.on(SkillEvent)(lambda ctx, event: heard.append(type(event).__name__))
    alpha = {'skill_name': 'alpha'}
    script = ScriptedModel(
        calls=[
            ('load_skill', alpha),
            ('run_skill_script', {**alpha, 'script_name': 'go'}),
            ('read_skill_resource', {**alpha, 'resource_name': 'notes.md'}),
        ]
    )
    agent = Agent(script.model, name='assistant', capabilities=[skills, PrefectDurability()])
    tries: list[str] = []

    @flow(retries=1)
    async def assist(prompt: str) -> list[object]:
        tries.append((await agent.run(prompt)).output)
        if len(tries) == 1:
            raise RuntimeError('Something fails after all tools have run.')
        return [content for _, _, content in script.results]

    loaded, ran, read = await assist('Go.')
    assert tries == ['done', 'done']
    assert '<skill name="alpha"' in str(loaded)
    assert (ran, read) == ('went\n', 'Notes.')
    assert (tmp_path / 'ran').read_text() == 'go\n'
    assert heard == ['SkillLoaded', 'ScriptFinished', 'ResourceRead']
