"""Starts programs of published skills, as a person would and as a model does, and says what became of them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills import ScriptFinished, ScriptResult, SkillScriptExecutionError, SkillsToolset
from pydantic_ai_skills.execution import SkillScriptExecutor
from pydantic_ai_skills.types import SkillScript

from .collection import Program

DRIVER = """\
import os, sys
folder, *command = sys.argv[1:]
os.chdir(folder)
if command[0] == 'python':
    command[0] = sys.executable  # by its path: Python finds its packages from there
os.execvp(command[0], command)
"""
"""Starts a command in a folder. It is a script too, so that the command has the same sandbox, limits and variables."""

_USAGE = re.compile(r'^\W*(usage|options|arguments|synopsis)\b|\busage:', re.IGNORECASE | re.MULTILINE)
_CONTROL = re.compile(r'\x1b\[[0-9;]*m|[\x00-\x1f\x7f-\x9f]')
_LACKS = (
    (re.compile(r"ModuleNotFoundError: No module named '([^']+)'"), 'Python package {}'),
    (re.compile(r"ImportError: cannot import name '[^']+' from '([^']+)'"), 'Python package {}'),
    (re.compile(r"Cannot find (?:module|package) '([^'/.][^']*)'"), 'npm package {}'),
    (re.compile(r'pip3? install (?:--\S+ )*["\']?([A-Za-z][\w.-]*)'), 'Python package {}'),
    (re.compile(r'(?:^|: )([A-Za-z][\w.-]*): (?:command )?not found', re.MULTILINE), 'program {}'),
    (re.compile(r"No such file or directory: '([A-Za-z][\w.-]*)'"), 'program {}'),
)


@dataclass(frozen=True)
class Start:
    """What became of one attempt."""

    exit_code: int | None
    """`None` if it could not be started, or was stopped."""

    output: str

    @property
    def is_good(self) -> bool:
        """Whether the program ran far enough to answer: it ended well, or it explained its usage."""
        if self.exit_code == 0:
            return True
        return self.exit_code in (1, 2, 64) and _USAGE.search(self.output) is not None and not self.lacks

    @property
    def lacks(self) -> str | None:
        """The package or program that it asked for, if it said so."""
        for pattern, what in _LACKS:
            if found := pattern.search(self.output):
                return what.format(found[1].partition('.')[0] if 'Python' in what else found[1])
        return None

    @property
    def reason(self) -> str:
        """Why it did not start, on one line."""
        lines = [_CONTROL.sub('', line).strip() for line in self.output.splitlines() if line.strip()]
        ended = 'not started or stopped' if self.exit_code is None else f'exit code {self.exit_code}'
        errors = [line for line in lines if 'error' in line.lower()]
        return self.lacks or f'{ended}: {(errors or lines or [""])[-1][:160]}'


async def start_plainly(
    executor: SkillScriptExecutor, driver: Path, folder: Path, program: Program, arguments: Sequence[str]
) -> Start:
    """Start a program from the skill's folder: as a file, or, if that fails, Python as a module."""
    script = SkillScript(driver.name, uri=str(driver), skill_name='driver', skill_dir=driver.parent)
    as_file = await _run(executor, script, [str(folder), program.interpreter, program.name, *arguments])
    if as_file.is_good or program.interpreter != 'python':
        return as_file
    module = program.name.removesuffix('.py').replace('/', '.')
    as_module = await _run(executor, script, [str(folder), 'python', '-m', module, *arguments])
    return as_module if as_module.is_good else as_file


async def start_by_tool(toolset: SkillsToolset[Any], skill: str, program: Program, arguments: Sequence[str]) -> Start:
    """Have an agent call `run_skill_script` once, as a model that read the instructions would."""
    finished: list[ScriptFinished] = []
    answers: list[str] = []

    @toolset.on(ScriptFinished)
    def finish(ctx: RunContext[Any], event: ScriptFinished) -> None:
        finished.append(event)

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        answers.extend(part.model_response_str() for part in parts if isinstance(part, ToolReturnPart))
        if answers or 'run_skill_script' not in [tool.name for tool in info.function_tools]:
            return ModelResponse(parts=[TextPart('done')])
        call = {'skill_name': skill, 'script_name': program.name, 'args': list(arguments)}
        return ModelResponse(parts=[ToolCallPart('run_skill_script', call)])

    await Agent(FunctionModel(model), toolsets=[toolset]).run('Run it.')
    if finished and finished[-1].error is None:
        return _start(finished[-1].result)
    return Start(None, finished[-1].error or '' if finished else '\n'.join(answers) or 'The skill offers no script.')


async def first_good(start: Callable[[Sequence[str]], Awaitable[Start]], attempts: Sequence[Sequence[str]]) -> Start:
    """Try arguments until the program starts; what became of the first try if it never does."""
    first, *others = attempts
    result = await start(first)
    for arguments in others:
        if result.is_good or result.lacks:
            break
        again = await start(arguments)
        result = again if again.is_good else result
    return result


async def _run(executor: SkillScriptExecutor, script: SkillScript, args: Sequence[str]) -> Start:
    try:
        result = await executor.run(script, list(args))
    except SkillScriptExecutionError as error:
        return Start(None, str(error))
    return _start(result)


def _start(result: ScriptResult) -> Start:
    return Start(None if result.timed_out else result.exit_code, f'{result.stdout}\n{result.stderr}')
