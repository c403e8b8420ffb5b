"""Results, the executor that calls a function, and time limits for any executor."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.base import CallableSkillScriptExecutor, SkillScriptExecutor, is_sandbox, with_timeout
from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor
from pydantic_ai_skills.execution.result import ScriptResult
from pydantic_ai_skills.types import SkillScript

SCRIPT = SkillScript('scripts/x.py', uri='/skill/scripts/x.py')


@pytest.mark.parametrize(
    ('result', 'text'),
    [
        (ScriptResult(exit_code=0, stdout='done\n', stderr='', duration=0.1), 'done'),
        (ScriptResult(exit_code=0, stdout='', stderr=' \n', duration=0.1), '(no output)'),
        (ScriptResult(exit_code=0, stdout='a\n', stderr='warning\n', duration=0.1), 'a\nstderr:\nwarning'),
        (ScriptResult(exit_code=3, stdout='', stderr='bad\n', duration=0.1), 'stderr:\nbad\nexit code: 3'),
        (
            ScriptResult(exit_code=137, stdout='so far', stderr='', duration=30.04, timed_out=True),
            'so far\nstopped after 30.0 s',
        ),
    ],
)
def test_a_result_as_text_shows_output_errors_and_a_bad_exit(result: ScriptResult, text: str) -> None:
    assert str(result) == text


async def test_an_async_function_gets_the_script_the_arguments_and_the_context_it_asks_for() -> None:
    async def func(*, script: SkillScript, args: Any, ctx: Any) -> Any:
        return script.name, args, ctx

    executor = CallableSkillScriptExecutor(func)
    assert await executor.run(SCRIPT, {'a': 1}, 'ctx') == ('scripts/x.py', {'a': 1}, 'ctx')


async def test_a_function_without_a_ctx_parameter_is_called_without_it() -> None:
    async def func(script: SkillScript, args: Any) -> Any:
        return script.name, args

    assert await CallableSkillScriptExecutor(func).run(SCRIPT, None, 'ctx') == ('scripts/x.py', None)


async def test_a_function_that_takes_any_keyword_gets_the_context() -> None:
    async def func(**kwargs: Any) -> Any:
        return sorted(kwargs)

    assert await CallableSkillScriptExecutor(func).run(SCRIPT) == ['args', 'ctx', 'script']


async def test_a_sync_function_runs_in_a_thread() -> None:
    def func(script: SkillScript, args: Any) -> Any:
        return threading.current_thread() is threading.main_thread()

    assert await CallableSkillScriptExecutor(func).run(SCRIPT) is False


async def test_an_object_with_an_async_call_method_and_a_function_that_returns_an_awaitable_are_awaited() -> None:
    class Runner:
        async def __call__(self, script: SkillScript, args: Any) -> str:
            return f'ran {script.name}'

    runner = Runner()
    assert await CallableSkillScriptExecutor(runner).run(SCRIPT) == 'ran scripts/x.py'

    def indirect(script: SkillScript, args: Any) -> Any:
        return runner(script, args)

    assert await CallableSkillScriptExecutor(indirect).run(SCRIPT) == 'ran scripts/x.py'


def test_executors_follow_the_protocol() -> None:
    assert isinstance(CallableSkillScriptExecutor(print), SkillScriptExecutor)
    assert isinstance(LocalSkillScriptExecutor(), SkillScriptExecutor)


@pytest.mark.parametrize(('seconds', 'expected'), [(99, 30), (5, 5)])
def test_a_skill_may_shorten_the_time_of_an_executor_and_not_lengthen_it(seconds: float, expected: float):
    executor = LocalSkillScriptExecutor()
    limited = with_timeout(executor, seconds)
    assert isinstance(limited, LocalSkillScriptExecutor)
    assert (limited.timeout, executor.timeout) == (expected, 30)


async def test_any_other_executor_is_cancelled_when_its_time_is_up(tmp_path: Path):
    async def run(script: SkillScript, args: Any) -> str:
        await anyio.sleep(args or 0)
        return 'done'

    patient, strict = (with_timeout(CallableSkillScriptExecutor(run), seconds) for seconds in (600, 0.01))
    uri = str(tmp_path / 'slow')
    assert await SkillScript('slow', uri=uri, executor=patient).run(None) == 'done'
    with pytest.raises(SkillScriptExecutionError, match="The script 'slow' was stopped: it did not end within 0.01 s"):
        await SkillScript('slow', uri=uri, executor=strict).run(None, 60)
    assert not is_sandbox(strict)
