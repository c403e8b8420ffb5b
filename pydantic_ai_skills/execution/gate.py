"""Decides whether a script runs, and describes a call for the person who approves it.

The decision comes from the `script_policy` setting or, without one, from the rule for scripts of registries. What is
approved is the exact command and the files behind it: a digest changes with any of them.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import shlex
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast, get_args

from anyio import to_thread

from pydantic_ai_skills.exceptions import SkillScriptExecutionError, SkillValidationError

from .base import is_sandbox

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript
    from pydantic_ai_skills.types.skill import Skill

ScriptDecision = Literal['allow', 'ask', 'deny']
"""Run a script, ask a person first, or refuse."""

ScriptPolicy: TypeAlias = (
    'ScriptDecision | Callable[[Any, Skill[Any], SkillScript, Any], ScriptDecision | Awaitable[ScriptDecision]]'
)
"""A decision for all scripts, or a function of `(ctx, skill, script, args)` that makes one, sync or async."""


def check_policy(policy: ScriptPolicy) -> None:
    """Check a setting when it is made, not when a script is run."""
    if not callable(policy):
        _check_decision(policy)


async def decide(policy: ScriptPolicy, ctx: Any, skill: Skill[Any], script: SkillScript, args: Any) -> ScriptDecision:
    """What the policy says about running a script with these arguments."""
    if not callable(policy):
        return policy
    decision = policy(ctx, skill, script, args)
    return _check_decision(await decision if inspect.isawaitable(decision) else decision)


def default_decision(*, from_registry: bool, trusted: bool, executor: object) -> ScriptDecision:
    """The rule without a policy: a script from a registry that is not trusted runs in a sandbox or not at all."""
    return 'deny' if from_registry and not trusted and not is_sandbox(executor) else 'allow'


def denial(script: SkillScript, *, by_default: bool) -> str:
    """The message about a script that is not run. With `by_default` it tells the developer how to allow it."""
    message = f'The script {script.name!r} of skill {script.skill_name!r} may not be run here, so carry on without it.'
    if not by_default:
        return message
    return (
        f'{message} For the developer: scripts from a registry run in a sandbox only, such as '
        'BubblewrapSkillScriptExecutor, unless the registry is marked as trusted or `script_policy` allows them.'
    )


async def needs_approval(
    policy: ScriptPolicy | None, ctx: Any, skill: Skill[Any], script: SkillScript, args: Any
) -> bool:
    """Whether a person has to approve a run before it starts. Without a policy, the rule for registries decides.

    Raises:
        SkillScriptExecutionError: The script may not run at all.
        SkillValidationError: The policy's function returned something other than a decision.
    """
    if policy is None:
        source = skill.source
        decision = default_decision(
            from_registry=source is not None and script.function is None,
            trusted=source is not None and source.trusted,
            executor=script.executor,
        )
    else:
        decision = await decide(policy, ctx, skill, script, args)
    if decision == 'deny':
        raise SkillScriptExecutionError(denial(script, by_default=policy is None))
    return decision == 'ask'


class ScriptCall(NamedTuple):
    """A run that somebody may approve."""

    skill: str | None
    """The skill the script belongs to."""

    script: str
    """The script."""

    command: str
    """What would be run: a shell command, or the call of a function."""

    stdin: str | None
    """Text for standard input."""

    digest: str
    """The SHA-256 of the command, its input and everything in the skill's folder. It changes when any of these does."""

    def metadata(self) -> dict[str, Any]:
        """The call as JSON, for the metadata of a request for approval."""
        return self._asdict()


async def describe_call(script: SkillScript, args: Any, *, executor: object = None) -> ScriptCall:
    """Describe what running the script with these arguments would do, from the files as they are now.

    Args:
        script: The script.
        args: Arguments as the model sent them.
        executor: What would run it; local executors know the exact command.

    Raises:
        SkillScriptExecutionError: The arguments cannot be passed on, or the files cannot be read.
    """
    describe = _describe_function if script.path is None else _describe_file
    command, stdin, content = await to_thread.run_sync(describe, script, args, executor)
    digest = hashlib.sha256(_canonical([command, stdin, content]).encode()).hexdigest()
    return ScriptCall(skill=script.skill_name, script=script.name, command=command, stdin=stdin, digest=digest)


def _describe_file(script: SkillScript, args: Any, executor: object) -> tuple[str, str | None, str]:
    """The command, the text for standard input and a digest of the files."""
    from .arguments import build_arguments  # only needed where a person is asked
    from .snapshot import snapshot_file, snapshot_folder

    arguments = build_arguments(args)
    command_line = getattr(executor, 'command_line', None)
    command = command_line(script, args) if command_line else [script.name, *arguments.argv]
    path: Any = script.path
    snapshot = snapshot_folder(script.skill_dir) if script.skill_dir else snapshot_file(path)
    return shlex.join(command), arguments.stdin, snapshot.digest


def _describe_function(script: SkillScript, args: Any, executor: object) -> tuple[str, None, str]:
    """The call and a digest of the source, so that an approval does not outlive the version it was given for."""
    function, source = script.function, script.source_text or ''
    try:
        source = inspect.getsource(inspect.unwrap(function)) if function else source
    except (OSError, TypeError):
        source = repr(getattr(getattr(function, '__code__', None), 'co_code', ''))
    command = f'{script.name}({"" if args is None else _canonical(args)})'
    return command, None, hashlib.sha256(source.encode()).hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _check_decision(decision: object) -> ScriptDecision:
    if decision in get_args(ScriptDecision):
        return cast('ScriptDecision', decision)
    raise SkillValidationError(
        f"A script policy is 'allow', 'ask', 'deny' or a function that returns one, not {decision!r}."
    )
