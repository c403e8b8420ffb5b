"""`run`: run a script of a skill as an agent would."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

import pydantic_ai_skills as api

from .closest import did_you_mean
from .command import PROBLEMS_FOUND, SUCCESS, USAGE_ERROR, command
from .formats import result_text
from .output import Failure, Output
from .run_files import MadeFile, OutputFolder, RunFiles, Write, show_files
from .skills import ChosenSkills, SkillArgument, find_project, find_skill

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolReturnPart

    from .watched import Executor, Watched

_MISSING = re.compile(r'No such file|FileNotFoundError|ENOENT|not found|does not exist', re.IGNORECASE)


@command
def run(
    out: Output,
    name: SkillArgument,
    script: Annotated[
        str, Argument(metavar='SCRIPT', help='The script, such as scripts/convert.py. Leave it out to see all.')
    ] = '',
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
            help='Run it in a sandbox, or without one. Fetched scripts run in one by default.',
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[float | None, Option(metavar='SECONDS', min=0.1, help='How long it may take.')] = None,
    read: Annotated[
        list[Path] | None,
        Option('--read', metavar='PATH', help='Another file or folder that the script may read. Can be repeated.'),
    ] = None,
    write: Write = False,
    output: OutputFolder = None,
    yes: Annotated[bool, Option('--yes', '-y', help='Approve it, if the policy asks.')] = False,
    verbose: Annotated[
        bool, Option('--verbose', '-v', help='Also show the command, its environment and its limits.')
    ] = False,
    dry_run: Annotated[bool, Option('--dry-run', help='Show what --verbose shows, and do not run the script.')] = False,
    *,
    chosen: ChosenSkills,
) -> int:
    """It goes through the same tool, policy, executor and limits.

    The script gets copies of the files that its arguments name. The files it writes are copied to the current folder;
    files that already exist are not changed. What it prints is shown while it runs.

    The exit status is 0 if it succeeded, and 1 if it failed or if a file could not be written.
    """
    from .script_call import call_script  # imports pydantic-ai, which `--help` does without
    from .watched import Watched

    arguments = _arguments(words, arg, args_json, sys.stdin.read() if stdin else None)
    chosen = chosen.naming(name)
    skill = find_skill(chosen.open(script_executor=api.LocalSkillScriptExecutor()), name)
    if not script:
        raise Failure(_which_script(skill))
    here, made = Path.cwd(), list[MadeFile]()
    files = RunFiles(here=here)
    arguments = files.choose(arguments, read or ())
    executor = _executor(skill, sandbox=sandbox, timeout=timeout, read=files.read)
    watched = Watched(executor, out, dry_run=dry_run, verbose=verbose)
    with chosen.open(script_executor=watched) as toolset:
        files.bring_in(toolset)
        outcome = call_script(toolset, out, skill.name, script, arguments, yes=yes)
        if watched.result is not None:
            made = files.bring_out(toolset, output or here, write=write)
    if out.as_json:
        out.data(_data(outcome, watched, made, output or here))
    else:
        _show(out, outcome, watched, skill, script)
        show_files(out, files, made, output)
    if watched.described is None and skill.path is not None and outcome.outcome != 'success':
        return USAGE_ERROR  # never started: it does not exist, its arguments do not fit, or it may not run
    is_good = outcome.outcome == 'success' and not any(file.problem for file in made)
    return SUCCESS if is_good else PROBLEMS_FOUND


def _which_script(skill: api.Skill[Any]) -> str:
    names = ', '.join(script.name for script in skill.scripts)
    return f'Name a script of {skill.name!r}: {names}' if names else f'The skill {skill.name!r} has no scripts.'


def _executor(skill: api.Skill[Any], *, sandbox: bool | None, timeout: float | None, read: Sequence[Path]) -> Executor:
    """The executor an agent of the project would use, changed by the options."""
    project = find_project()
    fetched = skill.source is not None and not skill.source.trusted
    wanted = sandbox if sandbox is not None else project.settings.sandbox
    return project.executor(sandbox=fetched if wanted is None else wanted, timeout=timeout, read=read)


def _arguments(words: list[str] | None, pairs: list[str] | None, as_json: str | None, stdin: str | None) -> object:
    """The arguments as a model would send them."""
    if as_json is not None:
        if words or pairs or stdin is not None:
            raise Failure('--args-json gives all arguments and cannot be combined with others.')
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


def _show(out: Output, outcome: ToolReturnPart, watched: Watched, skill: api.Skill[Any], script: str) -> None:
    result = watched.result
    if watched.unwritten is not None:
        raise watched.unwritten
    if result is None:
        if outcome.outcome != 'success':
            raise Failure(_for_person(result_text(outcome), skill, script))
        out.block(result_text(outcome))
        return
    if outcome.outcome != 'success':
        out.note(('failed: ', 'bold red'), _how_it_ended(result))
        if result.timed_out:
            out.note('To give it more time, add --timeout SECONDS.')
        elif _MISSING.search(result.stderr):
            out.note('The script gets the files that its arguments name. To let it read others, add --read PATH.')


def _how_it_ended(result: api.ScriptResult) -> str:
    if result.timed_out:
        return f'stopped after {result.duration:.1f} s'
    if result.exit_code - 128 in set(Signals):
        return f'ended by {Signals(result.exit_code - 128).name} (exit code {result.exit_code})'
    return f'exit code {result.exit_code}'


def _for_person(text: str, skill: api.Skill[Any], script: str) -> str:
    """A message for a model, as the person at the terminal reads it."""
    unknown = f'There is no script {script!r} in skill {skill.name!r}.'
    if text.startswith(unknown) and (close := did_you_mean(script, (each.name for each in skill.scripts))):
        return f'{unknown} {close}'
    text = text.replace(': use read_skill_resource.', ', not a script.')
    return re.sub(r'For the developer: (\w)', lambda match: match[1].upper(), text)
