"""What durable engines need: work that is recorded as a step, and care with what does not reach a step."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed, UserError
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillError

__all__ = ('as_step', 'carried', 'check_may_read', 'may_read')

T = TypeVar('T')


async def as_step(name: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work; in a DBOS workflow as a step, so that a workflow that is resumed does not do it again.

    Pydantic-ai makes a durable unit of every tool call under the other engines, but under DBOS it calls the functions
    of a toolset in the workflow's own code.

    Args:
        name: The name of the step. It is recorded, so it must stay the same from one version to the next.
        work: Does it. What it returns is recorded, and has to be a value that can be pickled.
    """
    dbos = _dbos_in_workflow()
    if dbos is None:
        return await work()
    recorded: _Recorded[T] = await dbos.run_step_async({'name': name}, partial(_record, work))
    return recorded.outcome()


def carried(ctx: RunContext[Any], field: str, default: T) -> T:
    """A field of the context; the default in a durable unit that runs elsewhere, to which the field is not carried."""
    try:
        return getattr(ctx, field)
    except UserError:
        return default


def check_may_read() -> None:
    """Refuse to read skills in the code of a Temporal workflow, which has no threads and must do no I/O.

    Raises:
        UserError: This is such code.
    """
    if not may_read():
        raise UserError(
            'The skills have to be read before a Temporal workflow uses them. Call `await toolset.load()` before the '
            'worker is started, and import the module of the agent in `workflow.unsafe.imports_passed_through()`, or '
            'the workflow gets a copy of the agent for which nothing was read.'
        )


def may_read() -> bool:
    """Whether this is not the code of a Temporal workflow."""
    workflow: Any = sys.modules.get('temporalio.workflow')
    return workflow is None or not workflow.in_workflow()


def _dbos_in_workflow() -> Any:
    """DBOS, if this is the code of one of its workflows, and not of a step."""
    module: Any = sys.modules.get('dbos')
    dbos = None if module is None else module.DBOS
    return dbos if dbos is not None and dbos.workflow_id is not None and dbos.step_id is None else None


@dataclass(kw_only=True, repr=False, eq=False)
class _Recorded(Generic[T]):
    """How a step ended. What pydantic-ai expects as an exception is kept as a value, since not all can be pickled."""

    value: T | None = None
    raises: type[Exception] | None = None
    detail: Any = None

    def outcome(self) -> Any:
        if self.raises in (ApprovalRequired, CallDeferred):
            raise self.raises(metadata=self.detail)
        if self.raises is not None:
            raise self.raises(self.detail)
        return self.value


async def _record(work: Callable[[], Awaitable[T]]) -> _Recorded[T]:
    try:
        return _Recorded(value=await work())
    except (ApprovalRequired, CallDeferred) as deferred:
        return _Recorded(raises=type(deferred), detail=deferred.metadata)
    except (ModelRetry, ToolFailed) as told:
        return _Recorded(raises=type(told), detail=told.message)
    except SkillError as error:
        return _Recorded(raises=ToolFailed, detail=str(error))
