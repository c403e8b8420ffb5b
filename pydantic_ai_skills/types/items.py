"""What a skill lets the model read and run."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import RunContext, Tool

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError, SkillValidationError
from pydantic_ai_skills.filesystem.safe_open import SkillFolder, local_path, read_path
from pydantic_ai_skills.problems import SkillProblem

from .functions import FunctionOptions, FunctionSchema, call_function, guarded

if TYPE_CHECKING:
    from pydantic_ai_skills.execution.base import SkillScriptExecutor

__all__ = ('SkillFiles', 'SkillResource', 'SkillScript')


class SkillResource:
    """Something a skill lets the model read: text, a file, or what a function returns."""

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
            takes_ctx: Whether `function` takes a `RunContext` first; found out from its signature when not given.
            function_schema: The schema of `function`; made from its signature when not given.
            uri: A local file, as a path or a `file:` URI.

        Raises:
            SkillValidationError: The name is empty, or there is nothing to read.
        """
        if content is None and function is None and uri is None:
            raise SkillValidationError(f'Resource {name!r} needs one of `content`, `function` or `uri`.')
        self.name = _check_item_name(name, 'resource')
        self.description = description
        self.content = content
        self.function = function
        self.function_schema = _schema_of(function, takes_ctx, function_schema)
        self.uri = uri

    def __repr__(self) -> str:
        return f'{type(self).__name__}(name={self.name!r})'

    @property
    def takes_ctx(self) -> bool:
        """Whether the function takes a `RunContext` as its first argument."""
        return self.function_schema is not None and self.function_schema.takes_ctx

    async def read(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """What the model is sent: a file's text as it was written, an image or PDF, or what the function returned.

        Args:
            ctx: The run's context, passed to functions that take one.
            args: Arguments for the function; checked before it is called.

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
        """Like `read`, with the text of `.json`, `.yaml` and `.yml` resources as parsed values.

        Text that does not parse, or that is too deep or too large to parse safely, is returned as text.
        """
        value = await self.read(ctx, args)
        if self.function is None and isinstance(value, str):
            return await anyio.to_thread.run_sync(_parse, value, self.name)
        return value


class SkillScript:
    """Something a skill lets the model run: a Python function or a program in a file."""

    def __init__(
        self,
        name: str,
        *,
        description: str | None = None,
        function: Callable[..., Any] | None = None,
        takes_ctx: bool | None = None,
        function_schema: FunctionSchema | None = None,
        uri: str | None = None,
        skill_name: str | None = None,
        skill_dir: Path | None = None,
        executor: SkillScriptExecutor | None = None,
    ) -> None:
        """Describe a script; one of `function` and `uri` is required.

        Args:
            name: What the model calls it, such as `scripts/convert.py`.
            description: What it does, for the model.
            function: Called for each run, with the arguments the model gives.
            takes_ctx: Whether `function` takes a `RunContext` first; found out from its signature when not given.
            function_schema: The schema of `function`; made from its signature when not given.
            uri: A local file, as a path or a `file:` URI.
            skill_name: The skill it belongs to.
            skill_dir: That skill's folder, where there is one.
            executor: What runs a file; a `LocalSkillScriptExecutor` when not given.

        Raises:
            SkillValidationError: The name is empty, or there is nothing to run.
        """
        if function is None and uri is None:
            raise SkillValidationError(f'Script {name!r} needs one of `function` or `uri`.')
        self.name = _check_item_name(name, 'script')
        self.description = description
        self.function = function
        self.function_schema = _schema_of(function, takes_ctx, function_schema)
        self.uri = uri
        self.skill_name = skill_name
        self.skill_dir = skill_dir
        self.executor = _local_executor() if executor is None and uri is not None else executor

    def __repr__(self) -> str:
        return f'{type(self).__name__}(name={self.name!r})'

    @property
    def takes_ctx(self) -> bool:
        """Whether the function takes a `RunContext` as its first argument."""
        return self.function_schema is not None and self.function_schema.takes_ctx

    @property
    def path(self) -> Path | None:
        """The file to run, or `None` for a function."""
        return None if self.uri is None else local_path(self.uri)

    def of_skill(self, skill_name: str) -> SkillScript:
        """The same script as one of another skill."""
        script = copy(self)
        script.skill_name = skill_name
        return script

    @property
    def usage(self) -> str | None:
        """How a file is used, as far as its text tells: its docstring or first comment, and its arguments."""
        from .script_usage import describe_usage  # not needed where no skill has scripts

        path = self.path
        if path is None:
            return None
        folder = self.skill_dir or path.parent
        if folder not in path.parents:  # a script that skills share
            folder = path.parent
        try:
            source = SkillFolder(str(folder)).read_bytes(path.relative_to(folder).as_posix())
        except SkillResourceLoadError:
            return None
        return describe_usage(self.name, source)

    @property
    def source_text(self) -> str | None:
        """The source of a function that was not imported yet; `None` for one that was, and for a file."""
        return None

    async def prepare(self, ctx: RunContext[Any] | None, args: object) -> bool:
        """Bring in what running it needs, once it may be run; `True` if it takes other arguments since then."""
        return False

    async def run(self, ctx: RunContext[Any] | None, args: object = None) -> Any:
        """Run it: a function's return value, or the executor's result for a file.

        Args:
            ctx: The run's context, passed to functions and executors that take one.
            args: Arguments; for a function they are checked before it is called.

        Raises:
            SkillScriptExecutionError: It could not be run, or the arguments do not fit.
        """
        what = f'script {self.name!r}'
        if self.function_schema is not None:
            return await call_function(self.function_schema, ctx, args, what=what, error=SkillScriptExecutionError)
        running = cast('SkillScriptExecutor', self.executor).run(self, args, ctx)
        return await guarded(running, what=what, error=SkillScriptExecutionError)


@dataclass(kw_only=True, slots=True)
class SkillFiles:
    """What a skill has besides its instructions."""

    resources: list[SkillResource] = field(default_factory=list[SkillResource])
    """What can be read."""

    scripts: list[SkillScript] = field(default_factory=list[SkillScript])
    """What can be run."""

    problems: tuple[SkillProblem, ...] = ()
    """What a person should know, found while listing."""

    tools_module: bool = False
    """Whether the skill's folder has a `tools.py` with typed tools."""

    tools: tuple[Tool[Any], ...] = ()
    """Typed tools that were not known before."""


def _parse(text: str, name: str) -> Any:
    from pydantic_ai_skills.parsing.values import parse_value  # brings in YAML, which takes long to import

    return parse_value(text, name)


@cache
def _local_executor() -> SkillScriptExecutor:
    from pydantic_ai_skills.execution.local import LocalSkillScriptExecutor  # not needed where no file is run

    return LocalSkillScriptExecutor()


def _check_item_name(name: str, kind: str) -> str:
    if not name.strip():
        raise SkillValidationError(f'A {kind} needs a name.')
    return name


def _schema_of(
    function: Callable[..., Any] | None, takes_ctx: bool | None, schema: FunctionSchema | None
) -> FunctionSchema | None:
    if function is None or schema is not None:
        return schema
    return FunctionOptions(takes_ctx=takes_ctx).read_schema(function)
