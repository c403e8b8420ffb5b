"""Whether a script runs, and what a person approves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dirty_equals import IsStr
from inline_snapshot import snapshot

from pydantic_ai_skills.exceptions import SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.execution.base import CallableSkillScriptExecutor, is_sandbox
from pydantic_ai_skills.execution.bubblewrap.executor import BubblewrapSkillScriptExecutor
from pydantic_ai_skills.execution.gate import Gate, ScriptDecision, check_policy, describe_call
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.workspace import WorkspaceSkillScriptExecutor
from pydantic_ai_skills.types import Skill, SkillScript
from pydantic_ai_skills.types.provenance import SkillProvenance
from pydantic_ai_skills.types.script import ImportedCode

from .conftest import MakeScript

SCRIPT = SkillScript('scripts/x.py', uri='/skill/scripts/x.py', skill_name='pdf')
SKILL = Skill('pdf', 'Works with PDFs.', 'Do it.')


@pytest.mark.parametrize('decision', ['allow', 'ask', 'deny'])
async def test_a_policy_is_a_decision_or_a_function_that_makes_one(decision: ScriptDecision) -> None:
    seen: list[Any] = []

    def sync(ctx: Any, skill: Any, script: Any, args: Any) -> ScriptDecision:
        seen.append((ctx, skill, script, args))
        return decision

    async def later(ctx: Any, skill: Any, script: Any, args: Any) -> ScriptDecision:
        return decision

    for policy in (decision, sync, later):
        check_policy(policy)
        asked = Gate(policy).needs_approval('ctx', SKILL, SCRIPT, {'a': 1})
        if decision == 'deny':
            with pytest.raises(SkillScriptExecutionError):
                await asked
        else:
            assert await asked == (decision == 'ask')
    assert seen == [('ctx', SKILL, SCRIPT, {'a': 1})]


async def test_what_is_no_policy_is_refused() -> None:
    wrong: Any = 'maybe'
    with pytest.raises(
        SkillValidationError, match="A script policy is 'allow', 'ask', 'deny' or a function .*not 'maybe'"
    ):
        check_policy(wrong)
    returns_nothing: Any = print
    with pytest.raises(SkillValidationError, match='not None'):
        await Gate(returns_nothing).needs_approval(None, SKILL, SCRIPT, None)


def owned(*, trusted: bool) -> Skill[Any]:
    return Skill('pdf', 'Works with PDFs.', 'Do it.', source=SkillProvenance(kind='git', url='u', trusted=trusted))


def test_code_of_strangers_runs_in_a_sandbox_or_not_at_all() -> None:
    executors = (
        LocalSkillScriptExecutor(),
        WorkspaceSkillScriptExecutor(sandboxed=True),
        CallableSkillScriptExecutor(print),
    )
    scripts = [SkillScript('x.py', uri='/x.py', executor=executor) for executor in executors]
    scripts += [ImportedCode('tools.py', uri='/tools.py', skill_name='pdf'), SkillScript('f', function=print)]
    table = {
        whose: [Gate('allow').refusal(skill, script) is None for script in scripts]
        for whose, skill in {'own': SKILL, 'trusted': owned(trusted=True), 'stranger': owned(trusted=False)}.items()
    }
    assert table == {'own': [True] * 5, 'trusted': [True] * 5, 'stranger': [False, True, False, False, True]}
    assert [Gate('allow', closed=True).is_open_for(SKILL, script) for script in scripts] == [False] * 5
    assert [Gate(policy).is_open_for(SKILL, SCRIPT) for policy in (None, 'allow', 'ask', 'deny')] == [
        True,
        True,
        False,
        False,
    ]
    assert BubblewrapSkillScriptExecutor.sandboxed
    assert not is_sandbox(WorkspaceSkillScriptExecutor())


class OwnScript(SkillScript):
    async def run(self, ctx: Any, args: object = None) -> Any:
        return 'ran'


def test_python_of_strangers_is_not_told_to_need_a_sandbox() -> None:
    refusal = Gate('allow').refusal(owned(trusted=False), OwnScript('own', skill_name='pdf'))
    assert refusal is not None
    assert 'never runs in this process' in refusal


async def test_a_denial_tells_the_model_and_the_developer() -> None:
    async def denial(gate: Gate, skill: Skill[Any], script: SkillScript) -> str:
        with pytest.raises(SkillScriptExecutionError) as error:
            await gate.needs_approval(None, skill, script, None)
        return str(error.value)

    code = ImportedCode('tools.py', uri='/tools.py', skill_name='pdf')
    assert await denial(Gate('deny'), SKILL, SCRIPT) == snapshot(
        "The script 'scripts/x.py' of skill 'pdf' may not be run here, so carry on without it."
    )
    assert await denial(Gate(closed=True), SKILL, SCRIPT) == snapshot(
        "The script 'scripts/x.py' of skill 'pdf' may not be run here, so carry on without it. For the developer: `run_skill_script` is excluded, and with it all code of skills."
    )
    assert await denial(Gate(), owned(trusted=False), SCRIPT) == snapshot(
        "The script 'scripts/x.py' of skill 'pdf' may not be run here, so carry on without it. For the developer: its source is not trusted, and code of strangers runs in a sandbox only, such as BubblewrapSkillScriptExecutor. If you vouch for the source, say so with its `trusted` option."
    )
    assert await denial(Gate(), owned(trusted=False), code) == snapshot(
        "The script 'tools.py' of skill 'pdf' may not be run here, so carry on without it. For the developer: its source is not trusted, and code of strangers never runs in this process. If you vouch for the source, say so with its `trusted` option."
    )


async def test_a_call_names_the_exact_command(make_script: MakeScript) -> None:
    script = make_script('scripts/a.sh', '#!/bin/sh\necho')
    call = await describe_call(script, {'_': 'my file', '_stdin': 'text'}, executor=LocalSkillScriptExecutor())
    assert call.metadata() == {
        'skill': 'skill',
        'script': 'scripts/a.sh',
        'command': f"/bin/sh {script.path} 'my file'",
        'stdin': 'text',
        'digest': IsStr(regex='[0-9a-f]{64}'),
    }
    assert (await describe_call(script, ['x'])).command == 'scripts/a.sh x'


async def test_the_digest_changes_with_the_command_and_with_every_file_of_the_skill(
    make_script: MakeScript, skill_dir: Path
) -> None:
    script = make_script('scripts/a.sh', 'echo')
    helper = make_script('scripts/helper.sh', 'echo')
    seen = {(await describe_call(script, None)).digest}
    assert (await describe_call(script, None)).digest in seen

    async def differs() -> None:
        digest = (await describe_call(script, None)).digest
        assert digest not in seen
        seen.add(digest)

    for args in (['x'], {'_stdin': ''}, {'_stdin': 'x'}):
        digest = (await describe_call(script, args)).digest
        assert digest not in seen
        seen.add(digest)
    assert helper.path is not None
    helper.path.write_text('rm -rf /')
    await differs()
    helper.path.chmod(0o755)
    await differs()
    helper.path.rename(skill_dir / 'moved.sh')
    await differs()
    (skill_dir / 'reference.md').write_text('x')
    await differs()


async def test_a_script_without_a_skill_is_judged_by_its_file(make_script: MakeScript) -> None:
    script = make_script('a.sh', 'echo')
    script.skill_dir = None
    before = await describe_call(script, None)
    assert script.path is not None
    script.path.with_name('other').touch()
    assert await describe_call(script, None) == before
    script.path.write_text('changed')
    assert await describe_call(script, None) != before


def greet(name: str) -> str:
    return f'Hello {name}'


def welcome(name: str) -> str:
    return f'Welcome {name}'


async def test_a_function_is_judged_by_its_source() -> None:
    call = await describe_call(SkillScript('greet', function=greet), {'name': 'you'})
    assert (call.command, call.stdin) == ('greet({"name": "you"})', None)
    other = SkillScript('greet', function=welcome)
    assert (await describe_call(other, {'name': 'you'})).digest != call.digest
    assert (await describe_call(SkillScript('greet', function=greet), None)).command == 'greet()'
    namespace: dict[str, object] = {}
    exec('def made(): return 1', namespace)
    made = SkillScript('made', function=namespace['made'])  # pyright: ignore[reportArgumentType]
    exec('def made(): return 1 + print()', namespace)
    remade = SkillScript('made', function=namespace['made'])  # pyright: ignore[reportArgumentType]
    assert (await describe_call(made, None)).digest != (await describe_call(remade, None)).digest


async def test_arguments_that_cannot_be_passed_cannot_be_approved(make_script: MakeScript) -> None:
    with pytest.raises(SkillScriptExecutionError, match='cannot be the name of an argument'):
        await describe_call(make_script('a.sh', ''), {'x y': 1})
