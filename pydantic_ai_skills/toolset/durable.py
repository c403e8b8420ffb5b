"""Records work as a step of a durable engine."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed

from pydantic_ai_skills.exceptions import SkillError

T = TypeVar('T')


async def as_step(name: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work. In a DBOS workflow it is a step, so that a resumed workflow does not do it again.

    Under the other engines, pydantic-ai makes a durable unit of every tool call; under DBOS, it calls the functions of
    a toolset in the workflow's own code. DBOS records the name of the step, which must stay the same from one version
    to the next, and the result, which has to be picklable.
    """
    dbos = _dbos_in_workflow()
    if dbos is None:
        return await work()
    recorded: _Recorded[T] = await dbos.run_step_async({'name': name}, partial(_record, work))
    return recorded.outcome()


def is_in_dbos() -> bool:
    """Whether this is the code of a DBOS workflow, or of a step of one."""
    module: Any = sys.modules.get('dbos')
    return module is not None and module.DBOS.workflow_id is not None


def _dbos_in_workflow() -> Any:
    """DBOS, if this is the code of one of its workflows and not of a step."""
    dbos: Any = sys.modules['dbos'].DBOS if is_in_dbos() else None
    return dbos if dbos is not None and dbos.step_id is None else None


def is_replayed() -> bool:
    """Whether a Temporal workflow is replaying code whose effects have already happened."""
    workflow: Any = sys.modules.get('temporalio.workflow')
    return workflow is not None and workflow.in_workflow() and workflow.unsafe.is_replaying()


class _Recorded(NamedTuple, Generic[T]):
    """How a step ended. Exceptions that pydantic-ai expects are kept as values, since not all are picklable."""

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
