"""Tools whose arguments may be wrong without costing the run anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import Tool

from pydantic_ai_skills.callables import describe_misfit

__all__ = ('forgiving_tool',)


def forgiving_tool(function: Callable[..., Any], name: str) -> Tool[Any]:
    """A tool of a function that takes a `RunContext`; arguments that do not fit are a tool failure.

    Pydantic-ai asks the model to try again when arguments do not fit, and ends the run when it fails again. A tool
    failure tells the model the same and uses up nothing.
    """
    tool = Tool[Any](function, name=name, takes_ctx=True)
    schema = tool.function_schema
    schema.validator = cast(Any, _ForgivingValidator(name, schema.json_schema, schema.validator))
    return tool


@dataclass(frozen=True)
class _ForgivingValidator:
    tool: str
    json_schema: dict[str, Any]
    inner: Any

    def validate_json(self, given: str | bytes | bytearray, **options: Any) -> Any:
        return self._forgive(self.inner.validate_json, given, options)

    def validate_python(self, given: Any, **options: Any) -> Any:
        return self._forgive(self.inner.validate_python, given, options)

    def _forgive(self, validate: Callable[..., Any], given: Any, options: dict[str, Any]) -> Any:
        try:
            return validate(given, **options)
        except ValidationError as misfit:
            wrong = describe_misfit(misfit, self.json_schema)
            raise ToolFailed(f'The arguments of {self.tool} do not fit. {wrong}') from misfit
