"""`run`: a script of a skill, as an agent would run it."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
import typer
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    LocalSkillScriptExecutor,
    ScriptResult,
    Skill,
    SkillScript,
    SkillScriptExecutionError,
    SkillsProject,
)

from .options import (
    DONE,
    FOUND_SOMETHING,
    MISUSE,
    DirectoryOption,
    JsonOption,
    PackagesOption,
    SkillArgument,
    StandardOption,
    command,
    find_skill,
    look_at_toolset,
    open_toolset,
)
from .output import Failure, Output, safe

__all__ = ('ask', 'run', 'told')

Executor = LocalSkillScriptExecutor | BubblewrapSkillScriptExecutor


@command
def run(
    name: SkillArgument,
    script: Annotated[str, typer.Argument(metavar='SCRIPT', help='The script, such as scripts/convert.py.')],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar='ARG', help='Arguments as they stand, after `--`.', show_default=False),
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option('--arg', '-a', metavar='KEY=VALUE', help='An argument, as a model sends it: --KEY VALUE.'),
    ] = None,
    args_json: Annotated[
        str | None, typer.Option('--args-json', metavar='JSON', help='All arguments, as a model sends them.')
    ] = None,
    stdin: Annotated[bool, typer.Option('--stdin', help='Send standard input on to the script.')] = False,
    sandbox: Annotated[
        bool | None,
        typer.Option(
            '--sandbox/--no-sandbox',
            help='Whether to run it in a sandbox. By default, scripts that were fetched are.',
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option('--timeout', metavar='SECONDS', min=0.1, help='How long it may take.')
    ] = None,
    output: Annotated[
        Path | None, typer.Option('--output', '-o', metavar='DIR', help='Keep the files it writes, below this folder.')
    ] = None,
    yes: Annotated[bool, typer.Option('--yes', '-y', help='Approve it, if the policy asks.')] = False,
    dry_run: Annotated[bool, typer.Option('--dry-run', help='Show what would be run, and do not run it.')] = False,
    directory: DirectoryOption = None,
    standard: StandardOption = False,
    packages: PackagesOption = False,
    as_json: JsonOption = False,
) -> int:
    """Run a script as an agent would.

    It goes through the same tool, policy, executor and limits. What the script prints goes to standard output; what
    is said about it, to standard error. The exit status is 0 if it succeeded and 1 if it failed.
    """
    out = Output(as_json=as_json)
    arguments = _arguments(words, arg, args_json, sys.stdin.read() if stdin else None)
    skill = find_skill(look_at_toolset(directory, standard=standard, packages=packages), name)
    executor = _executor(skill, sandbox=sandbox, timeout=timeout, work_root=output)
    watched = Watched(executor, out, dry_run=dry_run)
    toolset = open_toolset(directory, standard=standard, packages=packages, script_executor=watched)
    outcome = _call(toolset, out, skill.name, script, arguments, yes=yes)
    if as_json:
        out.data(_data(outcome, watched))
    else:
        _show(out, outcome, watched, kept=output is not None)
    if watched.described is None and skill.path is not None and outcome.outcome != 'success':
        return MISUSE  # it was never started: there is none, its arguments do not fit, or it may not run
    return DONE if outcome.outcome == 'success' else FOUND_SOMETHING


def _executor(skill: Skill[Any], *, sandbox: bool | None, timeout: float | None, work_root: Path | None) -> Executor:
    """What an agent of the project would run the skill's scripts with, but for what was asked for."""
    project = SkillsProject.find()
    fetched = skill.source is not None and not skill.source.trusted
    wanted = sandbox if sandbox is not None else project.settings.sandbox
    return project.executor(sandbox=fetched if wanted is None else wanted, timeout=timeout, work_root=work_root)


class Watched:
    """An executor that shows what it is about to run, and keeps what came of it."""

    def __init__(self, inner: Executor, out: Output, *, dry_run: bool) -> None:
        self.inner = inner
        self.sandboxed = inner.sandboxed
        self.described: dict[str, Any] | None = None
        self.result: ScriptResult | None = None
        self._out = out
        self._dry_run = dry_run

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
        """Run the script, unless only to show it."""
        self.described = await anyio.to_thread.run_sync(self._describe, script, args)
        if self._dry_run:
            return '(not run)'
        try:
            self.result = await self.inner.run(script, args, ctx)
        except SkillScriptExecutionError as error:
            self.result = getattr(error, 'result', None)
            raise
        return self.result

    def _describe(self, script: SkillScript, args: Any) -> dict[str, Any]:
        command = shlex.join(self.inner.command_line(script, args))
        environment = self.inner.environment_names(script)
        limits = {name: value for name, value in asdict(self.inner.limits).items() if value is not None}
        if not self._out.as_json:
            shown = {
                'command': command,
                'sandbox': 'yes' if self.sandboxed else 'no',
                'environment': ' '.join(environment),
                'limits': ', '.join(f'{name} {value:,}' for name, value in limits.items()),
            }
            for name, value in shown.items():
                self._out.note((f'{name:<12}', 'dim'), value)
        return {'command': command, 'sandbox': self.sandboxed, 'environment': environment, 'limits': limits}


