"""Which scripts run: every outcome of a policy, in whole agent runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from anyio import to_thread
from dirty_equals import IsPartialDict, IsStr
from inline_snapshot import snapshot
from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    LocalSkillScriptExecutor,
    PathPolicy,
    ScriptPolicy,
    Skill,
    SkillRegistry,
    SkillsCapability,
    SkillScript,
    SkillScriptExecutor,
    SkillsDirectory,
    SkillsToolset,
    SkillValidationError,
)
from pydantic_ai_skills.execution.gate import ScriptDecision
from pydantic_ai_skills.types import SkillProvenance
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import call_tool, write_skill

pytestmark = pytest.mark.anyio

GO: Call = ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'go.py', 'args': {'_': ['now']}})


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = write_skill(tmp_path / 'skills/alpha', files={'go.py': 'import sys\nprint("ran", sys.argv[1])'})
    return folder.parent


async def run(toolset: SkillsToolset[Any], *calls: Call) -> list[tuple[str, str, Any]]:
    return (await converse(toolset, *(calls or [GO]))).results


@pytest.mark.parametrize('policy', [None, 'allow', lambda *_: 'allow'])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
async def test_an_allowed_script_runs(library: Path, policy: ScriptPolicy | None):
    assert await run(SkillsToolset(directories=[library], script_policy=policy)) == [
        ('run_skill_script', 'success', 'ran now\n')
    ]


async def test_a_denied_script_does_not_run_and_the_run_goes_on(library: Path):
    assert await run(SkillsToolset(directories=[library], script_policy='deny')) == snapshot(
        [
            (
                'run_skill_script',
                'failed',
                "The script 'go.py' of skill 'alpha' may not be run here, so carry on without it.",
            )
        ]
    )


async def test_a_policy_is_asked_with_everything_it_may_need(library: Path):
    seen: list[tuple[Any, ...]] = []

    async def policy(ctx: RunContext[Any], skill: Skill[Any], script: SkillScript, args: Any) -> ScriptDecision:
        seen.append((ctx.tool_name, skill.name, script.name, args))
        return 'deny' if args == {'_': ['now']} else 'allow'

    later: Call = ('run_skill_script', {'skill_name': 'alpha', 'script_name': 'go.py', 'args': ['later']})
    results = await run(SkillsToolset(directories=[library], script_policy=policy), GO, later)
    assert [outcome for _, outcome, _ in results] == ['failed', 'success']
    assert seen == [
        ('run_skill_script', 'alpha', 'go.py', {'_': ['now']}),
        ('run_skill_script', 'alpha', 'go.py', ['later']),
    ]


def test_something_else_than_a_policy_is_refused():
    with pytest.raises(SkillValidationError, match="is 'allow', 'ask', 'deny' or a function"):
        SkillsCapability(skills=[], script_policy='maybe')  # pyright: ignore[reportArgumentType] - what is refused


class Remote(SkillRegistry):
    """Skills of a directory, as if they had been fetched."""

    def __init__(self, directory: SkillsDirectory, *, trusted: bool) -> None:
        self._directory = directory
        self._source = SkillProvenance(kind='test', url='https://example.com/skills', trusted=trusted)

    def get_skills(self) -> list[Skill[Any]]:
        skills = list(self._directory.get_skills().values())
        for skill in skills:
            skill.source = self._source
        return skills


class Downloads(SkillRegistry):
    """Skills of a directory, of which nobody said where they are from."""

    def __init__(self, skills: list[Skill[Any]]) -> None:
        self._skills = skills

    def get_skills(self) -> list[Skill[Any]]:
        return self._skills


class OwnDownloads(Downloads):
    trusted = True


@pytest.mark.parametrize('written', [False, True], ids=['in a folder', 'in Python'])
@pytest.mark.parametrize(('registry', 'outcome'), [(Downloads, 'failed'), (OwnDownloads, 'success')])
async def test_programs_of_a_registry_that_does_not_say_where_they_are_from_are_a_strangers(
    library: Path, registry: type[Downloads], outcome: str, written: bool
):
    found = await to_thread.run_sync(SkillsDirectory(library).get_skills)
    skills = list(found.values())
    if written:
        program = SkillScript('go.py', uri=str(library / 'alpha/go.py'))
        skills = [Skill[Any]('alpha', 'Does alpha.', 'Do it.', scripts=[program])]
    text_only = Skill[Any]('beta', 'Has no files.', 'Do it.')
    toolset = SkillsToolset[Any](registries=[registry([*skills, text_only])])
    ((_, happened, _),) = await run(toolset)
    assert happened == outcome
    assert [toolset.get_skill(name).source is None for name in ('alpha', 'beta')] == [False, True]


@pytest.mark.parametrize(
    ('trusted', 'make_executor', 'outcome'),
    [
        (False, LocalSkillScriptExecutor, 'failed'),
        (True, LocalSkillScriptExecutor, 'success'),
        (False, BubblewrapSkillScriptExecutor, 'success'),
    ],
)
async def test_by_default_a_script_from_a_registry_needs_a_sandbox_or_trust(
    library: Path, trusted: bool, make_executor: Callable[[], SkillScriptExecutor], outcome: str
):
    executor = await to_thread.run_sync(make_executor)
    remote = Remote(SkillsDirectory(library, script_executor=executor), trusted=trusted)
    ((_, happened, content),) = await run(SkillsToolset(registries=[remote]))
    assert happened == outcome
    assert content == (
        'ran now\n'
        if outcome == 'success'
        else snapshot(
            "The script 'go.py' of skill 'alpha' may not be run here, so carry on without it. For the developer: its source is not trusted, and code of strangers runs in a sandbox only, such as BubblewrapSkillScriptExecutor. If you vouch for the source, say so with its `trusted` option."
        )
    )


class Approval:
    """An agent that stops to ask, and what it asked for."""

    def __init__(self, toolset: SkillsToolset[Any], call_id: str = 'call') -> None:
        self.script = ScriptedModel(calls=[GO], call_id=call_id)
        self.agent = Agent(self.script.model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
        self.history: list[ModelMessage] = []
        self.requests = DeferredToolRequests()

    async def ask(self) -> dict[str, Any]:
        result = await self.agent.run('Go.')
        assert isinstance(result.output, DeferredToolRequests)
        self.history, self.requests = result.all_messages(), result.output
        (call,) = self.requests.approvals
        return self.requests.metadata[call.tool_call_id]

    async def answer(self, answer: bool | ToolDenied, *, with_metadata: bool = False) -> list[tuple[str, str, Any]]:
        (call,) = self.requests.approvals
        results = DeferredToolResults(
            approvals={call.tool_call_id: answer}, metadata=self.requests.metadata if with_metadata else {}
        )
        await self.agent.run(message_history=self.history, deferred_tool_results=results)
        return self.script.results


async def test_a_person_is_told_the_exact_command_and_approves_it(library: Path):
    approval = Approval(SkillsToolset(directories=[library], script_policy='ask'))
    assert await approval.ask() == {
        'skill': 'alpha',
        'script': 'go.py',
        'command': IsStr(regex=r'\S*python\S* .*/skills/alpha/go\.py now'),
        'stdin': None,
        'digest': IsStr(regex='[0-9a-f]{64}'),
    }
    assert await approval.answer(True) == [('run_skill_script', 'success', 'ran now\n')]


async def test_a_person_denies_it(library: Path):
    approval = Approval(SkillsToolset(directories=[library], script_policy='ask'))
    await approval.ask()
    assert await approval.answer(ToolDenied('Not today.')) == [('run_skill_script', 'denied', 'Not today.')]


@pytest.mark.parametrize('change', ['the script', 'a file beside it'])
async def test_an_approval_does_not_survive_a_change_of_the_files(library: Path, change: str):
    approval = Approval(SkillsToolset(directories=[library], script_policy='ask'))
    await approval.ask()
    name = 'go.py' if change == 'the script' else 'helper.py'
    (library / 'alpha' / name).write_text('print("changed")')
    assert await approval.answer(True, with_metadata=True) == snapshot(
        [
            (
                'run_skill_script',
                'failed',
                "The script 'go.py' was not run: it, its arguments or a file of its skill is not what was approved. Call it again to ask for another approval.",
            )
        ]
    )


@pytest.mark.parametrize('with_metadata', [False, True])
async def test_in_another_process_the_messages_or_the_metadata_bring_the_approval_back(
    library: Path, with_metadata: bool
):
    approval = Approval(SkillsToolset(directories=[library], script_policy='ask'))
    await approval.ask()
    elsewhere = Approval(SkillsToolset(directories=[library], script_policy='ask'))
    saved = ModelMessagesTypeAdapter.dump_json(approval.history)
    elsewhere.history, elsewhere.requests = ModelMessagesTypeAdapter.validate_json(saved), approval.requests
    elsewhere.script.calls = []
    assert await elsewhere.answer(True, with_metadata=with_metadata) == [('run_skill_script', 'success', 'ran now\n')]


async def test_where_neither_metadata_nor_messages_tell_what_was_approved_nothing_runs(library: Path):
    approval = Approval(SkillsToolset(directories=[library], script_policy='ask'))
    await approval.ask()
    approval.history = [replace(message, metadata=None) for message in approval.history]
    assert await approval.answer(True) == snapshot(
        [
            (
                'run_skill_script',
                'failed',
                "The script 'go.py' was not run: it is not known any more what was approved. For the developer: hand the metadata of the request back with the approval.",
            )
        ]
    )


@pytest.mark.parametrize('change', ['the files', 'the arguments'])
async def test_an_approval_in_the_messages_is_for_what_was_asked(library: Path, change: str):
    approval = Approval(SkillsToolset(directories=[library], script_policy='ask'))
    await approval.ask()
    if change == 'the files':
        (library / 'alpha' / 'go.py').write_text('print("changed")')
    else:
        (call,) = approval.history[-1].parts
        other = replace(cast(ToolCallPart, call), args={**GO[1], 'args': {'_': ['never']}})
        approval.history[-1] = replace(cast(ModelResponse, approval.history[-1]), parts=[other])
    ((_, outcome, content),) = await approval.answer(True)
    assert outcome == 'failed'
    assert 'is not what was approved' in content


async def test_a_call_whose_messages_are_elsewhere_asks_too(library: Path):
    toolset = SkillsToolset(directories=[library], script_policy='ask')
    with pytest.raises(ApprovalRequired) as request:
        await call_tool(toolset, GO[0], **GO[1])
    assert request.value.metadata == IsPartialDict(skill='alpha', script='go.py')


async def test_functions_are_approved_too():
    toolset = SkillsToolset(skills=[], script_policy='ask')

    @toolset.skill
    def alpha() -> str:
        """Alpha."""
        return ''

    @alpha.script(name='go.py')
    def go(_: list[str]) -> str:
        return f'called with {_}'

    approval = Approval(toolset)
    assert (await approval.ask())['command'] == snapshot('go.py({"_": ["now"]})')
    assert await approval.answer(True) == [('run_skill_script', 'success', "called with ['now']")]


async def test_each_of_several_open_requests_can_be_approved(library: Path):
    toolset = SkillsToolset(directories=[library], script_policy='ask')
    old, new = Approval(toolset, call_id='old'), Approval(toolset, call_id='new')
    await old.ask()
    await new.ask()
    assert (await old.answer(True))[0][1] == 'success'
    assert (await new.answer(True))[0][1] == 'success'


async def test_a_path_policy_keeps_arguments_inside_their_folders(tmp_path: Path):
    inside, outside = tmp_path / 'inside', tmp_path / 'outside'
    inside.mkdir()
    outside.mkdir()
    toolset = SkillsToolset(skills=[], script_policy=PathPolicy(write={'target': [inside]}))

    @toolset.skill
    def writer() -> str:
        """Writes."""
        return ''

    @writer.script
    def write(target: str, text: str) -> str:
        Path(target).write_text(text)
        return 'written'

    def to(path: Path) -> Call:
        args = {'target': str(path), 'text': 'x'}
        return 'run_skill_script', {'skill_name': 'writer', 'script_name': 'write', 'args': args}

    results = await run(toolset, to(inside / 'a.txt'), to(outside / 'a.txt'), to(inside / '..' / 'outside' / 'a.txt'))
    assert [outcome for _, outcome, _ in results] == ['success', 'failed', 'failed']
    assert (inside / 'a.txt').exists()
    assert list(outside.iterdir()) == []
