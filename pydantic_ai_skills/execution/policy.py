"""Whether a script is run: a setting, a function of yours, or the rule for scripts that came from elsewhere."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pydantic_ai_skills.exceptions import SkillValidationError

if TYPE_CHECKING:
    from pydantic_ai_skills.types.skill import Skill, SkillScript

__all__ = ('ScriptDecision', 'ScriptPolicy', 'check_policy', 'decide', 'default_decision', 'denial', 'is_sandbox')

ScriptDecision = Literal['allow', 'ask', 'deny']
"""Run a script, ask a person first, or refuse."""

ScriptPolicy: TypeAlias = (
    'ScriptDecision | Callable[[Any, Skill[Any], SkillScript, Any], ScriptDecision | Awaitable[ScriptDecision]]'
)
"""A decision for all scripts, or a function of `(ctx, skill, script, args)` that makes one, sync or async."""


def check_policy(policy: ScriptPolicy) -> None:
    """Refuse a setting that is no policy, when it is made and not when a script is run.

    Raises:
        SkillValidationError: It is neither a decision nor a function.
    """
    if not callable(policy):
        _check_decision(policy)


async def decide(policy: ScriptPolicy, ctx: Any, skill: Skill[Any], script: SkillScript, args: Any) -> ScriptDecision:
    """What the policy says about running a script with these arguments.

    Raises:
        SkillValidationError: The policy's function returned something else than a decision.
    """
    if not callable(policy):
        return policy
    decision = policy(ctx, skill, script, args)
    return _check_decision(await decision if inspect.isawaitable(decision) else decision)


def default_decision(*, from_registry: bool, trusted: bool, executor: object) -> ScriptDecision:
    """The rule where no policy is set: a stranger's script runs in a sandbox or not at all.

    Args:
        from_registry: Whether the script came from a registry, not from Python or a local folder.
        trusted: Whether that registry was marked as trusted.
        executor: What would run it.
    """
    return 'deny' if from_registry and not trusted and not is_sandbox(executor) else 'allow'


def denial(script: SkillScript, *, by_default: bool) -> str:
    """What to tell the model, and the developer who reads along, about a script that is not run.

    Args:
        script: The script.
        by_default: Whether no policy was set, so that the rule for registries applied.
    """
    message = f'The script {script.name!r} of skill {script.skill_name!r} may not be run here, so carry on without it.'
    if not by_default:
        return message
    return (
        f'{message} For the developer: scripts from a registry run in a sandbox only, such as '
        'BubblewrapSkillScriptExecutor, unless the registry is marked as trusted or `script_policy` allows them.'
    )


def is_sandbox(executor: object) -> bool:
    """Whether an executor says of itself that it keeps scripts away from this user's files, processes and network."""
    return getattr(executor, 'sandboxed', False) is True


def _check_decision(decision: object) -> ScriptDecision:
    for known in get_args(ScriptDecision):
        if decision == known:
            return known
    raise SkillValidationError(
        f"A script policy is 'allow', 'ask', 'deny' or a function that returns one, not {decision!r}."
    )
