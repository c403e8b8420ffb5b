"""Whether a script may run now: the policy's decision, and a person's approval where it asks for one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.policy import ScriptPolicy, check_policy, decide, default_decision, denial
from pydantic_ai_skills.types.skill import Skill, SkillScript

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.approval import ScriptCall

__all__ = ('ScriptApprovals',)

MAX_OPEN_REQUESTS = 1_000
"""How many requests for approval are remembered; older ones have to bring their metadata back."""


class ScriptApprovals:
    """Lets a script run, asks for approval of it, or refuses it.

    An approval is for one command on files as they were when it was asked for. What was asked is told in the metadata
    of the request, and remembered here for applications that do not hand the metadata back with the approval.
    """

    def __init__(self, policy: ScriptPolicy | None) -> None:
        """Remember the policy.

        Args:
            policy: What decides; `None` for the rule that scripts from registries run in a sandbox only.

        Raises:
            SkillValidationError: It is no policy.
        """
        if policy is not None:
            check_policy(policy)
        self._policy: ScriptPolicy | None = policy
        self._asked: OrderedDict[str, str] = OrderedDict()

    async def check(
        self, ctx: RunContext[Any], skill: Skill[Any], script: SkillScript, args: Any, *, ask: bool = False
    ) -> None:
        """Return if the script may run with these arguments.

        Args:
            ctx: The run's context.
            skill: The skill.
            script: The script.
            args: Its arguments.
            ask: Whether a person has to approve what the policy allows.

        Raises:
            SkillScriptExecutionError: It may not, or it is not what was approved any more.
            ApprovalRequired: A person has to approve it first.
        """
        if self._policy is not None:
            decision = await decide(self._policy, ctx, skill, script, args)
        else:
            source = skill.source
            decision = default_decision(
                from_registry=source is not None and script.function is None,
                trusted=source is not None and source.trusted,
                executor=script.executor,
            )
        if decision == 'deny':
            raise SkillScriptExecutionError(denial(script, by_default=self._policy is None))
        if decision == 'ask' or ask:
            await self._ask(ctx, script, args)
        if await script.prepare(ctx, args) and self._policy is not None:
            # Only now is it known what its arguments are, so the policy has another look at them.
            again = await decide(self._policy, ctx, skill, script, args)
            if again == 'deny':
                raise SkillScriptExecutionError(denial(script, by_default=False))
            if again == 'ask' != decision:
                await self._ask(ctx, script, args)

    async def _ask(self, ctx: RunContext[Any], script: SkillScript, args: Any) -> None:
        describe_call = await anyio.to_thread.run_sync(_describer)
        call = await describe_call(script, args, executor=script.executor)
        key = ctx.tool_call_id or ''
        if not ctx.tool_call_approved:
            self._asked[key] = call.digest
            if len(self._asked) > MAX_OPEN_REQUESTS:
                self._asked.popitem(last=False)
            raise ApprovalRequired(metadata=call.metadata())
        asked = self._asked.pop(key, None)
        metadata = ctx.tool_call_metadata
        if isinstance(metadata, Mapping):
            asked = cast(Mapping[str, Any], metadata).get('digest', asked)
        if asked is None:
            raise SkillScriptExecutionError(
                f'The script {script.name!r} was not run: it is not known any more what was approved. For the '
                'developer: hand the metadata of the request back with the approval.'
            )
        if asked != call.digest:
            raise SkillScriptExecutionError(
                f'The script {script.name!r} was not run: it, its arguments or a file of its skill is not what was '
                'approved. Call it again to ask for another approval.'
            )


def _describer() -> Callable[..., Awaitable[ScriptCall]]:
    """What describes a call. It is imported off the event loop, and only where a person is asked."""
    from pydantic_ai_skills.execution.approval import describe_call

    return describe_call
