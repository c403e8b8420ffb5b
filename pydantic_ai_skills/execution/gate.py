"""Decides whether code of a skill runs, and describes a call for the person who approves it.

There is one decision for every way to run code: scripts on disk, declared tools, `tools.py`, and functions and skills
of packages. It depends on the excluded tools, on where the skill is from and where its code would run, and on the
`script_policy` setting. What is approved is the exact command and the files behind it: a digest changes with any of
them.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
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


_STRANGERS = (
    'For the developer: its source is not trusted, and code of strangers {}. If you vouch for the source, say so with '
    'its `trusted` option.'
)
_SANDBOX_ONLY = _STRANGERS.format('runs in a sandbox only, such as BubblewrapSkillScriptExecutor')
_NOT_HERE = _STRANGERS.format('never runs in this process')
_CLOSED = 'For the developer: `run_skill_script` is excluded, and with it all code of skills.'


def check_policy(policy: ScriptPolicy) -> None:
    """Check a setting when it is made, not when a script is run."""
    if not callable(policy):
        _check_decision(policy)


class Gate(NamedTuple):
    """What the developer has decided about the code of skills."""

    policy: ScriptPolicy | None = None
    """The `script_policy` setting; without one, the rules of trust alone decide what runs."""

    closed: bool = False
    """Whether no code of any skill runs, because `run_skill_script` is excluded."""

    def refusal(self, skill: Skill[Any], script: SkillScript) -> str | None:
        """Why a script may not run whatever the policy says; `None` if the policy decides."""
        if self.closed:
            return f'{_denial(script)} {_CLOSED}'
        if skill.is_trusted or script.function is not None:
            return None
        if script.in_process or script.uri is None:  # a subclass that runs itself
            return refusal_in_process(script)
        if not is_sandbox(script.executor):
            return f'{_denial(script)} {_SANDBOX_ONLY}'
        return None

    def is_open_for(self, skill: Skill[Any], script: SkillScript) -> bool:
        """Whether a script may run at any time without anybody being asked."""
        return (self.policy is None or self.policy == 'allow') and self.refusal(skill, script) is None

    async def needs_approval(self, ctx: Any, skill: Skill[Any], script: SkillScript, args: Any) -> bool:
        """Whether a person has to approve a run before it starts.

        Raises:
            SkillScriptExecutionError: The script may not run at all.
            SkillValidationError: The policy's function returned something other than a decision.
        """
        refusal = self.refusal(skill, script)
        if refusal is not None:
            raise SkillScriptExecutionError(refusal)
        decision = self.policy or 'allow'
        if callable(decision):
            answer = decision(ctx, skill, script, args)
            decision = _check_decision(await answer if inspect.isawaitable(answer) else answer)
        if decision == 'deny':
            raise SkillScriptExecutionError(_denial(script))
        return decision == 'ask'


def refusal_in_process(script: SkillScript) -> str:
    """Why code of a source that is not trusted is not imported."""
    return f'{_denial(script)} {_NOT_HERE}'


def _denial(script: SkillScript) -> str:
    return f'The script {script.name!r} of skill {script.skill_name!r} may not be run here, so carry on without it.'


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
    return await to_thread.run_sync(describe_script, script, args, executor)


def describe_script(script: SkillScript, args: Any, executor: object = None) -> ScriptCall:
    """Like `describe_call`, but it blocks."""
    describe = _describe_function if script.path is None else _describe_file
    command, stdin, content = describe(script, args, executor)
    digest = hashlib.sha256(_canonical([command, stdin, content]).encode()).hexdigest()
    return ScriptCall(skill=script.skill_name, script=script.name, command=command, stdin=stdin, digest=digest)


def _describe_file(script: SkillScript, args: Any, executor: object) -> tuple[str, str | None, str]:
    """The command, the text for standard input and a digest of the files."""
    from .arguments import ArgumentVector, script_arguments  # only needed where a person is asked
    from .snapshot import script_digest

    arguments = ArgumentVector() if script.in_process else script_arguments(script, args)
    command_line = getattr(executor, 'command_line', None)
    command = command_line(script, args) if command_line else [script.name, *arguments.argv]
    if script.in_process:
        command = ['import', script.name]
    path: Any = script.path
    return shlex.join(command), arguments.stdin, script_digest(path, script.skill_dir)


def _describe_function(script: SkillScript, args: Any, executor: object) -> tuple[str, None, str]:
    """The call and a digest of the source, so that an approval does not outlive the version it was given for."""
    source = _source(inspect.unwrap(script.function)) if script.function else script.source_text or ''
    return script.describe(args), None, hashlib.sha256(source.encode()).hexdigest()


def _source(function: Callable[..., Any]) -> str:
    """The source of a function, or its bytecode where the source is not known."""
    code: Any = getattr(function, '__code__', None)
    # For a function made by `exec`, Python 3.13 returns the text of `python -c`.
    if getattr(code, 'co_filename', '') != '<string>':
        with suppress(OSError, TypeError):
            return inspect.getsource(function)
    return repr(getattr(code, 'co_code', ''))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _check_decision(decision: object) -> ScriptDecision:
    if decision in get_args(ScriptDecision):
        return cast('ScriptDecision', decision)
    raise SkillValidationError(
        f"A script policy is 'allow', 'ask', 'deny' or a function that returns one, not {decision!r}."
    )
