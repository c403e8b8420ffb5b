"""A resource of a skill: something the model can read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, cast

import anyio.to_thread
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import local_path, read_path

from .functions import FunctionOptions, FunctionSchema, call_function


class SkillItem:
    """What resources and scripts have in common."""

    kind: ClassVar[Literal['resource', 'script']]
    """What it is."""

    def __init__(
        self,
        name: str,
        description: str | None,
        function: Callable[..., Any] | None,
        takes_ctx: bool | None,
        function_schema: FunctionSchema | None,
        uri: str | None,
    ) -> None:
        if not name.strip():
            raise SkillValidationError(f'A {self.kind} needs a name.')
        if function is not None and function_schema is None:
            function_schema = FunctionOptions(takes_ctx=takes_ctx).read_schema(function)
        self.name = name
        self.description = description
        self.function = function
        self.function_schema = function_schema
        self.uri = uri

    def __repr__(self) -> str:
        return f'{type(self).__name__}(name={self.name!r})'

    @property
    def takes_ctx(self) -> bool:
        """Whether the function takes a `RunContext` as its first argument."""
        return self.function_schema is not None and self.function_schema.takes_ctx


class SkillResource(SkillItem):
    """Something a skill lets the model read: text, a file, or what a function returns."""

    kind = 'resource'

    def __init__(
        self,
        name: str,
        *,
        description: str | None = None,
        content: str | BinaryContent | None = None,
        function: Callable[..., Any] | None = None,
        takes_ctx: bool | None = None,
        function_schema: FunctionSchema | None = None,
        uri: str | None = None,
    ) -> None:
        """Describe a resource; one of `content`, `function` and `uri` is required.

        Args:
            name: What the model calls it, such as `references/api.md`.
            description: What it holds, for the model.
            content: The text itself; an empty string is content too.
            function: Called for each read, with the arguments the model gives.
            takes_ctx: Whether `function` takes a `RunContext` first; read from its signature when not given.
            function_schema: The schema of `function`; made from its signature when not given.
            uri: A local file, as a path or a `file:` URI.

        Raises:
            SkillValidationError: The name is empty, or there is nothing to read.
        """
        if content is None and function is None and uri is None:
            raise SkillValidationError(f'Resource {name!r} needs one of `content`, `function` or `uri`.')
        super().__init__(name, description, function, takes_ctx, function_schema, uri)
        self.content = content

    async def read(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """Return what the model is sent: the unchanged text of a file, an image or PDF, or the result of the function.

        Args:
            ctx: The run's context, passed to functions that take one.
            args: Arguments for the function, which are validated before it is called.

        Raises:
            SkillResourceLoadError: It cannot be read, or the arguments do not fit.
        """
        if self.function_schema is not None:
            what = f'resource {self.name!r}'
            return await call_function(self.function_schema, ctx, args, what=what, error=SkillResourceLoadError)
        if self.content is not None:
            return self.content
        return await read_path(local_path(cast(str, self.uri)))

    async def load(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """Like `read`, but parse `.json`, `.yaml` and `.yml` files; text that cannot be parsed safely stays text."""
        value = await self.read(ctx, args)
        if self.function is None and isinstance(value, str):
            return await anyio.to_thread.run_sync(_parse, value, self.name)
        return value


def _parse(text: str, name: str) -> Any:
    from pydantic_ai_skills.parsing.values import parse_value  # brings in YAML, which takes long to import

    return parse_value(text, name)
