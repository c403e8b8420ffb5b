"""Turns invalid arguments and timeouts into tool failures, which use up no retries of the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import ToolsetTool
from pydantic_ai.toolsets.abstract import SchemaValidatorProt
from pydantic_ai.toolsets.function import FunctionToolsetTool

from pydantic_ai_skills.types.functions import describe_misfit

from .results import outgoing

ToolT = TypeVar('ToolT', bound=ToolsetTool[Any])


def with_lenient_args(tool: ToolT) -> ToolT:
    """The same tool, but invalid arguments are a tool failure.

    When arguments are invalid, pydantic-ai asks the model to try again, and ends the run when its retries are used up.
    A tool failure gives the model the same information and uses up no retry.
    """
    return replace(tool, args_validator=_LenientValidator(tool))


class _LenientValidator(SchemaValidatorProt):
    def __init__(self, tool: ToolsetTool[Any]) -> None:
        self.tool_def = tool.tool_def
        self.strict = tool.args_validator

    def validate_json(self, input: str | bytes | bytearray, **options: Any) -> Any:  # noqa: A002 - the protocol's name
        return self._validate(self.strict.validate_json, input, options)

    def validate_python(self, input: Any, **options: Any) -> Any:  # noqa: A002 - the protocol's name
        return self._validate(self.strict.validate_python, input, options)

    def _validate(self, validate: Callable[..., Any], given: Any, options: dict[str, Any]) -> Any:
        try:
            return validate(given, **options)
        except ValidationError as misfit:
            wrong = describe_misfit(misfit, self.tool_def.parameters_json_schema)
            raise ToolFailed(outgoing(f'The arguments of {self.tool_def.name} do not fit. {wrong}')) from misfit


async def fail_on_timeout(call: Callable[[ToolsetTool[Any]], Awaitable[Any]], tool: ToolsetTool[Any]) -> Any:
    """Call a tool. A timeout becomes a tool failure; a `ModelRetry` that the tool's function raises propagates."""
    assert isinstance(tool, FunctionToolsetTool)
    function = tool.call_func
    has_asked = False

    async def watched(args: dict[str, Any], ctx: RunContext[Any]) -> Any:
        nonlocal has_asked
        try:
            return await function(args, ctx)
        except ModelRetry:
            has_asked = True
            raise

    try:
        return await call(replace(tool, call_func=watched))
    except ModelRetry as retry:
        if has_asked:
            raise
        raise ToolFailed(retry.message) from retry
