"""A resource of a skill: something the model can read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio.to_thread
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import SkillFolder, local_path, read_path

from .functions import FunctionSchema, call_function
from .script import SkillItem


@dataclass(repr=False)
class SkillResource(SkillItem):
    """Something a skill lets the model read: text, a file, or what a function returns.

    One of `content`, `function` and `uri` is required, unless a subclass overrides `load`. What is assigned to a field
    is what the model sees at its next request.
    """

    kind = 'resource'

    name: str
    """What the model calls it, such as `references/api.md`."""

    description: str | None = None
    """What it holds, for the model."""

    content: str | BinaryContent | None = None
    """The text itself; an empty string is content too."""

    function: Callable[..., Any] | None = None
    """Called for each read, with the arguments the model gives."""

    takes_ctx: bool | None = None
    """Whether `function` takes a `RunContext` first; read from its signature when not given."""

    function_schema: FunctionSchema | None = field(default=None, compare=False)
    """The schema of `function`; made from its signature when not given."""

    uri: str | None = None
    """A local file, as a path or a `file:` URI."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.has_own_load:
            self._check_source()

    def _check_source(self) -> None:
        if self.content is None and self.function is None and self.uri is None:
            raise SkillValidationError(f'Resource {self.name!r} needs one of `content`, `function` or `uri`.')

    @property
    def has_own_load(self) -> bool:
        """Whether a subclass overrides `load`, so that the model is sent what that returns."""
        return type(self).load is not SkillResource.load

    async def read(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """Return what the model is sent: the unchanged text of a file, an image or PDF, or the result of the function.

        Args:
            ctx: The run's context, passed to functions that take one.
            args: Arguments for the function, which are validated before it is called.

        Raises:
            SkillResourceLoadError: It cannot be read, or the arguments do not fit.
            SkillValidationError: It has no `content`, `function` or `uri` any more. This is a `ValueError`.
        """
        if (schema := self.schema) is not None:
            what = f'resource {self.name!r}'
            return await call_function(schema, ctx, args, what=what, error=SkillResourceLoadError)
        if self.content is not None:
            return self.content
        self._check_source()
        return await self._read_file(str(self.uri))

    async def _read_file(self, uri: str) -> str | BinaryContent:
        return await read_path(local_path(uri))

    async def load(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """Like `read`, but parse `.json`, `.yaml` and `.yml` files; text that cannot be parsed safely stays text.

        A subclass may override it: the model is then sent what it returns.
        """
        value = await self.read(ctx, args)
        if self.function is None and isinstance(value, str):
            return await anyio.to_thread.run_sync(_parse, value, self.name)
        return value


@dataclass(repr=False)
class FileSkillResource(SkillResource):
    """A file, which is read each time it is asked for."""

    folder: SkillFolder | None = field(default=None, compare=False)
    """The skill's folder, if the file is in one: no link on the way to the file is followed."""

    async def _read_file(self, uri: str) -> str | BinaryContent:
        inside = self.folder and uri.removeprefix(f'{self.folder.path}{os.sep}')
        if not self.folder or not inside or inside == uri:
            return await super()._read_file(uri)
        return await anyio.to_thread.run_sync(self.folder.read, inside)


def _parse(text: str, name: str) -> Any:
    from pydantic_ai_skills.parsing.values import parse_value  # brings in YAML, which takes long to import

    return parse_value(text, name)
