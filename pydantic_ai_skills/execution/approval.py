"""What exactly a person approves: the command, and a digest that changes with it and with the files behind it."""

from __future__ import annotations

import hashlib
import inspect
import json
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from anyio import to_thread

from .arguments import build_arguments
from .snapshot import read_file, take_snapshot

if TYPE_CHECKING:
    from pydantic_ai_skills.types.skill import SkillScript

__all__ = ('ScriptCall', 'describe_call')


@dataclass(frozen=True, kw_only=True)
class ScriptCall:
    """A run that somebody may approve."""

    skill: str | None
    """The skill the script belongs to."""

    script: str
    """The script."""

    command: str
    """What would be run: a command as a shell would take it, or the call of a function."""

    stdin: str | None
    """Text for standard input."""

    digest: str
    """The SHA-256 of the command, its input and everything in the skill's folder. It changes when any of these does."""

    def metadata(self) -> dict[str, Any]:
        """The call as JSON, for the metadata of a request for approval."""
        return asdict(self)


@runtime_checkable
class _KnowsCommand(Protocol):
    """An executor that can tell the command it would run."""

    def command_line(self, script: SkillScript, args: Any) -> list[str]: ...


async def describe_call(script: SkillScript, args: Any, *, executor: object = None) -> ScriptCall:
    """Describe what running the script with these arguments would do, from the files as they are now.

    Args:
        script: The script.
        args: Arguments as the model sent them.
        executor: What would run it; the local ones know the exact command.

    Raises:
        SkillScriptExecutionError: The arguments cannot be passed on, or the files cannot be read.
    """
    return await to_thread.run_sync(_describe, script, args, executor)


def _describe(script: SkillScript, args: Any, executor: object) -> ScriptCall:
    if script.path is None:
        command, stdin = f'{script.name}({"" if args is None else _canonical(args)})', None
        content = _function_digest(script.function, script.source_text)
    else:
        arguments = build_arguments(args)
        if isinstance(executor, _KnowsCommand):
            command = shlex.join(executor.command_line(script, args))
        else:
            command = shlex.join([script.name, *arguments.argv])
        stdin = arguments.stdin
        content = take_snapshot(script.skill_dir).digest if script.skill_dir else read_file(script.path).digest
    digest = hashlib.sha256(_canonical([command, stdin, content]).encode()).hexdigest()
    return ScriptCall(skill=script.skill_name, script=script.name, command=command, stdin=stdin, digest=digest)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _function_digest(function: Callable[..., Any] | None, source: str | None) -> str:
    """A digest of a function's source, so that an approval does not outlive the version it was given for."""
    try:
        source = inspect.getsource(inspect.unwrap(function)) if function else source or ''
    except (OSError, TypeError):
        source = repr(getattr(getattr(function, '__code__', None), 'co_code', ''))
    return hashlib.sha256(source.encode()).hexdigest()
