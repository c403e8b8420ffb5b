"""`run`: run a script of a skill as an agent would."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied
from typer import Argument, Option

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    LocalSkillScriptExecutor,
    ScriptResult,
    Skill,
    SkillScript,
    SkillScriptExecutionError,
)

from .command import PROBLEMS_FOUND, SUCCESS, USAGE_ERROR, command
from .output import Failure, Output, safe
from .run_files import CONVERSATION, MadeFile, RunFiles
from .skills import ChosenSkills, SkillArgument, find_project, find_skill

_MISSING = re.compile(r'No such file|FileNotFoundError|ENOENT|not found|does not exist', re.IGNORECASE)

Executor = LocalSkillScriptExecutor | BubblewrapSkillScriptExecutor


@command
def run(
    out: Output,
    name: SkillArgument,
    script: Annotated[str, Argument(metavar='SCRIPT', help='The script, such as scripts/convert.py.')],
    words: Annotated[
        list[str] | None, Argument(metavar='ARG', help='Arguments to pass unchanged, after `--`.', show_default=False)
    ] = None,
    arg: Annotated[
        list[str] | None,
        Option('--arg', '-a', metavar='KEY=VALUE', help='An argument, as a model sends it: --KEY VALUE.'),
    ] = None,
    args_json: Annotated[str | None, Option(metavar='JSON', help='All arguments, as a model sends them.')] = None,
    stdin: Annotated[bool, Option('--stdin', help='Pass standard input to the script.')] = False,
    sandbox: Annotated[
        bool | None,
        Option(
            '--sandbox/--no-sandbox',
            help='Whether to run it in a sandbox, as fetched scripts are by default.',
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[float | None, Option(metavar='SECONDS', min=0.1, help='How long it may take.')] = None,
    read: Annotated[
        list[Path] | None,
        Option('--read', metavar='PATH', help='A file or folder that it may read, too. Can be repeated.'),
    ] = None,
    write: Annotated[bool, Option('--write', help='Let it replace files, and make hidden ones.')] = False,
    output: Annotated[
        Path | None,
        Option('--output', '-o', metavar='DIR', help='Write its files into this folder, not the current one.'),
    ] = None,
    yes: Annotated[bool, Option('--yes', '-y', help='Approve it, if the policy asks.')] = False,
    dry_run: Annotated[bool, Option('--dry-run', help='Show what would be run, and do not run it.')] = False,
    *,
    chosen: ChosenSkills,
) -> int:
    """Run a script as an agent would.

    It goes through the same tool, policy, executor and limits. It gets copies of the files that its arguments name, and
    the files it makes arrive in the current folder; what is there already stays as it is.

    What the script prints goes to standard output; what is said about it, to standard error. The exit status is 0 if it
    succeeded and 1 if it failed, or if a file could not be written.
    """
    arguments = _arguments(words, arg, args_json, sys.stdin.read() if stdin else None)
    skill = find_skill(chosen.open(script_executor=LocalSkillScriptExecutor()), name)
    here, made = Path.cwd(), list[MadeFile]()
    files = RunFiles(here=here)
    arguments = files.choose(arguments, read or ())
    executor = _executor(skill, sandbox=sandbox, timeout=timeout, read=files.read)
    watched = Watched(executor, out, dry_run=dry_run)
    with chosen.open(script_executor=watched) as toolset:
        files.bring_in(toolset)
        outcome = _call(toolset, out, skill.name, script, arguments, yes=yes)
        if watched.result is not None:
            made = files.bring_out(toolset, output or here, write=write)
    if out.as_json:
        out.data(_data(outcome, watched, made, output or here))
    else:
        _show(out, outcome, watched)
        _show_files(out, files, made, output)
    if watched.described is None and skill.path is not None and outcome.outcome != 'success':
        return USAGE_ERROR  # never started: it does not exist, its arguments do not fit, or it may not run
    is_good = outcome.outcome == 'success' and not any(file.problem for file in made)
    return SUCCESS if is_good else PROBLEMS_FOUND


def _executor(skill: Skill[Any], *, sandbox: bool | None, timeout: float | None, read: Sequence[Path]) -> Executor:
    """The executor an agent of the project would use, changed by the options."""
    project = find_project()
    fetched = skill.source is not None and not skill.source.trusted
    wanted = sandbox if sandbox is not None else project.settings.sandbox
    return project.executor(sandbox=fetched if wanted is None else wanted, timeout=timeout, read=read)


class Watched:
    """An executor that shows what it is about to run, and keeps the result."""

    def __init__(self, inner: Executor, out: Output, *, dry_run: bool) -> None:
        self.inner = inner
        self.sandboxed = inner.sandboxed
        self.described: dict[str, Any] | None = None
        self.result: ScriptResult | None = None
        self.unwritten: OSError | None = None
        """Why the output of the script could not be written, if it could not."""
        self._out = out
        self._dry_run = dry_run

    async def run(self, script: SkillScript, args: Any = None, ctx: Any = None) -> Any:
        """Run the script, unless this is a dry run."""
        self.described = await anyio.to_thread.run_sync(self._describe, script, args)
        if self._dry_run:
            return '(not run)'
        if not self._out.as_json:
            script = script.told_to(self._print)
        try:
            self.result = await self.inner.run(script, args, ctx)
        except SkillScriptExecutionError as error:
            self.result = getattr(error, 'result', None)
            raise
        return self.result

    def _print(self, name: Literal['stdout', 'stderr'], text: str) -> None:
        """Show what the script prints, as it is printed. If that fails, the script is waited for all the same."""
        stream = getattr(sys, name)
        try:
            if self.unwritten is None:
                stream.write(safe(text) if stream.isatty() else text)
                stream.flush()
        except OSError as error:
            self.unwritten = error

    def _describe(self, script: SkillScript, args: Any) -> dict[str, Any]:
        command = shlex.join(self.inner.command_line(script, args))
        environment = self.inner.environment_names(script)
        limits = {name: value for name, value in asdict(self.inner.limits).items() if value is not None}
        if self._dry_run and not self._out.as_json:
            shown = {
                'command': command,
                'sandbox': 'yes' if self.sandboxed else 'no',
                'environment': ' '.join(environment),
                'limits': ', '.join(f'{name} {value:,}' for name, value in limits.items()),
            }
            for name, value in shown.items():
                self._out.note((f'{name:<12}', 'dim'), value)
        elif not self._out.as_json:
            where = 'in a sandbox' if self.sandboxed else 'without a sandbox'
            self._out.note(('running ', 'dim'), f'{script.name} of {script.skill_name}, {where}')
        return {'command': command, 'sandbox': self.sandboxed, 'environment': environment, 'limits': limits}


def _call(toolset: Any, out: Output, skill: str, script: str, arguments: object, *, yes: bool) -> ToolReturnPart:
    """Have an agent call the tool once."""
    returned: list[ToolReturnPart] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned.extend(part for message in messages for part in message.parts if isinstance(part, ToolReturnPart))
        if returned:
            return ModelResponse(parts=[TextPart('done')])
        if 'run_skill_script' not in [tool.name for tool in info.function_tools]:
            raise Failure(f'The skill {skill!r} has no scripts.')
        call = {'skill_name': skill, 'script_name': script, 'args': arguments}
        return ModelResponse(parts=[ToolCallPart('run_skill_script', call)])

    agent = Agent(FunctionModel(model, model_name='none'), toolsets=[toolset], output_type=[str, DeferredToolRequests])
    with asyncio.Runner() as runner:
        result = runner.run(agent.run('Run it.', conversation_id=CONVERSATION))
        if isinstance(result.output, DeferredToolRequests):
            answers = ask(out, result.output, yes)
            runner.run(agent.run(message_history=result.all_messages(), deferred_tool_results=answers))
    return returned[-1]


def result_text(part: ToolReturnPart) -> str:
    """The result of a tool, or why it failed, as text."""
    return part.content if isinstance(part.content, str) else part.model_response_str()


def ask(out: Output, requests: DeferredToolRequests, yes: bool) -> DeferredToolResults:
    """Ask the person at the terminal to approve calls; without one, they are denied."""
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
            raise Failure('--args-json already gives all arguments; give no others.')
        return _from_json(as_json)
    arguments = _named(pairs or ())
    if stdin is not None:
        arguments['_stdin'] = stdin
    if not words:
        return arguments or None
    return {**arguments, '_': list(words)} if arguments else list(words)


def _from_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failure(f'--args-json is not JSON: {error}.') from None


def _named(pairs: Iterable[str]) -> dict[str, Any]:
    """The arguments of `--arg`; one that is repeated becomes a list."""
    given: dict[str, list[Any]] = {}
    for pair in pairs:
        key, equals, text = pair.partition('=')
        if not equals or not key:
            raise Failure(f'--arg takes KEY=VALUE, not {pair!r}.')
        given.setdefault(key, []).append(_value(text))
    return {key: values if len(values) > 1 else values[0] for key, values in given.items()}


def _value(text: str) -> Any:
    """A value as a model would send it. Numbers stay text, because `1.10` is not `1.1`."""
    if text in ('true', 'false', 'null') or text.startswith(('[', '{', '"')):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _data(outcome: ToolReturnPart, watched: Watched, made: Sequence[MadeFile], folder: Path) -> dict[str, Any]:
    result = watched.result
    return {
        **(watched.described or {}),
        'outcome': outcome.outcome,
        'result': result_text(outcome),
        **{name: getattr(result, name, None) for name in ('exit_code', 'stdout', 'stderr', 'timed_out')},
        'duration': round(result.duration, 3) if result else None,
        'folder': str(folder.absolute()),
        'files': [{'name': file.name, 'size': file.size} for file in made if file.problem is None],
        'not_written': [{'name': file.name, 'reason': file.problem} for file in made if file.problem is not None],
    }


def _show(out: Output, outcome: ToolReturnPart, watched: Watched) -> None:
    result = watched.result
    if watched.unwritten is not None:
        raise watched.unwritten
    if result is None:
        if outcome.outcome != 'success':
            raise Failure(_for_person(result_text(outcome)))
        out.block(result_text(outcome))
        return
    if outcome.outcome != 'success':
        why = f'stopped after {result.duration:.1f} s' if result.timed_out else f'exit code {result.exit_code}'
        out.note(('failed: ', 'bold red'), why)
        if result.timed_out:
            out.note('To give it more time, add --timeout SECONDS.')
        elif _MISSING.search(result.stderr):
            out.note('The script gets the files that its arguments name. To let it read others, add --read PATH.')


def _show_files(out: Output, files: RunFiles, made: Sequence[MadeFile], output: Path | None) -> None:
    """Tell what became of the files, and what to type to get the others."""
    for name in files.left_out:
        out.note(('not copied: ', 'yellow'), f'{name} is too large. Name the files in it that the script needs.')
    for file in made:
        name = str(Path(output or '', file.name))
        if file.problem is None:
            out.note(('replaced ' if file.replaced else 'wrote ', 'dim'), f'{name} ({file.size:,} bytes)')
        else:
            out.note(('not written: ', 'bold red'), f'{name}: {file.problem}')
    if any(file.problem for file in made):
        out.note('To write all of them here, add --write. To write them elsewhere, add --output DIR.')


def _for_person(text: str) -> str:
    """A message for a model, as the person at the terminal reads it."""
    return re.sub(r'For the developer: (\w)', lambda match: match[1].upper(), text)
