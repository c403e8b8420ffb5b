"""Checks that a person approved the very command and files that are about to run.

The metadata of an approval request records what was asked. The messages record it too, for applications that do not
hand the metadata back with the approval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import ModelMessage, ToolCallPart
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.execution.gate import describe_call
from pydantic_ai_skills.types.script import SkillScript

from .history import add_note, notes
from .library import carried

REQUESTS = 'pydantic_ai_skills.approvals'
"""The key, in the metadata of the message with the call, for the digest of what a person was asked to approve."""

IMPORTS = 'pydantic_ai_skills.imports'
"""The key, in the same metadata, for the digest of the skill's code that a person let this conversation import."""


async def check_approval(ctx: RunContext[Any], script: SkillScript, args: Any) -> str:
    """The digest of what a person has approved: this script with these arguments, and no file has changed since.

    Raises:
        ApprovalRequired: Nobody has been asked yet.
        SkillScriptExecutionError: What was approved has changed or is unknown.
    """
    call = await describe_call(script, args, executor=script.executor)
    if not ctx.tool_call_approved:
        raise ApprovalRequired(metadata=call.metadata())
    metadata = ctx.tool_call_metadata
    asked = cast(Mapping[str, Any], metadata).get('digest') if isinstance(metadata, Mapping) else None
    if asked is None:
        asked = next(notes(reversed(_messages(ctx)), REQUESTS, ctx.tool_call_id or ''), None)
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
    return call.digest


def note_request(ctx: RunContext[Any], request: ApprovalRequired) -> None:
    """Note in the conversation what a person is asked to approve, so that any process can check the approval."""
    _note(ctx, REQUESTS, ctx.tool_call_id or '', (request.metadata or {}).get('digest'))


def note_import(ctx: RunContext[Any], skill_name: str, digest: str) -> None:
    """Note in the conversation that a person let it import the code of a skill."""
    _note(ctx, IMPORTS, skill_name, digest)


async def was_import_approved(ctx: RunContext[Any], code: SkillScript, digest: str | None = None) -> bool:
    """Whether a person let this conversation import a skill's code: the version with `digest`, or the current one."""
    approved = list(notes(_messages(ctx), IMPORTS, code.skill_name or ''))
    return bool(approved) and (digest or (await describe_call(code, None)).digest) in approved


def _note(ctx: RunContext[Any], kind: str, key: str, value: Any) -> None:
    """Note something in the metadata of the message that holds this call."""
    with_call = (
        message
        for message in reversed(_messages(ctx))
        if any(isinstance(part, ToolCallPart) and part.tool_call_id == ctx.tool_call_id for part in message.parts)
    )
    message = next(with_call, None)
    if message is not None:
        add_note(message, kind, key, value)


def _messages(ctx: RunContext[Any]) -> Sequence[ModelMessage]:
    return carried(ctx, 'messages', cast(Sequence[ModelMessage], ()))
