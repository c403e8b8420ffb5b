"""Tools whose arguments may be wrong without costing the run anything."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolKind
from pydantic_ai.tools import Tool

from pydantic_ai_skills.types.functions import describe_misfit

__all__ = ('forgive', 'forgiving_tool')


def forgiving_tool(function: Callable[..., Any], name: str, *, kind: ToolKind[Any, Any]) -> Tool[Any]:
    """A forgiving tool of a function that takes a `RunContext`, which is of this kind under whatever name."""
    return forgive(Tool[Any](function, name=name, takes_ctx=True, tool_kind=kind))


def forgive(tool: Tool[Any]) -> Tool[Any]:
    """The same tool, for which arguments that do not fit are a tool failure.

    Pydantic-ai asks the model to try again when arguments do not fit, and ends the run when it fails again. A tool
    failure tells the model the same and uses up nothing.
    """
    forgiving = copy(tool)
    schema = forgiving.function_schema = copy(tool.function_schema)
    schema.validator = cast(Any, _ForgivingValidator(tool.name, schema.json_schema, schema.validator))
    return forgiving


class _ForgivingValidator:
    def __init__(self, tool: str, json_schema: dict[str, Any], inner: Any) -> None:
        self.tool = tool
        self.json_schema = json_schema
        self.inner = inner

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