def _call(toolset: Any, out: Output, skill: str, script: str, arguments: object, *, yes: bool) -> ToolReturnPart:
    """Have an agent call the tool once."""
    returned: list[ToolReturnPart] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        for message in messages:
            if isinstance(message, ModelRequest):
                returned.extend(part for part in message.parts if isinstance(part, ToolReturnPart))
        if returned:
            return ModelResponse(parts=[TextPart('done')])
        if 'run_skill_script' not in [tool.name for tool in info.function_tools]:
            raise Failure(f'The skill {skill!r} has no scripts.')
        call = {'skill_name': skill, 'script_name': script, 'args': arguments}
        return ModelResponse(parts=[ToolCallPart('run_skill_script', call)])

    agent = Agent(FunctionModel(model, model_name='none'), toolsets=[toolset], output_type=[str, DeferredToolRequests])
    with asyncio.Runner() as runner:
        result = runner.run(agent.run('Run it.'))
        if isinstance(result.output, DeferredToolRequests):
            answers = ask(out, result.output, yes)
            runner.run(agent.run(message_history=result.all_messages(), deferred_tool_results=answers))
    return returned[-1]


def told(part: ToolReturnPart) -> str:
    """What a tool returned, or why it failed, as text."""
    return part.content if isinstance(part.content, str) else part.model_response_str()


def ask(out: Output, requests: DeferredToolRequests, yes: bool) -> DeferredToolResults:
    """Ask a person to approve what is to be run; without one, it is not approved."""
    results = DeferredToolResults()
    for call in requests.approvals:
        what = requests.metadata.get(call.tool_call_id, {}).get('command') or call.tool_name
        out.note(('asks to run: ', 'yellow'), str(what))
        approved = yes
        if not yes and sys.stdin.isatty():
            out.errors.print('Run it? [y/N] ', end='')
            approved = sys.stdin.readline().strip().lower() in ('y', 'yes')
        results.approvals[call.tool_call_id] = approved or ToolDenied('It was not approved.')
    return results


def _arguments(words: list[str] | None, pairs: list[str] | None, as_json: str | None, stdin: str | None) -> object:
    """The arguments as a model would send them."""
    if as_json is not None:
        if words or pairs or stdin is not None:
            raise Failure('--args-json gives all arguments, so give no others.')
        try:
            return json.loads(as_json)
        except ValueError as error:
            raise Failure(f'--args-json is not JSON: {error}.') from None
    given: dict[str, list[Any]] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition('=')
        if not equals or not key:
            raise Failure(f'--arg takes KEY=VALUE, not {pair!r}.')
        value = _value(text)
        given.setdefault(key, []).append(value)
    arguments = {key: values if len(values) > 1 else values[0] for key, values in given.items()}
    if stdin is not None:
        arguments['_stdin'] = stdin
    if words and not arguments:
        return list(words)
    if words:
        arguments['_'] = list(words)
    return arguments or None


def _value(text: str) -> Any:
    """A value as a model would send it. Numbers stay text, so that `1.10` does not become `1.1`."""
    if text in ('true', 'false', 'null') or text.startswith(('[', '{', '"')):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _data(outcome: ToolReturnPart, watched: Watched) -> dict[str, Any]:
    result = watched.result
    return {
        **(watched.described or {}),
        'outcome': outcome.outcome,
        'result': told(outcome),
        'exit_code': result.exit_code if result else None,
        'stdout': result.stdout if result else None,
        'stderr': result.stderr if result else None,
        'timed_out': result.timed_out if result else None,
        'duration': round(result.duration, 3) if result else None,
        'files': [{'name': file.name, 'size': file.size} for file in result.files] if result else [],
        'folder': str(result.work_dir) if result and result.work_dir else None,
    }


def _show(out: Output, outcome: ToolReturnPart, watched: Watched, *, kept: bool) -> None:
    result = watched.result
    if result is None:
        if outcome.outcome != 'success':
            raise Failure(told(outcome), MISUSE)
        out.block(told(outcome))
        return
    for text, stream in ((result.stdout, sys.stdout), (result.stderr, sys.stderr)):
        stream.write(safe(text) if stream.isatty() else text)
        stream.flush()
    for file in result.files:
        where = str(result.work_dir) if kept else 'removed now; keep it with --output DIR'
        out.note(('wrote ', 'dim'), f'{file.name} ({file.size:,} bytes, {where})')
    if outcome.outcome != 'success':
        why = f'stopped after {result.duration:.1f} s' if result.timed_out else f'exit code {result.exit_code}'
        out.note(('failed: ', 'bold red'), why)
