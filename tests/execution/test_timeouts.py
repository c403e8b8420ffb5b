from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from pydantic_ai_skills import (
    CallableSkillScriptExecutor,
    LocalSkillScriptExecutor,
    SkillScript,
    SkillScriptExecutionError,
)
from pydantic_ai_skills.execution.policy import is_sandbox
from pydantic_ai_skills.execution.timeouts import with_timeout

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(('may_extend', 'seconds', 'expected'), [(True, 99, 99), (False, 99, 30), (False, 5, 5)])
def test_an_executor_with_limits_gets_another_one(may_extend: bool, seconds: float, expected: float):
    executor = LocalSkillScriptExecutor()
    limited = with_timeout(executor, seconds, may_extend=may_extend)
    assert isinstance(limited, LocalSkillScriptExecutor)
    assert (limited.timeout, executor.timeout) == (expected, 30)


async def test_any_other_executor_is_cancelled_when_its_time_is_up(tmp_path: Path):
    async def run(script: SkillScript, args: Any) -> str:
        await anyio.sleep(args or 0)
        return 'done'

    executor = with_timeout(CallableSkillScriptExecutor(run), 0.01, may_extend=False)
    script = SkillScript('slow', uri=str(tmp_path / 'slow'), executor=executor)
    assert await script.run(None) == 'done'
    with pytest.raises(SkillScriptExecutionError, match="The script 'slow' was stopped: it did not end within 0.01 s"):
        await script.run(None, 60)
    assert not is_sandbox(executor)
