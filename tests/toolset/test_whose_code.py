"""Code that a skill imports into this process: `tools.py`, and skills that a package has written in Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ModelMessage

from pydantic_ai_skills import (
    PackageSkillsRegistry,
    Skill,
    SkillsCapability,
    SkillScript,
    SkillScriptExecutionError,
    SkillsDirectory,
    SkillsToolset,
)
from pydantic_ai_skills.types.script import ImportedCode
from tests.conversations import Call, ScriptedModel, converse
from tests.folders import write
from tests.registries.packages.sites import Site

LOAD: Call = ('load_skill', {'skill_name': 'waver'})
WAVE: Call = ('waver__wave', {})
HEAD = '---\nname: waver\ndescription: Waves.\n'
TOOLS = 'from pydantic_ai import Tool\ndef wave() -> str:\n    return "hi"\ntool = Tool(wave)\n'
WRITTEN = """
from pydantic_ai_skills import Skill
waver = Skill('waver', 'Waves.', 'Do wave.')

@waver.script
def go() -> str:
    return 'went'

@waver.tool_plain
def wave() -> str:
    return 'hi'
"""


def folder(tmp_path: Path, frontmatter: str = '', **files: str) -> Path:
    write(tmp_path / 'waver', {'SKILL.md': f'{HEAD}{frontmatter}---\nDo wave.\n', 'tools.py': TOOLS, **files})
    return tmp_path


def package(site: Site) -> PackageSkillsRegistry:
    files = {'wavers/__init__.py': WRITTEN}
    site.install('wavers', files, entry_points={'pydantic_ai_skills': {'waver': 'wavers:waver'}})
    return PackageSkillsRegistry(packages=['wavers'], path=[site.path], trusted=True)


def asking(toolset: SkillsToolset[Any], *calls: Call) -> tuple[Agent[Any, Any], ScriptedModel]:
    script = ScriptedModel(calls=calls)
    return Agent(script.model, toolsets=[toolset], output_type=[str, DeferredToolRequests]), script


def yes(requests: DeferredToolRequests) -> DeferredToolResults:
    return DeferredToolResults(approvals={call.tool_call_id: True for call in requests.approvals})


async def test_a_person_approves_the_import_and_sees_what_is_imported(tmp_path: Path):
    toolset = SkillsToolset[Any](directories=[folder(tmp_path)], script_policy='ask')
    agent, script = asking(toolset, LOAD, WAVE, LOAD)
    asked = await agent.run('Go.')
    ((_, metadata),) = asked.output.metadata.items()
    assert (metadata['script'], metadata['command']) == ('tools.py', 'import tools.py')
    result = await agent.run(message_history=asked.all_messages(), deferred_tool_results=yes(asked.output))
    assert result.output == 'done'
    # What was approved once need not be approved again.
    assert [outcome for _, outcome, _ in script.results] == ['success'] * 3
    # Nor in another process, which has the messages only.
    other = SkillsToolset[Any](directories=[tmp_path], script_policy='ask')
    again = await converse(other, WAVE, history=result.all_messages())
    assert again.results[-1] == ('waver__wave', 'success', 'hi')


async def test_an_import_that_one_conversation_may_use_another_may_not(tmp_path: Path):
    toolset = SkillsToolset[Any](directories=[folder(tmp_path)], script_policy='ask')
    agent, _ = asking(toolset, LOAD)
    asked = await agent.run('Go.')
    done = await agent.run(message_history=asked.all_messages(), deferred_tool_results=yes(asked.output))
    without_note: list[ModelMessage] = done.all_messages()
    for message in without_note:
        message.metadata = None
    stranger = await converse(toolset, ('list_skills', {}), history=without_note)
    assert 'waver__wave' not in stranger.tools[-1]


async def test_code_that_is_not_what_was_approved_is_not_imported(tmp_path: Path):
    toolset = SkillsToolset[Any](directories=[folder(tmp_path)], script_policy='ask')
    agent, script = asking(toolset, LOAD)
    asked = await agent.run('Go.')
    write(tmp_path / 'waver', {'helper.py': ''})
    await agent.run(message_history=asked.all_messages(), deferred_tool_results=yes(asked.output))
    assert script.results[-1][1:] == snapshot(
        (
            'failed',
            "The script 'tools.py' was not run: it, its arguments or a file of its skill is not what was approved. Call it again to ask for another approval.",
        )
    )


@pytest.mark.parametrize('options', [{'script_policy': 'deny'}, {'exclude_tools': {'run_skill_script'}}])
async def test_a_skill_is_loaded_without_the_tools_that_may_not_be_imported(tmp_path: Path, options: Any):
    specs = 'tools:\n  go: {script: lib/go.py}\n'
    toolset = SkillsToolset[Any](directories=[folder(tmp_path, specs, **{'lib/go.py': 'print()'})], **options)
    await toolset.load(tools=True)
    await toolset.invoke('waver')
    script = await converse(toolset, LOAD, ('waver__go', {}))
    assert [outcome for _, outcome, _ in script.results] == ['success', 'failed']
    assert 'waver__wave' not in script.tools[-1]
    assert [problem.code for problem in toolset.problems] == ['tools-refused']


async def test_a_function_decides_for_each_run(tmp_path: Path):
    seen: list[tuple[str, str]] = []

    async def policy(ctx: RunContext[str], skill: Skill[str], script: SkillScript, args: Any) -> Any:
        seen.append((skill.name, script.name))
        return ctx.deps

    toolset = SkillsToolset[str](directories=[folder(tmp_path)], script_policy=policy)
    allowed = await converse(toolset, LOAD, WAVE, deps='allow')
    assert allowed.results[-1] == ('waver__wave', 'success', 'hi')
    denied = await converse(toolset, ('list_skills', {}), deps='deny', history=allowed.saved)
    assert 'waver__wave' not in denied.tools[-1]
    assert set(seen) == {('waver', 'tools.py')}


async def test_an_import_leaves_nothing_in_the_folder_of_the_skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, 'dont_write_bytecode', False)
    module = f'from .helpers.text import TEXT\n{TOOLS.replace(chr(34) + "hi" + chr(34), "TEXT")}'
    files = {'tools.py': module, 'helpers/text.py': 'TEXT = "helped"'}
    toolset = SkillsToolset[Any](directories=[folder(tmp_path, **files)])
    script = await converse(toolset, LOAD, WAVE)
    assert script.results[-1] == ('waver__wave', 'success', 'helped')
    assert list(tmp_path.rglob('*.pyc')) == []


# --- Skills that a package has written in Python --------------------------------------------------------------------


async def test_a_skill_in_a_package_is_imported_once_it_was_approved(importable: Site):
    toolset = SkillsToolset[Any](registries=[package(importable).prefixed('my-')], script_policy='ask')
    load, run = ('load_skill', {'skill_name': 'my-waver'}), {'skill_name': 'my-waver', 'script_name': 'go'}
    early = await converse(
        toolset, ('run_skill_script', run), ('read_skill_resource', {'skill_name': 'my-waver', 'resource_name': 'x'})
    )
    assert {content for _, _, content in early.results} == snapshot({"The skill 'my-waver' has to be loaded first."})
    with pytest.raises(SkillScriptExecutionError) as refused:
        await toolset.invoke('my-waver')
    assert str(refused.value) == snapshot(
        "The skill 'my-waver' was not loaded: whether its code may be imported is decided in a run."
    )
    assert 'wavers' not in sys.modules
    agent, script = asking(toolset, load, ('my_waver__wave', {}))
    asked = await agent.run('Go.')
    ((_, metadata),) = asked.output.metadata.items()
    assert (metadata['skill'], metadata['script'], metadata['command']) == ('my-waver', 'wavers', 'wavers()')
    assert 'wavers' not in sys.modules
    await agent.run(message_history=asked.all_messages(), deferred_tool_results=yes(asked.output))
    assert [outcome for _, outcome, _ in script.results] == ['success', 'success']


async def test_a_skill_in_a_package_that_may_not_be_imported_cannot_be_loaded(importable: Site):
    allowed = await converse(SkillsToolset[Any](registries=[package(importable)]), LOAD, WAVE)
    assert allowed.results[-1] == ('waver__wave', 'success', 'hi')
    denied = await converse(
        SkillsToolset[Any](registries=[package(importable)], script_policy='deny'), LOAD, history=allowed.saved
    )
    assert denied.results[-1][1] == 'failed'
    assert 'waver__wave' not in denied.tools[-1]


# --- Trust ----------------------------------------------------------------------------------------------------------


def test_a_directory_is_trusted_unless_it_says_otherwise_or_has_a_sandbox(tmp_path: Path):
    class Sandbox:
        sandboxed = True

        async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
            raise NotImplementedError

    folder(tmp_path, 'allowed-tools: Read\n')
    sandbox = Sandbox()
    directories = {
        (trusted, boxed): SkillsDirectory(tmp_path, trusted=trusted, script_executor=sandbox if boxed else None)
        for trusted in (None, True, False)
        for boxed in (False, True)
    }
    trust = {key: directory.get_skills()['waver'].is_trusted for key, directory in directories.items()}
    assert [key for key, is_trusted in trust.items() if is_trusted] == [(None, False), (True, False), (True, True)]
    toolset = SkillsToolset[Any](directories=[directories[None, True]])
    assert [problem.code for problem in toolset.problems] == ['allowed-tools-ignored']


def test_a_declared_tool_without_an_executor_is_left_out(tmp_path: Path):
    given = SkillsDirectory(folder(tmp_path, 'tools:\n  go: {script: go.txt}\n', **{'go.txt': 'x'})).get_skills()[
        'waver'
    ]
    given.files.executor = None
    toolset = SkillsToolset[Any](skills=[given])
    anyio.run(lambda: toolset.load(tools=True))
    assert [problem.code for problem in toolset.problems] == ['tool-script-missing']


def test_code_of_a_module_is_known_by_its_source():
    code = ImportedCode('wavers', uri='/wavers.zip/wavers.py', skill_name='waver', source='x = 1')
    assert (code.path, code.source_text, code.executor) == (None, 'x = 1', None)
    file = ImportedCode('tools.py', uri='/waver/tools.py', skill_name='waver')
    assert (file.path, file.source_text) == (Path('/waver/tools.py'), None)


# --- A filter that is async -----------------------------------------------------------------------------------------


@pytest.mark.parametrize('waits', [False, True])
@pytest.mark.parametrize('count', [2, 1_001])
async def test_a_filter_may_be_async(count: int, waits: bool):
    async def may_see(ctx: RunContext[Any], skill: Skill[Any]) -> bool:
        if waits:
            await anyio.sleep(0)
        return skill.name == 'waver'

    skills = [Skill[Any]('waver', 'Waves.', 'Do wave.', model_settings={'temperature': 0.5})]
    skills += [Skill[Any](f'hidden-{number}', 'Hides.', 'Do hide.') for number in range(count)]
    capability = SkillsCapability[Any](skills=skills, skill_filter=may_see)
    script = await converse(capability, LOAD, ('list_skills', {}))
    assert script.results[-1][2] == {'waver': 'Waves.'}
    seen: list[list[str]] = []

    def note(ctx: RunContext[Any]) -> str:
        seen.append([skill.name for skill in capability.toolset.loaded_skills(ctx)])
        return ''

    await Agent(ScriptedModel(calls=[]).model, capabilities=[capability], instructions=note).run(
        message_history=script.saved
    )
    # Code that cannot wait does without the skills that would have to be waited for.
    assert seen[-1] == ([] if waits else ['waver'])
